"""`argosy explain RUN 17 --at TIME`: a past decision, and messages for what cannot be reproduced."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from argosy.cli.runs.explain import past_lines
from argosy.layout import JOURNAL
from argosy.recording import recorder
from argosy.replay.chains import chains_of
from tests.fakes.cli import NOW, World, api_error
from tests.fakes.recorded import edited, recorded
from tests.harness.simulation.controllers.recorded import RecordedTrial

MACHINE = {"id": "i-1", "type": "g5.xlarge", "zone": "us-east-1a", "purchase": "spot", "usdPerHour": 0.35}
FREE = {"cpuUnits": 1024, "memoryMib": 4096, "gpus": 1}


@pytest.fixture(scope="module")
def trial() -> RecordedTrial:
    return recorded(0, tasks=12)


@pytest.fixture(scope="module")
def parts(trial: RecordedTrial) -> RecordedTrial:
    """The same, in one segment for each line."""
    copy = RecordedTrial()
    for chain in chains_of(trial.names(JOURNAL)):
        for part, (head, line) in enumerate(chain.lines(trial)):
            text = b"".join(json.dumps(each).encode() + b"\n" for each in ({**head, "part": part}, line))
            copy.put(f"{JOURNAL}{chain.name}-{part:04d}.jsonl.gz", gzip.compress(text))
    return copy


def world_of(trial: RecordedTrial) -> World:
    """Afterwards: all that was decided is in the record."""
    world = World(now=datetime(2027, 3, 1, tzinfo=UTC).timestamp()).answers("ListChanges", {"changes": []})
    for name, body in trial.files.items():
        world.objects.put(f"s3://argosy-results/{name}", body)
    return world


def first_launch(trial: RecordedTrial) -> tuple[str, str, int]:
    """(when, as ISO), run, index."""
    for chain in chains_of(trial.names(JOURNAL)):
        for _, line in chain.lines(trial):
            for action in line[3] if line[0] == "tick" else ():
                if action[0] == "Launch":
                    at = datetime.fromtimestamp(line[1]["decidedAt"] + 1e-3, UTC)
                    return at.isoformat(), action[1]["key"][0], action[1]["key"][1]
    raise AssertionError("nothing was launched")


@pytest.mark.slow
def test_a_past_placement_is_shown_with_its_ranking(trial: RecordedTrial) -> None:
    at, run, index = first_launch(trial)
    result = world_of(trial).argosy("explain", run, str(index), "--at", at)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"{run}: as of the decision at ")
    assert lines[1].startswith(f"task {index}, attempt 1: placed on i-")
    assert "with room, by least-waste, then by busy-first, then by image-first, then by best-fit" in lines[2]
    assert any(line.strip().startswith("1. i-") for line in lines)


@pytest.mark.parametrize("seconds", [0.0, -0.05])
def test_the_last_placement_of_an_ended_task_is_shown(trial: RecordedTrial, seconds: float) -> None:
    """The history rounds to tenths: a launch may appear to come before the decision that it follows."""
    at, run, index = first_launch(trial)
    launched = datetime.fromisoformat(at) + timedelta(seconds=seconds)
    attempts = [{"launchedAt": launched.isoformat()}, {"launchedAt": None}, {"launchedAt": "2099-01-01T00:00:00+00:00"}]
    world = world_of(trial).answers("DescribeTask", {"attempts": attempts})
    world.answers("DescribeRun", {"submittedAt": (launched - timedelta(minutes=50)).isoformat()})
    later = (launched + timedelta(minutes=50)).isoformat()
    lines = world.argosy("explain", run, str(index), "--at", later).stdout.splitlines()
    assert lines[1:3] == [
        "the run was not open then",
        next(line for line in lines if "attempt 1: placed on i-" in line),
    ]


def test_a_task_that_was_never_placed_says_so(trial: RecordedTrial) -> None:
    at, run, index = first_launch(trial)
    before = (datetime.fromisoformat(at) - timedelta(seconds=20)).isoformat()
    world = world_of(trial).answers("DescribeTask", {"attempts": []})
    lines = world.argosy("explain", run, str(index), "--at", before).stdout.splitlines()
    assert lines[1] == f"task {index} had no attempt then"


def test_a_launch_that_the_record_does_not_reach_yet_is_not_denied(trial: RecordedTrial) -> None:
    """A minute's decisions wait in the controller before they are stored."""
    at, run, index = first_launch(trial)
    before = datetime.fromisoformat(at) - timedelta(seconds=20)
    world = world_of(trial).answers("DescribeTask", {"attempts": [{"launchedAt": before.isoformat()}]})
    result = world.argosy("explain", run, str(index), "--at", before.isoformat())
    assert (result.exit_code != 0, result.stdout) == (True, "")
    assert "the launch of the task's attempt at that time is not in the record" in result.stderr


@pytest.mark.parametrize(("seconds", "is_told"), [(-1, True), (2400, False), (3600, True)])
def test_a_run_that_the_record_does_not_reach_yet_is_not_reported_as_closed(
    trial: RecordedTrial, seconds: float, is_told: bool
) -> None:
    at, _, _ = first_launch(trial)
    launched = datetime.fromisoformat(at)
    submitted = (launched + timedelta(seconds=seconds)).isoformat()
    world = world_of(trial).answers("DescribeRun", {"submittedAt": submitted})
    result = world.argosy("explain", "other-261121-062733-aaaa", "--at", (launched + timedelta(minutes=50)).isoformat())
    assert ("the run was not open then" in result.stdout) == is_told
    assert ("nothing was recorded between the run's submission" in result.stderr) == (not is_told)


def test_the_same_is_there_for_programs(trial: RecordedTrial) -> None:
    at, run, index = first_launch(trial)
    result = world_of(trial).argosy("explain", run, "--task", str(index), "--at", at, "--json")
    reply = json.loads(result.stdout)
    assert (reply["runId"], reply["index"], reply["exact"]) == (run, index, True)
    assert reply["placement"]["attempt"] == 1


def test_an_unrecorded_moment_is_reported_with_what_to_do(trial: RecordedTrial) -> None:
    result = world_of(trial).argosy("explain", "gone-261121-062733-aaaa", "--at", "2020-01-01T00:00")
    assert result.exit_code != 0
    assert "That time cannot be reproduced: nothing was recorded in the hour before that time." in result.stderr
    assert "journalDays" in result.stderr


def test_a_moment_to_come_is_the_users_fault(trial: RecordedTrial) -> None:
    result = world_of(trial).argosy("explain", "gone-261121-062733-aaaa", "--at", "2031-01-01T00:00")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "2031-01-01T00:00 is in the future" in result.stderr


@pytest.mark.parametrize(("seconds_later", "is_said"), [(0, True), (1, False)])
def test_decisions_lost_in_a_crash_are_reported_as_missing(
    trial: RecordedTrial, seconds_later: float, is_said: bool
) -> None:
    at, run, _ = first_launch(trial)
    later = (datetime.fromisoformat(at) + timedelta(seconds=seconds_later)).isoformat()
    world = world_of(trial).answers("ListChanges", {"changes": [{"sequence": "4711.3", "at": later}]})
    shown = world.document("explain", run, "--at", at)
    lines = past_lines(shown)
    assert f"version {shown['version']}" in lines[0]
    assert ("(version 4711) on, are not in the record" in lines[1]) == is_said
    [asked] = [each for each in world.functions.requests if each["action"] == "ListChanges"]
    assert asked["since"] == str(shown["version"] + 1)  # its own commit is not a later decision


def test_nothing_is_reported_about_unknown_commits(trial: RecordedTrial) -> None:
    at, run, _ = first_launch(trial)
    world = world_of(trial).answers("ListChanges", api_error(410, "ChangesExpired", "changes are not kept any more"))
    assert world.document("explain", run, "--at", at)["notRecordedFrom"] is None
    world = world_of(trial).answers("ListChanges", api_error(429, "ThrottlingException", "too many at once"))
    assert "too many at once" in world.argosy("explain", run, "--at", at).stderr


def read_back(trial: RecordedTrial) -> tuple[int, str, str]:
    """The command's answer about the first launch: exit code, stdout, stderr."""
    at, run, index = first_launch(trial)
    result = world_of(trial).argosy("explain", run, str(index), "--at", at)
    return result.exit_code, result.stdout, result.stderr


def spoiled(trial: RecordedTrial, *damage: Callable[[dict[str, bytes], list[str]], None]) -> World:
    """The record, with some files changed. damage: receives the files and their names in order."""
    copy = RecordedTrial(dict(trial.files))
    for each in damage:
        each(copy.files, sorted(copy.files))
    return world_of(copy)


def tear_all(files: dict[str, bytes], names: list[str]) -> None:
    files.update({name: files[name][:-9] for name in names})


def lose_the_first_parts(files: dict[str, bytes], names: list[str]) -> None:
    for name in names:
        if name.endswith("-0000.jsonl.gz"):
            del files[name]


@pytest.mark.parametrize(
    ("damage", "sentence"), [(tear_all, "is incomplete"), (lose_the_first_parts, "a segment is missing: part 0 of")]
)
def test_a_record_with_a_gap_or_a_torn_segment_is_refused_with_what_is_wrong(
    parts: RecordedTrial, damage: Callable[[dict[str, bytes], list[str]], None], sentence: str
) -> None:
    at, run, index = first_launch(parts)
    result = spoiled(parts, damage).argosy("explain", run, str(index), "--at", at)
    assert (result.exit_code != 0, result.stdout) == (True, "")
    assert "That time cannot be reproduced" in result.stderr
    assert sentence in result.stderr


def test_an_incomplete_record_is_read_up_to_its_end_and_reported(parts: RecordedTrial) -> None:
    def lose_the_last(files: dict[str, bytes], names: list[str]) -> None:
        files[names[-1]] = files[names[-1]][:-9]

    at, run, index = first_launch(parts)
    result = spoiled(parts, lose_the_last).argosy("explain", run, str(index), "--at", at)
    assert result.exit_code == 0, result.stderr
    assert "this may not be what the controller decided:" in result.stdout
    assert "is incomplete" in result.stdout


def test_a_decision_that_is_another_one_on_this_platform_is_reported(trial: RecordedTrial) -> None:
    """As if floating-point sums were rounded differently there, so that another instance is the best."""

    def elsewhere(line: Any) -> None:
        if isinstance(line, dict):
            line["platform"]["machine"] = "riscv64"
        elif line[0] == "tick":
            for name, values in line[3]:
                if name == "Launch":
                    values["instance_id"] = "i-0ffffffffffffffff"

    at, run, index = first_launch(trial)
    result = world_of(edited(trial, elsewhere)).argosy("explain", run, str(index), "--at", at)
    assert result.exit_code == 0, result.stderr
    said = result.stdout.splitlines()
    assert said[1] == "this may not be what the controller decided:"
    assert f"  the controller had machine riscv64, here it is {recorder.platform_now()['machine']}" in said
    assert any("the decision differs" in each for each in said)


def test_a_record_of_other_code_is_reported(trial: RecordedTrial) -> None:
    def older(line: Any) -> None:
        if isinstance(line, dict):
            line["code"] = "0123456789abcdef"

    code, said, _ = read_back(edited(trial, older))
    assert code == 0
    assert f"  the controller ran different code: 0123456789abcdef, here it is {recorder.code_digest()}" in said


def test_a_moment_that_is_none_is_the_users_fault(trial: RecordedTrial) -> None:
    result = world_of(trial).argosy("explain", "gone-261121-062733-aaaa", "--at", "yesterday")
    assert result.exit_code == 2
    assert "'yesterday' is not a time" in result.stderr


def told(**changes: Any) -> str:
    """A reply of the past, in lines."""
    ranked = {"rank": 1, **MACHINE, "free": FREE, "figures": {"best-fit": 7}, "placedTogether": 2}
    refusal = {"refused": 3, "detail": "needs 1 GPU"}
    placement = {
        "decidedAt": NOW, "attempt": 2, "instance": MACHINE, "strategy": ["best-fit"], "rank": 1, "fits": 1,
        "instances": 4, "refusals": [refusal], "placedTogether": 2, "ranked": [ranked],
        "lastOrder": {"instances": 1, "usdPerHour": 0.35, "gapPct": None},
    } | changes.pop("placement", {})  # fmt: skip
    reply = {
        "runId": "r", "index": 7, "at": NOW, "version": 3, "run": {}, "placement": placement, "exact": True,
        "differences": [],
    } | changes  # fmt: skip
    return "\n".join(past_lines(reply))


def test_gpus_companions_refusals_and_the_purchase_are_shown() -> None:
    text = told()
    assert "1 vCPU, 4,096 MiB, 1 GPU free; best-fit 7; took 2 tasks" in text
    assert "1 other task of the run were placed with it in the same decision" in text
    assert "3 had no room: needs 1 GPU" in text
    assert "the last purchase before it: 1 instance for $0.350 an hour" in text


def test_a_task_with_a_share_sees_how_many_of_its_shares_each_instance_takes() -> None:
    ranked = {"rank": 1, **MACHINE, "free": FREE, "figures": {}, "placedTogether": 0, "gpuShares": 2}
    assert "1 GPU, 2 shares of 10,000 MiB of a GPU free" in told(placement={"ranked": [ranked], "gpuShareMib": 10_000})


def test_an_instance_outside_the_ranking_is_reported_as_such() -> None:
    assert "not ranked" in told(placement={"rank": None})


def test_differences_come_first() -> None:
    lines = told(exact=False, differences=["the controller ran different code: a, here it is b"]).splitlines()
    assert lines[1:3] == [
        "this may not be what the controller decided:",
        "  the controller ran different code: a, here it is b",
    ]


def test_a_run_that_was_not_open_and_a_task_without_an_attempt_are_reported() -> None:
    reply = {"runId": "r", "index": 7, "at": NOW, "version": 3, "run": None, "placement": None}
    text = "\n".join(past_lines({**reply, "exact": True, "differences": []}))
    assert "the run was not open then" in text
    assert "task 7 had no attempt then" in text
