"""A GPU that tasks share is reset: its tasks are lost, and only the one that is known to have caused it is charged."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from argosy.api.waiting.explanation import explain_run
from argosy.catalogue.lookup import load_catalogue
from argosy.model.moment import Moment
from argosy.model.services.environments import DeploymentStatus
from argosy.model.tasks import TaskStatus
from tests.builders import RUN_ID
from tests.harness.simulation.world.virtual_task import TaskBehaviour, VirtualTask
from tests.scenarios import services
from tests.scenarios.controlled import Controlled, index_of

SHARE = {"vcpus": 0.5, "memory": 1000, "gpuShare": {"memoryMib": 5_000}}
TASKS = 4  # they fit on one GPU of 21,457 MiB
ABORTED, OUT_OF_MEMORY = 134, 137
Behaves = Callable[[dict[str, Any]], TaskBehaviour]


def sharing(
    behaves: Behaves = lambda task: TaskBehaviour(300.0), *, tasks: int = TASKS, settle_s: float = 0.0
) -> Controlled:
    """Tasks of one attempt each on the one GPU of an instance."""
    cluster = Controlled(types=("g5.xlarge",), zones=("us-east-1a",))
    cluster.world.workload = lambda task, instance: behaves(task)
    cluster.submit(tasks, resources=SHARE, retryStrategy={"attempts": 1})
    cluster.run_for(60.0 + settle_s)
    return cluster


def on_the_gpu(cluster: Controlled) -> list[VirtualTask]:
    return [task for agent in cluster.world.agents.values() for task in agent.tasks.values() if task.gpu_shared]


def reset(cluster: Controlled, code: int = ABORTED) -> None:
    for place, task in enumerate(on_the_gpu(cluster)):
        cluster.world.later(0.5 * place, partial(task.fail, code))


def column(cluster: Controlled, name: str) -> list[int]:
    found: np.ndarray[Any, Any] = cluster.run.tasks[name]
    return [int(each) for each in found]


def said_of(cluster: Controlled, index: int) -> str:
    return cluster.run.reasons[int(cluster.run.tasks["reason"][index])]


def test_tasks_whose_gpu_is_reset_are_lost_and_use_up_no_attempt() -> None:
    cluster = sharing(settle_s=200.0)
    assert len(on_the_gpu(cluster)) == TASKS
    reset(cluster)
    cluster.run_for(120.0)
    assert said_of(cluster, 1) == "the GPU that it shared was reset: 4 tasks failed together"
    cluster.run_to_rest()
    assert cluster.record(RUN_ID).counts[TaskStatus.SUCCEEDED] == TASKS


def test_they_start_again_one_after_the_other() -> None:
    cluster = sharing(settle_s=200.0)
    reset(cluster)
    cluster.run_for(240.0)
    starts = sorted(task.started_at for task in on_the_gpu(cluster))
    assert len(starts) == TASKS
    assert min(np.diff(starts)) >= 20.0


def test_a_task_that_resets_its_gpu_each_time_is_charged_in_the_end_and_the_others_succeed() -> None:
    cluster = sharing(
        lambda task: TaskBehaviour(70.0, at_the_end=partial(ends, task), exit_code=int(index_of(task) == 2))
    )

    def ends(task: dict[str, Any]) -> None:
        if index_of(task) == 2:
            reset(cluster)

    cluster.run_to_rest()
    counts = cluster.record(RUN_ID).counts
    assert (counts[TaskStatus.SUCCEEDED], counts[TaskStatus.FAILED]) == (TASKS - 1, 1)


def test_the_one_that_ran_out_of_memory_is_charged_and_the_others_name_it() -> None:
    cluster = sharing(settle_s=200.0)
    first, *others = on_the_gpu(cluster)
    first.fail(OUT_OF_MEMORY, "OutOfMemoryError: Container killed due to memory usage")
    for each in others:
        cluster.world.later(1.0, partial(each.fail, ABORTED))
    cluster.run_for(120.0)
    killed = index_of(first.task)
    assert {said_of(cluster, index_of(each.task)) for each in others} == {
        f"the GPU that it shared was reset: task {killed} of {RUN_ID} was killed there"
    }
    cluster.run_to_rest()
    counts = cluster.record(RUN_ID).counts
    assert (counts[TaskStatus.SUCCEEDED], counts[TaskStatus.FAILED]) == (TASKS - 1, 1)


def test_of_two_kills_on_a_gpu_the_later_one_is_named() -> None:
    cluster = sharing(lambda task: TaskBehaviour(2_000.0), settle_s=200.0)
    first, second, third, _ = on_the_gpu(cluster)
    first.fail(OUT_OF_MEMORY)
    cluster.run_for(700.0)
    second.fail(OUT_OF_MEMORY)
    cluster.world.later(1.0, partial(third.fail, ABORTED))
    cluster.run_for(120.0)
    killed = index_of(second.task)
    assert said_of(cluster, index_of(third.task)).endswith(f"task {killed} of {RUN_ID} was killed there")


@pytest.mark.parametrize(("runs_s", "losses"), [(3.0, 0), (100.0, 1)])
def test_programs_that_fail_alike_are_charged_at_once_or_when_they_no_longer_end_together(
    runs_s: float, losses: int
) -> None:
    cluster = sharing(lambda task: TaskBehaviour(runs_s, exit_code=1), tasks=2)
    cluster.run_to_rest()
    counts = cluster.record(RUN_ID).counts
    assert counts[TaskStatus.FAILED] == 2
    assert len(cluster.starts()) == 2 * (1 + losses)


def test_a_failure_beside_tasks_that_go_on_is_the_users() -> None:
    cluster = sharing(settle_s=200.0)
    on_the_gpu(cluster)[0].fail(ABORTED)
    cluster.run_to_rest()
    counts = cluster.record(RUN_ID).counts
    assert (counts[TaskStatus.SUCCEEDED], counts[TaskStatus.FAILED]) == (TASKS - 1, 1)


def test_a_services_tasks_start_again_together_and_none_of_them_has_failed() -> None:
    cluster = services.service(types=("g5.xlarge",), zones=("us-east-1a",))
    spec = services.form(3)
    services.deploy(cluster, 1, {**spec, "resources": {**spec["resources"], "gpuShare": SHARE["gpuShare"]}})
    services.until(cluster, lambda: services.status(cluster) is DeploymentStatus.COMPLETED)
    cluster.run_for(200.0)
    reset(cluster)
    cluster.run_for(45.0)
    run = services.run_of(cluster)
    assert len(on_the_gpu(cluster)) == 3
    assert (run.attempts, int(run.tasks["user_failures"].sum())) == (6, 0)


def test_explain_names_the_reset_and_the_task_that_was_killed() -> None:
    cluster = sharing(settle_s=200.0)
    first, other, *_ = on_the_gpu(cluster)
    first.fail(OUT_OF_MEMORY, "OutOfMemoryError: Container killed due to memory usage")
    other.fail(ABORTED)
    cluster.run_for(120.0)
    moment = Moment(services.state_of(cluster), load_catalogue(), cluster.world.now, cluster.policy)
    told = explain_run(moment, cluster.run, index_of(other.task))["task"]["reason"]
    assert told == f"the GPU that it shared was reset: task {index_of(first.task)} of {RUN_ID} was killed there"
