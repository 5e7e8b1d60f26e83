"""The cost of a suspended run is bounded: its instances are released once its tasks have ended, and nothing runs
unsupervised."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

import pytest

from argosy.model.events import TaskSeen
from argosy.model.runs import RunStatus
from argosy.model.suspensions import Suspension
from argosy.model.tasks import TaskStatus
from tests.fakes.throwing import any_of, functions_of, names_run, throwing
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled

VICTIM, OTHER = "victim-261121-062733-aaaa", "other-261121-062734-bbbb"
TASKS = 3
THIRD_FAILURE_S = 300.0  # after the first one: pauses of 1 and 4 minutes
LINGER_S, SWEEP_S, SOON_S = 300.0, 120.0, 60.0
FUNCTIONS = {f"{each.__module__}.{each.__qualname__}": each for each in functions_of("lifecycle", "model").values()}
COUNTS = FUNCTIONS["argosy.model.tasks.TaskTable.counts"]  # is called in every tick


def of_victim(value: Any) -> bool:
    return names_run(value, VICTIM, TASKS)


Lose = Callable[[dict[str, Any]], bool]


def cluster_of(work_s: float, lose: Lose = lambda message: False, **spec: Any) -> Controlled:
    """Its tasks have started."""
    cluster = Controlled(zones=("us-east-1a",), work_s=work_s, lose=lose)
    cluster.submit(TASKS, VICTIM, name="victim", **spec)
    until(cluster, lambda: cluster.record(VICTIM).counts[TaskStatus.RUNNING] == TASKS)
    cluster.faulty = True
    return cluster


def until(cluster: Controlled, done: Callable[[], bool], limit_s: float = 900.0) -> float:
    """How long it took."""
    began = cluster.world.now
    cluster.tick()
    while not done():
        cluster.tick()
        assert cluster.world.now - began <= limit_s, cluster.record(VICTIM)
    return cluster.world.now - began


def failing_at(cluster: Controlled, function: types.FunctionType = COUNTS) -> Any:
    """As long as it lasts, the controller's code fails at the victim."""
    return throwing(function, any_of(of_victim))


def is_free(cluster: Controlled) -> bool:
    return not cluster.live_instances()


def nothing_runs(cluster: Controlled) -> bool:
    return not any(agent.tasks for agent in cluster.world.agents.values())


def times(cluster: Controlled) -> int:
    state = cluster.controllers[0].state
    assert state is not None
    return state.suspended[VICTIM].times


def is_stop(message: dict[str, Any]) -> bool:
    return bool(message["detail"].get("lastStatus") == "STOPPED")


@pytest.mark.parametrize(
    ("lose", "heard_s"), [(lambda message: False, 0.0), (is_stop, SWEEP_S)], ids=["told by an event", "seen by a sweep"]
)
def test_the_instances_of_a_suspended_run_are_gone_a_linger_after_its_last_task_ended(
    lose: Lose, heard_s: float
) -> None:
    cluster = cluster_of(work_s=120.0, lose=lose)
    with failing_at(cluster):
        until(cluster, lambda: nothing_runs(cluster))
        until(cluster, lambda: is_free(cluster), heard_s + LINGER_S + SOON_S)
        cluster.run_for(SOON_S)
        assert cluster.record(VICTIM).suspended_at
        assert cluster.record(VICTIM).cost_usd > 0, "its time is charged to it"


def test_once_the_fault_is_mended_it_is_found_out_what_became_of_each_task_and_none_is_done_again() -> None:
    cluster = cluster_of(work_s=120.0, retryStrategy={"attempts": 2})
    cluster.world.workload = lambda task, instance: TaskBehaviour(5.0)
    with failing_at(cluster):
        until(cluster, lambda: is_free(cluster), limit_s=1200.0)
        assert times(cluster) >= 3
    cluster.run_to_rest()
    shown = cluster.record(VICTIM)
    assert (shown.status, shown.attempts, shown.interruptions) == (RunStatus.SUCCEEDED, TASKS, 0)
    assert set(cluster.starts().values()) == {1}
    assert shown.cost_usd == pytest.approx(sum(costs.total for costs in shown.costs.values()))
    assert sum(costs.failed + costs.redone for costs in shown.costs.values()) == 0


def test_a_failure_while_it_was_suspended_is_the_users_once_it_is_tried_again() -> None:
    cluster = Controlled(zones=("us-east-1a",))
    cluster.world.workload = lambda task, instance: TaskBehaviour(60.0, exit_code=3)
    cluster.submit(TASKS, VICTIM, name="victim", retryStrategy={"attempts": 1})
    until(cluster, lambda: cluster.record(VICTIM).counts[TaskStatus.RUNNING] == TASKS)
    cluster.faulty = True
    with failing_at(cluster):
        until(cluster, lambda: nothing_runs(cluster))
    cluster.run_to_rest()
    shown = cluster.record(VICTIM)
    assert (shown.status, shown.counts[TaskStatus.FAILED], shown.attempts) == (RunStatus.FAILED, TASKS, TASKS)
    assert {failure.exit_code for failure in shown.failures} == {3}
    assert sum(costs.useful for costs in shown.costs.values()) == pytest.approx(0, abs=1e-9)
    assert sum(costs.failed for costs in shown.costs.values()) > 0


def test_what_ended_more_than_an_hour_before_it_is_tried_again_counts_as_lost_and_is_done_again() -> None:
    cluster = cluster_of(work_s=120.0)
    with failing_at(cluster):
        until(cluster, lambda: is_free(cluster), limit_s=1200.0)
        cluster.tick_s = 120.0
        cluster.run_for(2 * 3600.0)
    cluster.tick_s = 10.0
    cluster.run_to_rest()
    shown = cluster.record(VICTIM)
    assert (shown.status, shown.attempts) == (RunStatus.SUCCEEDED, 2 * TASKS)
    assert set(cluster.starts().values()) == {1}


def test_the_time_for_which_a_run_was_suspended_is_not_taken_for_an_attempts_time() -> None:
    """Else its budget would seem too small for another attempt, as soon as the run is tried again."""
    cluster = Controlled(zones=("us-east-1a",), work_s=20.0)
    cluster.submit(6, VICTIM, capacity={"budgetUsd": 0.05}, placement={"maxConcurrentTasks": 2})
    cluster.faulty = True
    with failing_at(cluster, FUNCTIONS["argosy.lifecycle.attempts._settle"]):
        until(cluster, lambda: cluster.record(VICTIM).suspended_at > 0)
        cluster.run_for(1300.0)
    cluster.run_to_rest()
    assert cluster.record(VICTIM).status == RunStatus.SUCCEEDED, cluster.record(VICTIM).status_reason


def test_an_endless_program_of_a_suspended_run_is_stopped_and_its_instances_go() -> None:
    cluster = cluster_of(work_s=math.inf)
    with failing_at(cluster):
        took_s = until(cluster, lambda: nothing_runs(cluster), THIRD_FAILURE_S + SOON_S)
        assert took_s >= THIRD_FAILURE_S, "until then it may be mended, and nothing is lost"
        until(cluster, lambda: is_free(cluster), LINGER_S + SOON_S)
        assert "stops its tasks" in cluster.record(VICTIM).waiting
    cluster.world.workload = lambda task, instance: TaskBehaviour(5.0)
    cluster.run_to_rest()
    shown = cluster.record(VICTIM)
    assert (shown.status, shown.attempts) == (RunStatus.SUCCEEDED, 2 * TASKS), "what was stopped is no failure of it"
    assert set(cluster.starts().values()) == {1}


def test_an_attempt_that_outlasts_its_time_out_is_stopped_while_its_run_is_suspended() -> None:
    cluster = cluster_of(work_s=math.inf, timeout={"attemptDurationSeconds": 120}, retryStrategy={"attempts": 1})
    with failing_at(cluster):
        until(cluster, lambda: nothing_runs(cluster), 120.0 + SOON_S)
        assert times(cluster) < 3
    cluster.run_to_rest()
    shown = cluster.record(VICTIM)
    assert (shown.status, shown.counts[TaskStatus.FAILED], shown.attempts) == (RunStatus.FAILED, TASKS, TASKS)
    assert "took longer than 120 s" in shown.failures[0].reason


def test_a_suspended_run_stops_once_its_budget_is_used_up() -> None:
    cluster = cluster_of(work_s=math.inf, array={"size": TASKS, "expectedSeconds": 60}, capacity={"budgetUsd": 0.02})
    cluster.run_for(390.0)  # of the ten minutes that it pays for
    with failing_at(cluster):
        until(cluster, lambda: nothing_runs(cluster), THIRD_FAILURE_S - SOON_S)
        assert times(cluster) < 3
    cluster.run_to_rest()
    assert "budget" in cluster.record(VICTIM).status_reason
    assert is_free(cluster)


def test_launches_whose_outcome_the_code_fails_at_are_stopped_too_and_none_runs_twice_at_once() -> None:
    cluster = Controlled(zones=("us-east-1a",), work_s=math.inf)
    cluster.submit(TASKS, VICTIM, name="victim")
    cluster.faulty = True
    with failing_at(cluster, FUNCTIONS["argosy.lifecycle.attempts.accept"]):
        until(cluster, lambda: not nothing_runs(cluster))
        until(cluster, lambda: nothing_runs(cluster), THIRD_FAILURE_S + SWEEP_S + SOON_S)
        until(cluster, lambda: is_free(cluster), LINGER_S + SOON_S)
        assert cluster.record(VICTIM).suspended_at
    cluster.world.workload = lambda task, instance: TaskBehaviour(5.0)
    cluster.run_to_rest()
    assert cluster.record(VICTIM).status == RunStatus.SUCCEEDED
    assert set(cluster.starts().values()) == {1}


def of_the_suspended(value: Any) -> bool:
    of_it = isinstance(value, Suspension) and value.record.id == VICTIM
    return of_it or (isinstance(value, TaskSeen) and of_victim(value))


def handler(name: str) -> types.FunctionType:
    return FUNCTIONS[f"argosy.lifecycle.suspended_tasks.{name}"]


@pytest.mark.parametrize("name", ["_see", "_follow", "_is_unwatched", "_to_stop"])
def test_a_fault_in_what_handles_suspended_runs_keeps_no_other_from_finishing(name: str) -> None:
    cluster = cluster_of(work_s=30.0)
    with failing_at(cluster), throwing(handler(name), any_of(of_the_suspended)) as thrown:
        cluster.submit(2, OTHER, name="other")
        cluster.tick()
        until(cluster, lambda: cluster.record(OTHER).status == RunStatus.SUCCEEDED)
    assert thrown[0] > 0
    cluster.run_to_rest()
    assert cluster.record(VICTIM).status in (RunStatus.SUCCEEDED, RunStatus.FAILED)


def test_a_run_at_which_the_code_fails_even_while_it_is_suspended_is_closed_and_can_be_retried() -> None:
    cluster = cluster_of(work_s=math.inf)
    with failing_at(cluster), throwing(handler("_to_stop"), any_of(of_the_suspended)):
        until(cluster, lambda: cluster.record(VICTIM).status == RunStatus.FAILED)
        assert "failed even while this run was suspended" in cluster.record(VICTIM).status_reason
        cluster.run_to_rest()
    cluster.world.workload = lambda task, instance: TaskBehaviour(5.0)
    cluster.retry(VICTIM)
    cluster.run_to_rest()
    assert cluster.record(VICTIM).status == RunStatus.SUCCEEDED
