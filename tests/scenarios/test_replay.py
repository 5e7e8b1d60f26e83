"""The controllers' records reproduce their input and decisions exactly, and say where they cannot."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from argosy.layout import JOURNAL
from argosy.recording import recorder
from argosy.replay.chains import NotRecorded, chains_of
from argosy.replay.past_decisions import why
from tests.fakes.recorded import edited, recorded
from tests.harness.simulation.controllers.recorded import RecordedTrial
from tests.harness.simulation.faults import ALL


@pytest.fixture(scope="module")
def quiet() -> RecordedTrial:
    """A trial in which nothing goes wrong."""
    return recorded(0, tasks=12)


def lines_of(trial: RecordedTrial) -> list[list[Any]]:
    return [line for chain in chains_of(trial.names(JOURNAL)) for _, line in chain.lines(trial)]


def launches(trial: RecordedTrial) -> list[tuple[float, str, int, str]]:
    """(when it was decided, run, index, instance) of every launch."""
    return [
        (line[1]["decidedAt"], action[1]["key"][0], action[1]["key"][1], action[1]["instance_id"])
        for line in lines_of(trial)
        if line[0] == "tick"
        for action in line[3]
        if action[0] == "Launch"
    ]


def test_every_commit_of_a_trial_without_faults_is_recorded_and_had_again(quiet: RecordedTrial) -> None:
    versions = [line[1]["version"] for line in lines_of(quiet) if line[0] == "tick" and line[1]["version"]]
    assert versions == list(range(1, len(versions) + 1))


def test_a_placement_is_explained_as_it_was_decided(quiet: RecordedTrial) -> None:
    for at, run_id, index, instance in launches(quiet):
        found = why(quiet, run_id, index, at)["placement"]
        assert found["instance"]["id"] == instance
        assert found["decidedAt"] == at
        shown = {each["id"]: each for each in found["ranked"]}
        assert found["fits"] == len(shown)
        assert shown[instance]["rank"] == found["rank"]
        assert found["placedTogether"] == sum(each["placedTogether"] for each in found["ranked"])


def test_a_task_with_a_share_is_explained_by_the_shares_that_each_instance_takes() -> None:
    trial = recorded(0, tasks=4, gpu_shares=1.0)
    at, run_id, index, instance = launches(trial)[0]
    found = why(trial, run_id, index, at)["placement"]
    assert found["gpuShareMib"] > 0
    chosen = next(each for each in found["ranked"] if each["id"] == instance)
    assert chosen["gpuShares"] >= chosen["placedTogether"] >= 1


def test_a_task_that_runs_is_explained_by_the_earlier_decision(quiet: RecordedTrial) -> None:
    at, run_id, index, instance = launches(quiet)[0]
    later = why(quiet, run_id, index, at + 5.0)
    assert later["at"] >= at
    assert later["placement"]["decidedAt"] == at
    assert (later["placement"]["instance"]["id"], later["exact"]) == (instance, True)


def test_no_file_is_fetched_twice(quiet: RecordedTrial) -> None:
    fetched = Counter[str]()

    class Counted(RecordedTrial):
        def get(self, name: str) -> bytes:
            fetched[name] += 1
            return super().get(name)

    at, run_id, index, _ = launches(quiet)[0]
    assert why(Counted(quiet.files), run_id, index, at + 5.0)["placement"]
    assert set(fetched.values()) == {1}


def test_a_run_without_an_instance_yet_says_why_it_waited(quiet: RecordedTrial) -> None:
    at, run_id, index, _ = launches(quiet)[0]
    before = why(quiet, run_id, index, at - 20.0)
    assert before["placement"] is None
    assert before["run"]["pending"] > 0
    assert before["run"]["sentence"]


def test_a_closed_run_has_no_explanation(quiet: RecordedTrial) -> None:
    at = launches(quiet)[-1][0]
    reply = why(quiet, "other-261121-062733-k3f9", 0, at)
    assert (reply["run"], reply["placement"]) == (None, None)


def test_before_the_first_record_nothing_can_be_had(quiet: RecordedTrial) -> None:
    first = chains_of(quiet.names(JOURNAL))[0].loaded_at
    with pytest.raises(NotRecorded, match="nothing was recorded"):
        why(quiet, "x", None, first - 1.0)


def kind_of(line: Any) -> str:
    return "head" if isinstance(line, dict) else str(line[0])


def test_a_fact_that_is_missing_from_the_record_is_found_out(quiet: RecordedTrial) -> None:
    def without_tasks(line: Any) -> None:
        if kind_of(line) == "tick":
            line[2] = [said for said in line[2] if isinstance(said[1], int) or said[1][0] != "LaunchAccepted"]

    assert any("the documents that it wrote differ" in fault for fault in edited(quiet, without_tasks).faults())


def test_a_decision_that_was_another_one_is_found_out(quiet: RecordedTrial) -> None:
    def without_launches(line: Any) -> None:
        if kind_of(line) == "tick":
            line[3] = [action for action in line[3] if action[0] != "Launch"]

    assert any("the decision differs" in fault for fault in edited(quiet, without_launches).faults())


def test_different_code_and_a_different_machine_are_reported(quiet: RecordedTrial) -> None:
    def elsewhere(line: Any) -> None:
        if kind_of(line) == "head":
            line["code"], line["platform"]["numpy"] = "0123456789abcdef", "1.0"

    copy = edited(quiet, elsewhere)
    at, run_id, index, _ = launches(copy)[0]
    reply = why(copy, run_id, index, at)
    assert not reply["exact"]
    assert [each.split(":")[0] for each in reply["differences"]] == [
        "the controller ran different code",
        f"the controller had numpy 1.0, here it is {recorder.platform_now()['numpy']}",
    ]


def test_a_gap_is_reported_along_with_what_was_recorded_before_it(quiet: RecordedTrial) -> None:
    at, run_id, index, _ = launches(quiet)[0]
    copy = RecordedTrial(dict(quiet.files))
    last = sorted(copy.files)[-1]
    copy.files[last] = copy.files[last][:-4]
    chain = chains_of(copy.names(JOURNAL))[-1]
    if len(chain.names) == 1:
        with pytest.raises(NotRecorded, match="is incomplete"):
            why(copy, run_id, index, at)
        return
    reply = why(copy, run_id, index, at)
    assert "is incomplete" in reply["differences"][-1]


@pytest.mark.parametrize("seed", [15, 20, 25, 30])
def test_a_trial_with_every_fault_is_had_again(seed: int) -> None:
    """Conflicts, crashes, clocks that jump, half-seen cells: every commit is recorded once at most, and is the same."""
    assert recorded(seed, ALL).files


def test_a_suspended_run_that_cannot_be_read_when_it_is_tried_again_is_had_again() -> None:
    trial = recorded(1325, frozenset({"own-fault", "torn-document"}), instances=6)
    facts = [said for line in lines_of(trial) if line[0] == "tick" for _, said in line[2]]
    assert "RunNotResumed" in [said[0] for said in facts if isinstance(said, list)]
