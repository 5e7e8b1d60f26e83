"""Which runs may a run wait for, and how is that stored and shown?"""

from __future__ import annotations

from typing import Any

import pytest

from argosy.model import inbox
from argosy.model.runs import RunStatus
from argosy.model.tasks import TaskStatus
from tests.fakes.api import SPEC, Desk, error_of

UNKNOWN = "nobody-261121-062733-k3f9"


def faults_of(desk: Desk, **fields: Any) -> list[tuple[str, str]]:
    answer = desk.ask("SubmitRun", clientToken="t-x", spec={**SPEC, **fields})
    assert answer["statusCode"] == 400, answer
    return [(each["path"], each["message"]) for each in error_of(answer)["fieldList"]]


def prepared_run(desk: Desk, **fields: Any) -> str:
    return str(desk.submit("first", name="prepare", **fields)["runId"])


def end(desk: Desk, run_id: str, status: RunStatus) -> None:
    desk.fold_in()
    run = desk.state.runs[run_id]
    run.status, run.stopped_at = status, desk.time
    run.tasks.touch(0)
    run.tasks.columns["status"][:] = TaskStatus.SUCCEEDED if status is RunStatus.SUCCEEDED else TaskStatus.FAILED
    desk.state.changed_runs.add(run_id)
    desk.commit()


@pytest.mark.parametrize("folded", [False, True], ids=["in the inbox", "at work"])
def test_a_run_may_wait_for_one_that_was_just_submitted(desk: Desk, folded: bool) -> None:
    first = prepared_run(desk)
    if folded:
        desk.fold_in()
    second = desk.submit("second", dependsOn=[{"run": first, "type": "N_TO_N", "on": "end"}])
    assert second["dependsOn"] == [{"runId": first, "type": "N_TO_N", "on": "end", "isMet": False}]
    desk.fold_in()
    assert desk.body("DescribeRun", runId=second["runId"])["dependsOn"] == second["dependsOn"]


def test_a_run_that_is_not_there_is_refused_and_nothing_is_stored(desk: Desk) -> None:
    before = desk.store.read_partition(inbox.INBOX)
    assert faults_of(desk, dependsOn=[{"run": UNKNOWN}]) == [("dependsOn[0].run", f"there is no run {UNKNOWN}")]
    assert faults_of(desk, dependsOn=[{"run": "prepare"}]) == [("dependsOn[0].run", "there is no run prepare")]
    assert desk.store.read_partition(inbox.INBOX) == before


def test_runs_of_different_sizes_cannot_wait_task_by_task(desk: Desk) -> None:
    first = prepared_run(desk, array={"range": "0:30", "shardSize": 10})
    message = f"N_TO_N needs as many tasks in both runs: {first} has 3 tasks and this run 10"
    assert faults_of(desk, dependsOn=[{"run": first, "type": "N_TO_N"}]) == [("dependsOn[0].type", message)]
    assert desk.submit("second", dependsOn=[{"run": first}])["created"]


def test_what_has_ended_badly_is_refused_unless_any_end_will_do(desk: Desk) -> None:
    first = prepared_run(desk)
    end(desk, first, RunStatus.FAILED)
    step = f"`argosy retry {first}` retries it, or set on: end to accept any outcome"
    assert faults_of(desk, dependsOn=[{"run": first}]) == [("dependsOn[0].run", f"{first} has ended FAILED: {step}")]
    assert desk.submit("second", dependsOn=[{"run": first, "on": "end"}])["created"]
    assert desk.submit("third", dependsOn=[{"run": first, "type": "N_TO_N"}])["created"]


def test_every_fault_of_several_dependencies_is_named_at_once(desk: Desk) -> None:
    first = prepared_run(desk, array={"range": "0:30", "shardSize": 10})
    found = faults_of(desk, dependsOn=[{"run": first, "type": "N_TO_N"}, {"run": UNKNOWN}])
    assert [path for path, _ in found] == ["dependsOn[0].type", "dependsOn[1].run"]


def test_the_place_of_the_other_runs_results_is_filled_in_when_the_run_is_stored(desk: Desk) -> None:
    first = prepared_run(desk)
    command = ["merge", "${dependency.prepare.output}part-${index}", "$${dependency.prepare.output}"]
    second = desk.submit("second", container={"image": "argosy/digits", "command": command}, dependsOn=[{"run": first}])
    again = desk.submit("second", container={"image": "argosy/digits", "command": command}, dependsOn=[{"run": first}])
    assert (again["runId"], again["created"]) == (second["runId"], False)
    desk.fold_in()
    output = desk.state.runs[first].output
    stored = desk.state.runs[second["runId"]].spec["container"]["command"]
    assert stored == ["merge", f"{output}part-${{index}}", "$${dependency.prepare.output}"]


def test_a_place_that_is_no_dependencys_is_refused_with_those_there_are(desk: Desk) -> None:
    first = prepared_run(desk)
    container = {"image": "argosy/digits", "command": ["${dependency.prepared.output}"]}
    message = "${dependency.prepared.output} is not a run of dependsOn; known: dependency.prepare.output"
    found = faults_of(desk, container=container, dependsOn=[{"run": first}])
    assert found == [("container.command[0]", message)]
    [(_, message)] = faults_of(desk, container=container)
    assert message.endswith("known: nothing: there is no dependsOn")


def test_two_dependencies_of_one_name_are_ambiguous(desk: Desk) -> None:
    first = prepared_run(desk)
    desk.time += 1
    other = str(desk.submit("other", name="prepare")["runId"])
    container = {"image": "argosy/digits", "command": ["${dependency.prepare.output}"]}
    [(_, message)] = faults_of(desk, container=container, dependsOn=[{"run": first}, {"run": other}])
    assert message == "${dependency.prepare.output} could mean several runs of dependsOn: give the runs different names"


def test_overrides_that_a_place_makes_too_long_are_refused(desk: Desk) -> None:
    first = prepared_run(desk)
    command = ["${dependency.prepare.output}"] * 250
    found = faults_of(desk, container={"image": "argosy/digits", "command": command}, dependsOn=[{"run": first}])
    assert [path for path, _ in found] == ["container.command"]


@pytest.mark.parametrize(
    ("given", "path", "message"),
    [
        ([{"run": "A b"}], "dependsOn[0].run", "must be the id of a run, or its name: small letters, digits and -"),
        ([{"run": UNKNOWN}] * 2, "dependsOn[1].run", f"names {UNKNOWN} twice"),
        ([], "dependsOn", "must not be empty"),
    ],
)
def test_a_wrong_list_is_refused(desk: Desk, given: Any, path: str, message: str) -> None:
    [(where, said)] = faults_of(desk, dependsOn=given)
    assert (where, said) == (path, message)


def test_at_most_eight_are_waited_for_task_by_task_and_twenty_in_all(desk: Desk) -> None:
    ids = [f"nobody{number}-261121-062733-k3f9" for number in range(21)]
    [(where, said)] = faults_of(desk, dependsOn=[{"run": each, "type": "N_TO_N"} for each in ids[:9]])
    assert (where, said) == ("dependsOn[8].type", "is the 9th of type N_TO_N: a run can have 8")
    [(where, said)] = faults_of(desk, dependsOn=[{"run": each} for each in ids])
    assert where == "dependsOn"


def test_a_time_before_which_nothing_starts_is_shown(desk: Desk) -> None:
    view = desk.submit(notBefore="2h")
    assert view["notBefore"] == "2027-01-15T10:00:00.000Z"
    assert faults_of(desk, notBefore="soon")[0][0] == "notBefore"


def test_a_service_waits_for_nothing(desk: Desk) -> None:
    spec = {key: value for key, value in SPEC.items() if key != "array"}
    spec |= {"kind": "service", "service": {"desired": 1}, "notBefore": "2h", "dependsOn": [{"run": UNKNOWN}]}
    answer = desk.ask("CreateEnvironment", spec={**spec, "container": {"image": "argosy/digits"}})
    assert sorted(each["path"].split("[")[0] for each in error_of(answer)["fieldList"]) == ["dependsOn", "notBefore"]


def test_a_run_of_a_service_cannot_be_waited_for(desk: Desk) -> None:
    spec = {"version": 1, "kind": "service", "name": "web", "container": {"image": "argosy/digits"}}
    desk.body("CreateEnvironment", spec={**spec, "service": {"desired": 1}})
    desk.fold_in()
    desk.body("StartDeployment", name="web", revision=1, clientToken="d-1")
    desk.fold_in()
    [run_id] = desk.state.runs
    [(where, said)] = faults_of(desk, dependsOn=[{"run": run_id}])
    assert (where, said) == ("dependsOn[0].run", f"{run_id} is a run of the service web, which never ends")


def test_cancelling_with_dependents_is_left_to_the_controller(desk: Desk) -> None:
    first = prepared_run(desk)
    second = desk.submit("second", dependsOn=[{"run": first}])["runId"]
    desk.fold_in()
    desk.body("CancelRun", runId=first, dependents=True)
    desk.fold_in()
    assert desk.state.runs[second].cancelled
