"""What tasks used of their vCPUs and memory is shown with what would be enough, in dollars."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.client.task_use import MeasuredTask, advice, sentence, task_from
from argosy.figures.use import task_use
from tests.fakes import cli as fakes
from tests.fakes.cli import RUN_ID, World, run_view
from tests.fakes.reader import use

BUCKET, FOLDER = "argosy-results", f"{RUN_ID}/attempts/use/"
ASKED = {"gpus": 0, "gpuShareMib": 0, "memoryMib": 2048, "vcpus": 1.0}


def measured(index: int = 0, **changes: Any) -> MeasuredTask:
    found = task_from(f"{FOLDER}{index:07d}/1.json", json.dumps({**use(), **changes}).encode())
    assert found is not None
    return found


def world(**changes: Any) -> World:
    made = World().answers("DescribeRun", run_view(**{**ASKED, **changes}))
    made.objects.put(f"s3://{BUCKET}/{FOLDER}0000003/2.json", use())
    return made


def test_status_says_what_was_used_and_what_enough_would_cost() -> None:
    told = " ".join(world().argosy("status", RUN_ID).stdout.split())
    assert "1 attempt used 0.26 of 1 vCPU, 0.4 at most, and at most 310 of 2,048 MiB" in told
    wanted = "resources {vcpus: 0.5, memory: 384} would cost $0.017 an hour of a task instead of $0.0363 (on demand)"
    assert wanted in told


def test_each_attempt_has_a_row_and_json_has_every_sample() -> None:
    told = world(taskList=[fakes.task_row(3)], nextToken=None).argosy("status", RUN_ID, "--tasks").stdout
    assert "3 2 0.26 0.40 310 MiB" in " ".join(told.split())
    (found,) = json.loads(world().argosy("status", RUN_ID, "--json").stdout)["use"]
    assert (found["index"], found["attempt"], found["peakMemoryMib"], found["at"]) == (3, 2, 310, [1.0, 6.0, 11.0])


def test_a_run_without_attempts_is_not_asked_for_them_and_a_refusal_hides_nothing_else() -> None:
    refused = world()
    refused.objects.refuses[BUCKET] = fakes.refusal("AccessDenied", operation="ListObjectsV2")
    for each in (refused, world(attempts=0)):
        result = each.argosy("status", RUN_ID)
        assert result.exit_code == 0
        assert "MiB" not in result.stdout


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        ({"vcpus": [1.0, 0.9, 0.9], "memoryMib": [1700] * 3}, {}),
        ({"at": [1.0, 2.0, 3.0]}, {}),  # too short
        ({"vcpus": [None] * 3}, {}),
        ({}, {"gpus": 1}),  # it pays for the GPU
        ({}, {"vcpus": None}),
        ({}, {"vcpus": 500.0}),  # no type has them
    ],
)
def test_where_less_saves_nothing_or_too_little_is_known_none_is_advised(
    changes: dict[str, Any], asked: dict[str, Any]
) -> None:
    assert advice([measured(**changes)], {**ASKED, **asked}, "us-east-1") == ""


@given(
    st.lists(st.tuples(st.floats(0, 8), st.integers(0, 20_000)), min_size=1, max_size=5),
    st.sampled_from([0.25, 1.0, 4.0]),
    st.sampled_from([128, 2048, 16_384]),
)
def test_what_is_advised_is_not_more_than_asked_for_and_holds_what_was_used(
    rows: list[tuple[float, int]], vcpus: float, memory: int
) -> None:
    columns = {"at": [20.0 * n for n in range(1, len(rows) + 1)], "vcpus": [r[0] for r in rows]}
    told = advice(
        [measured(**columns, memoryMib=[r[1] for r in rows])],
        {**ASKED, "vcpus": vcpus, "memoryMib": memory},
        "us-east-1",
    )
    if told:
        words = told.replace(",", "").replace("}", "").split()
        wanted, mib = float(words[2]), int(words[4])
        assert min(vcpus, max(row[0] for row in rows)) <= wanted <= vcpus
        assert min(memory, max(row[1] for row in rows)) <= mib <= memory


@pytest.mark.parametrize(
    "changes", [{"at": []}, {"at": [1.0, 1.0, 2.0]}, {"vcpus": "abc"}, {"memoryMib": [float("nan")] * 3}]
)
def test_what_is_no_measurement_is_left_out(changes: dict[str, Any]) -> None:
    assert task_from(f"{FOLDER}0000000/1.json", json.dumps({**use(), **changes}).encode()) is None
    assert task_from("notes.json", json.dumps(use()).encode()) is None


def test_the_figure_has_lines_above_what_was_asked_for_and_a_row_for_each_attempt() -> None:
    figure = task_use([measured(), measured(4, vcpus=[3.9, 2.0, 4.1])], ASKED, "Less would be enough.")
    assert figure.note == "1.7 of 1 vCPU, 4.1 at most, and at most 310 of 2,048 MiB. Less would be enough."
    assert figure.table is not None
    assert [row[0] for row in figure.table.rows] == ["0", "4"]
    busy = str(task_use([measured(vcpus=[3.9, 2.0, 4.1], memoryMib=[None] * 3)], ASKED).picture)
    assert "410 %" in busy
    assert "memory" not in busy
    assert sentence([measured(memoryMib=[None] * 3)], ASKED) == ""
