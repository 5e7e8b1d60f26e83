"""SubmitRun and ValidateRun: the stored items, the effect of a token, refusals and warnings."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from argosy import layout
from argosy.api.runs.submission import REQUEST_LIMIT, new_run_id
from argosy.api.views import iso
from argosy.model import inbox
from argosy.model.damage import NewerFormat
from argosy.model.resources import Resources
from argosy.model.stored import documents
from argosy.ports import Key
from tests.builders import NOW
from tests.fakes.api import SPEC, Desk, error_of


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


def test_nothing_is_stored_of_a_run_whose_warnings_cannot_be_worked_out(desk: Desk) -> None:
    """Otherwise a successful submission would be answered with an error, and a user who submits again would pay
    twice."""
    desk.store.items[documents.STATE, documents.ROOT] = documents.encode({"format": 99, "runs": []})
    with pytest.raises(NewerFormat):
        desk.ask("SubmitRun", spec={**SPEC, "capacity": {"budgetUsd": 0.01}})
    assert not desk.store.read_partition(inbox.INBOX)
    assert desk.wake.calls == 0


def test_the_reply_shows_the_run_before_the_controller_has_taken_it_in(desk: Desk) -> None:
    body = desk.submit()
    second = datetime.fromtimestamp(NOW, UTC)
    assert body["runId"].startswith(f"digits-{second:%y%m%d-%H%M%S}-")
    assert body == {
        "runId": body["runId"],
        "name": "digits",
        "environment": None,
        "status": "SUBMITTED",
        "statusReason": None,
        "submittedAt": second.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "startedAt": None,
        "stoppedAt": None,
        "output": f"s3://own/{body['runId']}/",
        "gpus": 0, "gpuShareMib": 0, "gpuPart": None, "gangSize": 1, "programs": [],
        "tasks": {
            "total": 10, "pending": 10, "starting": 0, "running": 0, "succeeded": 0, "failed": 0, "cancelled": 0,
        },
        "attempts": 0,
        "interruptions": 0,
        "preemptions": 0,
        "owner": None,
        "ownerProven": False,
        "costUsd": 0.0,
        "onDemandCostUsd": 0.0,
        "usefulUsd": 0.0,
        "instances": 0,
        "retries": 0,
        "failures": [], "failureGroups": [], "memoryMib": 1024, "vcpus": 1.0, "expectsResult": True,
        "waiting": None,
        "purchase": {"wanted": "spot", "now": "spot", "since": None, "reason": None},
        "deadline": None,
        "late": False,
        "budget": None,
        "dependsOn": [],
        "notBefore": None,
        "queue": "default", "priority": 0, "changes": {}, "changeReason": None,
            "redoneUsd": 0.0, "redoneHours": 0.0,
        "maxConcurrentTasks": None, "maxInstances": None,
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


def test_the_request_id_is_the_default_token(desk: Desk) -> None:
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
    assert error["message"] == f"this clientToken was already used for {run_id}, with a different spec"
    assert desk.store.items == before


@pytest.mark.parametrize(("open_runs", "status"), [(4_999, 200), (5_000, 409)])
def test_the_number_of_open_runs_is_limited(desk: Desk, open_runs: int, status: int) -> None:
    desk.submit()
    desk.fold_in()
    root = documents.decode(desk.store.items[documents.STATE, documents.ROOT])
    many = [f"run-261121-062733-{number:04d}" for number in range(open_runs)]
    desk.store.items[documents.STATE, documents.ROOT] = documents.encode({**root, "runs": many})
    before = dict(desk.store.items)
    answer = desk.ask("SubmitRun", clientToken="t-2", spec={**SPEC, "name": "other"})
    assert answer["statusCode"] == status
    if status != 200:
        assert error_of(answer)["message"].startswith("5,000 runs are open, the most that a deployment allows")
        assert desk.store.items == before


def test_a_run_can_be_submitted_while_the_number_of_open_runs_is_unknown(desk: Desk) -> None:
    desk.store.items[documents.STATE, documents.ROOT] = b"torn"
    assert desk.ask("SubmitRun", clientToken="t-2", spec=SPEC)["statusCode"] == 200


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


def test_submissions_that_never_get_through_are_asked_to_try_again(desk: Desk) -> None:
    desk.store.items = Crowded()
    answer = desk.ask("SubmitRun", spec=SPEC)
    assert error_of(answer)["message"] == "other runs were submitted at the same time: submit this one again"


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
                        "message": 'this deployment has no image argosy/unknown: `make deploy ARGS="-c'
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


def test_a_budget_that_is_too_small_is_taken_with_a_warning(desk: Desk) -> None:
    body = desk.submit(capacity={"budgetUsd": 0.0001})
    assert [each.split(":")[0] for each in body["warnings"]] == ["capacity.budgetUsd"]
    assert desk.submit("t-2", capacity={"budgetUsd": 1000})["warnings"] == []


def test_a_plan_warns_of_all_that_a_submission_warns_of(desk: Desk) -> None:
    spec = {**SPEC, "resources": {"vcpus": 1, "memory": 512, "gpus": 1}, "capacity": {"budgetUsd": 0.0001}}
    desk.api = replace(desk.api, fleets=[("us-east-1", "p3.8xlarge", "us-east-1a")])
    about_money, about_the_image = desk.body("PlanRun", spec=spec)["warnings"][:2]
    assert about_money.startswith("capacity.budgetUsd: $0.0001 ")
    assert [about_the_image, about_money] == desk.body("SubmitRun", spec=spec)["warnings"]


def test_an_image_for_cpus_on_gpus_is_taken_with_a_warning(desk: Desk) -> None:
    gpus = {"vcpus": 1, "memory": 512, "gpus": 1}
    [said] = desk.submit(resources=gpus)["warnings"]
    assert said.startswith("container.image: argosy/digits ")
    assert len(desk.submit("t-2", resources=gpus, capacity={"budgetUsd": 0.0001})["warnings"]) == 2


def test_an_image_for_cpus_on_a_share_of_a_gpu_is_taken_with_a_warning(desk: Desk) -> None:
    desk.api.limits = replace(desk.api.limits, shapes={"g5.xlarge": Resources(4096, 15_000, 1)})
    [said] = desk.submit(resources={"gpuShare": {"memoryMib": 1000}})["warnings"]
    assert said.startswith("container.image: argosy/digits is built for CPUs and cannot use the share of a GPU of each")


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


def test_a_deadline_in_the_past_is_refused_but_a_token_that_has_made_a_run_still_names_it(desk: Desk) -> None:
    capacity = {"deadline": iso(NOW + 60)}
    made = desk.submit(capacity=capacity)
    desk.time += 120
    assert desk.submit(capacity=capacity)["runId"] == made["runId"]
    refused = error_of(desk.ask("SubmitRun", clientToken="other", spec={**SPEC, "capacity": capacity}))
    assert [fault["path"] for fault in refused["fieldList"]] == ["capacity.deadline"]


def test_a_plan_counts_the_time_to_pull_the_resolved_image(desk: Desk) -> None:
    sizes = {desk.api.sources.images.resolve(SPEC["container"]["image"]): 500 << 20}
    desk.api.sources = replace(desk.api.sources, image_bytes=lambda image: sizes.get(image, 0))
    assert desk.body("PlanRun", spec=SPEC)["image"] == {"bytes": 500 << 20, "pullSeconds": 10.0}
