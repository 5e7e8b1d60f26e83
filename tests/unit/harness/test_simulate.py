"""`python -m tests.harness.simulate`: exit codes, figures, and the line that replays a violation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.harness.simulate import app

ROOT = Path(__file__).resolve().parents[3]


def simulate(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


@pytest.mark.slow
def test_trials_without_a_violation_exit_0_and_tell_what_they_cost() -> None:
    result = simulate("--trials", "2", "--seed", "11", "--faults", "reply-lost,crash", "--tasks", "4", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.output)
    assert (report["trials"], report["violations"], report["found"]) == (2, 0, [])
    assert report["faultsSeen"].keys() == {"crash"}
    assert report["faultsNotSeen"] == ["reply-lost"]
    assert report["launchesPerTask"] >= 1
    assert report["costUsd"] > 0


@pytest.mark.slow
def test_the_same_seed_gives_the_same_answer() -> None:
    first, second = (simulate("--seed", "7", "--json").output for _ in range(2))
    assert first == second


@pytest.mark.slow
def test_a_violation_exits_1_with_its_story_and_the_line_that_replays_it() -> None:
    words = ("--faults", "token-misbehaviour,failure-lies", "--tasks", "12", "--seed")
    found = next(result for seed in range(19, 80) if (result := simulate(*words, str(seed))).exit_code == 1)
    assert "violates I1" in found.output
    assert "python -m tests.harness.simulate --seed" in found.output


@pytest.mark.slow
def test_a_spec_is_simulated_as_a_question_of_capacity() -> None:
    result = simulate("--faults", "none", "--instances", "8", "--spec", str(ROOT / "containers/digits/run.yaml"))
    assert result.exit_code == 0, result.output
    assert "SUCCEEDED 1" in result.output
    assert "longest run" in result.output
    assert "/us-east-1" in result.output  # what would be bought, by pool


@pytest.mark.slow
def test_a_run_at_size_is_shown_in_one_view_and_as_json() -> None:
    words = ("--cells", "2", "--tasks", "30", "--instances", "6", "--faults", "interruptions")
    result = simulate(*words)
    assert result.exit_code == 0, result.output
    assert "no violation" in result.output
    assert "30 tasks in 2 cells, 30 succeeded" in result.output
    report = json.loads(simulate(*words, "--json").output)
    assert (report["tasks"], report["cells"], report["violations"]) == (30, 2, 0)
    assert {"launchRateUsed", "writeUnitsPerTask", "recordWriteUnitsPerTask", "waste", "measured"} <= report.keys()


def test_at_size_other_faults_than_interruptions_are_refused_with_a_sentence() -> None:
    refused = simulate("--cells", "2", "--faults", "crash")
    assert refused.exit_code == 2
    assert "--faults interruptions" in refused.output


def test_at_size_the_faults_of_all_that_do_not_strike_are_named() -> None:
    words = ("--cells", "1", "--tasks", "4", "--instances", "2")
    report = json.loads(simulate(*words, "--json").output)
    said = simulate(*words).output
    assert f"not run       {len(report['faultsNotRun'])} kinds of faults: with --cells only interruptions" in said
    assert "crash" in report["faultsNotRun"]
    assert "interruption" not in report["faultsNotRun"]
    assert json.loads(simulate(*words, "--faults", "none", "--json").output)["faultsNotRun"] == []


def test_what_cannot_be_simulated_is_refused_with_a_sentence(tmp_path: Path) -> None:
    assert "unknown fault 'flood'" in simulate("--faults", "flood").output
    spec = tmp_path / "run.yaml"
    spec.write_text(
        "version: 1\nname: x\ncontainer: {image: argosy/digits, command: [a]}\narray: {itemsFrom: 's3://b/k'}\n"
    )
    refused = simulate("--spec", str(spec))
    assert refused.exit_code == 2
    assert "itemsFrom" in refused.output


@pytest.mark.slow
def test_simulated_trials_are_kept_as_a_page(tmp_path: Path) -> None:
    file = tmp_path / "trials.html"
    result = simulate("--trials", "1", "--tasks", "3", "--faults", "none", "--html", str(file))
    assert result.exit_code == 0, result.output
    page = file.read_text()
    assert "1 simulated trial" in page
    assert "python -m tests.harness.simulate --trials 1" in page


@pytest.mark.slow
def test_a_run_at_size_is_kept_as_its_users_would_see_it(tmp_path: Path) -> None:
    file = tmp_path / "run.html"
    words = ("--cells", "1", "--tasks", "60", "--instances", "5", "--faults", "none", "--html", str(file))
    result = simulate(*words)
    assert result.exit_code == 0, result.output
    page = file.read_text()
    assert '<dt>Succeeded</dt><dd class="number">60</dd>' in page
    assert "Timeline of 60 attempts" in page
