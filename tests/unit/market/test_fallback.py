"""A run's stance, its changes, the reason shown to its user, and that all of it is stored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.lifecycle.begin import begin
from argosy.market.fallback import purchases, steered
from argosy.market.offers import tasks_in
from argosy.market.progress import Progress, progress_of
from argosy.model.actions import HaltRun, SetTarget, Steer
from argosy.model.events import PoolShort
from argosy.model.instances import Purchase
from argosy.model.policy import VcpuQuota
from argosy.model.purchases import PurchaseChoice, PurchaseStance
from argosy.model.run_record import RunRecord
from argosy.model.runs import Run
from argosy.model.shares.sharing import Sharing
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.tasks import TaskStatus
from argosy.scheduler.decide import decide
from argosy.scheduler.placing.places import assign
from argosy.scheduler.supply.roster import Roster
from argosy.scheduler.turns.asks import ON_DEMAND_ONLY, SPOT_ONLY, asks_of
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    RUN_ID,
    begun,
    fleet,
    host,
    launched,
    moment_of,
    prepared,
    state_with,
    state_with_instance,
    submitted,
    task,
    told,
)

MIXED = {"purchase": "spot-then-on-demand"}
BOTH = frozenset(Purchase)


def a_run(tasks: int = 10, seconds: float = 60, **capacity: Any) -> State:
    capacity = {**MIXED, **capacity}
    overrides = {"array": {"size": tasks, "expectedSeconds": seconds}, "capacity": capacity}
    return state_with(submitted(tasks=tasks, **overrides), prepared(**overrides), fleet())


def the_run(state: State) -> Run:
    return state.runs[RUN_ID]


def job(state: State, now: float = NOW) -> Progress:
    found = progress_of(the_run(state), moment_of(state, now))
    assert found is not None
    return found


def test_a_run_without_a_deadline_is_no_job() -> None:
    state = a_run()
    assert progress_of(the_run(state), moment_of(state)) is None


def test_all_tasks_at_once_take_as_long_as_one() -> None:
    found = job(a_run(tasks=400, deadline="1h"))
    assert (found.total_s, found.left_s, found.slack_s) == (60, 60, 3540)


def test_what_does_not_fit_at_once_takes_turns() -> None:
    state = a_run(tasks=400, deadline="1h", maxInstances=10)  # 4 on each: 40 at once
    assert job(state).total_s == pytest.approx(10 * 60, abs=60)
    assert job(a_run(tasks=400, deadline="1h", maxInstances=5)).total_s == pytest.approx(20 * 60, abs=60)


def test_tasks_that_have_ended_say_how_long_the_others_take() -> None:
    state = a_run(deadline="1h", seconds=60)
    run = the_run(state)
    run.note_duration(200)
    run.note_duration(400)
    assert job(state).left_s == 400, "the longest of all, as they all run at once"
    assert job(state).at_risk_s == 400


def test_a_task_that_is_at_work_for_longer_than_expected_corrects_the_guess() -> None:
    state = a_run(tasks=2, deadline="1h", seconds=60)
    told(state, host(1), now=NOW)
    launched(state)
    told(state, task(1, started_at=NOW))
    assert job(state, NOW + 500).left_s == 500


@pytest.mark.parametrize(("purchase", "left_s"), [("on-demand", 40), ("spot", 60)])
def test_only_work_on_demand_counts_as_done_before_it_is(purchase: str, left_s: float) -> None:
    state = a_run(tasks=1, deadline="1h", seconds=60)
    told(state, host(1, purchase=purchase))
    launched(state)
    told(state, task(1, started_at=NOW))
    assert job(state, NOW + 20).left_s == left_s


def test_what_has_ended_leaves_nothing_to_do() -> None:
    state = a_run(tasks=4, deadline="1h")
    the_run(state).tasks.set_many(the_run(state).tasks.startable(NOW, 9), status=TaskStatus.SUCCEEDED)
    assert job(state).left_s == 0


def test_a_pool_of_another_cell_or_an_unknown_type_takes_none_of_the_tasks() -> None:
    state = a_run(cells=["eu-west-1"])
    pool = next(iter(state.pools.values()))
    assert tasks_in(pool, the_run(state), POLICY) == 0
    assert tasks_in(pool, the_run(a_run()), POLICY) == 4
    assert tasks_in(replace(pool, instance_type="x9.huge"), the_run(a_run()), POLICY) == 0


@pytest.mark.parametrize(("purchase", "expected"), [("spot", Purchase.SPOT), ("on-demand", Purchase.ON_DEMAND)])
def test_a_run_of_one_purchase_buys_nothing_else_whatever_its_steering_says(purchase: str, expected: Purchase) -> None:
    state = a_run(purchase=purchase)
    the_run(state).steering = PurchaseChoice(PurchaseStance.FIRM)
    assert purchases(the_run(state), moment_of(state)) == {expected}


def turned(state: State, after_s: float, is_short: bool | None = None) -> PurchaseChoice:
    steering = steered(the_run(state), moment_of(state, NOW + after_s), is_short)
    the_run(state).steering = steering
    return steering


def test_waiting_counts_from_the_first_sign_of_shortage_and_ends_with_it() -> None:
    state = a_run()
    assert turned(state, 10, True).short_since == NOW + 10
    assert turned(state, 200, None).short_since == NOW + 10, "they were given another chance: that is no end"
    assert turned(state, 300, False).short_since == 0
    turned(state, 400, True)
    assert turned(state, 999, True).stance is PurchaseStance.SPOT
    assert turned(state, 1000, True).stance is PurchaseStance.ON_DEMAND


def test_spot_is_tried_again_later_and_twice_as_late_each_time_it_is_short_again() -> None:
    state, at, pauses = a_run(), 0.0, []
    for _ in range(4):
        turned(state, at, True)
        while the_run(state).steering.stance is PurchaseStance.SPOT:
            at += 10
            turned(state, at, True)
        steering = the_run(state).steering
        pauses.append(steering.try_spot_at - steering.since)
        assert turned(state, at + pauses[-1] - 1).stance is PurchaseStance.ON_DEMAND
        at += pauses[-1]
        assert turned(state, at).stance is PurchaseStance.SPOT
    assert pauses == [900, 1800, 3600, 3600]


def test_a_second_fall_comes_sooner_and_an_hour_on_spot_forgives() -> None:
    state = a_run()
    the_run(state).steering = PurchaseChoice(since=NOW, falls=1, short_since=NOW)
    assert turned(state, 179).stance is PurchaseStance.SPOT
    assert turned(state, 180).stance is PurchaseStance.ON_DEMAND
    assert the_run(state).steering.falls == 2
    the_run(state).steering = PurchaseChoice(since=NOW, falls=3, short_since=NOW + 4000)
    assert turned(state, 4180).falls == 1


def test_spot_is_not_tried_while_every_pool_cools_off() -> None:
    state = a_run()
    the_run(state).steering = PurchaseChoice(PurchaseStance.ON_DEMAND, since=NOW, try_spot_at=NOW + 60)
    told(state, PoolShort(next(iter(state.pools)), "no capacity"), now=NOW + 59)
    assert turned(state, 61).stance is PurchaseStance.ON_DEMAND
    assert turned(state, 300).stance is PurchaseStance.SPOT
    assert the_run(state).steering.reason == "back to spot since 08:05 UTC"


def test_behind_its_line_a_run_with_a_deadline_leaves_spot_as_soon_as_that_is_short() -> None:
    state = a_run(deadline="12m")
    assert turned(state, 60).stance is PurchaseStance.SPOT
    assert turned(state, 130, True).stance is PurchaseStance.SPOT, "there is slack to wait with"
    steering = turned(state, 220, True)
    assert steering.stance is PurchaseStance.ON_DEMAND
    assert steering.reason == "on-demand since 08:03 UTC: 7 min of slack left, and spot is short"


def test_a_deadline_alone_decides_unless_the_user_has_a_patience_too() -> None:
    state = a_run(deadline="10h")
    turned(state, 0, True)
    assert turned(state, 7200, True).stance is PurchaseStance.SPOT
    state = a_run(deadline="10h", fallback={"afterWaitSeconds": 100})
    turned(state, 0, True)
    assert turned(state, 100, True).reason == "on-demand since 08:01 UTC: tasks had waited 2 min for spot"


def test_a_deadline_that_cannot_be_met_is_reported_at_once() -> None:
    steering = turned(a_run(tasks=1, seconds=3600, deadline="30m"), 0)
    assert steering.stance is PurchaseStance.FIRM
    assert steering.reason == (
        "on-demand since 08:00 UTC, to the end: even so, the deadline will be missed by about 30 min"
    )
    assert not steering.late


def test_a_run_is_late_once_the_deadline_has_passed_whatever_it_buys() -> None:
    state = a_run(purchase="on-demand", deadline="1h")
    assert not turned(state, 3600).late
    assert turned(state, 3601).late
    assert steered(the_run(state), moment_of(state)).late, "once late, always late"


def test_nothing_changes_for_a_run_that_has_nothing_left_to_start() -> None:
    state = a_run(tasks=1, seconds=3600, deadline="30m")
    told(state, host(1))
    launched(state)
    assert turned(state, 0).stance is PurchaseStance.SPOT


def lost(state: State, *indexes: int, times: int = 3) -> None:
    for index in indexes:
        the_run(state).tasks.set(index, losses=times)


def test_tasks_that_were_lost_too_often_ask_for_on_demand_and_the_others_do_not() -> None:
    state = a_run()
    lost(state, 2, 5)
    lost(state, 6, times=2)
    first, second = asks_of(moment_of(state), [the_run(state)])
    assert (first.batch.count, second.batch.count) == (2, 8)
    assert ON_DEMAND_ONLY in first.batch.constraints
    assert SPOT_ONLY in second.batch.constraints


def test_what_was_lost_too_often_is_bought_for_first_and_the_rest_in_the_next_tick() -> None:
    state = a_run()
    lost(state, 2, 5)
    places = assign(moment_of(state), Roster())
    assert [its.left_over.count for its in places.runs] == [2]
    begun(state, decide(moment_of(state)))
    later = assign(moment_of(state, NOW + 1), Roster())
    assert [its.left_over.count for its in later.runs] == [8]
    assert [its.coming for its in later.runs] == [2]


def on_demand_quota(vcpus: int) -> tuple[VcpuQuota, ...]:
    return (VcpuQuota(CELL, "on-demand", "standard", vcpus),)


def test_tasks_that_wait_for_on_demand_do_not_keep_the_others_from_being_bought_for() -> None:
    state = a_run()
    lost(state, 2, 5)
    next(iter(state.pools.values())).on_demand_short_until = NOW + 600
    (target,) = [each for each in decide(moment_of(state)) if isinstance(each, SetTarget)]
    assert (target.spot_target, target.on_demand_target) == (2, 0), "for 8 tasks; 2 wait for on-demand"


def test_where_on_demand_can_never_be_had_lost_tasks_go_back_to_spot_and_a_deadline_does_not_leave_it() -> None:
    for changes, capacity in (
        ({"vcpu_quotas": on_demand_quota(0)}, {}),
        ({"max_usd_per_hour": 0.1}, {}),
        ({}, {"maxHourlyCost": 0.1}),
    ):
        state, policy = a_run(deadline="1m", **capacity), replace(POLICY, **changes)
        lost(state, 2, 5)
        (ask,) = asks_of(moment_of(state, NOW, policy), [the_run(state)])
        assert ask.batch.count == 10
        assert SPOT_ONLY in ask.batch.constraints


def test_on_demand_runs_no_more_at_once_than_quotas_and_the_hourly_cap_and_other_instances_leave_room_for() -> None:
    quota = replace(POLICY, vcpu_quotas=on_demand_quota(40))
    for policy, capacity in ((quota, {}), (POLICY, {"maxHourlyCost": 1.85})):  # 10 of 4 vCPUs, at $0.182
        state = a_run(tasks=400, deadline="1h", **capacity)
        found = progress_of(the_run(state), moment_of(state, NOW, policy))
        assert found is not None
        assert found.left_s == pytest.approx(10 * 60, abs=60)
    state = a_run(tasks=400, deadline="1h")
    told(state, *(host(number, purchase="on-demand") for number in range(1, 6)))
    for instance in state.instances.values():
        instance.bought_for = 99
    found = progress_of(the_run(state), moment_of(state, NOW, quota))
    assert found is not None
    assert found.left_s == pytest.approx(20 * 60, abs=60), "others hold half of the quota"
    full = replace(POLICY, max_instances=10)
    found = progress_of(the_run(state), moment_of(state, NOW, full))
    assert found is not None
    assert found.left_s == pytest.approx(10 * 60, abs=60), "idle instances are free to take"


def test_on_demand_runs_no_more_at_once_than_the_cap_of_its_queue_pays_for() -> None:
    state = a_run(tasks=400, deadline="1h")
    document = {"version": 1, "queues": {"default": {"cap": {"usdPerHour": 1.85}}}}
    state.sharing = Sharing().with_document(document, NOW)
    found = progress_of(the_run(state), moment_of(state))
    assert found is not None
    assert found.left_s == pytest.approx(10 * 60, abs=60)


def test_too_narrow_an_on_demand_does_not_keep_a_late_run_from_spot_while_that_is_there() -> None:
    policy = replace(POLICY, vcpu_quotas=on_demand_quota(4))
    state = a_run(tasks=400, deadline="30m")
    assert steered(the_run(state), moment_of(state, NOW, policy)).stance is PurchaseStance.SPOT
    the_run(state).steering = PurchaseChoice(short_since=NOW)
    assert steered(the_run(state), moment_of(state, NOW + 1, policy), True).stance is PurchaseStance.FIRM


def test_the_limit_on_concurrent_tasks_holds_over_both() -> None:
    overrides = {"array": {"size": 10}, "capacity": MIXED, "placement": {"maxConcurrentTasks": 3}}
    state = state_with(submitted(**overrides), prepared(**overrides), fleet())
    lost(state, 0, 1)
    assert [ask.batch.count for ask in asks_of(moment_of(state), [the_run(state)])] == [2, 1]


def test_a_run_of_spot_alone_keeps_its_lost_tasks_there() -> None:
    state = a_run(purchase="spot")
    lost(state, 2, times=9)
    (ask,) = asks_of(moment_of(state), [the_run(state)])
    assert SPOT_ONLY in ask.batch.constraints


def test_a_runs_stance_survives_a_restart_and_older_records_start_at_spot() -> None:
    state = a_run(deadline="1h")
    steering = PurchaseChoice(PurchaseStance.FIRM, NOW, "on-demand", NOW - 5, NOW + 900, 2, True)
    begin(state, Steer(RUN_ID, steering), NOW, POLICY)
    record = RunRecord.of(the_run(state)).to_json()
    partition = {"SPEC": documents.partition_of(the_run(state))["SPEC"]}
    assert documents.run_from(documents.record_from(documents.encode(record)), partition).steering == steering
    older = {name: value for name, value in record.items() if name not in ("steering", "reopened_at")}
    assert documents.run_from(RunRecord.from_json(older), partition).steering == PurchaseChoice()
    newer = {**record, "steering": {**record["steering"], "mood": "good"}}
    assert documents.run_from(RunRecord.from_json(newer), partition).steering == steering


def test_a_halted_run_sends_nothing_that_was_only_intended() -> None:
    state = state_with_instance(tasks=2)
    begun(state, decide(moment_of(state)))
    assert len(state.attempts.live()) == 2
    begin(state, HaltRun(RUN_ID, "the run took too long"), NOW, POLICY)
    assert not len(state.attempts.live())
    assert the_run(state).tasks.counts()[TaskStatus.CANCELLED] == 2
    assert the_run(state).status_reason == "the run took too long"


def test_a_run_counts_its_time_from_when_it_was_reopened() -> None:
    run = the_run(a_run(deadline="1h"))
    run.reopened_at = NOW + 5000
    assert run.deadline_at == NOW + 8600
