"""UpdateRun at the api: the stored request, the reply, the refusals, and its effect once it is taken in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.api.admission.specs import check_spec
from argosy.engine.loading import load, load_run
from argosy.lifecycle.suspension import suspend
from argosy.model import inbox
from argosy.model.costs import Costs
from argosy.model.inbox import UpdateRequest
from argosy.model.run_record import RunRecord
from argosy.model.runs import RunStatus, sort_key
from argosy.model.stored import documents
from argosy.spec.parse import parse_spec, to_json
from argosy.spec.terms import changed_form
from tests.builders import NOW
from tests.fakes.api import Desk, error_of

ALL = {
    "priority": 5,
    "queue": "default",
    "budgetUsd": 20.0,
    "maxHourlyCost": 30.0,
    "deadline": "2h",
    "maxInstances": 3,
    "maxConcurrentTasks": 4,
}


def opened(desk: Desk, **fields: Any) -> str:
    """An open run that the controller has taken in."""
    run_id = str(desk.submit(**{"capacity": {"purchase": "spot-then-on-demand"}, **fields})["runId"])
    desk.fold_in()
    desk.time += 600
    return run_id


def test_a_change_to_a_queue_whose_cap_no_task_fits_is_refused(desk: Desk) -> None:
    desk.body("ApplySharing", document={"version": 1, "queues": {"small": {"cap": {"gpus": 0}}}})
    desk.fold_in()
    run_id = opened(desk, resources={"vcpus": 1, "memory": 1024, "gpus": 1})
    assert refusal(desk, run_id, queue="small") == "changes.queue a task needs 1 GPU, the cap of queue small is 0"


def waiting(desk: Desk) -> list[inbox.Request]:
    return [inbox.from_bytes(body) for body in desk.store.read_partition(inbox.INBOX).values()]


def refusal(desk: Desk, run_id: str, **changes: Any) -> str:
    """Its message; nothing is left in the inbox."""
    before = dict(desk.store.items)
    error = error_of(desk.ask("UpdateRun", runId=run_id, changes=changes))
    assert desk.store.items == before
    return " ".join(f"{each['path']} {each['message']}" for each in error["fieldList"]) or str(error["message"])


def test_every_field_that_may_change_is_answered_as_it_will_be_and_holds_once_it_is_taken_in(desk: Desk) -> None:
    run_id = opened(desk)
    calls = desk.wake.calls
    answered = desk.body("UpdateRun", runId=run_id, changes=ALL, reason="it is urgent")
    assert (answered["created"], desk.wake.calls) == (True, calls + 1)
    desk.fold_in()
    view = desk.body("DescribeRun", runId=run_id)
    shown = {name: view[name] for name in ("priority", "queue", "maxInstances", "maxConcurrentTasks", "deadline")}
    assert shown == {name: answered[name] for name in shown}
    assert (view["budget"]["budgetUsd"], view["budget"]["maxHourlyCost"]) == (20.0, 30.0)
    assert view["changeReason"] == "it is urgent"
    assert view["changes"] == {**ALL, "deadline": "2027-01-15T10:10:00+00:00"}, "from now on, not from its submission"
    terms = load(desk.store).runs[run_id].terms
    assert (terms.priority, terms.max_instances, terms.max_concurrent) == (5, 3, 4)
    assert (terms.budget_usd, terms.max_hourly_usd) == (20.0, 30.0)
    assert load(desk.store).runs[run_id].deadline_at == desk.time + 7200


def test_a_limit_can_be_taken_away(desk: Desk) -> None:
    run_id = opened(desk, capacity={"budgetUsd": 5.0, "onCap": "finish"}, placement={"maxConcurrentTasks": 2})
    view = desk.body("UpdateRun", runId=run_id, changes={"maxConcurrentTasks": None, "budgetUsd": None})
    assert (view["maxConcurrentTasks"], view["budget"]) == (None, None)
    desk.fold_in()
    assert desk.state.runs[run_id].terms.max_concurrent is None
    assert desk.state.runs[run_id].terms.budget_usd is None
    desk.body("UpdateRun", runId=run_id, changes={"budgetUsd": 7}, clientToken="again")
    desk.fold_in()
    assert not desk.state.runs[run_id].terms.drains_at_cap, "as its spec says"


def test_later_changes_are_listed_with_earlier_ones(desk: Desk) -> None:
    run_id = opened(desk)
    for changes in ({"priority": 5, "maxInstances": 2}, {"priority": -5}):
        desk.body("UpdateRun", runId=run_id, changes=changes, clientToken=str(changes))
        desk.fold_in()
    assert desk.state.runs[run_id].changes == {"priority": -5, "maxInstances": 2}
    assert desk.body("DescribeRun", runId=run_id)["changes"] == {"priority": -5, "maxInstances": 2}


def test_a_run_that_is_not_taken_in_yet_is_changed_after_it(desk: Desk) -> None:
    run_id = str(desk.submit()["runId"])
    desk.body("UpdateRun", runId=run_id, changes={"priority": 7})
    desk.fold_in()
    assert desk.state.runs[run_id].terms.priority == 7


def test_the_same_token_changes_it_once_and_no_other_changes(desk: Desk) -> None:
    run_id = opened(desk)
    asked = {"runId": run_id, "changes": {"priority": 5}, "clientToken": "t"}
    assert [desk.body("UpdateRun", **asked)["created"] for _ in range(2)] == [True, False]
    assert waiting(desk) == [UpdateRequest(run_id, desk.time, {"priority": 5})]
    other = error_of(desk.ask("UpdateRun", **{**asked, "changes": {"priority": 6}}))
    assert "clientToken has already made a different change to this run" in other["message"]
    desk.fold_in()
    assert desk.body("UpdateRun", **asked)["created"] is False


def test_a_request_that_is_delivered_twice_at_once_is_stored_once(desk: Desk) -> None:
    run_id = opened(desk)
    real, asked = desk.store.read, {"runId": run_id, "changes": {"priority": 5}, "clientToken": "t"}
    desk.body("UpdateRun", **asked)
    desk.store.read = lambda key: None if key[0] == inbox.TOKENS else real(key)  # type: ignore[method-assign]
    assert desk.body("UpdateRun", **asked)["created"] is False
    assert len(waiting(desk)) == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"array": {"size": 3}}, "changes.array cannot be changed in an open run; these can: priority, queue, "),
        ({"memory": 2048}, "changes.memory cannot be changed in an open run"),
        ({"priority": None}, "changes.priority must have a value, not null"),
        ({"priority": 101}, "changes.priority must be at most 100"),
        ({"priority": True}, "changes.priority must be a whole number"),
        ({"budgetUsd": "5"}, "changes.budgetUsd must be a number"),
        ({"maxInstances": 0}, "changes.maxInstances must be at least 1"),
        ({"queue": "nightly"}, "changes.queue there is no queue nightly; the queues are: default"),
        ({"deadline": "2026-11-21T06:00:00Z"}, "changes.deadline 2026-11-21T06:00:00Z is in the past"),
        ({"deadline": "soon"}, "changes.deadline is neither a time nor a duration"),
        ({"deadline": "400d"}, "changes.deadline"),
        ({"maxHourlyCost": 0.01}, "changes.maxHourlyCost $0.01 an hour is below the cheapest instance"),
        ({"maxInstances": 0, "priority": 1.5}, "changes.priority must be a whole number"),
        ({}, "changes must not be empty"),
    ],
)  # fmt: skip
def test_a_change_that_cannot_be_is_refused_in_a_sentence_that_names_the_field(
    desk: Desk, changes: dict[str, Any], said: str
) -> None:
    assert said in refusal(desk, opened(desk), **changes)


def test_a_run_that_buys_spot_alone_gets_no_deadline(desk: Desk) -> None:
    said = refusal(desk, opened(desk, capacity={}), deadline="2h")
    assert said == (
        "changes.deadline needs on-demand instances as well: set capacity.purchase to spot-then-on-demand or on-demand"
    )


def test_a_budget_below_what_is_spent_is_refused_with_what_is_spent(desk: Desk) -> None:
    run_id = opened(desk)
    run = desk.state.runs[run_id]
    run.cost_usd, run.costs = 4.0, {"a pool": Costs(useful=4.0)}
    desk.state.changed_runs.add(run_id)
    desk.commit()
    said = refusal(desk, run_id, budgetUsd=3)
    assert said == (
        f"changes.budgetUsd: {run_id} has spent $4.00 already, and $3.00 is no more than that: "
        f"`argosy cancel {run_id}` stops it"
    )
    assert desk.body("UpdateRun", runId=run_id, changes={"budgetUsd": 4.01})["created"] is True


def test_a_fault_that_the_spec_had_before_is_no_fault_of_the_change(desk: Desk) -> None:
    """Its deadline has passed, and its bucket is not the deployment's any more."""
    run_id = opened(desk, capacity={"deadline": "2027-01-15T08:05:00Z"}, output="s3://own/x/")
    desk.api.limits = replace(desk.api.limits, buckets=frozenset({"another"}))
    assert desk.body("UpdateRun", runId=run_id, changes={"deadline": "1h"})["created"] is True


def test_only_an_open_run_that_may_still_start_something_can_be_changed(desk: Desk) -> None:
    run_id = opened(desk)
    run = desk.state.runs[run_id]
    for status, cancelled, halted, said in (
        (RunStatus.RUNNING, True, True, "starts no more tasks (it was cancelled): a change would have no effect"),
        (RunStatus.RUNNING, False, True, "starts no more tasks (its budget is used up): a change would have no effect"),
        (RunStatus.FAILED, False, True, "has ended as FAILED: only an open run can be changed (`argosy retry"),
        (RunStatus.SUCCEEDED, False, False, "has ended as SUCCEEDED: only an open run can be changed"),
    ):  # fmt: skip
        run.status, run.cancelled, run.tasks.halted, run.status_reason = (
            status,
            cancelled,
            halted,
            "its budget is used up",
        )
        record = RunRecord.of(run)
        desk.store.items[documents.RUNS, sort_key(run_id)] = documents.encode(record.to_json())
        assert said in refusal(desk, run_id, priority=5)


def test_a_suspended_run_a_stranded_one_and_one_that_is_not_there_are_not_changed(desk: Desk) -> None:
    run_id = opened(desk)
    state = load(desk.store)
    suspend(state, RunRecord.of(state.runs[run_id]), "a fault", NOW)
    record = state.quarantined[run_id]
    desk.store.items[documents.RUNS, sort_key(run_id)] = documents.encode(record.to_json())
    assert "is suspended: change it once the controller has resumed it" in refusal(desk, run_id, priority=5)
    desk.store.items[documents.RUNS, sort_key(run_id)] = documents.encode(
        RunRecord.of(desk.state.runs[run_id]).to_json()
    )
    del desk.store.items[documents.STATE, documents.ROOT]
    assert f"the controller does not have {run_id}: `argosy retry {run_id}`" in refusal(desk, run_id, priority=5)
    assert "there is no run 'digits-261121-062733-0000'" in refusal(desk, "digits-261121-062733-0000", priority=5)


def test_what_an_earlier_version_stored_of_a_budget_is_a_change(desk: Desk) -> None:
    run_id = opened(desk, capacity={"budgetUsd": 5.0})
    record = RunRecord.of(desk.state.runs[run_id]).to_json()
    del record["changes"], record["change_reason"], record["queue"]
    record["new_budget_usd"] = 9.0
    desk.store.items[documents.RUNS, sort_key(run_id)] = documents.encode(record)
    stored = load_run(desk.store, run_id, ended=False)
    assert stored is not None
    assert (stored.terms.budget_usd, stored.changes) == (9.0, {"budgetUsd": 9.0})
    assert desk.body("DescribeRun", runId=run_id)["queue"] is None


@pytest.mark.parametrize(
    "spec",
    [
        {"container": {"image": "argosy/digits"}, "array": {"range": "0:100", "shardSize": 10}},
        {"run": ["true"], "array": {"items": [{"a": None}, 2]}, "dependsOn": [{"run": "x-261121-062733-k3f9"}]},
        {"taskDefinition": "mine:3", "array": {"size": 3}, "capacity": {"deadline": "2h", "budgetUsd": 3}},
    ],
)
def test_a_stored_spec_is_judged_as_it_was_when_it_was_submitted(spec: dict[str, Any]) -> None:
    """Otherwise every change would be refused because of unchanged fields."""
    form = changed_form(
        to_json(parse_spec({"version": 1, "name": "digits", **spec})), {"priority": 5, "maxInstances": 2}
    )
    assert to_json(check_spec(form)) == form
