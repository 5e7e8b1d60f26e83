"""The users' actions: what is stored, what is answered, and what changes nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from argosy import layout
from argosy.api.actions import REQUEST_LIMIT, envelope_of_error, new_run_id
from argosy.api.requests import page_token
from argosy.api.views import iso
from argosy.model import documents, inbox
from argosy.model.attempts import AttemptKey
from argosy.model.costs import Costs, market_of
from argosy.model.damage import UnreadableState
from argosy.model.instances import Instance, InstanceStatus
from argosy.model.pools import Pool
from argosy.model.resources import Resources
from argosy.model.runs import Failure, RunStatus
from argosy.model.tasks import TaskStatus
from argosy.ports import Key
from tests.builders import NOW
from tests.fakes.api import SPEC, Desk, error_of


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_submitted_run_is_stored_for_the_controller_which_is_woken(desk: Desk) -> None:
    body = desk.submit()
    assert body["created"] is True
    assert desk.wake.calls == 1
    (stored,) = desk.store.read_partition(inbox.INBOX).values()
    request = inbox.from_bytes(stored)
    assert isinstance(request, inbox.SubmitRequest)
    assert request.run_id == body["runId"]
    assert request.task_count == 10
    assert request.image == "argosy/digits"
    assert request.expects_result is True
    assert request.output == layout.run_output("s3://own/", request.run_id)
    assert request.spec["retryStrategy"] == {"attempts": 1, "evaluateOnExit": []}
    assert desk.store.commits == 0  # the versioned documents are the controller's


def test_the_reply_shows_the_run_before_the_controller_knows_it(desk: Desk) -> None:
    body = desk.submit()
    second = datetime.fromtimestamp(NOW, UTC)
    assert body["runId"].startswith(f"digits-{second:%y%m%d-%H%M%S}-")
    assert body == {
        "runId": body["runId"],
        "name": "digits",
        "status": "SUBMITTED",
        "statusReason": None,
        "submittedAt": second.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "startedAt": None,
        "stoppedAt": None,
        "output": f"s3://own/{body['runId']}/",
        "gpus": 0,
        "tasks": {
            "total": 10, "pending": 10, "starting": 0, "running": 0, "succeeded": 0, "failed": 0, "cancelled": 0,
        },
        "attempts": 0,
        "interruptions": 0,
        "costUsd": 0.0,
        "onDemandCostUsd": 0.0,
        "usefulUsd": 0.0,
        "instances": 0,
        "retries": 0,
        "failures": [],
        "waiting": None,
        "purchase": {"wanted": "spot", "now": "spot", "since": None, "reason": None},
        "deadline": None,
        "late": False,
        "budget": None,
        "created": True,
        "warnings": [],
    }  # fmt: skip


def test_a_run_looks_the_same_before_and_after_it_is_folded_in(desk: Desk) -> None:
    run_id = desk.submit(output="s3://own/deep/er", resources={"gpus": 1})["runId"]
    before = desk.body("DescribeRun", runId=run_id)
    desk.fold_in()
    assert desk.body("DescribeRun", runId=run_id) == before
    assert before["output"] == f"s3://own/deep/er/{run_id}/"
    assert before["gpus"] == 1


def test_the_same_token_and_spec_make_one_run(desk: Desk) -> None:
    first = desk.submit()
    desk.time += 60
    again = desk.submit(resources={"vcpus": 1.0, "memory": 1024})  # the defaults, written out
    assert again == {**first, "created": False}
    desk.fold_in()
    assert desk.submit() == {**first, "created": False}
    assert len(desk.body("ListRuns")["runs"]) == 1


def test_the_request_id_stands_in_for_a_token(desk: Desk) -> None:
    first = desk.body("SubmitRun", spec=SPEC)
    assert desk.body("SubmitRun", spec=SPEC)["runId"] == first["runId"]
    assert desk.ask("SubmitRun", "request-2", spec=SPEC)["body"]["runId"] != first["runId"]


def test_a_token_that_made_another_spec_is_a_conflict_and_changes_nothing(desk: Desk) -> None:
    run_id = desk.submit()["runId"]
    before = dict(desk.store.items)
    answer = desk.ask("SubmitRun", clientToken="t-1", spec={**SPEC, "name": "other"})
    assert answer["statusCode"] == 409
    error = error_of(answer)
    assert error["code"] == "ConflictException"
    assert error["message"] == f"this clientToken was already used for {run_id}, with another spec"
    assert desk.store.items == before


def test_submitting_again_wakes_the_controller_that_the_first_call_could_not_wake(desk: Desk) -> None:
    desk.wake.fails = True
    with pytest.raises(ConnectionError):
        desk.submit()
    desk.wake.fails = False
    assert desk.submit()["created"] is False
    assert desk.wake.calls == 2


def test_a_repeated_submit_needs_nothing_that_may_be_gone_by_then(desk: Desk) -> None:
    array = {"itemsFrom": "s3://bucket/items"}
    container = {"image": "argosy/digits", "command": ["${item}"]}
    first = desk.submit(array=array, container=container)
    assert first["tasks"]["total"] == 3
    desk.items.items = None
    assert desk.submit(array=array, container=container)["runId"] == first["runId"]


def test_two_runs_of_one_second_whose_ids_would_meet_get_two_ids(desk: Desk) -> None:
    taken = new_run_id("digits", NOW, "made-up")
    assert taken == new_run_id("digits", NOW, "made-up")
    first = desk.submit("t-1")["runId"]
    desk.store.items = {key: body for key, body in desk.store.items.items() if key == ("SUBMITTED", first)}
    second = desk.submit("t-1")["runId"]  # the same second, name and token: the first id that is tried is taken
    assert second != first
    assert second[:-4] == first[:-4]


def test_submissions_that_never_get_through_are_told_to_try_again(desk: Desk) -> None:
    desk.store.items = Crowded()
    answer = desk.ask("SubmitRun", spec=SPEC)
    assert error_of(answer)["message"] == "other runs were submitted at the same moment: submit this one again"


class Crowded(dict[Key, bytes]):
    """Whatever is to be created exists already, and cannot be read."""

    def __contains__(self, key: object) -> bool:
        return True

    def get(self, key: Key, default: Any = None) -> Any:
        return None


@pytest.mark.parametrize("action", ["SubmitRun", "ValidateRun"])
def test_every_fault_of_a_spec_is_answered_and_nothing_is_stored(desk: Desk, action: str) -> None:
    bad = {**SPEC, "array": {"range": "0:100", "shardSize": 0}, "output": "s3://foreign/", "resources": {"gpus": 8}}
    answer = desk.ask(action, spec={**bad, "container": {"image": "argosy/unknown"}})
    assert answer == {
        "statusCode": 400,
        "body": {
            "error": {
                "code": "ValidationException",
                "message": "4 fields are invalid",
                "requestId": "request-1",
                "fieldList": [
                    {"path": "array.shardSize", "message": "must be at least 1"},
                    {"path": "output", "message": "bucket foreign is not one that this deployment may write to: own"},
                    {
                        "path": "resources.gpus",
                        "message": "asks for 8 GPUs, but the largest instance type of this deployment, p3.8xlarge,"
                        " has 4 GPUs for tasks",
                    },
                    {
                        "path": "container.image",
                        "message": 'argosy/unknown is not known to this deployment: `make deploy ARGS="-c'
                        ' images=unknown"` publishes containers/unknown (with Docker or podman), or name an image of a'
                        " registry",
                    },
                ],
            }
        },
    }
    assert desk.store.items == {}
    assert desk.wake.calls == 0


def test_validating_answers_what_would_be_submitted_and_stores_nothing(desk: Desk) -> None:
    assert desk.body("ValidateRun", spec=SPEC) == {
        "name": "digits",
        "tasks": 10,
        "image": "argosy/digits",
        "output": "s3://own/",
        "warnings": [],
    }
    assert desk.store.items == {}
    assert desk.wake.calls == 0


def test_validating_counts_the_items_of_an_object_and_gives_the_warnings_of_a_submission(desk: Desk) -> None:
    spec = {**SPEC, "container": {"image": "argosy/digits", "command": ["${item}"]}}
    spec |= {"array": {"itemsFrom": "s3://own/items.jsonl"}, "capacity": {"budgetUsd": 0.0001}}
    answer = desk.body("ValidateRun", spec=spec)
    assert answer["tasks"] == 3
    assert answer["warnings"] == desk.submit(**spec)["warnings"]
    assert len(answer["warnings"]) == 1


def test_validating_a_task_definition_names_no_image(desk: Desk) -> None:
    spec = {"version": 1, "name": "digits", "taskDefinition": "digits:3", "array": {"size": 1}}
    assert desk.body("ValidateRun", spec=spec)["image"] is None


ACTIONS = (
    "known: SubmitRun, ValidateRun, PlanRun, DescribeRun, ListRuns, CancelRun, RetryRun, ExplainRun, DescribeCluster"
)


@pytest.mark.parametrize(
    ("request_", "faults"),
    [
        (None, [("", "a request is a JSON object with an action")]),
        ([], [("", "a request is a JSON object with an action")]),
        ({}, [("action", f"is required; {ACTIONS}")]),
        ({"action": 5}, [("action", f"is unknown; {ACTIONS}")]),
        ({"action": "Tick"}, [("action", f"is unknown; {ACTIONS}")]),
        ({"action": "SubmitRun"}, [("spec", "is required")]),
        ({"action": "SubmitRun", "spec": "x"}, [("spec", 'must be a mapping, not the text "x"')]),
        ({"action": "SubmitRun", "spec": {}, "clientToken": "", "dryRun": 1},
         [("clientToken", "must not be empty"), ("dryRun", "unknown field; known: action, clientToken, spec")]),
        ({"action": "SubmitRun", "spec": {}, "clientToken": "x" * 65},
         [("clientToken", "must have at most 64 characters")]),
        ({"action": "SubmitRun", "spec": {}, "clientToken": "\x1b"}, [("clientToken", "must be printable ASCII")]),
        ({"action": "ValidateRun", "spec": {}, "clientToken": "t"},
         [("clientToken", "unknown field; known: action, spec")]),
        ({"action": "DescribeRun"}, [("runId", "is required")]),
        ({"action": "DescribeRun", "runId": 5, "include": ["logs"], "maxResults": 0}, [
            ("runId", "must be text (in quotes), not the number 5"),
            ("include[0]", "must be 'tasks' or 'cost', not the text \"logs\""),
            ("maxResults", "must be at least 1"),
        ]),
        ({"action": "ListRuns", "maxResults": 101}, [("maxResults", "must be at most 100")]),
        *(
            ({"action": "ListRuns", "nextToken": token}, [("nextToken", "is not a token that this api has issued")])
            for token in ("!", "", page_token(""), page_token("x" * 201), page_token("\n"), "\ud800")
        ),
        ({"action": "CancelRun", "runId": "x", "reason": "\n"}, [("reason", "must be printable ASCII")]),
        ({"action": "DescribeCluster", "x": 1}, [("x", "unknown field; known: action")]),
    ],
)  # fmt: skip
def test_requests_that_are_none_are_told_every_fault(desk: Desk, request_: Any, faults: list[tuple[str, str]]) -> None:
    answer = desk.api.handle(request_, "r")
    assert answer["statusCode"] == 400
    error = error_of(answer)
    assert error["code"] == "ValidationException"
    assert [(fault["path"], fault["message"]) for fault in error["fieldList"]] == faults
    assert error["message"] == ("1 field is invalid" if len(faults) == 1 else f"{len(faults)} fields are invalid")


@pytest.mark.parametrize("run_id", ["digits-261121-062733-k3f9", "nonsense", "", "a" * 5000, "../../x", "\ud800"])
@pytest.mark.parametrize("action", ["DescribeRun", "CancelRun"])
def test_an_unknown_run_is_not_found(desk: Desk, action: str, run_id: str) -> None:
    answer = desk.ask(action, runId=run_id)
    assert answer["statusCode"] == 404
    assert error_of(answer)["code"] == "ResourceNotFoundException"
    assert len(error_of(answer)["message"]) < 200
    assert desk.store.items == {}


def test_a_run_folded_in_between_two_looks_is_found(desk: Desk) -> None:
    run_id = desk.submit()["runId"]
    real, looks = desk.store.read, []

    def read(key: Key) -> bytes | None:
        looks.append(key[0])
        if key == ("SUBMITTED", run_id) and looks.count(key[0]) == 1:
            desk.fold_in()  # right after the first look, before the inbox is read
        return real(key)

    desk.store.read = read  # type: ignore[method-assign]
    assert desk.body("DescribeRun", runId=run_id)["runId"] == run_id
    assert looks[:4] == [documents.RUNS, "SUBMITTED", "INBOX", documents.RUNS]


def test_runs_are_listed_newest_first_by_pages(desk: Desk) -> None:
    ids = []
    for number in range(5):
        desk.time += 1
        ids.append(desk.submit(f"t-{number}")["runId"])
    desk.fold_in()
    desk.time += 1
    waiting = desk.submit("t-9")["runId"]
    first = desk.body("ListRuns", maxResults=2)
    second = desk.body("ListRuns", maxResults=2, nextToken=first["nextToken"])
    third = desk.body("ListRuns", maxResults=2, nextToken=second["nextToken"])
    listed = [[run["runId"] for run in page["runs"]] for page in (first, second, third)]
    assert listed == [[waiting, ids[4]], [ids[3], ids[2]], [ids[1], ids[0]]]
    assert third["nextToken"] is None
    assert "failures" not in first["runs"][0]


def test_a_request_that_nobody_can_read_does_not_hide_the_others(desk: Desk) -> None:
    run_id = desk.submit()["runId"]
    desk.store.items[inbox.INBOX, "0"] = b'{"kind":"newer"}'
    assert [run["runId"] for run in desk.body("ListRuns")["runs"]] == [run_id]


def test_cancelling_asks_the_controller_and_waits_for_nothing(desk: Desk) -> None:
    run_id = desk.submit()["runId"]
    desk.fold_in()
    body = desk.body("CancelRun", runId=run_id, reason="wrong data")
    assert body["runId"] == run_id
    (stored,) = desk.store.read_partition(inbox.INBOX).values()
    assert inbox.from_bytes(stored) == inbox.CancelRequest(run_id, NOW, "wrong data")
    assert desk.wake.calls == 2
    assert desk.body("CancelRun", runId=run_id)["status"] == "SUBMITTED"  # the same request, delivered twice
    desk.fold_in()
    assert desk.body("DescribeRun", runId=run_id)["tasks"]["cancelled"] == 10


def test_a_run_may_be_cancelled_before_it_is_folded_in(desk: Desk) -> None:
    """Even when the clock of the machine that cancels is behind that of the one that submitted."""
    run_id = desk.submit()["runId"]
    desk.time -= 5
    desk.ask("CancelRun", runId=run_id)
    desk.fold_in()
    assert desk.state.runs[run_id].tasks.statuses().tolist() == [TaskStatus.CANCELLED] * 10


def test_cancelling_a_run_that_has_ended_changes_nothing(desk: Desk) -> None:
    run_id = desk.submit()["runId"]
    desk.fold_in()
    desk.state.runs[run_id].status = RunStatus.SUCCEEDED
    desk.state.changed_runs.add(run_id)
    desk.commit()
    before = dict(desk.store.items)
    assert desk.body("CancelRun", runId=run_id)["status"] == "SUCCEEDED"
    assert desk.store.items == before


def running(desk: Desk) -> str:
    """A run of ten tasks on a p3.8xlarge: task 0 has failed, task 1 runs on two GPUs, task 2 is about to be sent."""
    run_id = str(desk.submit(resources={"gpus": 2, "vcpus": 4, "memory": 2048})["runId"])
    desk.fold_in()
    state, run = desk.state, desk.state.runs[run_id]
    instance = Instance(
        "i-0000000000000000a", "us-east-1", "p3.8xlarge", "us-east-1a",
        status=InstanceStatus.ACTIVE,
        arn="arn:aws:ecs:us-east-1:123456789012:container-instance/argosy/abc",
        total=Resources(32768, 230000, 4),
        gpu_ids=("g0", "g1", "g2", "g3"),
        price_usd_per_hour=3.0,
        on_demand_usd_per_hour=12.0,
        disk_usd_per_hour=0.02,
        address_usd_per_hour=0.005,
        launched_at=NOW - 1800, registered_at=NOW - 1740,
    )  # fmt: skip
    gone = Instance(
        "i-0000000000000000b", "us-east-1", "c5.large", "us-east-1b",
        status=InstanceStatus.GONE, price_usd_per_hour=1.0, launched_at=NOW - 7200, stopped_at=NOW - 3600,
    )  # fmt: skip
    state.instances = {instance.id: instance, gone.id: gone}
    state.changed_instances |= {instance.id, gone.id}
    pool = Pool("us-east-1", "p3.8xlarge", "us-east-1a", "fleet-1", spot_target=1)
    state.pools = {pool.key: pool}
    state.changed_pools = True
    state.spent_usd, state.spent_on_demand_usd, state.peak_gpus = 1.0, 4.0, 0.5
    run.tasks.set(
        0, status=TaskStatus.FAILED, attempts=1, exit_code=3, reason=run.reason_row("exit code 3"),
        seconds=2.5, instance=instance.id.encode(), gpu_mask=0b1100,
    )  # fmt: skip
    run.tasks.set(1, status=TaskStatus.RUNNING, attempts=2)
    run.tasks.set(2, status=TaskStatus.STARTING, attempts=1)
    run.tasks.set(3, status=TaskStatus.VERIFYING, attempts=1)
    row = state.attempts.add(run.number, AttemptKey(run_id, 1, 2, 0), 1, instance.id, NOW)
    state.attempts.name_task(row, "f00")
    state.attempts.set(row, status=4, started_at=NOW - 30, gpu_mask=0b0011)
    state.attempts.add(run.number, AttemptKey(run_id, 2, 1, 0), 1, instance.id, NOW)
    run.failures = [Failure(number, 1, 3, "exit code 3", instance.id) for number in range(12)]
    run.status, run.started_at, run.waiting = RunStatus.RUNNING, NOW - 60, "waits for p3.8xlarge"
    run.instances, run.cost_usd, run.costs = {instance.id}, 0.25, {market_of(instance): Costs(idle=0.25)}
    state.next_wave = 2
    state.changed_runs.add(run_id)
    desk.commit()
    return run_id


def test_a_run_shows_its_counts_failures_and_why_it_waits(desk: Desk) -> None:
    view = desk.body("DescribeRun", runId=running(desk))
    assert view["status"] == "RUNNING"
    assert view["tasks"] == {
        "total": 10, "pending": 6, "starting": 1, "running": 2, "succeeded": 0, "failed": 1, "cancelled": 0,
    }  # fmt: skip
    assert [failure["index"] for failure in view["failures"]] == list(range(2, 12))
    assert view["failures"][0] == {
        "index": 2, "attempt": 1, "exitCode": 3, "reason": "exit code 3", "instance": "i-0000000000000000a",
        "taskArn": None,
    }  # fmt: skip
    assert view["waiting"] == "waits for p3.8xlarge"
    assert view["instances"] == 1
    assert view["costUsd"] == pytest.approx(0.25 + 0.5 * 3.0)  # what was charged, and half an hour of the instance
    assert "taskList" not in view
    assert "cost" not in view


def test_a_run_shows_its_ledger_when_asked(desk: Desk) -> None:
    view = desk.body("DescribeRun", runId=running(desk), include=["cost"])
    [pool] = view["cost"]["byPool"]
    assert (pool["instanceType"], pool["availabilityZone"], pool["cell"]) == ("p3.8xlarge", "us-east-1a", "us-east-1")
    assert (pool["purchase"], pool["instanceHours"]) == ("spot", pytest.approx(0.5))
    assert sum(view["cost"]["byWaste"].values()) == pytest.approx(view["costUsd"])
    assert view["cost"]["byLine"] == pytest.approx(
        {"instancesUsd": 0.25 + 0.5 * 2.975, "disksUsd": 0.5 * 0.02, "addressesUsd": 0.5 * 0.005}
    )
    assert view["cost"]["byWaste"]["usefulUsd"] == pytest.approx(view["usefulUsd"])
    assert view["usefulUsd"] == pytest.approx(30 * 3.0 / 3600 / 2)  # two of its four GPUs for half a minute


def test_a_budget_that_is_too_small_is_taken_with_a_warning(desk: Desk) -> None:
    body = desk.submit(capacity={"budgetUsd": 0.0001})
    assert [each.split(":")[0] for each in body["warnings"]] == ["capacity.budgetUsd"]
    assert desk.submit("t-2", capacity={"budgetUsd": 1000})["warnings"] == []


def test_a_plan_warns_of_all_that_a_submission_warns_of(desk: Desk) -> None:
    spec = {**SPEC, "resources": {"vcpus": 1, "memory": 512, "gpus": 1}, "capacity": {"budgetUsd": 0.0001}}
    desk.api = replace(desk.api, fleets=[("us-east-1", "p3.8xlarge", "us-east-1a")])
    about_money, about_the_image = desk.body("PlanRun", spec=spec)["warnings"][:2]
    assert about_money.startswith("capacity.budgetUsd: $0.0001 is less than an hour of the cheapest instance")
    assert [about_the_image, about_money] == desk.body("SubmitRun", spec=spec)["warnings"]


def test_an_image_for_cpus_on_gpus_is_taken_with_a_warning(desk: Desk) -> None:
    gpus = {"vcpus": 1, "memory": 512, "gpus": 1}
    [said] = desk.submit(resources=gpus)["warnings"]
    assert said.startswith("container.image: argosy/digits is the flavour for CPUs")
    assert len(desk.submit("t-2", resources=gpus, capacity={"budgetUsd": 0.0001})["warnings"]) == 2


def test_what_a_run_without_any_instance_shows_costs_nothing(desk: Desk) -> None:
    run_id = desk.submit(capacity={"budgetUsd": 5, "onCap": "finish"})["runId"]
    view = desk.body("DescribeRun", runId=run_id, include=["cost"])
    assert view["cost"] == {
        "estimates": {
            "logsUsd": 0,
            "imageTransferUsd": 0,
            "assumed": {"logGbPerAttempt": pytest.approx(1e-5), "imageGb": 0.5},
        },
        "byLine": {"instancesUsd": 0, "disksUsd": 0, "addressesUsd": 0},
        "byWaste": {"usefulUsd": 0, "bootUsd": 0, "idleUsd": 0, "redoneUsd": 0, "failedUsd": 0},
        "byPool": [],
        "instanceHours": 0,
    }
    assert view["budget"] == {
        "budgetUsd": 5.0, "spentUsd": 0.0, "reservedUsd": 0.0, "maxHourlyCost": None, "usdPerHour": 0.0,
        "onCap": "finish", "usedUp": False,
    }  # fmt: skip
    desk.fold_in()
    assert desk.body("DescribeRun", runId=run_id, include=["cost"]) == view


def test_tasks_show_their_last_attempt_or_the_one_that_is_alive(desk: Desk) -> None:
    view = desk.body("DescribeRun", runId=running(desk), include=["tasks"], maxResults=3)
    assert view["taskList"] == [
        {
            "index": 0, "status": "FAILED", "attempts": 1, "exitCode": 3, "reason": "exit code 3",
            "instance": "i-0000000000000000a", "seconds": 2.5, "gpuIds": ["g2", "g3"], "taskArn": None,
        },
        {
            "index": 1, "status": "RUNNING", "attempts": 2, "exitCode": None, "reason": None,
            "instance": "i-0000000000000000a", "seconds": 30.0, "gpuIds": ["g0", "g1"],
            "taskArn": "arn:aws:ecs:us-east-1:123456789012:task/argosy/f00",
        },
        {
            "index": 2, "status": "STARTING", "attempts": 1, "exitCode": None, "reason": None,
            "instance": "i-0000000000000000a", "seconds": None, "gpuIds": [], "taskArn": None,
        },
    ]  # fmt: skip


def test_a_commit_between_two_reads_does_not_tear_a_task_from_its_reason(desk: Desk) -> None:
    run_id = running(desk)
    read = desk.store.read

    def read_late(key: Key) -> bytes | None:
        """The first look at the tasks finds what a tick has just committed."""
        if key[1].startswith("TASKS#"):
            desk.store.read = read  # type: ignore[method-assign]
            run = desk.state.runs[run_id]
            run.tasks.set(4, status=TaskStatus.FAILED, reason=run.reason_row("CannotPullContainerError: gone"))
            desk.state.changed_runs.add(run_id)
            desk.commit()
        return read(key)

    desk.store.read = read_late  # type: ignore[method-assign]
    view = desk.body("DescribeRun", runId=run_id, include=["tasks"])
    assert view["taskList"][4]["reason"] == "CannotPullContainerError: gone"


def test_tasks_come_by_pages_across_stored_chunks(desk: Desk) -> None:
    run_id = desk.submit(array={"size": 20_000}, container={"image": "a"})["runId"]
    desk.fold_in()
    desk.state.runs[run_id].tasks.set(8192, status=TaskStatus.SUCCEEDED)
    desk.state.changed_runs.add(run_id)
    desk.commit()
    page = desk.body("DescribeRun", runId=run_id, include=["tasks"], nextToken=page_token("8190"), maxResults=1000)
    assert [task["index"] for task in page["taskList"]] == list(range(8190, 9190))
    assert [task["index"] for task in page["taskList"] if task["status"] == "SUCCEEDED"] == [8192]
    last = desk.body("DescribeRun", runId=run_id, include=["tasks"], nextToken=page_token("19990"))
    assert [task["index"] for task in last["taskList"]] == list(range(19990, 20000))
    assert last["nextToken"] is None
    assert desk.body("DescribeRun", runId=run_id, include=["tasks"], nextToken=page_token("20000"))["taskList"] == []


def test_all_pages_together_show_every_task_once(desk: Desk) -> None:
    run_id = desk.submit()["runId"]
    seen: list[int] = []
    token = None
    while True:
        more = {} if token is None else {"nextToken": token}
        page = desk.body("DescribeRun", runId=run_id, include=["tasks"], maxResults=3, **more)
        seen += [task["index"] for task in page["taskList"]]
        token = page["nextToken"]
        if token is None:
            break
    assert seen == list(range(10))


@pytest.mark.parametrize("token", [page_token("x"), page_token("-1"), "%%", "\u00e9", page_token("1" * 50)])
def test_tokens_that_were_not_given_out_are_refused(desk: Desk, token: str) -> None:
    run_id = desk.submit()["runId"]
    answer = desk.ask("DescribeRun", runId=run_id, include=["tasks"], nextToken=token)
    assert error_of(answer)["fieldList"] == [
        {"path": "nextToken", "message": "is not a token that this api has issued"}
    ]


def test_a_page_of_tasks_without_tasks_is_refused(desk: Desk) -> None:
    run_id = desk.submit()["runId"]
    answer = desk.ask("DescribeRun", runId=run_id, nextToken=page_token("3"))
    assert error_of(answer)["fieldList"][0]["message"] == 'is only possible with include: ["tasks"]'


def test_the_cluster_is_shown_with_use_and_money(desk: Desk) -> None:
    running(desk)
    view = desk.body("DescribeCluster")
    busy, gone = view["instances"]
    assert busy == {
        "instanceId": "i-0000000000000000a", "instanceType": "p3.8xlarge", "availabilityZone": "us-east-1a",
        "cell": "us-east-1", "purchase": "spot", "status": "ACTIVE",
        "cpu": {"total": 32.0, "used": 8.0}, "memory": {"total": 230000, "used": 4096}, "gpus": {"total": 4, "used": 4},
        "tasks": 1, "priceUsdPerHour": 3.0, "onDemandUsdPerHour": 12.0,
        "diskUsdPerHour": 0.02, "addressUsdPerHour": 0.005,
        "launchedAt": "2027-01-15T07:30:00.000Z", "stoppedAt": None,
    }  # fmt: skip
    assert gone["status"] == "GONE"
    assert view["cluster"] == "argosy"
    assert view["cells"] == ["us-east-1"]
    (fleet,) = view["fleets"]
    assert fleet.items() >= {
        "instanceType": "p3.8xlarge", "availabilityZone": "us-east-1a", "cell": "us-east-1",
        "spotTarget": 1, "onDemandTarget": 0, "coolingOffUntil": None, "interruptionBand": ">20%",
    }.items()  # fmt: skip
    assert view["usdPerHour"] == 3.0
    assert view["spentUsd"] == pytest.approx(1.0 + 0.5 * 3.0)
    assert view["onDemandUsd"] == pytest.approx(4.0 + 0.5 * 12.0)
    assert view["peakUtilisation"] == {"cpu": 0.0, "memory": 0.0, "gpus": 0.5}


def test_a_cluster_that_never_worked_is_empty(desk: Desk) -> None:
    view = desk.body("DescribeCluster")
    assert view["instances"] == view["fleets"] == []
    assert view["spentUsd"] == 0


def test_faults_of_ours_are_raised_not_answered(desk: Desk) -> None:
    desk.store.items[documents.STATE, documents.ROOT] = b"not ours"
    with pytest.raises(UnreadableState, match="incorrect header"):
        desk.ask("DescribeCluster")


@pytest.mark.parametrize(("code", "status"), [("ThrottlingException", 429), ("InternalError", 500)])
def test_the_other_codes_have_their_status(code: str, status: int) -> None:
    assert envelope_of_error(code, "m", "r") == {
        "statusCode": status,
        "body": {"error": {"code": code, "message": "m", "requestId": "r", "fieldList": []}},
    }


def test_explaining_a_run_that_is_not_taken_in_says_so() -> None:
    desk = Desk()
    run_id = desk.ask("SubmitRun", spec=SPEC)["body"]["runId"]
    assert desk.ask("ExplainRun", runId=run_id)["body"]["sentence"] == "the controller has not taken the run in yet"


def test_explaining_a_task_that_does_not_exist_is_refused() -> None:
    desk = Desk()
    run_id = desk.ask("SubmitRun", spec=SPEC)["body"]["runId"]
    reply = desk.ask("ExplainRun", runId=run_id, index=10)
    assert reply["body"]["error"]["fieldList"] == [{"path": "index", "message": "the run has 10 tasks, counted from 0"}]


def test_explaining_an_open_run_gives_a_verdict() -> None:
    desk = Desk()
    run_id = desk.ask("SubmitRun", spec=SPEC)["body"]["runId"]
    desk.fold_in()
    body = desk.ask("ExplainRun", runId=run_id)["body"]
    assert (body["verdict"], body["pending"]) == ("never", 10)


def test_what_the_api_writes_is_outside_of_the_versioned_partitions_and_pointers_and_tokens_expire(desk: Desk) -> None:
    run_id = desk.submit()["runId"]
    assert {partition for partition, _ in desk.store.items} == {"INBOX", "TOKENS", "SUBMITTED"}
    expiring = {partition for partition, _ in desk.store.expires_at}
    assert expiring == {"TOKENS", "SUBMITTED"}
    assert set(desk.store.expires_at.values()) == {NOW + 30 * 86_400}
    assert desk.store.read(("SUBMITTED", run_id)) is not None


ROOMY = {"command": ["--do", "${item}"], "image": "argosy/digits"}


@pytest.mark.parametrize(
    "items",
    [[9007199254740991] * 100_000, ["\u0001" * 100] * 1000, ["\u20ac" * 100] * 1000, ["\u00e9" * 100] * 1500],
    ids=["integers", "escapes", "three bytes each", "two bytes each"],
)
def test_a_spec_that_no_item_holds_is_refused_and_nothing_is_stored(desk: Desk, items: list[Any]) -> None:
    answer = desk.ask("SubmitRun", spec={**SPEC, "container": ROOMY, "array": {"items": items}})
    assert answer["statusCode"] == 400
    assert "262144 bytes" in error_of(answer)["fieldList"][0]["message"]
    assert not desk.store.items


def test_a_spec_of_many_non_ascii_letters_takes_no_more_room_than_its_text(desk: Desk) -> None:
    desk.submit(container=ROOMY, array={"items": ["\u00e9" * 70] * 1500})
    ((_, body),) = [each for each in desk.store.items.items() if each[0][0] == inbox.INBOX]
    assert len(body) < 1500 * 145 + 2000
    request = inbox.from_bytes(body)
    assert isinstance(request, inbox.SubmitRequest)
    assert request.spec["array"]["items"][0] == "\u00e9" * 70


@pytest.mark.parametrize("action", ["SubmitRun", "ValidateRun"])
def test_a_spec_that_only_its_defaults_make_too_large_is_refused_at_its_largest_field(desk: Desk, action: str) -> None:
    spec = {**SPEC, "container": ROOMY, "array": {"items": ["x" * 200]}}
    spare = REQUEST_LIMIT - 100 - len(json.dumps(spec, separators=(",", ":")))
    spec["array"] = {"items": ["x" * 200] * (1 + spare // 203)}
    answer = desk.ask(action, spec=spec)
    assert answer["statusCode"] == 400
    (fault,) = error_of(answer)["fieldList"]
    assert fault["path"] == "array.items"
    assert "itemsFrom" in fault["message"]
    assert not desk.store.items


def test_a_deadline_and_what_is_bought_are_shown_from_the_first_moment_on(desk: Desk) -> None:
    run = desk.submit(capacity={"deadline": "2h"})
    assert run["purchase"] == {"wanted": "spot-then-on-demand", "now": "spot", "since": None, "reason": None}
    assert (run["deadline"], run["late"]) == (iso(NOW + 7200), False)
    desk.fold_in()
    assert desk.body("DescribeRun", runId=run["runId"])["deadline"] == run["deadline"]


def test_a_deadline_in_the_past_is_refused_but_a_token_that_has_made_a_run_still_names_it(desk: Desk) -> None:
    capacity = {"deadline": iso(NOW + 60)}
    made = desk.submit(capacity=capacity)
    desk.time += 120
    assert desk.submit(capacity=capacity)["runId"] == made["runId"]
    refused = error_of(desk.ask("SubmitRun", clientToken="other", spec={**SPEC, "capacity": capacity}))
    assert [fault["path"] for fault in refused["fieldList"]] == ["capacity.deadline"]
