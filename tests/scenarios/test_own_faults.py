"""The cause of a failure of the controller's own code is left out and everything else finishes, for each kind of
fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from argosy.model.events import RebalanceAdvised
from argosy.model.inbox import REFUSED
from argosy.model.run_record import RunRecord
from argosy.model.state import State
from tests.fakes.throwing import Planted, any_of, functions_of, named, names_run, throwing
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled

VICTIM, OTHER = "victim-261121-062733-aaaa", "other-261121-062734-bbbb"
TASKS, OTHER_TASKS = 3, 2
FINISHED_S = 900.0
REBALANCE = "EC2 Instance Rebalance Recommendation"


of_victim = any_of(lambda value: names_run(value, VICTIM, TASKS))


def two_runs(**spec: Any) -> Controlled:
    cluster = Controlled(zones=("us-east-1a",), work_s=5.0)
    cluster.submit(TASKS, VICTIM, name="victim", **spec)
    cluster.submit(OTHER_TASKS, OTHER, name="other")
    return cluster


def record(cluster: Controlled, run_id: str) -> RunRecord | None:
    body = cluster.store.read_partition("RUNS")
    return cluster.record(run_id) if any(run_id in key for key in body) else None


def until(cluster: Controlled, done: Callable[[], bool], limit_s: float = FINISHED_S) -> None:
    began = cluster.world.now
    while not done():
        cluster.step()
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


def test_a_suspended_run_says_why_and_resumes_once_the_fault_is_gone() -> None:
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
    cluster = Controlled(zones=("us-east-1a",), work_s=36_000.0)
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
    assert "failed to process this run for a day" in cluster.record(VICTIM).status_reason
    cluster.retry(VICTIM)
    cluster.run_to_rest()
    assert cluster.record(VICTIM).status == "SUCCEEDED"


def test_a_request_at_which_the_code_fails_is_refused_and_its_run_says_so() -> None:
    cluster = two_runs()
    cluster.faulty = True
    with throwing(named("model.runs.Run.__post_init__"), of_victim):
        until(cluster, has_succeeded(cluster, OTHER))
    assert cluster.record(VICTIM).status == "FAILED"
    assert "the controller failed to carry out this request" in cluster.record(VICTIM).status_reason
    assert len(cluster.store.read_partition(REFUSED)) == 1


def test_a_message_at_which_the_code_fails_is_left_to_the_dead_letters() -> None:
    """It names no run: the tick works only without it."""
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
    """They include the instances that are bought for a later run."""
    cluster = Controlled(zones=("us-east-1a",), work_s=600.0)
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


def test_what_fails_without_any_run_is_raised_and_the_next_tick_begins_again() -> None:
    cluster = two_runs()
    (function,) = [each for each in functions_of("scheduler").values() if each.__qualname__ == "decide"]
    with throwing(function, lambda arguments: True), pytest.raises(Planted):
        cluster.tick()
    cluster.run_to_rest()
    assert cluster.record(VICTIM).status == "SUCCEEDED"


def test_a_report_that_fails_is_left_out_and_logged_and_every_run_finishes() -> None:
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


def test_a_message_that_our_code_cannot_read_is_logged_and_left_to_the_dead_letters() -> None:
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
    assert not cluster.controllers[0].excluded.troubles
    cluster.run_to_rest()


def refuses(partition: str) -> dict[str, bytes]:
    raise ConnectionError("no answer")
