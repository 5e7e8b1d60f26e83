"""What does `bench deadline` measure on recorded traces, and what does it say of invalid files?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.harness.bench.__main__ import app

HOURLY = ("--work", "4", "--deadlines", "5,8", "--change", "360")


def trace(points: list[Any], gap_seconds: float = 600) -> str:
    return json.dumps({"metadata": {"gap_seconds": gap_seconds}, "data": points})


@pytest.fixture
def bench(tmp_path: Path) -> Any:
    def run(*options: str, **files: str) -> Any:
        for name, text in files.items():
            path = tmp_path / "traces" / name / "zone_v100_1.json"
            path.parent.mkdir(parents=True)
            path.write_text(text)
        words = ["deadline", "--traces", str(tmp_path / "traces"), *options]
        return CliRunner().invoke(app, words, catch_exceptions=False)

    return run


def test_costs_lie_between_the_best_and_on_demand_and_nothing_is_missed(bench: Any) -> None:
    answer = bench("--json", *HOURLY, bursts=trace(([1] * 12 + [0] * 6) * 20), ever=trace([1] * 200))
    report = json.loads(answer.stdout)
    assert report["setting"] == {
        "workHours": 4.0,
        "deadlineHours": [5.0, 8.0],
        "changeSeconds": 360.0,
        "stepSeconds": 360.0,
        "spotPrice": 0.3,
    }
    assert set(report["folders"]) == {"bursts", "ever"}
    for row in (*report["folders"].values(), report["all"]):
        assert 1.2 < row["best"] <= row["argosy"] <= row["onDemand"] == pytest.approx(4.1)
        assert (row["missed"], row["missedByGreedy"], row["impossible"]) == (0, 0, 0)
    assert report["folders"]["ever"]["gapShare"] is None, "no policy is worse than the best if spot is always available"
    assert report["all"]["jobs"] == sum(row["jobs"] for row in report["folders"].values())


def test_a_newcomer_reads_what_was_replayed_and_how_to_read_it(bench: Any) -> None:
    answer = bench(*HOURLY, bursts=trace(([1] * 12 + [0] * 6) * 20), brief=trace([1, 0]))
    assert answer.exit_code == 0
    assert "4 h of work, deadlines 5 h, 8 h, change-over 360 s, spot at 30% of on-demand." in answer.stdout
    (brief,) = [line for line in answer.stdout.splitlines() if line.startswith("brief")]
    assert brief.endswith("(shorter than the deadlines)")


def test_every_file_that_is_no_trace_is_named_and_nothing_is_replayed(bench: Any) -> None:
    answer = bench(
        good=trace([1, 0]),
        torn="{",
        empty=trace([]),
        still=trace([1], gap_seconds=0),
        text=trace(["1"]),
        below=trace([-1]),
        bare="{}",
    )
    assert answer.exit_code != 0
    said = answer.stderr
    for name in ("torn", "empty", "still", "text", "below", "bare"):
        assert f"{name}/zone_v100_1.json" in said
    assert "good/" not in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--deadlines", "soon"), "is not a list of hours"),
        (("--deadlines", "52,48"), "--deadlines 48 leaves no slack beyond the work of 48 hours"),
    ],
)
def test_a_job_without_slack_or_time_is_refused(bench: Any, options: tuple[str, ...], said: str) -> None:
    assert said in bench(*options, good=trace([1, 0])).stderr


def test_a_folder_without_traces_is_refused(bench: Any) -> None:
    assert "is not a folder with JSON files" in bench().stderr
