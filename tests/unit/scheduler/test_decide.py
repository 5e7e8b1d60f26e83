"""One pure function decides: snapshots in, inert actions out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from argosy.catalogue.lookup import load_catalogue
from argosy.lifecycle.pools import note_orders
from argosy.lifecycle.suspension import suspend
from argosy.model.actions import (
    Action,
    Claim,
    CloseRun,
    HaltRun,
    Launch,
    PrepareRun,
    Remark,
    ResolveLaunches,
    SetTarget,
    StopAttempt,
    StopOrphan,
    Terminate,
    VerifyResult,
)
from argosy.model.attempts import StopCause
from argosy.model.events import (
    ControllerStarted,
    InterruptionWarned,
    NotCarriedOut,
    Observed,
    PoolShort,
    RebalanceAdvised,
    RunCancelled,
    RunClosed,
    TargetAccepted,
)
from argosy.model.inbox import CancelRequest
from argosy.model.pools import Floor
from argosy.model.run_record import RunRecord
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.model.wording import hour_and_minute
from argosy.scheduler.buying.remarks import TAKEN_DOWN
from argosy.scheduler.decide import decide
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    RUN_ID,
    begun,
    container_instance,
    fleet,
    host,
    instance_id,
    launched,
    moment_of,
    prepared,
    state_with,
    state_with_instance,
    submitted,
    task,
    task_arn,
    the_run,
    told,
)

CATALOGUE = load_catalogue()


def decided(state: State, *kinds: type, now: float = NOW, **policy: Any) -> list[Action]:
    actions = decide(moment_of(state, now, replace(POLICY, **policy)))
    return [action for action in actions if not kinds or isinstance(action, kinds)]


def targets_of(state: State, **policy: Any) -> dict[str, int]:
    return {action.pool: action.spot_target for action in decided(state, SetTarget, **policy)}


def test_a_new_run_is_prepared_first_and_places_nothing() -> None:
    assert decided(state_with(submitted(), fleet())) == [PrepareRun(RUN_ID)]


def test_pending_tasks_go_onto_the_active_instance_as_far_as_it_has_room() -> None:
    launches = decided(state_with_instance(tasks=10), Launch)
    assert [launch.key.index for launch in launches] == [0, 1, 2, 3]  # 4 vCPU
    assert {launch.instance_id for launch in launches} == {instance_id(1)}
    assert {launch.started_by for launch in launches} == {"argosy-testtest-1"}


def test_deciding_changes_nothing_and_gives_the_same_answer_twice() -> None:
    state = state_with_instance()
    assert decided(state) == decided(state)


def test_what_live_attempts_take_is_not_given_out_again() -> None:
    state = state_with_instance()
    launched(state, 0, 1)
    launched(state, 1, 2)
    assert [launch.key.index for launch in decided(state, Launch)] == [2, 3]


def test_no_more_tasks_run_at_once_than_the_run_allows() -> None:
    state = state_with_instance(placement={"maxConcurrentTasks": 3})
    launched(state, 0, 1)
    assert len(decided(state, Launch)) == 2


def test_one_tick_launches_at_most_one_plan() -> None:
    assert len(decided(state_with_instance(), Launch, max_launches_per_tick=3)) == 3


def test_a_tick_begins_several_plans_and_none_is_larger_than_a_page_of_a_listing() -> None:
    launches = decided(state_with_instance(), Launch, wave_size=3)
    assert [launch.wave for launch in launches] == [1, 1, 1, 2]
    assert len({launch.started_by for launch in launches}) == 2


def test_each_cell_is_given_what_its_own_launch_rate_can_send_less_what_was_begun_and_not_sent() -> None:
    state = state_with_instance()
    told(state, replace(fleet(zone="eu-west-1a"), cell="eu-west-1"))
    told(state, replace(host(2, zone="eu-west-1a"), cell="eu-west-1"), container_instance(2))
    launches = decided(state, Launch, launches_per_cell=2)
    assert Counter(launch.cell for launch in launches) == {"us-east-1": 2, "eu-west-1": 2}
    begun(state, launches[:1])
    later = [launch for launch in decided(state, Launch, launches_per_cell=2) if launch.key != launches[0].key]
    assert Counter(launch.cell for launch in later)[launches[0].cell] == 1


def test_tasks_in_back_off_wait() -> None:
    state = state_with_instance(tasks=1)
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=1))
    assert not decided(state, Launch, now=NOW + 0.5)
    assert decided(state, Launch, now=NOW + 1.5)


def test_runs_are_served_in_order_of_submission() -> None:
    later = "zebra-261121-062734-aaaa"
    state = state_with_instance(tasks=3)
    told(state, submitted(later, name="zebra"), prepared(later))
    assert [launch.key.run_id for launch in decided(state, Launch)] == [RUN_ID] * 3 + [later]


@pytest.mark.parametrize("event", [InterruptionWarned(instance_id(1), NOW), RebalanceAdvised(instance_id(1), NOW)])
def test_nothing_is_placed_on_an_instance_that_may_go(event: Any) -> None:
    state = state_with_instance()
    told(state, event)
    assert not decided(state, Launch)


def test_an_interruption_stops_the_tasks_and_buys_the_shortfall_in_the_same_tick() -> None:
    state = state_with_instance(tasks=4)
    for index in range(4):
        launched(state, index, index + 1)
    assert not targets_of(state)
    told(state, InterruptionWarned(instance_id(1), NOW))
    stops = decided(state, StopAttempt)
    assert {(stop.arn, stop.cause) for stop in stops} == {(task_arn(n), StopCause.INTERRUPTED) for n in range(1, 5)}
    # The fleet counts the warned instance until it ends: one more, so that its replacement comes now.
    assert targets_of(state) == {f"{CELL}/c5.xlarge/us-east-1a": 2}
    begun(state, decided(state, SetTarget))
    told(state, TargetAccepted(f"{CELL}/c5.xlarge/us-east-1a", 2), host(2))
    assert targets_of(state) == {f"{CELL}/c5.xlarge/us-east-1a": 1}  # it has come: no replacement for the other one


def test_a_rebalance_recommendation_only_stops_placing() -> None:
    state = state_with_instance()
    launched(state)
    told(state, RebalanceAdvised(instance_id(1), NOW))
    assert not decided(state, StopAttempt)


def test_an_empty_cluster_orders_what_the_backlog_needs_and_no_more_on_the_next_tick() -> None:
    state = state_with(submitted(tasks=8), prepared(), fleet())
    assert targets_of(state) == {f"{CELL}/c5.xlarge/us-east-1a": 2}
    begun(state, decided(state))
    told(state, TargetAccepted(f"{CELL}/c5.xlarge/us-east-1a", 2))
    assert not targets_of(state)


def test_what_two_floors_have_ordered_between_them_is_kept_on_the_next_tick() -> None:
    state = state_with(submitted(tasks=4), prepared(), fleet())
    state.floor = Floor(instances=3)
    (pool,) = targets_of(state, min_instances=2)
    begun(state, decided(state, min_instances=2))
    told(state, TargetAccepted(pool, 3))
    assert not targets_of(state, min_instances=2)


def test_a_purchase_is_spread_over_zones_of_similar_price() -> None:
    zones = [fleet(zone=f"us-east-1{letter}", spot_usd_per_hour=0.06) for letter in "abc"]
    state = state_with(submitted(tasks=12), prepared(), *zones)
    assert sorted(targets_of(state).values()) == [1, 1, 1]


def test_the_cheapest_type_for_the_work_is_bought() -> None:
    fleets = (fleet("c5.xlarge", spot_usd_per_hour=0.08), fleet("c5.2xlarge", spot_usd_per_hour=0.10))
    state = state_with(submitted(tasks=8), prepared(), *fleets)
    assert targets_of(state) == {f"{CELL}/c5.2xlarge/us-east-1a": 1}


def test_a_gpu_run_buys_gpu_instances_and_a_cpu_run_does_not() -> None:
    fleets = (fleet("c5.xlarge"), fleet("p3.2xlarge"))
    gpu = {"vcpus": 1, "memory": 1024, "gpus": 1}
    assert targets_of(state_with(submitted(tasks=2, resources=gpu), prepared(resources=gpu), *fleets)) == {
        f"{CELL}/p3.2xlarge/us-east-1a": 2
    }
    assert targets_of(state_with(submitted(tasks=2), prepared(), *fleets)) == {f"{CELL}/c5.xlarge/us-east-1a": 1}


def test_a_zone_constraint_buys_in_that_zone_only() -> None:
    fleets = (fleet(zone="us-east-1a", spot_usd_per_hour=0.01), fleet(zone="us-east-1b", spot_usd_per_hour=0.5))
    placement = {"constraints": ["attribute:ecs.availability-zone == us-east-1b"]}
    state = state_with(submitted(tasks=4, placement=placement), prepared(placement=placement), *fleets)
    assert targets_of(state) == {f"{CELL}/c5.xlarge/us-east-1b": 1}


def test_the_limits_on_instances_hold() -> None:
    state = state_with(submitted(tasks=40, capacity={"maxInstances": 3}), prepared(), fleet())
    assert targets_of(state) == {f"{CELL}/c5.xlarge/us-east-1a": 3}
    assert targets_of(state, max_instances=2) == {f"{CELL}/c5.xlarge/us-east-1a": 2}
    assert targets_of(state, growth_per_tick=1) == {f"{CELL}/c5.xlarge/us-east-1a": 1}


def test_what_is_on_order_counts_for_the_most_instances_of_the_deployment() -> None:
    state = state_with(submitted(tasks=40), prepared(), fleet(spot_target=2))
    assert targets_of(state, max_instances=3) == {f"{CELL}/c5.xlarge/us-east-1a": 3}


def test_on_demand_runs_buy_on_demand_and_are_not_placed_on_spot() -> None:
    capacity = {"purchase": "on-demand"}
    state = state_with_instance(tasks=4, capacity=capacity)
    assert not decided(state, Launch)
    (target,) = decided(state, SetTarget)
    assert (target.spot_target, target.on_demand_target) == (1, 1)


def test_a_short_pool_is_given_up_after_a_while_and_the_next_one_is_tried() -> None:
    cheap, dear = fleet(zone="us-east-1a", spot_usd_per_hour=0.05), fleet(zone="us-east-1b", spot_usd_per_hour=0.2)
    state = state_with(submitted(tasks=4), prepared(), cheap, dear)
    begun(state, decided(state))
    note_orders(state, NOW)
    later = NOW + POLICY.order_patience_s
    (given_up,) = decided(state, SetTarget, now=later)
    assert (given_up.spot_target, given_up.gives_up) == (0, True)
    begun(state, [given_up], now=later)
    assert {a.pool for a in decided(state, SetTarget, now=later) if a.spot_target} == {f"{CELL}/c5.xlarge/us-east-1b"}


def test_a_pool_that_reports_a_shortage_is_shunned_until_it_has_cooled_off() -> None:
    state = state_with(submitted(tasks=4), prepared(), fleet(), PoolShort("fleet-c5.xlarge-us-east-1a", "none left"))
    assert not [a for a in decided(state, SetTarget) if a.spot_target]
    assert [a for a in decided(state, SetTarget, now=NOW + POLICY.cool_off_s) if a.spot_target]


def test_orders_that_are_no_longer_needed_are_withdrawn() -> None:
    state = state_with(submitted(tasks=8), prepared(), fleet())
    begun(state, decided(state))
    told(state, RunCancelled(CancelRequest(RUN_ID, NOW, "")), RunClosed(RUN_ID))
    assert targets_of(state) == {f"{CELL}/c5.xlarge/us-east-1a": 0}


def test_an_idle_instance_is_let_go_after_its_linger_target_first() -> None:
    state = state_with(fleet(spot_target=1), host(1), container_instance(1))
    assert not decided(state, Terminate, now=NOW + POLICY.linger_s - 1)
    actions = decided(state, SetTarget, Terminate, now=NOW + POLICY.linger_s)
    assert actions == [SetTarget(f"{CELL}/c5.xlarge/us-east-1a", 0, 0), Terminate(CELL, (instance_id(1),))]


def test_an_idle_instance_that_work_is_waiting_for_is_kept() -> None:
    state = state_with_instance(tasks=1)
    assert not decided(state, Terminate, now=NOW + 10 * POLICY.linger_s)


def test_a_busy_instance_is_never_let_go() -> None:
    state = state_with_instance(tasks=1)
    launched(state)
    assert not decided(state, Terminate, now=NOW + 10 * POLICY.linger_s)


def test_an_instance_that_never_registers_is_let_go() -> None:
    state = state_with(fleet(spot_target=1), host(1))
    assert not decided(state, Terminate, now=NOW + POLICY.register_patience_s - 1)
    assert decided(state, Terminate, now=NOW + POLICY.register_patience_s)


def test_a_foreign_instance_is_never_terminated() -> None:
    state = state_with(container_instance(1))
    assert not decided(state, Terminate, now=NOW + 10 * POLICY.register_patience_s)


def test_nothing_oscillates_over_fifty_ticks() -> None:
    state = state_with(submitted(tasks=40), prepared(), fleet(), fleet(zone="us-east-1b"))
    changes: Counter[str] = Counter()
    for tick in range(50):
        actions = decided(state, now=NOW + tick)
        changes.update(type(action).__name__ for action in actions)
        begun(state, actions, now=NOW + tick)
        for action in actions:
            if isinstance(action, SetTarget):
                told(state, TargetAccepted(action.pool, action.spot_target))
    assert changes["SetTarget"] == 2  # once for each zone


def test_an_attempt_over_its_time_is_stopped_and_asked_again_only_after_a_while() -> None:
    state = state_with_instance(timeout={"attemptDurationSeconds": 60})
    launched(state)
    told(state, task(1, "RUNNING"))
    assert not decided(state, StopAttempt, now=NOW + 59)
    (stop,) = decided(state, StopAttempt, now=NOW + 60)
    assert stop.cause is StopCause.TIMED_OUT
    begun(state, [stop], now=NOW + 60)
    assert not decided(state, StopAttempt, now=NOW + 100)
    (again,) = decided(state, StopAttempt, now=NOW + 121)
    # The first request may never have come, and ECS shows users the reason of the one that did.
    assert (again.cause, again.reason) == (stop.cause, "argosy: the attempt took longer than its time-out allows")


def test_a_stop_that_was_not_sent_is_sent_in_the_next_tick_and_one_that_ecs_refused_after_a_while() -> None:
    state = state_with_instance()
    launched(state)
    told(state, RunCancelled(CancelRequest(RUN_ID, NOW, "")))
    (stop,) = decided(state, StopAttempt)
    begun(state, [stop])
    told(state, NotCarriedOut("ClientException: no", stop.key))
    assert not decided(state, StopAttempt, now=NOW + 1)
    told(state, NotCarriedOut("the time limit was reached", stop.key, passing=True))
    (again,) = decided(state, StopAttempt, now=NOW + 1)
    assert (again.key, again.cause) == (stop.key, StopCause.CANCELLED)


def test_a_launch_that_aws_throttled_is_no_stop() -> None:
    state = state_with_instance()
    told(state, NotCarriedOut("throttled", launched(state), passing=True))
    assert not decided(state, StopAttempt)


def test_what_would_begin_first_is_stopped_first_and_what_runs_last() -> None:
    state = state_with_instance()
    runs, late = launched(state, 0, 1, now=NOW - 9), launched(state, 1, 2, now=NOW)
    early = launched(state, 2, 3, now=NOW - 5)
    told(state, task(1, "RUNNING"), RunCancelled(CancelRequest(RUN_ID, NOW, "")))
    assert [stop.key for stop in decided(state, StopAttempt)] == [early, late, runs]


@pytest.mark.parametrize("after_s", [5, 45, 59])
def test_a_warning_stops_an_attempt_at_once_however_much_of_its_time_is_left(after_s: int) -> None:
    state = state_with_instance(timeout={"attemptDurationSeconds": 60})
    launched(state)
    told(state, task(1, "RUNNING"), InterruptionWarned(instance_id(1), NOW + after_s), now=NOW + after_s)
    (stop,) = decided(state, StopAttempt, now=NOW + after_s)
    assert stop.cause is StopCause.INTERRUPTED


@pytest.mark.parametrize(
    ("pulled", "patience_s", "cause"),
    [
        ((0.0, 0.0), POLICY.pull_patience_s, StopCause.UNPULLED),
        ((NOW + 30.0, 0.0), POLICY.pull_patience_s + 30.0, StopCause.UNPULLED),
        ((NOW + 30.0, NOW + 700.0), POLICY.pending_patience_s + 700.0, StopCause.STUCK),
    ],
)
def test_a_pending_task_is_stopped_after_the_limit_of_what_it_waits_for(
    pulled: tuple[float, float], patience_s: float, cause: StopCause
) -> None:
    state = state_with_instance()
    launched(state)
    told(state, replace(task(1, "PENDING", version=2), pull_started_at=pulled[0], pull_stopped_at=pulled[1]))
    assert not decided(state, StopAttempt, now=NOW + patience_s - 1.0)
    (stop,) = decided(state, StopAttempt, now=NOW + patience_s)
    assert stop.cause is cause


def test_a_pending_task_where_the_image_is_needs_no_pull() -> None:
    state = state_with_instance()
    launched(state, 0, 1)
    pending = launched(state, 1, 2)
    told(state, task(1, "RUNNING"))
    (stop,) = decided(state, StopAttempt, now=NOW + POLICY.pending_patience_s)
    assert (stop.key, stop.cause) == (pending, StopCause.STUCK)


def test_a_cancelled_run_stops_what_runs_and_starts_nothing() -> None:
    state = state_with_instance()
    launched(state)
    told(state, RunCancelled(CancelRequest(RUN_ID, NOW, "")))
    assert [stop.cause for stop in decided(state, StopAttempt)] == [StopCause.CANCELLED]
    assert not decided(state, Launch)


def test_intents_in_doubt_are_settled_plan_by_plan_and_not_sent_again_when_old() -> None:
    state = state_with_instance()
    begun(state, decided(state, Launch))
    told(state, ControllerStarted())
    (resolution,) = decided(state, ResolveLaunches, now=NOW + 30.0)
    assert (len(resolution.launches), resolution.resend) == (4, True)
    assert not decided(state, Launch)  # their places are taken
    (resolution,) = decided(state, ResolveLaunches, now=NOW + POLICY.intent_age_s)
    assert not resolution.resend


def test_intents_that_were_never_sent_are_sent_as_they_were_committed() -> None:
    state = state_with_instance()
    launches = decided(state, Launch)
    begun(state, launches)
    assert decided(state, Launch) == launches


def test_the_kill_switch_stops_buying_and_launching_but_not_stopping() -> None:
    state = state_with_instance()
    launched(state)
    told(state, RunCancelled(CancelRequest(RUN_ID, NOW, "")))
    actions = decide(moment_of(state), launching=False)
    assert {type(action) for action in actions} == {StopAttempt, SetTarget}
    assert all((each.spot_target, each.on_demand_target) == (0, 0) for each in actions if isinstance(each, SetTarget))


def test_a_run_says_once_that_nothing_comes_any_more_while_the_deployment_is_taken_down() -> None:
    state = state_with_instance()
    (remark,) = [each for each in decide(moment_of(state), launching=False) if isinstance(each, Remark)]
    assert remark.sentence == TAKEN_DOWN
    begun(state, [remark])
    assert not [each for each in decide(moment_of(state), launching=False) if isinstance(each, Remark)]


def test_a_run_that_is_stopped_waits_for_nothing() -> None:
    state = state_with_instance()
    begun(state, [Remark(RUN_ID, "waiting for ordered instances to join the cluster", False)])
    told(state, RunCancelled(CancelRequest(RUN_ID, NOW, "enough")))
    assert (state.runs[RUN_ID].waiting, state.runs[RUN_ID].status_reason) == ("", "cancelled: enough")
    begun(state, [Remark(RUN_ID, "waits before a retry", False)])  # of the tick that has stopped it
    assert state.runs[RUN_ID].waiting == ""


def test_results_are_verified_and_complete_runs_closed() -> None:
    state = state_with_instance(tasks=1, expects_result=True)
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=0))
    assert decided(state, VerifyResult, CloseRun) == [VerifyResult(RUN_ID, 0, 1)]
    state = state_with_instance(tasks=1)
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=0))
    assert decided(state, VerifyResult, CloseRun) == [CloseRun(RUN_ID)]


def test_a_run_whose_tasks_have_all_ended_no_longer_says_that_one_waits() -> None:
    """Its last task ended while it was taken for one that waits. The reason of a closing stays."""
    state = state_with_instance(tasks=1)
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=0))
    state.runs[RUN_ID].waiting = "waiting for ordered instances to join the cluster"
    assert decided(state, Remark) == [Remark(RUN_ID, "", unaffordable=False)]
    told(state, NotCarriedOut("not closed: refused", about=Subject(Act.CLOSE, RUN_ID)))
    assert (state.runs[RUN_ID].waiting, decided(state, Remark)) == ("not closed: refused", [])


def test_orphans_are_stopped() -> None:
    state = state_with_instance()
    key = launched(state)
    told(state, Observed(NOW, tasks=(task(5, "RUNNING", key=key, started_by="argosy-testtest-9"),)))
    assert decided(state, StopOrphan) == [StopOrphan(task_arn(5), CELL)]


def test_a_run_that_can_never_be_placed_says_why() -> None:
    gpu = {"vcpus": 1, "memory": 1024, "gpus": 2}
    state = state_with(submitted(tasks=1, resources=gpu), prepared(resources=gpu), fleet("c5.xlarge"))
    (remark,) = decided(state, Remark)
    assert "GPU" in remark.sentence


def test_a_run_that_waits_for_ordered_instances_says_so() -> None:
    state = state_with(submitted(tasks=4), prepared(), fleet())
    begun(state, decided(state))
    assert "ordered instances" in state.runs[RUN_ID].waiting or "ordered instances" in str(decided(state, Remark))


def test_a_run_whose_tasks_all_wait_for_a_retry_says_after_what() -> None:
    """Otherwise a full disk, or a missing image, looks like a run without a controller."""
    state = state_with_instance(tasks=2)
    reason = "CannotCreateContainerError: no space left on device"
    first = launched(state)
    told(state, task(1, "STOPPED", 3, key=first, reason=reason))
    assert decided(state, Remark) == []  # the other task can be placed
    second = launched(state, 1, 2)
    assert decided(state, Remark) == []  # and is
    told(state, task(2, "STOPPED", 3, key=second, reason=reason))
    assert decided(state, Remark) == [Remark(RUN_ID, f"waits before a retry after: {reason}", False)]
    later = moment_of(state, now=NOW + 3600)
    assert not [each for each in decide(later) if isinstance(each, Remark)]


def test_an_instance_is_kept_for_tasks_whose_back_off_ends_soon() -> None:
    state = state_with_instance(tasks=1)
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=1))
    state.runs[RUN_ID].tasks.set(0, not_before=NOW + POLICY.linger_s + 60)
    assert not decided(state, Launch, Terminate, now=NOW + POLICY.linger_s)


def test_a_run_whose_pools_are_all_short_says_when_they_are_tried_again() -> None:
    state = state_with(submitted(tasks=4), prepared(), fleet(), PoolShort("fleet-c5.xlarge-us-east-1a", "none left"))
    (remark,) = decided(state, Remark)
    assert "short of capacity; tried again at" in remark.sentence


def test_a_run_at_its_limit_of_instances_says_so() -> None:
    state = state_with(submitted(tasks=40, capacity={"maxInstances": 1}), prepared(), fleet())
    (remark,) = decided(state, Remark)
    assert remark.sentence == "held back by capacity.maxInstances of the run"


def test_an_instance_that_registers_before_ec2_shows_it_is_not_bought_twice() -> None:
    state = state_with(submitted(tasks=4), prepared(), fleet())
    begun(state, decided(state))
    told(state, TargetAccepted(f"{CELL}/c5.xlarge/us-east-1a", 1), container_instance(1))
    assert not decided(state, SetTarget, Launch)
    told(state, host(1))
    assert not decided(state, SetTarget)
    assert len(decided(state, Launch)) == 4


def test_an_instance_that_boots_is_paid_by_the_first_run_whose_tasks_wait_for_it() -> None:
    other = "other-261121-062733-k3f9"
    state = state_with(submitted(tasks=2), prepared(), submitted(other, tasks=2), prepared(other), fleet(), host(1))
    assert decided(state, Claim) == [Claim(RUN_ID, (instance_id(1),))]


def test_patience_with_a_pool_ends_when_all_that_was_ordered_has_come() -> None:
    state = state_with(submitted(tasks=4), prepared(), fleet())
    begun(state, decided(state))
    note_orders(state, NOW)
    told(state, TargetAccepted(f"{CELL}/c5.xlarge/us-east-1a", 1), host(1))
    note_orders(state, NOW + 60)
    assert state.pools[f"{CELL}/c5.xlarge/us-east-1a"].ordered_since == 0.0
    assert not [a for a in decided(state, SetTarget, now=NOW + 10 * POLICY.order_patience_s) if a.gives_up]


def test_only_the_run_whose_tasks_wait_for_instances_says_so() -> None:
    later = "zebra-261121-062734-aaaa"
    state = state_with_instance(tasks=1)
    launched(state)
    told(state, submitted(later, name="zebra", tasks=8), prepared(later))
    begun(state, decided(state))
    remarks = {remark.run_id: remark.sentence for remark in decided(state, Remark)}
    assert RUN_ID not in remarks
    assert "ordered instances" in state.runs[later].waiting


def test_a_target_that_was_refused_is_set_again_after_a_pause() -> None:
    state = state_with(submitted(tasks=4), prepared(), fleet())
    told(state, NotCarriedOut("refused", about=Subject(Act.TARGET, f"{CELL}/c5.xlarge/us-east-1a")))
    assert not decided(state, SetTarget)
    assert decided(state, SetTarget, now=NOW + 2)


def test_scattered_retries_touch_few_chunks_in_one_tick() -> None:
    state = state_with_instance(tasks=1_000_000)
    run = state.runs[RUN_ID]
    run.tasks.columns["status"][:] = TaskStatus.SUCCEEDED
    run.tasks.columns["status"][::9000] = TaskStatus.PENDING
    told(state, container_instance(1, cpu_units=1 << 20, memory_mib=1 << 20, version=2))
    launches = decided(state, Launch)
    assert 1 <= len({launch.key.index // run.tasks.chunk_rows for launch in launches}) <= 12


def test_a_run_keeps_to_its_number_of_instances_on_those_that_others_bought() -> None:
    state = state_with_instance(tasks=10, capacity={"maxInstances": 1})
    told(state, host(2), container_instance(2))
    assert {launch.instance_id for launch in decided(state, Launch)} == {instance_id(1)}
    for index in range(4):
        launched(state, index, index + 1)
    assert not decided(state, Launch)


def test_pools_that_only_an_operator_can_restore_differ_from_those_that_cool_off() -> None:
    state = state_with(submitted(tasks=4), prepared(), fleet(), fleet(zone="us-east-1b"))
    for number, pool in enumerate(state.pools.values()):
        pool.short_until, pool.short_reason, pool.needs_mending = NOW + 600, f"reason {number}", True
        pool.on_demand_short_until = NOW + 600
    (remark,) = decided(state, Remark)
    assert remark.sentence.startswith("no pool that could hold it can launch until this is fixed: c5.xlarge in us-east")
    next(iter(state.pools.values())).needs_mending = False
    (remark,) = decided(state, Remark)
    assert remark.sentence.startswith("the pools that could hold it are short of capacity")
    assert "1 offers return only when this is fixed" in remark.sentence


def test_offers_above_the_price_caps_are_counted_along_with_the_short_ones() -> None:
    dear = fleet(spot_usd_per_hour=10.0)
    state = state_with(submitted(tasks=4), prepared(), dear, fleet(zone="us-east-1b"))
    short = state.pools[f"{CELL}/c5.xlarge/us-east-1b"]
    short.short_until, short.short_reason = NOW + 600, "no capacity"
    (remark,) = decided(state, Remark, max_usd_per_hour=5.0)
    assert remark.sentence.endswith("; 1 offers are above the price caps")


def test_offers_without_the_runner_differ_from_those_above_the_price_caps_and_the_short_ones() -> None:
    needs = submitted(tasks=4, run="true")
    state = state_with(needs, prepared(), fleet(spot_usd_per_hour=10.0), fleet(zone="us-east-1b"))
    bare = state.pools[f"{CELL}/c5.xlarge/us-east-1b"]
    bare.without_runner_at = NOW - 600
    (remark,) = decided(state, Remark, max_usd_per_hour=5.0)
    assert remark.sentence.startswith("instances joined without the runner, which the user's program needs")
    assert remark.sentence.endswith("; 1 offers are above the price caps")
    short = state.pools[f"{CELL}/c5.xlarge/us-east-1a"]
    short.short_until, short.short_reason = NOW + 600, "no capacity"
    (remark,) = decided(state, Remark, max_usd_per_hour=5.0)
    assert remark.sentence.startswith("the pools that could hold it are short of capacity")
    assert remark.sentence.endswith("; 1 offers are for instances that join without the runner")
    bare.without_runner_at = NOW - 3600
    assert [target.pool for target in decided(state, SetTarget, max_usd_per_hour=5.0)] == [bare.key]


def test_a_run_that_cannot_pay_for_what_is_there_waits_where_nothing_can_be_bought() -> None:
    state = state_with_instance(tasks=4, capacity={"maxHourlyCost": 0.05})
    state.instances[instance_id(1)].price_usd_per_hour = 0.07
    for pool in state.pools.values():  # its fleet is gone
        pool.fleet_id, pool.spot_target, pool.confirmed_spot = "", 0, 0
    assert not decided(state, Launch, HaltRun)
    (remark,) = decided(state, Remark)
    assert remark.sentence


def test_a_run_with_a_budget_waits_for_a_price_and_not_for_money_where_there_is_none() -> None:
    state = state_with(submitted(tasks=4, capacity={"budgetUsd": 0.01}), prepared(), fleet("x9.huge"))
    (remark,) = decided(state, Remark)
    assert remark.sentence.startswith("nothing can be bought")


def test_of_tasks_that_stay_pending_the_first_one_is_named() -> None:
    state = state_with_instance(tasks=2)
    for index in range(2):
        launched(state, index, number=index + 1)
    table = state.attempts
    table["launched_at"][table.live()] = NOW - 600, NOW - 1200
    (remark,) = decided(state, Remark)
    assert remark.sentence.startswith(f"PENDING since {hour_and_minute(NOW - 1200)} on {instance_id(1)}")


def test_tasks_beyond_what_the_one_machine_runs_at_once_wait_for_a_core() -> None:
    """Local mode said "starting", and of runs that had waited for minutes that their image was being pulled."""
    state = state_with_instance(tasks=3)
    for index in range(3):
        launched(state, index, number=index + 1)
    assert not decided(state, Remark, machine_programs=3)
    (remark,) = decided(state, Remark, machine_programs=2)
    assert remark.sentence == "waits for a core of this machine, which runs 2 programs at once"
    state.runs[remark.run_id].waiting = remark.sentence
    assert not decided(state, Remark, machine_programs=2)
    (remark,) = decided(state, Remark, machine_programs=3)
    assert remark.sentence == ""


def test_a_fleet_of_which_nothing_is_known_is_not_called_no_fleet() -> None:
    state = state_with(submitted(tasks=4), prepared(), fleet("x9.huge"))
    (remark,) = decided(state, Remark)
    assert remark.sentence.startswith("nothing can be bought: us-east-1/x9.huge/us-east-1a: unknown type")
    next(iter(state.pools.values())).fleet_id = ""
    (remark,) = decided(state, Remark)
    assert remark.sentence == "this deployment has no fleets yet"


def test_attempts_of_a_suspended_run_hide_no_other_that_has_to_stop() -> None:
    state = state_with_instance(tasks=1)
    launched(state)
    suspend(state, RunRecord.of(state.runs[RUN_ID]), "it fails", NOW)
    other = "other-261121-062733-k3f9"
    told(state, submitted(other, tasks=1), prepared(other))
    launched(state, number=2)
    told(state, InterruptionWarned(instance_id(1), NOW))
    (stop,) = decided(state, StopAttempt)
    assert stop.key.run_id == other


def test_an_hourly_cap_below_every_offer_ends_the_run_exactly_when_its_patience_ends() -> None:
    state = state_with(submitted(tasks=4, capacity={"maxHourlyCost": 0.0001}), prepared(), fleet())
    the_run(state).unaffordable_since = NOW - POLICY.unaffordable_patience_s
    assert not decided(state, HaltRun, now=NOW - 0.001)
    assert decided(state, HaltRun)
