"""What the controller's own code fails at is left out, and everybody else finishes: what becomes of each kind of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import pytest

from argosy.engine.leaving_out import Suspect
from argosy.model.actions import Action, Launch
from argosy.model.events import Event, RebalanceAdvised
from argosy.model.inbox import REFUSED
from argosy.model.instances import Instance
from argosy.model.pools import Pool
from argosy.model.run_record import RunRecord
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.ports import Executor
from tests.fakes.throwing import Planted, any_of, functions_of, named, names_run, throwing
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled

VICTIM, OTHER = "victim-261121-062733-aaaa", "other-261121-062734-bbbb"
TASKS, OTHER_TASKS = 3, 2
FINISHED_S = 900.0
REBALANCE = "EC2 Instance Rebalance Recommendation"


of_victim = any_of(lambda value: names_run(value, VICTIM, TASKS))


def two_runs(**spec: Any) -> Controlled:
    cluster = Controlled(zones=("us-east-1a",), work_s=5.0, tick_s=10.0)
    cluster.submit(TASKS, VICTIM, name="victim", **spec)
    cluster.submit(OTHER_TASKS, OTHER, name="other")
    return cluster


def record(cluster: Controlled, run_id: str) -> RunRecord | None:
    body = cluster.store.read_partition("RUNS")
    return cluster.record(run_id) if any(run_id in key for key in body) else None


def until(cluster: Controlled, done: Callable[[], bool], limit_s: float = FINISHED_S) -> None:
    began = cluster.world.now
    while not done():
        cluster.tick()
        assert cluster.world.now - began < limit_s, cluster.record(OTHER)


def has_succeeded(cluster: Controlled, run_id: str) -> Callable[[], bool]:
    def done() -> bool:
        found = record(cluster, run_id)
        return found is not None and found.status == "SUCCEEDED"

    return done


SETTLING = "lifecycle.attempts._settle"


def is_suspended(cluster: Controlled) -> bool:
    found = record(cluster, VICTIM)
    return found is not None and bool(found.suspended_at)


def suspended() -> Controlled:
    """The victim's first task has ended, and the controller's code fails at that."""
    cluster = two_runs()
    cluster.faulty = True
    with throwing(named(SETTLING), of_victim):
        until(cluster, lambda: is_suspended(cluster))
        until(cluster, has_succeeded(cluster, OTHER))
    return cluster


def test_a_suspended_run_says_why_and_goes_on_by_itself_once_the_fault_is_gone() -> None:
    cluster = suspended()
    waiting = cluster.record(VICTIM).waiting
    assert "suspended: the controller failed at this run and tries again at" in waiting
    assert "Planted: _settle" in waiting
    cluster.run_to_rest()
    shown = cluster.record(VICTIM)
    assert (shown.status, shown.waiting, shown.suspended_at) == ("SUCCEEDED", "", 0.0)
    assert shown.attempts == TASKS, "what ended meanwhile is found, and not done again"


def test_the_pause_grows_and_a_new_process_or_a_retry_tries_at_once() -> None:
    cluster = suspended()
    with throwing(named(SETTLING), of_victim) as thrown:
        until(cluster, lambda: times(cluster) == 3)
        found = state_of(cluster).suspended[VICTIM]
        assert found.again_at - cluster.world.now > 900
        cluster.controllers = [cluster.controller()]
        before = thrown[0]
        cluster.run_for(60.0)
        assert thrown[0] > before
        cluster.retry(VICTIM)
        cluster.run_for(60.0)
        assert times(cluster) >= 4
    cluster.retry(VICTIM)
    cluster.run_to_rest()
    assert cluster.record(VICTIM).status == "SUCCEEDED"


def times(cluster: Controlled) -> int:
    """How often in a row the controller has failed at the victim; 0 = it is being tried."""
    found = state_of(cluster).suspended.get(VICTIM)
    return found.times if found else 0


def state_of(cluster: Controlled) -> State:
    state = cluster.controllers[0].state
    assert state is not None
    return state


def test_a_suspended_run_can_be_cancelled_and_what_runs_of_it_is_stopped() -> None:
    cluster = Controlled(zones=("us-east-1a",), work_s=36_000.0, tick_s=10.0)
    cluster.submit(TASKS, VICTIM, name="victim")
    cluster.faulty = True
    until(cluster, lambda: bool(cluster.live_instances()) and cluster.record(VICTIM).counts[2] == TASKS)
    with throwing(named("model.tasks.TaskTable.counts"), of_victim):
        until(cluster, lambda: is_suspended(cluster))
        cluster.run_for(200.0)
        assert len(cluster.live_instances()) == 1, "its tasks go on"
        cluster.cancel(VICTIM)
        cluster.run_to_rest()
    shown = cluster.record(VICTIM)
    assert (shown.status, shown.suspended_at) == ("CANCELLED", 0.0)
    assert not cluster.live_instances()


def test_a_run_at_which_the_controller_fails_for_a_day_counts_as_failed_and_can_be_retried() -> None:
    cluster = suspended()
    cluster.tick_s = 300.0
    with throwing(named(SETTLING), of_victim):
        until(cluster, lambda: cluster.record(VICTIM).status == "FAILED", limit_s=2 * 86_400.0)
    cluster.tick_s = 10.0
    assert cluster.record(VICTIM).status == "FAILED"
    assert "failed at this run for a day" in cluster.record(VICTIM).status_reason
    cluster.retry(VICTIM)
    cluster.run_to_rest()
    assert cluster.record(VICTIM).status == "SUCCEEDED"


def test_a_request_at_which_the_code_fails_is_refused_and_its_run_says_so() -> None:
    cluster = two_runs()
    cluster.faulty = True
    with throwing(named("model.runs.Run.__post_init__"), of_victim):
        until(cluster, has_succeeded(cluster, OTHER))
    assert cluster.record(VICTIM).status == "FAILED"
    assert "the controller failed at this request" in cluster.record(VICTIM).status_reason
    assert len(cluster.store.read_partition(REFUSED)) == 1


def test_a_message_at_which_the_code_fails_is_left_to_the_dead_letters() -> None:
    """It names no run: only without it the tick works."""
    cluster = two_runs()
    cluster.faulty = True
    until(cluster, lambda: bool(cluster.live_instances()))
    instance_id = cluster.live_instances()[0]["InstanceId"]
    cluster.events.waiting["poison"] = rebalance(instance_id)
    with throwing(named("lifecycle.apply.apply"), any_of(lambda value: isinstance(value, RebalanceAdvised))):
        until(cluster, has_succeeded(cluster, OTHER))
    assert list(cluster.events.waiting) == ["poison"]
    assert not state_of(cluster).suspended


def rebalance(instance_id: str) -> dict[str, Any]:
    kind = REBALANCE
    at = "2027-01-15T08:00:00Z"
    return {"source": "aws.ec2", "detail-type": kind, "time": at, "detail": {"instance-id": instance_id}}


@pytest.mark.parametrize("kind", ["instance", "pool"])
def test_an_instance_or_a_pool_at_which_the_code_fails_is_forgotten_for_a_while(kind: str) -> None:
    """Of the two zones one is enough."""
    cluster = Controlled(zones=("us-east-1a", "us-east-1b"), work_s=5.0, tick_s=10.0)
    cluster.submit(4, OTHER, name="other")
    cluster.faulty = True
    until(cluster, lambda: bool(cluster.live_instances()) and bool(cluster.controllers[0].state))
    zone = cluster.live_instances()[0]["Placement"]["AvailabilityZone"]

    def about(value: Any) -> bool:
        wanted = Instance if kind == "instance" else Pool
        return isinstance(value, wanted) and getattr(value, "zone", None) == zone

    name = "Instance.placeable" if kind == "instance" else "Pool.confirmed"
    (function,) = [each for each in functions_of("model").values() if each.__qualname__ == name]
    with throwing(function, any_of(about)):
        until(cluster, has_succeeded(cluster, OTHER), limit_s=3 * 3600.0)
    cluster.run_to_rest(limit_s=6 * 3600.0)
    assert not cluster.live_instances()


def test_a_fault_while_an_action_is_carried_out_suspends_its_run_and_no_other() -> None:
    cluster = two_runs()
    cluster.faulty = True
    requests = functions_of("aws")
    (function,) = [each for each in requests.values() if each.__name__ == "run_task_request"]
    with throwing(function, of_victim):
        until(cluster, has_succeeded(cluster, OTHER))
        assert is_suspended(cluster)
    cluster.run_to_rest()
    assert cluster.record(VICTIM).status == "SUCCEEDED"


def test_sweeps_show_the_others_though_one_instance_cannot_be_read() -> None:
    """Among them the instances that are bought for a run that comes later."""
    cluster = Controlled(zones=("us-east-1a",), work_s=600.0, tick_s=10.0)
    cluster.submit(TASKS, VICTIM, name="victim")
    cluster.faulty = True
    until(cluster, lambda: bool(cluster.live_instances()) and cluster.record(VICTIM).attempts > 0)
    (first,) = (each["InstanceId"] for each in cluster.live_instances())
    cluster.world.workload = lambda task, instance: TaskBehaviour(5.0)
    about = any_of(lambda value: isinstance(value, dict) and value.get("ec2InstanceId") == first)
    with throwing(named("messages.ecs.container_instance_seen"), about) as thrown:
        began = cluster.world.now
        cluster.submit(40, OTHER, name="other")
        until(cluster, has_succeeded(cluster, OTHER), limit_s=300.0)
        until(cluster, lambda: cluster.controllers[0].looked_at > began, limit_s=300.0)
        assert thrown[0] > 0
    cluster.run_to_rest()
    assert cluster.record(VICTIM).status == "SUCCEEDED"


def test_a_fault_in_every_sweep_stops_no_run() -> None:
    cluster = two_runs()
    cluster.faulty = True
    (function,) = [each for each in functions_of("aws").values() if each.__qualname__ == "Observer._swept"]
    until(cluster, lambda: bool(cluster.live_instances()) and cluster.record(OTHER).attempts > 0)
    with throwing(function, lambda arguments: True) as thrown:
        until(cluster, has_succeeded(cluster, OTHER))
        cluster.run_for(300.0)
    assert thrown[0] > 1


def test_what_fails_without_any_run_fact_or_instance_is_raised_as_it_is() -> None:
    cluster = two_runs()
    (function,) = [each for each in functions_of("scheduler").values() if each.__qualname__ == "decide"]
    with throwing(function, lambda arguments: True), pytest.raises(Planted):
        cluster.tick()
    cluster.run_to_rest()
    assert cluster.record(VICTIM).status == "SUCCEEDED"


def test_a_report_that_fails_is_left_out_and_told_and_everybody_finishes() -> None:
    cluster = two_runs()
    cluster.faulty = True
    with throwing(named("engine.report.figures_of"), lambda arguments: True):
        report = cluster.controllers[0].tick()
        assert ([each.what for each in report.troubles], report.at_rest) == (["a tick's report"], False)
        until(cluster, has_succeeded(cluster, OTHER))
        until(cluster, has_succeeded(cluster, VICTIM))
    cluster.run_to_rest()


def test_when_to_look_again_is_soon_where_the_code_fails_at_that() -> None:
    cluster = two_runs()
    cluster.faulty = True
    with throwing(named("engine.steps.awaits_instances"), lambda arguments: True) as thrown:
        until(cluster, has_succeeded(cluster, OTHER))
    assert thrown[0] > 1
    cluster.run_to_rest()


def test_an_instance_at_which_closing_the_cells_fails_is_forgotten_and_no_run_is_suspended() -> None:
    cluster = Controlled(zones=("us-east-1a", "us-east-1b"), work_s=5.0, tick_s=10.0)
    cluster.submit(TASKS, VICTIM, name="victim")
    cluster.submit(OTHER_TASKS, OTHER, name="other")
    cluster.faulty = True
    until(cluster, lambda: bool(cluster.live_instances()))
    name = cluster.live_instances()[0]["InstanceId"]
    with throwing(
        named("lifecycle.closed_cells.close_cells"), lambda arguments: name in arguments["state"].instances
    ) as thrown:
        until(cluster, has_succeeded(cluster, OTHER))
        until(cluster, has_succeeded(cluster, VICTIM))
    assert thrown[0] > 1
    cluster.run_to_rest(limit_s=6 * 3600.0)
    assert not cluster.live_instances()


def test_a_message_that_our_code_cannot_read_is_told_and_left_to_the_dead_letters() -> None:
    cluster = two_runs()
    cluster.faulty = True
    until(cluster, lambda: bool(cluster.live_instances()))
    cluster.events.waiting["poison"] = rebalance(cluster.live_instances()[0]["InstanceId"])
    read = named("messages.eventbridge.to_event")
    with throwing(read, any_of(lambda value: isinstance(value, dict) and value.get("detail-type") == REBALANCE)):
        report = cluster.controllers[0].tick()
        assert (report.poison, [each.what for each in report.troubles]) == (1, ["a message"])
        until(cluster, has_succeeded(cluster, OTHER))
    assert "poison" in cluster.events.waiting


def test_what_a_port_raises_is_no_fault_of_ours_and_is_raised_as_it_is() -> None:
    cluster = two_runs()
    cluster.store.read_partition, real = refuses, cluster.store.read_partition  # type: ignore[method-assign]
    with pytest.raises(ConnectionError, match="no answer"):
        cluster.controllers[0].tick()
    cluster.store.read_partition = real  # type: ignore[method-assign]
    assert not cluster.controllers[0].apart.troubles
    cluster.run_to_rest()


def refuses(partition: str) -> dict[str, bytes]:
    raise ConnectionError("no answer")


def test_a_fleet_at_which_buying_fails_is_left_out_and_no_run_is_suspended() -> None:
    """Without any of the runs that want instances it works as well: they are more than one, and the fleet is one."""
    cluster = Controlled(zones=("us-east-1a", "us-east-1b"), work_s=5.0, tick_s=10.0)
    cluster.submit(TASKS, VICTIM, name="victim")
    cluster.submit(OTHER_TASKS, OTHER, name="other")
    cluster.faulty = True
    about = any_of(lambda value: isinstance(value, Pool) and getattr(value, "zone", "") == "us-east-1a")
    suspended = set()
    with throwing(named("scheduler.buying.capacity._grows"), about) as thrown:
        while not (has_succeeded(cluster, OTHER)() and has_succeeded(cluster, VICTIM)()):
            cluster.tick()
            suspended |= set(state_of(cluster).suspended) if cluster.controllers[0].state else set()
            assert cluster.world.now < 1_800_010_000.0
    assert thrown[0] > 0
    assert not suspended


THIRD = 3  # the failure after which it is ended
LINGER_S = 300.0
THIRD_FAILURE_S, SWEEP_S, SOON_S = 300.0, 120.0, 60.0  # pauses of 1 and 4 minutes; until it is shown; until it is gone
ENDED_S = THIRD_FAILURE_S + 3 * SWEEP_S + SOON_S  # after each pause a sweep learns it again


def test_an_instance_at_which_the_code_always_fails_is_ended_soon_after_its_run() -> None:
    cluster = Controlled(zones=("us-east-1a", "us-east-1b"), work_s=5.0, tick_s=10.0)
    cluster.submit(TASKS, VICTIM, name="victim")
    cluster.faulty = True
    until(cluster, has_succeeded(cluster, VICTIM))
    with throwing(named("market.release.is_kept"), any_of(lambda value: isinstance(value, Instance))):
        until(cluster, lambda: not cluster.live_instances(), limit_s=LINGER_S + ENDED_S)
    cluster.run_to_rest()


def test_what_runs_on_an_instance_at_which_the_code_always_fails_is_lost_with_it_and_done_elsewhere() -> None:
    cluster = Controlled(zones=("us-east-1a", "us-east-1b"), work_s=1800.0, tick_s=10.0)
    cluster.submit(OTHER_TASKS, OTHER, name="other")
    cluster.faulty = True
    until(cluster, lambda: bool(cluster.live_instances()))
    until(cluster, lambda: cluster.record(OTHER).counts[TaskStatus.RUNNING] == OTHER_TASKS)
    name = cluster.live_instances()[0]["InstanceId"]
    fails = any_of(lambda value: isinstance(value, Instance) and getattr(value, "id", "") == name)
    (placeable,) = [each for each in functions_of("model").values() if each.__qualname__ == "Instance.placeable"]
    with throwing(placeable, fails):
        until(cluster, lambda: name not in [each["InstanceId"] for each in cluster.live_instances()], ENDED_S)
        until(cluster, has_succeeded(cluster, OTHER), limit_s=2 * 3600.0)
    shown = cluster.record(OTHER)
    assert shown.attempts > OTHER_TASKS
    assert not shown.counts[TaskStatus.FAILED]
    cluster.run_to_rest()
    assert not state_of(cluster).suspended


@pytest.mark.parametrize("function", ["see_host", "see_container_instance", "_price"])
def test_an_instance_at_which_the_code_fails_whenever_it_is_shown_is_ended_though_it_was_never_stored(
    function: str,
) -> None:
    """Of the instances that are shown, the one that was first."""
    cluster = Controlled(zones=("us-east-1a", "us-east-1b"), work_s=5.0, tick_s=10.0)
    cluster.submit(OTHER_TASKS, OTHER, name="other")
    cluster.faulty = True
    until(cluster, lambda: bool(cluster.live_instances()))
    (name,) = [each["InstanceId"] for each in cluster.live_instances()]
    assert name not in state_of(cluster).instances
    about = any_of(lambda value: name in (getattr(value, "instance_id", ""), getattr(value, "id", "")))
    with throwing(named(f"lifecycle.hosts.{function}"), about) as thrown:
        until(cluster, lambda: name not in [each["InstanceId"] for each in cluster.live_instances()], ENDED_S)
        assert thrown[0] >= THIRD
        charged_s = state_of(cluster).forgotten[name][0]
        assert charged_s > 0.0 or function == "_price", "its time counts as spent, unless nobody knows its price"
        until(cluster, has_succeeded(cluster, OTHER))
        cluster.run_to_rest(limit_s=6 * 3600.0)
    assert not cluster.live_instances()


def test_a_launch_in_doubt_on_a_forgotten_instance_that_ends_is_done_again() -> None:
    cluster = Controlled(zones=("us-east-1a",), work_s=60.0, tick_s=10.0)
    cluster.submit(1, OTHER, name="other")
    cluster.faulty = True
    (engine,) = cluster.controllers
    real = engine.executor
    engine.executor = cast(Executor, DiesAtLaunch(real))
    with pytest.raises(ConnectionError):
        cluster.run_for(600.0)
    engine.executor = real
    (instance,) = cluster.live_instances()
    engine.apart.add(Suspect("instance", instance["InstanceId"]), [], "x", cluster.world.now)
    cluster.tick()
    assert not state_of(cluster).instances
    cluster.ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    until(cluster, has_succeeded(cluster, OTHER), limit_s=1800.0)
    cluster.run_for(2 * 3600.0)
    assert not state_of(cluster).forgotten


class DiesAtLaunch:
    """An executor whose process ends between the commit of a launch and the call."""

    def __init__(self, real: Executor) -> None:
        self.observe, self._carry_out = real.observe, real.carry_out

    def carry_out(self, actions: Sequence[Action], state: State, deadline: float) -> Iterable[Event]:
        if any(isinstance(action, Launch) for action in actions):
            raise ConnectionError("the process dies")
        return self._carry_out(actions, state, deadline)
