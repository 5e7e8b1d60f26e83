"""The past as users see it: attempts as columns, a task's attempts, a run's course and failures."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest

from argosy.api import requests
from argosy.api.history import attempts as attempt_history
from argosy.api.history import run_history
from argosy.lifecycle import series
from argosy.model.cluster_history import PlacedOrder
from argosy.model.ended_attempts import EndedAttempt, Outcome, pack
from argosy.model.events import LaunchAccepted
from argosy.model.history_parts import instance_facts
from argosy.model.run_record import RunRecord
from argosy.model.stored import documents
from tests.builders import (
    NOW,
    POLICY,
    RUN_ID,
    container_instance,
    fleet,
    host,
    instance_id,
    launched,
    prepared,
    submitted,
    task,
    task_arn,
    told,
)
from tests.fakes.api import Definitions, Desk, error_of

END = NOW + 60


def with_a_run(desk: Desk, expects_result: bool = False, **spec: Any) -> Desk:
    """Of ten tasks, on an active instance."""
    told(
        desk.state,
        submitted(expects_result=expects_result, **spec),
        prepared(**spec),
        fleet(spot_target=1),
        host(1),
        container_instance(1),
    )
    desk.commit()
    return desk


def with_three_attempts(desk: Desk) -> Desk:
    """Of task 0: one that failed, one that was interrupted, and one that runs; of task 1: one that succeeded."""
    with_a_run(desk)
    for attempt, stop in ((1, {"exit_code": 3}), (2, {"stop_code": "SpotInterruption"})):
        launched(desk.state, number=attempt, attempt=attempt)
        told(desk.state, task(attempt, "STOPPED", 3, started_at=NOW + 1, stopped_at=END, **stop), now=END)
        desk.commit()
    launched(desk.state, number=3, attempt=3)
    told(desk.state, task(3, "RUNNING"))
    launched(desk.state, index=1, number=4)
    told(desk.state, task(4, "STOPPED", 3, exit_code=0, started_at=NOW + 2, stopped_at=END), now=END)
    desk.commit()
    return desk


def columns_of(view: dict[str, Any]) -> dict[str, list[int]]:
    return {
        name: np.frombuffer(base64.b64decode(column["data"]), column["dtype"]).tolist()
        for name, column in view["columns"].items()
    }


def test_attempts_are_listed_as_columns_and_those_that_are_alive_come_last(desk: Desk) -> None:
    view = with_three_attempts(desk).body("ListAttempts", runId=RUN_ID)
    found = columns_of(view)
    assert found["index"] == [0, 0, 1, 0]
    assert found["attempt"] == [1, 2, 1, 3]
    assert found["outcome"] == [Outcome.FAILED, Outcome.INTERRUPTED, Outcome.SUCCEEDED, attempt_history.ALIVE]
    assert found["exitCode"] == [3, -32768, 0, -32768]
    assert found["started"] == [10, 10, 20, 1]  # a start at the very origin differs from "not known"
    assert found["stopped"] == [600, 600, 600, 0]
    assert [view["instances"][row] for row in found["instance"]] == [instance_id(1)] * 4
    assert view["reasons"][found["reason"][0]]
    assert (view["rows"], view["origin"], view["asOf"], view["nextToken"]) == (4, NOW, desk.state.version, None)


def test_attempts_come_in_pages_that_hold_every_row_once(desk: Desk) -> None:
    with_a_run(desk)
    versions = range(10, 40)
    for version in versions:
        rows = [EndedAttempt(row, version, Outcome.FAILED) for row in range(4_500)]
        key = documents.history_partition(RUN_ID), documents.history_key(version)
        desk.store.items[key] = pack(rows)[0]
    seen: list[tuple[int, int]] = []
    token: dict[str, Any] = {}
    while True:
        view = desk.body("ListAttempts", runId=RUN_ID, **token)
        found = columns_of(view)
        assert view["rows"] <= attempt_history.MOST_ROWS
        seen += zip(found["index"], found["attempt"], strict=True)
        if view["nextToken"] is None:
            break
        token = {"nextToken": view["nextToken"]}
    assert seen == [(row, version) for version in versions for row in range(4_500)]


def test_a_task_is_shown_with_every_attempt_it_had_and_where_each_ones_log_is(desk: Desk) -> None:
    view = with_three_attempts(desk).body("DescribeTask", runId=RUN_ID, index=0)
    assert view["status"] == "RUNNING"
    first, second, third = view["attempts"]
    assert first == {
        "attempt": 1, "taskArn": task_arn(1), "taskId": task_arn(1)[-32:], "instance": instance_id(1),
        "launchedAt": "2027-01-15T08:00:00.000Z", "startedAt": "2027-01-15T08:00:01.000Z",
        "stoppedAt": "2027-01-15T08:01:00.000Z", "outcome": "FAILED", "exitCode": 3,
        "reason": first["reason"], "gpus": [], "gpuIds": [], "region": "us-east-1", "startUp": first["startUp"],
        "logGroup": None, "logStream": f"argosy/main/{task_arn(1)[-32:]}", "program": None,
    }  # fmt: skip
    assert (second["outcome"], second["exitCode"]) == ("INTERRUPTED", None)
    assert (third["outcome"], third["stoppedAt"], third["taskArn"]) == (None, None, task_arn(3))


def test_a_definition_of_the_users_own_says_where_its_attempts_log(desk: Desk) -> None:
    options = {"awslogs-group": "/mine", "awslogs-stream-prefix": "p"}
    logs = {"logConfiguration": {"logDriver": "awslogs", "options": options}}
    described = {"containerDefinitions": [{"name": "sidecar"}, {"name": "main", **logs}]}
    desk.api.sources = desk.api.sources.__class__(desk.api.sources.images, desk.items, Definitions(mine=described))
    with_three_attempts(desk)
    run = desk.state.runs[RUN_ID]
    run.image, run.task_definition = "", "arn:aws:ecs:us-east-1:123456789012:task-definition/mine:3"
    desk.state.changed_runs.add(RUN_ID)
    desk.commit()
    (attempt,) = desk.body("DescribeTask", runId=RUN_ID, index=1)["attempts"]
    assert (attempt["logGroup"], attempt["logStream"]) == ("/mine", f"p/main/{task_arn(4)[-32:]}")


@pytest.mark.parametrize("described", [None, {"containerDefinitions": [{"name": "sidecar"}]}])
def test_of_a_definition_that_is_gone_the_deployments_own_group_is_assumed(
    desk: Desk, described: dict[str, Any] | None
) -> None:
    desk.api.sources = desk.api.sources.__class__(desk.api.sources.images, desk.items, Definitions(mine=described))
    with_three_attempts(desk)
    run = desk.state.runs[RUN_ID]
    run.image, run.task_definition = "", "arn:aws:ecs:us-east-1:123456789012:task-definition/mine:3"
    desk.state.changed_runs.add(RUN_ID)
    desk.commit()
    (attempt,) = desk.body("DescribeTask", runId=RUN_ID, index=1)["attempts"]
    assert (attempt["logGroup"], attempt["logStream"]) == (None, f"argosy/main/{task_arn(4)[-32:]}")


def test_a_task_that_does_not_exist_is_refused_and_one_that_never_started_has_no_attempts(desk: Desk) -> None:
    with_a_run(desk)
    assert desk.body("DescribeTask", runId=RUN_ID, index=9)["attempts"] == []
    fault = error_of(desk.ask("DescribeTask", runId=RUN_ID, index=10))
    assert [each["path"] for each in fault["fieldList"]] == ["index"]


def test_a_history_shows_course_instances_and_failures_in_groups(desk: Desk) -> None:
    with_three_attempts(desk)
    series.sample(desk.state, NOW, POLICY)
    told(desk.state, LaunchAccepted(launched(desk.state, index=2, number=5), task_arn(5)))
    series.sample(desk.state, END, POLICY)
    desk.commit()
    view = desk.body("DescribeHistory", runId=RUN_ID)
    course = view["series"]
    assert course["at"] == [END]  # nothing had changed before
    assert (course["queued"], course["starting"], course["running"], course["succeeded"]) == ([7], [1], [1], [1])
    assert course["instances"] == [1]
    assert {len(course[name]) for name in ("usdPerHour", "onDemandUsd")} == {1}
    assert set(course["cost"]) == {"useful", "boot", "idle", "redone", "displaced", "failed"}
    (shown,) = view["instances"]
    assert (shown["id"], shown["type"], shown["cause"], shown["endedAt"]) == (instance_id(1), "c5.xlarge", None, None)
    assert view["failures"] == [
        {
            "reason": view["failures"][0]["reason"], "exitCode": 3, "count": 1, "firstIndex": 0, "lastIndex": 0,
            "firstAt": "2027-01-15T08:01:00.000Z", "lastAt": "2027-01-15T08:01:00.000Z",
        }
    ]  # fmt: skip


def test_the_history_of_a_run_that_is_not_taken_in_yet_is_empty(desk: Desk) -> None:
    run_id = desk.submit()["runId"]
    view = desk.body("DescribeHistory", runId=run_id)
    assert (view["series"]["at"], view["instances"], view["failures"], view["orders"]) == ([], [], [], [])
    assert desk.body("ListAttempts", runId=run_id)["rows"] == 0
    assert desk.body("DescribeTask", runId=run_id, index=0)["attempts"] == []


def test_a_series_that_cannot_be_read_is_left_out(desk: Desk) -> None:
    with_three_attempts(desk)
    desk.store.items[documents.run_partition(RUN_ID), documents.SERIES] = b"not a series"
    view = desk.body("DescribeHistory", runId=RUN_ID)
    assert (view["series"]["at"], view["damaged"]) == ([], 1)


@pytest.mark.parametrize("damage", [b"", b"not a history"])
def test_an_item_of_a_history_that_cannot_be_read_hides_no_other(desk: Desk, damage: bytes) -> None:
    with_three_attempts(desk)
    first = min(key for key in desk.store.items if key[0] == documents.history_partition(RUN_ID))
    desk.store.items[first] = damage
    page, shown = desk.body("ListAttempts", runId=RUN_ID), desk.body("DescribeTask", runId=RUN_ID, index=0)
    assert columns_of(page)["attempt"] == [2, 1, 3]
    assert [each["attempt"] for each in shown["attempts"]] == [2, 3]
    assert (page["damaged"], shown["damaged"]) == (1, 1)


def test_attempts_that_are_alive_have_a_page_to_themselves_where_both_do_not_fit(desk: Desk) -> None:
    """100,000 rows and 80,000 attempts at work in one reply would be more than Lambda's 6 MB."""
    with_three_attempts(desk)
    past = attempt_history.History(desk.store, desk.api.objects, RunRecord.of(desk.state.runs[RUN_ID]))
    whole = attempt_history.attempts_page(past, None)
    assert (len(whole.rows), whole.is_last, whole.left_out) == (4, True, 0)
    first = attempt_history.attempts_page(past, None, most=3)
    assert (first.rows.columns["attempt"].tolist(), first.is_last) == ([1, 2, 1], False)
    second = attempt_history.attempts_page(past, first.end, most=3)
    assert (second.rows.columns["attempt"].tolist(), second.is_last) == ([3], True)
    assert attempt_history.attempts_page(past, first.end, most=0).left_out == 1


def test_of_a_task_with_very_many_attempts_the_last_ones_are_shown(desk: Desk) -> None:
    with_a_run(desk)
    rows = [EndedAttempt(0, number, Outcome.LOST) for number in range(1, attempt_history.MOST_ATTEMPTS + 8)]
    desk.store.items[documents.history_partition(RUN_ID), documents.history_key(9)] = pack(rows)[0]
    view = desk.body("DescribeTask", runId=RUN_ID, index=0)
    assert (view["attempts"][0]["attempt"], view["attemptsLeftOut"]) == (8, 7)
    assert len(json.dumps(view)) < 6_000_000 / 4


def test_forty_thousand_instances_come_in_pages_far_below_what_lambda_answers(desk: Desk) -> None:
    with_a_run(desk)
    facts = instance_facts(next(iter(desk.state.instances.values())))
    facts["gpuIds"] = [f"GPU-{number:032x}-{number:03x}" for number in range(16)]
    used = {name: {**facts, "id": name} for name in map(instance_id, range(40_000))}
    seen, after = list[str](), None
    while True:
        page, after = run_history.instance_page(used, after)
        seen += [each["id"] for each in page]
        if after is None:
            break
        if len(seen) == len(page):
            assert len(json.dumps(page)) < 5_000_000
    assert seen == sorted(used)


def test_a_history_has_its_instances_on_all_pages_and_the_rest_on_the_first(desk: Desk) -> None:
    with_three_attempts(desk)
    whole = desk.body("DescribeHistory", runId=RUN_ID)
    request = requests.DescribeHistory.model_validate({"action": "DescribeHistory", "runId": RUN_ID})
    token = requests.token_of(request, "i-0")
    later = desk.body("DescribeHistory", runId=RUN_ID, nextToken=token)
    assert later["instances"] == whole["instances"]
    assert set(whole) - set(later) == {
        "series", "orders", "ordersLeftOut", "instancesLeftOut", "failures", "damaged",
    }  # fmt: skip
    assert desk.ask("ListAttempts", runId=RUN_ID, nextToken=token)["statusCode"] == 400


def test_what_was_bought_for_a_run_says_what_came_of_it(desk: Desk) -> None:
    with_three_attempts(desk)
    (instance,) = desk.state.instances.values()
    instance.launched_at = NOW + 30
    desk.state.changed_instances.add(instance.id)
    desk.state.orders = [
        PlacedOrder(NOW, instance.pool, "spot", 1, 0.07, (99,), "another run's"),
        PlacedOrder(NOW + 10, instance.pool, "spot", 2, 0.07, (1,), "why"),
        PlacedOrder(NOW + 10, instance.pool, "on-demand", 1, 0.0, (1,), "why"),
        PlacedOrder(NOW + 40, instance.pool, "spot", 3, 0.07, (1, 99), "why"),
    ]
    desk.time = NOW + 100
    desk.commit()
    orders = desk.body("DescribeHistory", runId=RUN_ID)["orders"]
    assert [(each["at"] - NOW, each["purchase"], each["count"], each["delivered"]) for each in orders] == [
        (10, "spot", 2, 1), (10, "on-demand", 1, 0), (40, "spot", 3, 0),
    ]  # fmt: skip
    assert set(orders[0]) == {"at", "cell", "type", "zone", "purchase", "count", "usdPerHour", "why", "delivered"}


@pytest.mark.parametrize("noted", [b"{", b"[]", b'{"instances": [1]}'])
def test_instances_that_were_noted_at_the_end_and_cannot_be_read_are_counted(desk: Desk, noted: bytes) -> None:
    with_a_run(desk)
    run = desk.state.runs[RUN_ID]
    run.instances.add(instance_id(7))
    run.retries = 1
    desk.state.changed_runs.add(RUN_ID)
    desk.commit()

    class Noted:
        def fetch(self, uri: str) -> bytes:
            return noted

    desk.api.objects = Noted()
    view = desk.body("DescribeHistory", runId=RUN_ID)
    assert (view["instances"], view["damaged"]) == ([], 1)


def token_at(place: str) -> str:
    request = requests.ListAttempts.model_validate({"action": "ListAttempts", "runId": RUN_ID})
    return requests.token_of(request, place)


def test_a_page_of_attempts_is_not_had_by_another_runs_token(desk: Desk) -> None:
    """It would begin somewhere, and silently leave out attempts."""
    with_a_run(desk)
    other = desk.submit()["runId"]
    token = token_at(documents.history_key(3))
    assert desk.body("ListAttempts", runId=RUN_ID, nextToken=token)["rows"] == 0
    for run_id, wrong in ((other, token), (RUN_ID, requests.page_token("zzzz")), (RUN_ID, requests.page_token(" "))):
        reply = desk.ask("ListAttempts", runId=run_id, nextToken=wrong)
        assert [fault["path"] for fault in error_of(reply)["fieldList"]] == ["nextToken"]


def test_a_token_that_names_no_place_is_refused(desk: Desk) -> None:
    with_a_run(desk)
    token = token_at("")
    assert desk.ask("ListAttempts", runId=RUN_ID, nextToken=token)["statusCode"] == 400
