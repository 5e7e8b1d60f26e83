"""What sharing the cluster does to the end of a planned run: the member `sharing` of PlanRun's reply."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.api.plan_sharing import late_warnings, shared_end, sharing_view
from argosy.model.actions import Launch
from argosy.model.events import SharingAsked
from argosy.model.inbox import SharingRequest
from argosy.model.policy import VcpuQuota
from argosy.model.run_terms import needs_of
from argosy.model.state import State
from argosy.planning.durations import Seconds
from argosy.planning.question import PlanQuestion
from argosy.scheduler.decide import decide
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    begun,
    container_instance,
    fleet,
    host,
    moment_of,
    prepared,
    spec,
    state_with,
    submitted,
    told,
)

QUEUES = {"version": 1, "queues": {"default": {}, "prod": {}, "research": {}}}


def run(state: State, number: int, tasks: int, seconds: float | None, **fields: Any) -> str:
    run_id = f"run-261121-0627{number:02d}-aaaa"
    array = {"size": tasks} | ({} if seconds is None else {"expectedSeconds": seconds})
    told(state, submitted(run_id, tasks, array=array, **fields), prepared(run_id, **fields))
    return run_id


def busy(seconds: float | None = 595.0, tasks: int = 160, instances: int = 4, **fields: Any) -> State:
    """A run of the queue prod has all places, four on each instance, and more tasks that wait."""
    state = state_with(fleet(spot_target=instances), fleet("p3.2xlarge"))
    for number in range(instances):
        told(state, host(number), container_instance(number))
    told(state, SharingAsked(SharingRequest(QUEUES, 0, NOW)))
    if tasks:
        run(state, 1, tasks, seconds, queue="prod", **fields)
        actions = decide(moment_of(state, policy=replace(POLICY, max_instances=instances)))
        begun(state, [each for each in actions if isinstance(each, Launch)])
    return state


def question_of(
    state: State, tasks: int = 80, instances: int = 4, quota: int | None = None, **fields: Any
) -> PlanQuestion:
    """Tasks of ten minutes, five seconds to start among them."""
    form = spec(queue="research", **fields)
    known = () if quota is None else (VcpuQuota(CELL, "spot", "standard", quota), VcpuQuota(CELL, "spot", "p", 0))
    moment = moment_of(state, NOW, replace(POLICY, max_instances=instances, vcpu_quotas=known))
    seconds = Seconds(300.0, 595.0, 900.0, "a test says so")
    return PlanQuestion(moment, form, tasks, needs_of(form), seconds, (), "us-east-1")


def planned(state: State, tasks: int = 80, instances: int = 4, **fields: Any) -> dict[str, Any]:
    found = sharing_view(shared_end(question_of(state, tasks, instances, **fields)))
    assert found is not None
    return found


def test_two_queues_of_one_weight_take_twice_as_long_as_one() -> None:
    """16 places: 80 tasks of ten minutes are five rounds, or ten in half of the places once those come free."""
    found = planned(busy())
    assert found["queue"] == "research"
    assert found["aloneSeconds"] == pytest.approx(3_000, rel=0.05)
    assert found["seconds"]["expected"] == pytest.approx(6_600, rel=0.08)
    assert found["seconds"]["low"] < found["seconds"]["expected"] < found["seconds"]["high"]
    ((name, lasts),) = ((each["queue"], each["seconds"]) for each in found["others"])
    assert (name, found["others"][0]["tasks"]) == ("prod", 160)
    assert lasts > found["seconds"]["expected"]
    assert found["sentence"].startswith("alone it would end in 5")
    assert "; sharing with prod, which has work for 2 h" in found["sentence"]
    assert found["sentence"].endswith(", if nothing else is submitted")


def test_where_nobody_else_has_work_nothing_is_said() -> None:
    assert shared_end(question_of(busy(tasks=0))) is None


def test_where_more_may_be_bought_the_others_do_not_keep_it_from_its_end() -> None:
    found = planned(busy(tasks=16), tasks=160, instances=100)
    assert found["seconds"]["expected"] == pytest.approx(found["aloneSeconds"], rel=0.05)
    assert found["sentence"].endswith("prod, which has work for 10 min, does not keep it from that")


def test_a_quota_bounds_what_may_be_bought_beside_the_others() -> None:
    """Room for one instance more, of four places."""
    more = planned(busy(), instances=100, quota=20)
    none = planned(busy(), instances=100, quota=16)
    assert none["seconds"]["expected"] == planned(busy())["seconds"]["expected"]
    assert more["seconds"]["expected"] < none["seconds"]["expected"]
    assert more["seconds"]["expected"] > 2 * planned(busy(), instances=100)["seconds"]["expected"]


def test_no_end_is_made_up_where_nothing_is_known_of_the_others() -> None:
    found = planned(busy(seconds=None))
    assert found["seconds"] is None
    assert "and no array.expectedSeconds says how long they take" in found["whyUnknown"]
    assert "when it ends beside prod is not known" in found["sentence"]


def test_no_end_is_made_up_where_none_of_the_places_comes_free() -> None:
    found = planned(busy(seconds=30 * 86_400.0))
    assert (found["seconds"], found["others"][0]["seconds"]) == (None, None)
    assert found["whyUnknown"].startswith("no end of what uses the cluster is in sight")
    assert "when it ends beside prod is not known" in found["sentence"]


def test_for_another_type_of_instance_one_has_to_go_first_and_when_is_not_known() -> None:
    found = planned(busy(), resources={"vcpus": 1, "memory": 1024, "gpus": 1})
    assert (found["aloneSeconds"], found["seconds"]) == (None, None)
    assert found["whyUnknown"].startswith("no instance that is here or may be ordered could take its tasks")


def test_a_deadline_that_only_the_others_make_it_miss_is_named() -> None:
    capacity = {"deadline": "75m"}
    question = question_of(busy(), capacity=capacity)
    assert late_warnings(question, shared_end(question)) == [
        "sharing with others, the run is expected to miss its deadline"
    ]
    question = question_of(busy(tasks=16), tasks=16, capacity=capacity)
    assert late_warnings(question, shared_end(question)) == []
    assert late_warnings(question, None) == []
