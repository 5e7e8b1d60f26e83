"""Tasks and instances chosen by filters, in pages; the cluster in columns."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest

from argosy.api.cluster.actions import (
    ATTEMPTS_SHOWN,
    ENDED_SHOWN,
    OBJECTS_SHOWN,
    at_work,
    in_columns,
    in_form,
    leave_out_ended,
)
from argosy.api.history import filtered_lists
from argosy.api.requests import ListTasks, token_of
from argosy.lifecycle.apply import apply
from argosy.model.attempts import AttemptKey, AttemptStatus
from argosy.model.events import HostSeen, RunCancelled
from argosy.model.inbox import CancelRequest
from argosy.model.instances import Instance, InstanceStatus
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.spec.faults import SpecError
from tests.builders import CELL, NOW, POLICY, fleet, instance_id, told
from tests.fakes.api import Desk, error_of, running

HERE = "i-0000000000000000a"
GONE = "i-0000000000000000b"


def tasks(desk: Desk, **filters: Any) -> list[int]:
    return [each["index"] for each in desk.body("ListTasks", **filters)["tasks"]]


def instances(desk: Desk, **filters: Any) -> list[str]:
    return [each["instanceId"] for each in desk.body("ListInstances", **filters)["instances"]]


def all_pages(desk: Desk, action: str, key: str, **fields: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    token: dict[str, Any] = {}
    while True:
        page = desk.body(action, **fields, **token)
        rows += page[key]
        if page["nextToken"] is None:
            return rows
        token = {"nextToken": page["nextToken"]}


@pytest.mark.parametrize(
    ("filters", "indexes"),
    [
        ({}, list(range(10))),
        ({"status": ["FAILED"]}, [0]),
        ({"status": ["STARTING", "RUNNING"]}, [1, 2]),
        ({"exitCode": 3}, [0]),
        ({"exitCode": 4}, []),
        ({"failed": True}, [4]),
        ({"failed": False, "status": ["PENDING"]}, [5, 6, 7, 8, 9]),
        ({"instance": HERE}, [0, 1, 2]),
        ({"instance": GONE}, []),
        ({"instance": HERE, "status": ["RUNNING"]}, [1]),
        ({"cell": "us-east-1"}, [0, 1, 2]),
        ({"cell": "us-east-1", "instance": HERE, "status": ["FAILED"]}, [0]),
        ({"cell": "us-east-1", "instance": "i-0123456789abcdef0"}, []),
        ({"cell": "eu-west-1"}, []),
    ],
)
def test_every_filter_of_tasks_must_fit(desk: Desk, filters: dict[str, Any], indexes: list[int]) -> None:
    run_id = running(desk)
    run = desk.state.runs[run_id]
    run.tasks.set(4, user_failures=1, attempts=1)
    desk.state.changed_runs.add(run_id)
    desk.commit()
    assert tasks(desk, runId=run_id, **filters) == tasks(desk, **filters) == indexes


def test_a_task_is_listed_as_describe_run_shows_it(desk: Desk) -> None:
    run_id = running(desk)
    shown = desk.body("DescribeRun", runId=run_id, include=["tasks"])["taskList"]
    view = desk.body("ListTasks", runId=run_id)
    assert view["tasks"] == [{"runId": run_id, **each} for each in shown]
    assert (view["asOf"], view["nextToken"]) == (desk.state.version, None)
    assert view["tasks"][0]["reason"] == "exit code 3"


def two_runs(desk: Desk) -> list[str]:
    ids = [str(desk.submit(f"t-{number}", name=f"digits{number}")["runId"]) for number in (1, 2)]
    desk.fold_in()
    return ids


@pytest.mark.parametrize("size", [1, 3, 10, 19, 20, 21])
def test_pages_of_tasks_hold_each_task_of_all_open_runs_once(desk: Desk, size: int) -> None:
    ids = two_runs(desk)
    rows = all_pages(desk, "ListTasks", "tasks", maxResults=size)
    assert [(row["runId"], row["index"]) for row in rows] == [(each, index) for each in ids for index in range(10)]


def test_a_run_that_has_ended_is_listed_only_when_it_is_asked_for(desk: Desk) -> None:
    first, second = two_runs(desk)
    apply(desk.state, RunCancelled(CancelRequest(first, NOW, "")), NOW, POLICY)
    desk.commit()
    assert tasks(desk, runId=first, status=["CANCELLED"]) == list(range(10))
    assert {row["runId"] for row in desk.body("ListTasks", status=["PENDING"])["tasks"]} == {second}


def test_a_run_that_is_not_folded_in_yet_has_its_tasks(desk: Desk) -> None:
    run_id = str(desk.submit()["runId"])
    assert tasks(desk, runId=run_id, status=["PENDING"]) == list(range(10))


def test_a_filter_with_few_matches_reads_a_bounded_number_of_tasks(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = str(desk.submit(array={"range": "0:30000", "shardSize": 1})["runId"])
    desk.fold_in()
    run = desk.state.runs[run_id]
    for index in (8_191, 8_192, 29_999):
        run.tasks.set(index, status=TaskStatus.FAILED, reason=run.reason_row(f"of {index}"))
    desk.state.changed_runs.add(run_id)
    desk.commit()
    monkeypatch.setattr(filtered_lists, "MOST_CHUNKS", 1)
    first = desk.body("ListTasks", runId=run_id, status=["FAILED"])
    assert [row["index"] for row in first["tasks"]] == [8_191]
    assert first["nextToken"]
    rows = all_pages(desk, "ListTasks", "tasks", runId=run_id, status=["FAILED"])
    assert [(row["index"], row["reason"]) for row in rows] == [
        (index, f"of {index}") for index in (8_191, 8_192, 29_999)
    ]


def with_instances(desk: Desk) -> Desk:
    """A busy p3.8xlarge, one that is gone, and three more that boot, one of them on demand, one in another zone."""
    running(desk)
    told(
        desk.state,
        fleet("c5.xlarge", "us-east-1a"),
        fleet("c5.xlarge", "us-east-1b"),
        *(
            HostSeen(instance_id(number), "us-east-1", "c5.xlarge", f"us-east-1{zone}", purchase, "running", NOW)
            for number, zone, purchase in ((1, "a", "spot"), (2, "a", "on-demand"), (3, "b", "spot"))
        ),
    )
    desk.state.instances[HERE].attributes = {"ecs.instance-type": "p3.8xlarge", "stack": "prod"}
    desk.state.instances[HERE].owned = desk.state.instances[HERE].agent_connected = True
    desk.state.changed_instances.add(HERE)
    desk.commit()
    return desk


ONE, TWO, THREE = map(instance_id, (1, 2, 3))


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, [ONE, TWO, THREE, HERE, GONE]),
        ({"status": ["BOOTING", "ACTIVE"]}, [ONE, TWO, THREE, HERE]),
        ({"status": ["GONE"]}, [GONE]),
        ({"type": "c5.*"}, [ONE, TWO, THREE, GONE]),
        ({"type": "c5.large"}, [GONE]),
        ({"zone": "us-east-1b"}, [THREE, GONE]),
        ({"purchase": "on-demand"}, [TWO]),
        ({"cell": "eu-west-1"}, []),
        ({"type": "c5.*", "status": ["BOOTING"], "zone": "us-east-1a", "purchase": "spot"}, [ONE]),
        ({"where": "attribute:stack == prod"}, [HERE]),
        ({"where": "not(attribute:stack == prod)"}, []),
        ({"where": "runningTasksCount == 2"}, [HERE]),
        ({"where": "agentConnected == true"}, [HERE]),
        ({"where": "runningTasksCount == 2", "type": "c5.*"}, []),
        ({"where": "task:group == database"}, []),
        ({"where": "task:group =~ run:digits.*"}, [HERE]),
    ],
)
def test_every_filter_of_instances_must_fit(desk: Desk, filters: dict[str, Any], expected: list[str]) -> None:
    assert instances(with_instances(desk), **filters) == expected


@pytest.mark.parametrize("size", [1, 2, 4, 5, 6])
def test_pages_of_instances_hold_each_once_as_the_cluster_shows_them(desk: Desk, size: int) -> None:
    with_instances(desk)
    shown = {each["instanceId"]: each for each in desk.body("DescribeCluster")["instances"]}
    rows = all_pages(desk, "ListInstances", "instances", maxResults=size)
    assert rows == [shown[name] for name in sorted(shown)]


@pytest.mark.parametrize(
    ("fields", "path", "message"),
    [
        ({"action": "ListTasks", "state": "FAILED"}, "state", "unknown field"),
        ({"action": "ListTasks", "status": ["FAILED", "FAILED"]}, "status", "has FAILED twice"),
        ({"action": "ListTasks", "status": ["BROKEN"]}, "status", "'BROKEN' is unknown; known: PENDING"),
        ({"action": "ListTasks", "instance": "prod"}, "instance", ""),
        ({"action": "ListTasks", "exitCode": 256}, "exitCode", "must be at most 255"),
        ({"action": "ListTasks", "maxResults": 1001}, "maxResults", "must be at most 1,000"),
        ({"action": "ListInstances", "runId": "x"}, "runId", "unknown field"),
        ({"action": "ListInstances", "status": ["GONE", "GONE"]}, "status", "has GONE twice"),
        ({"action": "ListInstances", "status": ["FAILED"]}, "status", "'FAILED' is unknown"),
        ({"action": "ListInstances", "purchase": "free"}, "purchase", "must be 'spot', 'on-demand' or 'reserved'"),
        ({"action": "ListInstances", "where": "attribute:"}, "where", "is not a cluster query"),
        ({"action": "ListInstances", "where": "task:startedBy == x"}, "where", "task:startedBy is not known here"),
        ({"action": "ListInstances", "where": "agentVersion < 1.14.5"}, "where", "agentVersion is not known here"),
        ({"action": "DescribeCluster", "form": "rows"}, "form", "must be 'objects' or 'columns'"),
    ],
)
def test_a_filter_that_is_none_is_refused_with_its_path(
    desk: Desk, fields: dict[str, Any], path: str, message: str
) -> None:
    answer = desk.api.handle(fields, "r")
    assert answer["statusCode"] == 400
    [fault] = error_of(answer)["fieldList"]
    assert fault["path"] == path
    assert message in fault["message"]


def test_tasks_of_a_run_that_is_not_there_are_not_found(desk: Desk) -> None:
    assert desk.ask("ListTasks", runId="digits-261121-062733-k3f9")["statusCode"] == 404


@pytest.mark.parametrize(
    ("action", "fields"),
    [
        ("ListTasks", {}),
        ("ListTasks", {"status": ["FAILED"]}),
        ("ListInstances", {}),
        ("ListInstances", {"type": "c5.*"}),
    ],
)
def test_a_token_of_a_request_with_other_filters_is_refused(desk: Desk, action: str, fields: dict[str, Any]) -> None:
    with_instances(desk)
    token = desk.body("ListTasks", status=["PENDING"], maxResults=1)["nextToken"]
    answer = desk.ask(action, nextToken=token, **fields)
    assert answer["statusCode"] == 400
    assert error_of(answer)["fieldList"] == [
        {"path": "nextToken", "message": "belongs to a request with different filters"}
    ]
    assert tasks(desk, status=["PENDING"], nextToken=token, maxResults=2) == [5, 6]


def test_a_forged_place_is_refused(desk: Desk) -> None:
    request = ListTasks.model_validate({"action": "ListTasks"})
    answer = desk.ask("ListTasks", nextToken=token_of(request, "somewhere"))
    assert [each["path"] for each in error_of(answer)["fieldList"]] == ["nextToken"]


def test_the_cluster_in_columns_says_what_its_objects_say(desk: Desk) -> None:
    with_instances(desk)
    objects, view = desk.body("DescribeCluster"), desk.body("DescribeCluster", form="columns")
    table = view["instances"]
    found = {
        name: np.frombuffer(base64.b64decode(each["data"]), each["dtype"]) for name, each in table["columns"].items()
    }
    named = {
        name: [each["values"][row] for row in found[name].tolist()]
        for name, each in table["columns"].items()
        if "values" in each
    }
    assert table["rows"] == len(objects["instances"]) == 5
    for row, each in enumerate(objects["instances"]):
        assert found["id"][row].decode() == each["instanceId"]
        place = each["instanceType"], each["availabilityZone"]
        assert (named["type"][row], named["zone"][row]) == place
        assert named["pool"][row] == "/".join((each["cell"], *place))
        assert (named["purchase"][row], named["status"][row]) == (each["purchase"], each["status"])
        assert found["usdPerHour"][row] == each["priceUsdPerHour"]
        assert found["onDemandUsdPerHour"][row] == each["onDemandUsdPerHour"]
        assert found["tasks"][row] == each["tasks"]
        for name, key in (("cpuUsed", "cpu"), ("memoryUsed", "memory"), ("gpuUsed", "gpus")):
            total = each[key]["total"]
            share = found[name][row]
            assert np.isnan(share) if not total else share == pytest.approx(each[key]["used"] / total)
    closed = [each["instanceId"] for each in objects["instances"] if each["noWorkBecause"] and each["status"] != "GONE"]
    assert [each["instanceId"] for each in view.pop("withoutWork")] == closed
    assert view.pop("sharedGpus") == []
    assert {**view, "instances": 0} == {**objects, "instances": 0}


def test_what_is_at_work_on_the_instances_comes_as_columns(desk: Desk) -> None:
    with_instances(desk)
    told = desk.body("DescribeCluster", form="columns", include=["attempts"])
    found, shown = told["attempts"], told["instances"]["columns"]
    column = {
        name: np.frombuffer(base64.b64decode(each["data"]), each["dtype"]) for name, each in found["columns"].items()
    }
    assert (found["rows"], found["left"]) == (1, 0)  # task 2 is not known to ECS yet
    ids = np.frombuffer(base64.b64decode(shown["id"]["data"]), shown["id"]["dtype"])
    [instance], [run] = column["instance"].tolist(), column["run"].tolist()
    assert ids[instance].decode() == HERE
    assert found["columns"]["run"]["values"][run] == next(iter(desk.state.runs))
    assert (column["index"].tolist(), column["gpuMask"].tolist()) == ([1], [3])


def test_of_more_attempts_than_a_reply_holds_those_left_out_are_counted() -> None:
    state = State(epoch="test")
    state.instances = {name: Instance(name, CELL, "c5.xlarge", "us-east-1a") for name in (HERE, GONE)}
    for number, index in ((1, 3), (99, 4), (1, 5), (1, 6)):
        row = state.attempts.add(number, AttemptKey("", index, 1, 0), 1, GONE if index == 3 else HERE, NOW)
        state.attempts.set(row, status=AttemptStatus.RUNNING)
    found = at_work(state, {1: "known"}, most=2)
    column = {
        name: np.frombuffer(base64.b64decode(each["data"]), each["dtype"]) for name, each in found["columns"].items()
    }
    assert (found["rows"], found["left"]) == (2, 1)
    assert (column["instance"].tolist(), column["index"].tolist()) == ([0, 0], [5, 6])  # in the order of the instances


def test_two_hundred_thousand_attempts_at_work_fit_into_one_reply_with_their_instances() -> None:
    bytes_of_each = sum(np.dtype(each).itemsize for each in ("<u4", "<u2", "<u4", "<u4"))
    assert ATTEMPTS_SHOWN * bytes_of_each * 4 / 3 + 20_000 * 81 < 6_000_000


def test_fifty_thousand_instances_in_columns_fit_into_one_reply(desk: Desk) -> None:
    with_instances(desk)
    [first, *_] = desk.body("DescribeCluster")["instances"]
    many = in_columns({"instances": [{**first, "instanceId": f"i-{number:017x}"} for number in range(50_000)]})
    assert len(json.dumps(many)) < 6_000_000


def test_too_many_instances_as_objects_are_refused_with_what_to_ask_for_instead() -> None:
    view = {"instances": [{}] * (OBJECTS_SHOWN + 1)}
    with pytest.raises(SpecError) as refusal:
        in_form(view, "objects")
    (fault,) = refusal.value.faults
    assert fault.path == "form"
    assert "12,001 instances as objects is too large: ask for columns, or use ListInstances" in fault.message
    fitting = {"instances": [{}] * OBJECTS_SHOWN}
    assert in_form(fitting, "objects") is fitting
    for included in ("attempts", "history"):
        with pytest.raises(SpecError):
            in_form({**fitting, included: {}}, "objects")


def test_of_very_many_instances_that_have_ended_the_last_ones_are_shown() -> None:
    state = State()
    for number in range(ENDED_SHOWN + 12):
        name, status = instance_id(number), InstanceStatus.GONE if number < ENDED_SHOWN + 7 else InstanceStatus.ACTIVE
        state.instances[name] = Instance(name, "us-east-1", "c5.large", "z", status=status, stopped_at=NOW - number)
    assert leave_out_ended(state) == 7
    assert len(state.instances) == ENDED_SHOWN + 5
    assert instance_id(0) in state.instances
    assert instance_id(ENDED_SHOWN + 6) not in state.instances
    assert leave_out_ended(state) == 0


def test_the_largest_cluster_that_a_deployment_may_have_fits_into_one_reply_with_all_that_can_be_included() -> None:
    """10,000 instances and those that ended last, with the tasks at work on them: the history takes 1.5 MB at most
    (tests/unit/api/test_cluster_history.py)."""
    gpus = {"total": 8, "used": 4}
    row = {
        "instanceType": "g4dn.metal-48xl", "availabilityZone": "us-east-1a", "cell": "us-east-1", "purchase": "spot",
        "status": "ACTIVE", "cpu": gpus, "memory": gpus, "gpus": gpus, "tasks": 16,
        "priceUsdPerHour": 1.23456, "onDemandUsdPerHour": 4.56789,
    }  # fmt: skip
    names = map(instance_id, range(10_000 + ENDED_SHOWN))
    view = in_columns({"instances": [{**row, "instanceId": name} for name in names]})
    of_an_attempt = 14 * 4 / 3
    assert len(json.dumps(view)) + ATTEMPTS_SHOWN * of_an_attempt < 6_000_000 - 1_500_000
