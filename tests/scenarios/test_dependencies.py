"""Runs that wait for a time, or for other runs: as a whole, or task by task."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.model.inbox import CancelRequest
from argosy.model.runs import RunStatus
from argosy.model.stored import documents
from argosy.model.stored.documents import run_partition
from argosy.model.tasks import TaskStatus
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled

FIRST, SECOND, THIRD = "first-261121-062733-aaaa", "second-261121-062734-bbbb", "third-261121-062735-cccc"


def cluster_of(failing: set[tuple[str, int]] | None = None, work_s: float = 60.0, **policy: Any) -> Controlled:
    """failing: (run, index) of the tasks that fail."""
    cluster = Controlled(zones=("us-east-1a",), **policy)
    fails_at(cluster, failing or set(), work_s)
    return cluster


def fails_at(cluster: Controlled, failing: set[tuple[str, int]], work_s: float = 60.0) -> None:
    def behaviour(task: dict[str, Any], instance: Any) -> TaskBehaviour:
        told = variables(task)
        name = told["ARGOSY_RUN_ID"], int(told["ARGOSY_TASK_INDEX"])
        return TaskBehaviour(work_s * (1 + name[1]), exit_code=int(name in failing))

    cluster.world.workload = behaviour


def variables(task: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["value"] for each in task["overrides"]["containerOverrides"][0]["environment"]}


def submit(cluster: Controlled, run_id: str, tasks: int, *waits_for: dict[str, str], **more: Any) -> None:
    depends = {"dependsOn": list(waits_for)} if waits_for else {}
    options = {"retryStrategy": {"attempts": 1}, **depends, **more}
    cluster.submit(tasks, run_id, name=run_id.split("-", maxsplit=1)[0], **options)


def on(run_id: str, kind: str = "ALL", what: str = "success") -> dict[str, str]:
    return {"run": run_id, "type": kind, "on": what}


def launched(cluster: Controlled) -> list[tuple[str, int]]:
    """(run, index) of every ECS task, in the order in which they were created."""
    found: dict[str, tuple[str, int]] = {}
    for message in cluster.world.events:
        if message["detail-type"] == "ECS Task State Change":
            told = variables(message["detail"])
            found.setdefault(message["detail"]["taskArn"], (told["ARGOSY_RUN_ID"], int(told["ARGOSY_TASK_INDEX"])))
    return list(found.values())


def waiting(cluster: Controlled, run_id: str) -> str:
    return cluster.record(run_id).waiting


def test_a_run_starts_only_once_the_whole_run_that_it_depends_on_has_succeeded() -> None:
    cluster = cluster_of()
    submit(cluster, FIRST, 4)
    submit(cluster, SECOND, 3, on(FIRST))
    cluster.run_for(120)
    assert {run for run, _ in launched(cluster)} == {FIRST}
    assert waiting(cluster, SECOND) == f"waits for {FIRST} to succeed"
    cluster.run_to_rest()
    assert [run for run, _ in launched(cluster)] == [FIRST] * 4 + [SECOND] * 3
    assert cluster.record(FIRST).stopped_at <= cluster.record(SECOND).held_until
    assert cluster.record(SECOND).status is RunStatus.SUCCEEDED
    assert waiting(cluster, SECOND) == ""


def test_a_run_fails_without_a_task_when_what_it_depends_on_does_not_succeed() -> None:
    cluster = cluster_of({(FIRST, 1)})
    submit(cluster, FIRST, 3)
    submit(cluster, SECOND, 3, on(FIRST))
    submit(cluster, THIRD, 1, on(SECOND))
    cluster.run_to_rest()
    record = cluster.record(SECOND)
    assert (record.status, record.attempts) == (RunStatus.FAILED, 0)
    assert (FIRST in record.status_reason, "1 of 3" in record.status_reason) == (True, True)
    assert cluster.record(THIRD).status is RunStatus.FAILED
    assert {run for run, _ in launched(cluster)} == {FIRST}


def test_a_run_that_waits_for_any_end_starts_after_a_failure_too() -> None:
    cluster = cluster_of({(FIRST, 0)})
    submit(cluster, FIRST, 1)
    submit(cluster, SECOND, 1, on(FIRST, what="end"))
    cluster.run_for(20)
    assert waiting(cluster, SECOND) == f"waits for {FIRST} to end"
    cluster.run_to_rest()
    assert cluster.record(FIRST).status is RunStatus.FAILED
    assert cluster.record(SECOND).status is RunStatus.SUCCEEDED


def test_task_by_task_each_starts_as_soon_as_its_own_one_has_succeeded() -> None:
    cluster = cluster_of()
    submit(cluster, FIRST, 6)
    submit(cluster, SECOND, 6, on(FIRST, "N_TO_N"))
    cluster.run_to_rest()
    order = launched(cluster)
    assert sorted(order[6:]) == [(SECOND, index) for index in range(6)]
    events = [message["detail"] for message in cluster.world.events if "taskArn" in message["detail"]]
    stopped = {name(each): str(each["stoppedAt"]) for each in events if "stoppedAt" in each}
    created = {name(each): str(each["createdAt"]) for each in events}
    assert all(stopped[FIRST, index] <= created[SECOND, index] for index in range(6))
    assert created[SECOND, 0] < stopped[FIRST, 5]
    assert cluster.record(SECOND).status is RunStatus.SUCCEEDED


def name(task: dict[str, Any]) -> tuple[str, int]:
    return variables(task)["ARGOSY_RUN_ID"], int(variables(task)["ARGOSY_TASK_INDEX"])


@pytest.mark.parametrize("ends_first", [False, True], ids=["while it runs", "after it has ended"])
def test_with_n_to_n_the_tasks_whose_dependency_fails_are_cancelled_and_the_others_run(ends_first: bool) -> None:
    cluster = cluster_of({(FIRST, 1), (FIRST, 4)})
    submit(cluster, FIRST, 6)
    if ends_first:
        cluster.run_to_rest()
    submit(cluster, SECOND, 6, on(FIRST, "N_TO_N"))
    cluster.run_to_rest()
    record = cluster.record(SECOND)
    assert record.status is RunStatus.PARTIAL
    assert sorted(index for run, index in launched(cluster) if run == SECOND) == [0, 2, 3, 5]
    assert record.counts[TaskStatus.CANCELLED] == 2
    assert f"the same task of {FIRST} did not succeed" in record.reasons


def test_task_by_task_any_end_will_do_where_the_run_says_so() -> None:
    cluster = cluster_of({(FIRST, 1)})
    submit(cluster, FIRST, 3)
    submit(cluster, SECOND, 3, on(FIRST, "N_TO_N", "end"))
    cluster.run_to_rest()
    assert cluster.record(SECOND).status is RunStatus.SUCCEEDED


def test_a_task_may_wait_for_the_same_task_of_several_runs() -> None:
    cluster = cluster_of()
    submit(cluster, FIRST, 3)
    submit(cluster, SECOND, 3, on(FIRST, "N_TO_N"))
    submit(cluster, THIRD, 3, on(FIRST, "N_TO_N"), on(SECOND, "N_TO_N"))
    cluster.run_for(100)
    assert "its pending tasks waits for its own task of" in waiting(cluster, THIRD)
    cluster.run_to_rest()
    order = launched(cluster)
    assert all(order.index((SECOND, index)) < order.index((THIRD, index)) for index in range(3))
    assert cluster.record(THIRD).status is RunStatus.SUCCEEDED


def test_what_has_ended_before_the_run_was_submitted_is_known() -> None:
    cluster = cluster_of()
    submit(cluster, FIRST, 2)
    cluster.run_to_rest()
    submit(cluster, SECOND, 2, on(FIRST))
    cluster.run_to_rest()
    assert cluster.record(SECOND).status is RunStatus.SUCCEEDED


@pytest.mark.parametrize(("what", "expected"), [("success", RunStatus.FAILED), ("end", RunStatus.SUCCEEDED)])
@pytest.mark.parametrize("kind", ["ALL", "N_TO_N"])
def test_no_run_waits_for_a_run_that_was_set_aside(kind: str, what: str, expected: RunStatus) -> None:
    cluster = cluster_of(work_s=600)
    submit(cluster, FIRST, 3)
    cluster.run_for(150)
    cluster.store.items[run_partition(FIRST), "TASKS#00000"] = b"torn"
    submit(cluster, SECOND, 3, on(FIRST, kind, what))
    cluster.controllers = [cluster.controller()]
    cluster.run_to_rest()
    assert cluster.record(FIRST).status_reason.startswith("set aside: ")
    assert cluster.record(SECOND).status is expected


def test_no_run_waits_for_tasks_of_an_unknown_run() -> None:
    cluster = cluster_of(work_s=600)
    submit(cluster, FIRST, 3)
    cluster.run_for(150)
    [record] = [key for key in cluster.store.items if key[0] == documents.RUNS and FIRST in key[1]]
    cluster.store.items[record] = b"torn"
    submit(cluster, SECOND, 3, on(FIRST, "N_TO_N", "end"))
    cluster.controllers = [cluster.controller()]
    cluster.run_to_rest()
    assert cluster.record(SECOND).status is RunStatus.SUCCEEDED


def test_a_new_controller_continues_the_wait_of_the_previous_one() -> None:
    cluster = cluster_of()
    began = cluster.world.now
    submit(cluster, FIRST, 4)
    submit(cluster, SECOND, 4, on(FIRST, "N_TO_N"))
    submit(cluster, THIRD, 1, on(SECOND))
    ticks = 0
    while not cluster.step():
        ticks += 1
        if ticks % 15 == 0:
            cluster.controllers = [cluster.controller()]
        assert cluster.world.now < began + 7200
    assert [cluster.record(run).status for run in (FIRST, SECOND, THIRD)] == [RunStatus.SUCCEEDED] * 3
    assert len(launched(cluster)) == 9


def test_a_cancelled_run_takes_along_those_that_depend_on_it_where_that_is_asked() -> None:
    cluster = cluster_of()
    submit(cluster, FIRST, 4)
    submit(cluster, SECOND, 2, on(FIRST))
    submit(cluster, THIRD, 2, on(SECOND, what="end"))
    cluster.run_for(30)
    cluster.put(CancelRequest(FIRST, cluster.world.now, "enough", dependents=True), f"{FIRST}#cancel")
    cluster.run_to_rest()
    assert [cluster.record(run).status for run in (FIRST, SECOND, THIRD)] == [RunStatus.CANCELLED] * 3
    assert cluster.record(THIRD).status_reason == f"cancelled with {FIRST}, which it depends on"


def test_a_cancelled_run_lets_those_that_depend_on_it_fail_otherwise() -> None:
    cluster = cluster_of()
    submit(cluster, FIRST, 4)
    submit(cluster, SECOND, 2, on(FIRST))
    submit(cluster, THIRD, 2, on(SECOND, what="end"))
    cluster.run_for(30)
    cluster.cancel(FIRST)
    cluster.run_to_rest()
    statuses = [cluster.record(run).status for run in (FIRST, SECOND, THIRD)]
    assert statuses == [RunStatus.CANCELLED, RunStatus.FAILED, RunStatus.SUCCEEDED]


def test_after_a_retry_of_both_runs_the_second_one_waits_again() -> None:
    cluster = cluster_of({(FIRST, 1)})
    submit(cluster, FIRST, 2)
    submit(cluster, SECOND, 2, on(FIRST))
    cluster.run_to_rest()
    assert cluster.record(SECOND).status is RunStatus.FAILED
    fails_at(cluster, set())
    cluster.retry(FIRST)
    cluster.retry(SECOND, cancelled=True)
    cluster.run_for(30)
    assert not [run for run, _ in launched(cluster) if run == SECOND]
    cluster.run_to_rest()
    assert cluster.record(SECOND).status is RunStatus.SUCCEEDED


def test_tasks_that_were_cancelled_for_their_own_ones_run_once_both_runs_are_tried_again() -> None:
    cluster = cluster_of({(FIRST, 1)})
    submit(cluster, FIRST, 3)
    submit(cluster, SECOND, 3, on(FIRST, "N_TO_N"))
    cluster.run_to_rest()
    assert cluster.record(SECOND).status is RunStatus.PARTIAL
    fails_at(cluster, set())
    cluster.retry(FIRST)
    cluster.retry(SECOND, cancelled=True)
    cluster.run_to_rest()
    assert cluster.record(SECOND).status is RunStatus.SUCCEEDED
    assert launched(cluster)[-1] == (SECOND, 1)


def test_a_retry_of_a_run_whose_dependency_still_fails_fails_at_once() -> None:
    cluster = cluster_of({(FIRST, 0)})
    submit(cluster, FIRST, 1)
    submit(cluster, SECOND, 1, on(FIRST))
    cluster.run_to_rest()
    cluster.retry(SECOND, cancelled=True)
    cluster.run_to_rest()
    assert (cluster.record(SECOND).status, cluster.record(SECOND).attempts) == (RunStatus.FAILED, 0)


def test_nothing_starts_before_its_time_and_a_time_limit_counts_from_then() -> None:
    cluster = cluster_of(work_s=100.0)
    submit(cluster, FIRST, 1, notBefore="20m", timeout={"runDurationSeconds": 600})
    began = cluster.world.now
    cluster.run_for(1190)
    assert (launched(cluster), cluster.live_instances()) == ([], [])
    assert waiting(cluster, FIRST).startswith("does not start before 20")
    cluster.run_to_rest()
    assert cluster.record(FIRST).status is RunStatus.SUCCEEDED
    assert cluster.record(FIRST).started_at >= began + 1200


def test_more_tasks_than_one_commit_can_mark_follow_in_later_ones() -> None:
    cluster = cluster_of(work_s=1.0)
    fails_at(cluster, set(), 0.0)
    tasks = 20 * 8192
    submit(cluster, FIRST, tasks)
    cluster.tick()
    run = cluster.run
    run.tasks.touch(0)
    for chunk in range(20):
        run.tasks.touch(chunk)
    run.tasks.columns["status"][:] = TaskStatus.SUCCEEDED
    cluster.run_to_rest()
    assert cluster.record(FIRST).status is RunStatus.SUCCEEDED
    submit(cluster, SECOND, tasks, on(FIRST, "N_TO_N"), placement={"maxConcurrentTasks": 1})
    for _ in range(6):
        cluster.tick()
    state = cluster.controllers[0].state
    assert state is not None
    second = state.runs[SECOND]
    assert (second.tasks["met"] == 1).all()
    assert second.unmet == []
