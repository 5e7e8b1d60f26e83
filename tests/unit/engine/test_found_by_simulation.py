"""Faults that the simulation found, each as its smallest case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from argosy.engine.tick import Engine
from argosy.lifecycle.accounts import Account, account_for
from argosy.model.actions import Action, Launch, SetTarget, Terminate
from argosy.model.attempts import AttemptKey, AttemptStatus, StopCause
from argosy.model.events import (
    Event,
    HostStateChanged,
    InterruptionWarned,
    LaunchDisproved,
    LaunchInDoubt,
    LaunchRefused,
    Observed,
    PoolShort,
    RebalanceAdvised,
    TargetAccepted,
)
from argosy.model.instances import InstanceStatus, Purchase
from argosy.model.money.reserve import Holdings
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.scheduler.buying.budget import RunBudget, for_sale, most_tasks
from argosy.scheduler.decide import decide
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    RUN_ID,
    MemoryStore,
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
    told,
)
from tests.fakes.aws import KEY, LAUNCH, SOON, ScriptedClient, launching, refusal
from tests.fakes.engine import EmptyQueue, IdleExecutor, RecordingWake, loop_with

POOL = f"{CELL}/c5.xlarge/us-east-1a"


def actions(state: State, now: float = NOW) -> list[Action]:
    return decide(moment_of(state, now))


def intended(state: State, index: int = 0, on: int = 1) -> AttemptKey:
    key = AttemptKey(RUN_ID, index, 1, 0)
    begun(state, [Launch(key, state.next_wave, "argosy-x-1", instance_id(on), CELL)])
    return key


def test_an_instance_whose_only_launch_was_refused_is_idle_again_and_given_back() -> None:
    state = state_with_instance(tasks=1)
    key = intended(state)
    told(state, LaunchRefused(key, "RESOURCE:MEMORY"))
    assert state.instances[instance_id(1)].idle_since == NOW


def test_nothing_waits_for_an_instance_that_never_registers() -> None:
    state = state_with(submitted(tasks=1), prepared(), fleet(spot_target=1), host(1))
    assert not [each for each in actions(state, NOW + 60) if isinstance(each, Terminate)]
    late = actions(state, NOW + POLICY.register_patience_s)
    assert [each.instance_ids for each in late if isinstance(each, Terminate)] == [(instance_id(1),)]
    assert [each.spot_target for each in late if isinstance(each, SetTarget)] == []  # one goes, one is bought: still 1


def test_nothing_waits_for_a_booting_instance_that_ec2_advises_to_leave() -> None:
    state = state_with(submitted(tasks=1), prepared(), fleet(spot_target=1), host(1))
    told(state, RebalanceAdvised(instance_id(1), NOW))
    (target,) = [each for each in actions(state, NOW + 60) if isinstance(each, SetTarget)]
    assert target.spot_target == 2


def test_a_host_that_goes_while_a_late_attempt_is_stopped_is_a_loss_and_not_the_users() -> None:
    gone = task(1, "STOPPED", version=3, stop_code="TerminationNotice")
    assert account_for(gone, StopCause.TIMED_OUT, None) is Account.LOST
    assert account_for(replace(gone, stop_code="UserInitiated"), StopCause.TIMED_OUT, None) is Account.USER


def test_a_warning_takes_back_what_was_never_sent_and_leaves_what_may_have_been() -> None:
    state = state_with_instance(tasks=2)
    intended(state, 0)
    doubtful = intended(state, 1)
    told(state, LaunchInDoubt(doubtful, "no reply"), InterruptionWarned(instance_id(1), NOW))
    assert state.row_of(AttemptKey(RUN_ID, 0, 1, 0)) is None
    row = state.row_of(doubtful)
    assert row is not None
    assert state.attempts["status"][row] == AttemptStatus.IN_DOUBT


def test_an_instance_that_shuts_down_is_warned_whatever_event_says_so_first() -> None:
    state = state_with_instance(tasks=1)
    intended(state)
    told(state, HostStateChanged(instance_id(1), "shutting-down", NOW))
    assert state.instances[instance_id(1)].interrupted_at == NOW
    assert len(state.attempts.live()) == 0


def test_what_a_pool_gives_up_is_not_bought_elsewhere_before_ec2_has_acknowledged_it() -> None:
    policy = replace(POLICY, max_instances=2)
    elsewhere = fleet("c5.2xlarge", "us-east-1b")
    state = state_with(submitted(tasks=8), prepared(), fleet(spot_target=2), elsewhere, policy=policy)
    pool = state.pools["us-east-1/c5.xlarge/us-east-1a"]
    pool.ordered_since = NOW
    later = NOW + policy.order_patience_s
    first = decide(moment_of(state, later, policy))
    assert [(each.pool, each.spot_target) for each in first if isinstance(each, SetTarget)] == [(pool.key, 0)]
    begun(state, first, later, policy)
    told(state, TargetAccepted(pool.key, 0), now=later)
    second = decide(moment_of(state, later, policy))
    assert [each.pool for each in second if isinstance(each, SetTarget)] == ["us-east-1/c5.2xlarge/us-east-1b"]


def test_targets_are_lowered_before_others_are_raised() -> None:
    state = state_with(submitted(tasks=4), prepared(), fleet("c5.xlarge"), fleet("m5.xlarge", spot_target=3))
    state.pools["us-east-1/m5.xlarge/us-east-1a"].ordered_since = NOW - POLICY.order_patience_s
    grown = [each.spot_target for each in actions(state) if isinstance(each, SetTarget)]
    assert grown == sorted(grown)


class Executor:
    """Sees nothing and does nothing, except to note when it looked."""

    def __init__(self, clock: list[float]) -> None:
        self.clock, self.looks = clock, list[float]()

    def carry_out(self, actions: Sequence[Action], state: State, deadline: float) -> list[Event]:
        return [TargetAccepted(each.pool, 0) for each in actions if isinstance(each, SetTarget)]

    def observe(self, now: float, state: State) -> Event:
        self.looks.append(now)
        return Observed(now, fleets=(fleet(),))


def test_the_controller_rests_only_after_a_look_that_would_show_what_a_fleet_launched_last() -> None:
    clock = [NOW]
    executor = Executor(clock)
    engine = Engine(MemoryStore(), EmptyQueue(), executor, {}, POLICY, lambda: clock[0])
    while not engine.tick().at_rest:
        clock[0] += 5
    assert engine.state is not None
    pool = engine.state.pools["us-east-1/c5.xlarge/us-east-1a"]
    pool.spot_target = pool.confirmed_spot = 1  # as if ordered; the next decision lowers it
    acted_at = clock[0]
    assert not engine.tick().at_rest
    while not engine.tick().at_rest:
        clock[0] += 5
    assert executor.looks[-1] >= acted_at + POLICY.eager_sweep_s


def fail_at_once(state: State, index: int, number: int, on: int = 1) -> None:
    launched(state, index=index, number=number, on=on)
    failed = {"stop_code": "EssentialContainerExited", "exit_code": 1, "started_at": NOW, "stopped_at": NOW + 1}
    told(state, task(number, "STOPPED", version=3, **failed), now=NOW + 1)


def test_an_instance_on_which_everything_fails_at_once_gets_no_more_work_after_three_attempts() -> None:
    state = state_with_instance(tasks=9)
    for number in range(3):
        assert state.instances[instance_id(1)].placeable
        fail_at_once(state, number, number + 1)
    assert not state.instances[instance_id(1)].placeable
    assert "3 attempts in a row" in state.instances[instance_id(1)].cordon
    told(state, container_instance(1, version=2))
    assert not state.instances[instance_id(1)].placeable  # what it registers does not clear it
    assert [each for each in actions(state, NOW + 2) if isinstance(each, Terminate)]


def test_what_fails_everywhere_is_not_the_fault_of_an_instance() -> None:
    state = state_with_instance(tasks=9)
    told(state, host(2), container_instance(2))
    fail_at_once(state, 0, 1, on=1)
    for number in range(1, 5):
        fail_at_once(state, number, number + 1, on=2)
    assert state.instances[instance_id(2)].placeable


def test_a_success_wipes_the_strikes_out() -> None:
    state = state_with_instance(tasks=9)
    fail_at_once(state, 0, 1)
    fail_at_once(state, 1, 2)
    launched(state, index=2, number=3)
    told(state, task(3, "STOPPED", version=3, exit_code=0, stop_code="EssentialContainerExited"))
    assert state.instances[instance_id(1)].strikes == 0


def test_an_instance_whose_agent_stays_silent_is_ended_before_its_tasks_count_as_lost() -> None:
    state = state_with_instance(tasks=1)
    launched(state)
    told(state, task(1))
    told(state, container_instance(1, version=2, agent_connected=False), now=NOW + 10)
    told(state, container_instance(1, version=3, agent_connected=False), now=NOW + 300)
    silent = NOW + 10 + POLICY.agent_patience_s
    assert not [each for each in actions(state, silent - 1) if isinstance(each, Terminate)]
    begun(state, actions(state, silent), silent)
    assert state.instances[instance_id(1)].status is InstanceStatus.RELEASING
    assert the_status(state) is TaskStatus.RUNNING
    told(state, HostStateChanged(instance_id(1), "terminated", silent + 60), now=silent + 60)
    assert the_status(state) is TaskStatus.PENDING
    assert state.runs[RUN_ID].tasks["losses"][0] == 1


def test_an_agent_that_comes_back_in_time_keeps_its_instance() -> None:
    state = state_with_instance(tasks=1)
    launched(state)
    told(state, container_instance(1, version=2, agent_connected=False), now=NOW + 10)
    told(state, container_instance(1, version=3), now=NOW + 500)
    assert state.instances[instance_id(1)].disconnected_at == 0
    assert not [each for each in actions(state, NOW + 599 + 100) if isinstance(each, Terminate)]


def test_throttling_of_a_call_that_was_sent_before_proves_nothing() -> None:
    """botocore had repeated it: the first try may have worked, and the answer is the second's."""
    throttled = refusal("ThrottlingException", "Rate exceeded")
    throttled.response["ResponseMetadata"]["RetryAttempts"] = 1
    (event,) = launching(ScriptedClient("ecs", run_task=throttled)).launch(LAUNCH, state_with_instance(), SOON)
    assert isinstance(event, LaunchInDoubt)
    assert event.key == KEY


def test_a_controller_that_a_call_ends_gives_its_lease_back_at_once() -> None:
    store = MemoryStore()
    loop = loop_with(store, RecordingWake())

    class Broken(IdleExecutor):
        def carry_out(self, actions: Sequence[Action], state: State, deadline: float) -> list[Event]:
            raise OSError("the network is gone")

    loop.engine.executor = Broken()
    with pytest.raises(OSError, match="network"):
        loop.run(lambda: 600.0)
    assert store.lease is None


def test_a_launch_that_ecs_may_have_forgotten_was_an_attempt_and_not_a_launch_that_never_was() -> None:
    """After hours without a controller: ECS shows a stopped task for an hour, later its absence proves nothing."""
    for age_s, attempts, launch, losses in ((POLICY.ecs_memory_s - 1, 0, 1, 0), (POLICY.ecs_memory_s, 1, 0, 1)):
        state = state_with_instance(tasks=1)
        key = intended(state)
        told(state, LaunchInDoubt(key, "time-out"))
        told(state, LaunchDisproved(key), now=NOW + age_s)
        tasks = state.runs[RUN_ID].tasks
        assert [int(tasks[name][0]) for name in ("attempts", "launch", "losses")] == [attempts, launch, losses]
        assert the_status(state) is TaskStatus.PENDING
        assert not len(state.attempts.live())


def test_a_withdrawn_order_stays_at_ec2_until_it_is_acknowledged() -> None:
    """The controller died between raising a target and hearing that EC2 had it; then the pool ran short."""
    state = state_with(submitted(tasks=12), prepared(), fleet(), fleet(zone="us-east-1b"))
    begun(state, [SetTarget(POOL, 3, 0)])
    told(state, PoolShort(POOL, "allLaunchSpecsTemporarilyBlacklisted"))
    policy = replace(POLICY, max_instances=3)
    targets = [each for each in decide(moment_of(state, NOW, policy)) if isinstance(each, SetTarget)]
    assert [(each.pool, each.spot_target) for each in targets] == [(POOL, 0)]  # and nothing is bought elsewhere yet


def test_an_instance_that_runs_of_different_shapes_use_up_has_room_for_none_rather_than_for_less_than_none() -> None:
    """One run takes half the processors, another the only GPU: their shares are more than one instance."""
    state = state_with_instance(tasks=4)
    run, instance = state.runs[RUN_ID], state.instances[instance_id(1)]
    instance.price_usd_per_hour = 0.1
    held = Holdings([instance], *(np.array([value]) for value in (0.5, 1.5, 60.0)))
    budget = RunBudget(run, 60.0, 0.0, 0.0, 0.0, 0.1, held, {instance.id})
    run.terms = replace(run.terms, max_hourly_usd=0.1)
    assert most_tasks(moment_of(state), budget, for_sale(state, [], {Purchase.SPOT})) == 0


def the_status(state: State) -> TaskStatus:
    return TaskStatus(int(state.runs[RUN_ID].tasks["status"][0]))
