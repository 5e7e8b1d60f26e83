"""An ended run is retried: succeeded tasks stay, failed ones run again, and the results are complete."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.model.runs import RunStatus
from argosy.model.tasks import TaskStatus, TaskTable
from tests.builders import RUN_ID
from tests.fakes.aws import refusal
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled, failing


def ended(*failed: int, tasks: int = 8) -> Controlled:
    cluster = Controlled(zones=("us-east-1a",))
    failing(cluster, *failed)
    cluster.submit(tasks, retryStrategy={"attempts": 2})
    cluster.run_to_rest()
    return cluster


def test_failed_tasks_run_again_with_a_fresh_budget_and_the_results_are_complete_afterwards() -> None:
    cluster = ended(3, 5)
    before = cluster.manifest()
    assert (cluster.record().status, cluster.record().attempts) == (RunStatus.PARTIAL, 10)
    assert f"{RUN_ID}/_FAILED" in cluster.s3.objects
    failing(cluster)
    cluster.retry()
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.status_reason, record.retries) == (RunStatus.SUCCEEDED, "", 1)
    assert record.counts[TaskStatus.SUCCEEDED] == 8
    assert record.attempts == 12  # only the two that had failed ran again
    after = cluster.manifest()
    assert [entry["attempt"] for entry in after] == [1, 1, 1, 3, 1, 3, 1, 1]
    assert [before[i] for i in (0, 1, 2, 4, 6, 7)] == [after[i] for i in (0, 1, 2, 4, 6, 7)]
    assert f"{RUN_ID}/_SUCCESS" in cluster.s3.objects
    assert f"{RUN_ID}/_FAILED" not in cluster.s3.objects
    assert max(cluster.starts().values()) == 1  # no (task, attempt) ran twice
    assert not cluster.live_instances()


def test_what_succeeded_keeps_its_instance_type_after_the_instances_are_forgotten() -> None:
    cluster = ended(3)
    cluster.world.run_for(3 * 3600.0)
    failing(cluster)
    cluster.submit(1, run_id="other-261121-062733-aaaa", name="other")  # sweeps forget tasks that ended long ago
    cluster.run_to_rest()
    cluster.retry()
    cluster.run_to_rest()
    assert {entry["instanceType"] for entry in cluster.manifest()} == {"c5.xlarge"}


def test_tasks_that_fail_again_use_up_their_fresh_budget_and_the_run_ends_as_before() -> None:
    cluster = ended(3)
    cluster.retry()
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.attempts) == (RunStatus.PARTIAL, 8 + 1 + 2)
    assert cluster.starts()["3", "4"] == 1
    assert f"{RUN_ID}/_FAILED" in cluster.s3.objects


def test_while_it_is_tried_again_no_marker_says_that_the_run_has_ended() -> None:
    cluster = ended(3)
    cluster.world.workload = lambda task, instance: TaskBehaviour(600.0)
    cluster.retry()
    cluster.run_for(200.0)
    assert cluster.record().status in (RunStatus.PROVISIONING, RunStatus.RUNNING)
    assert f"{RUN_ID}/_FAILED" not in cluster.s3.objects
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED


@pytest.mark.parametrize(("which", "succeeded"), [({"failed": True}, 0), ({"cancelled": True}, 8)])
def test_cancelled_tasks_run_again_only_when_they_are_asked_for(which: dict[str, bool], succeeded: int) -> None:
    cluster = Controlled(zones=("us-east-1a",), work_s=3000.0)
    cluster.submit(8)
    cluster.run_for(100.0)
    cluster.cancel()
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.CANCELLED
    cluster.world.workload = lambda task, instance: TaskBehaviour(5.0)
    cluster.retry(**which)
    cluster.run_to_rest()
    assert cluster.record().counts[TaskStatus.SUCCEEDED] == succeeded


def test_the_rest_of_a_run_that_was_stopped_early_stays_cancelled_unless_it_is_asked_for() -> None:
    cluster = Controlled(zones=("us-east-1a",))
    failing(cluster, *range(50))
    cluster.submit(50, retryStrategy={"attempts": 1}, capacity={"maxInstances": 2})
    cluster.run_to_rest()
    counts = cluster.record().counts
    assert counts[TaskStatus.CANCELLED] > 20
    failing(cluster)
    cluster.retry(failed=True)
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.PARTIAL
    assert cluster.record().counts[TaskStatus.SUCCEEDED] == counts[TaskStatus.FAILED]
    cluster.retry(failed=True, cancelled=True)
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED


def test_a_retry_that_is_asked_for_twice_is_done_once() -> None:
    cluster = ended(3)
    failing(cluster)
    cluster.retry()
    cluster.world.run_for(1.0)
    cluster.retry()
    cluster.run_to_rest()
    assert (cluster.record().retries, cluster.record().attempts) == (1, 10)


FAILED_ONLY, CANCELLED_ONLY = {"failed": True, "cancelled": False}, {"failed": False, "cancelled": True}


def stopped_early() -> tuple[Controlled, int]:
    """Some of its fifty tasks failed, the others were cancelled; how many failed."""
    cluster = Controlled(zones=("us-east-1a",), tick_s=5.0)
    failing(cluster, *range(50))
    cluster.submit(50, retryStrategy={"attempts": 1}, capacity={"maxInstances": 2})
    cluster.run_to_rest()
    failing(cluster)
    return cluster, cluster.record().counts[TaskStatus.FAILED]


@pytest.mark.parametrize("ticks_between", [0, 1, 12])
@pytest.mark.parametrize("wishes", [(FAILED_ONLY, CANCELLED_ONLY), (CANCELLED_ONLY, FAILED_ONLY)])
def test_two_retries_with_different_wishes_are_both_granted(wishes: Any, ticks_between: int) -> None:
    """Both were left while the run counted as ended; the second one may be folded in with it at work already."""
    cluster, _ = stopped_early()
    for which in wishes:
        cluster.retry(**which)
        for _ in range(ticks_between):
            cluster.tick()
        cluster.world.run_for(0.001)
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.retries) == (RunStatus.SUCCEEDED, 1)
    assert record.counts[TaskStatus.SUCCEEDED] == 50
    assert max(cluster.starts().values()) == 1


def test_a_second_wish_comes_too_late_for_a_run_that_was_cancelled_again() -> None:
    cluster, failed = stopped_early()
    cluster.world.workload = lambda task, instance: TaskBehaviour(3000.0)
    cluster.retry(**FAILED_ONLY)
    cluster.run_for(100.0)
    cluster.cancel()
    cluster.world.run_for(0.001)
    cluster.retry(**CANCELLED_ONLY)
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.CANCELLED
    assert cluster.record().attempts == 2 * failed


def test_a_controller_that_is_replaced_every_tick_finishes_a_retry_and_starts_nothing_twice() -> None:
    cluster = ended(3, 5)
    failing(cluster)
    cluster.retry()
    for tick in range(2000):
        if tick % 2 == 0:
            cluster.controllers = [cluster.controller()]
        if cluster.step() and cluster.record().status == RunStatus.SUCCEEDED:
            break
    assert cluster.record().counts[TaskStatus.SUCCEEDED] == 8
    assert max(cluster.starts().values()) == 1


def test_two_controllers_reopen_a_run_once() -> None:
    cluster = ended(3)
    failing(cluster)
    cluster.controllers = [cluster.controller(), cluster.controller()]
    cluster.retry()
    cluster.run_to_rest()
    assert (cluster.record().status, cluster.record().retries) == (RunStatus.SUCCEEDED, 1)
    assert max(cluster.starts().values()) == 1


def test_a_cancel_during_a_retry_stops_it_and_keeps_what_had_succeeded() -> None:
    cluster = ended(3)
    cluster.world.workload = lambda task, instance: TaskBehaviour(3000.0)
    cluster.retry()
    cluster.run_for(100.0)
    cluster.cancel()
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.counts[TaskStatus.SUCCEEDED]) == (RunStatus.CANCELLED, 7)


@pytest.mark.parametrize(
    "chunk_rows", [pytest.param(16, id="16"), pytest.param(8_192, id="as in production", marks=pytest.mark.deep)]
)
def test_failed_tasks_in_123_chunks_come_back_a_few_chunks_a_tick(
    chunk_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bounds of a commit are asserted by the store. In production the chunks of a million tasks are as many."""
    monkeypatch.setattr(TaskTable, "chunk_rows", chunk_rows)
    tasks = 122 * chunk_rows + 1
    cluster = Controlled(zones=("us-east-1a",), max_instances=20)
    cluster.submit(tasks)
    cluster.run_for(150.0)
    cluster.cancel()
    cluster.run_to_rest()
    cluster.retry(failed=False, cancelled=True)
    ticks = 0
    while cluster.record().status != RunStatus.PROVISIONING:
        cluster.step()
        ticks += 1
        assert ticks < 40
    assert cluster.run.tasks.counts()[TaskStatus.PENDING] > tasks - 1_000
    cluster.cancel()
    cluster.run_to_rest()
    cluster.retry(failed=True)  # none failed: tasks that were never started become CANCELLED, chunk by chunk
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.PARTIAL  # some had succeeded before
    assert tasks // chunk_rows > 99  # more chunks than a transaction holds


def test_a_run_whose_stored_tasks_cannot_be_read_is_not_reopened_and_blocks_no_other_run() -> None:
    cluster = ended(3)
    key = next(key for key in cluster.store.items if key[1].startswith("TASKS#"))
    cluster.store.items[key] = b"rot" + cluster.store.items[key]
    cluster.retry()
    other = cluster.submit(2, run_id="other-261121-062733-aaaa", name="other")
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.PARTIAL
    assert len(cluster.store.read_partition("INBOX-REFUSED")) == 1
    assert cluster.record(other).status == RunStatus.SUCCEEDED


def test_a_run_that_succeeded_or_does_not_exist_is_left_alone() -> None:
    cluster = ended()
    cluster.retry()
    cluster.retry("nobody-261121-062733-aaaa")
    cluster.run_to_rest()
    assert (cluster.record().status, cluster.record().retries) == (RunStatus.SUCCEEDED, 0)


def test_a_run_that_could_not_be_closed_is_closed_by_a_retry() -> None:
    cluster = Controlled(zones=("us-east-1a",))
    cluster.submit(2)
    cluster.run_for(60.0)
    honest = cluster.s3.put_object

    def gone(**request: Any) -> dict[str, Any]:
        raise refusal("NoSuchBucket", "The specified bucket does not exist")

    cluster.s3.put_object = gone  # type: ignore[method-assign]
    cluster.run_to_rest()
    assert cluster.record().status_reason.startswith("not closed")
    cluster.s3.put_object = honest  # type: ignore[method-assign]
    cluster.retry()
    cluster.run_to_rest()
    assert (cluster.record().status, cluster.record().attempts) == (RunStatus.SUCCEEDED, 2)
    assert f"{RUN_ID}/_SUCCESS" in cluster.s3.objects


def test_chosen_tasks_run_again_with_more_memory_and_the_others_stay() -> None:
    cluster = ended(3, 5, 6)
    failing(cluster)
    before = cluster.record().needs.memory_mib
    cluster.retry(cancelled=True, tasks=((3, 3), (6, 6)), size={"memory": 4 * before})
    cluster.controllers = [cluster.controller()]
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.counts[TaskStatus.FAILED]) == (RunStatus.PARTIAL, 1)
    assert record.needs.memory_mib == 4 * before
    tasks = cluster.world.ecs.describe_task_definition(taskDefinition=record.task_definition)
    [container] = tasks["taskDefinition"]["containerDefinitions"]
    assert container["memory"] == 4 * before
    assert [entry["attempt"] for entry in cluster.manifest() if entry["status"] == "SUCCEEDED"] == [1, 1, 1, 3, 1, 3, 1]


JOBS = "s3://results/argosy/programs/jobs/"


def environments(cluster: Controlled) -> dict[tuple[int, int], dict[str, str]]:
    """What each attempt was started with, by (index, attempt)."""
    found = {}
    for message in cluster.world.events:
        if message["detail-type"] == "ECS Task State Change":
            override = message["detail"]["overrides"]["containerOverrides"][0]
            told = {each["name"]: each["value"] for each in override["environment"]}
            found[int(told["ARGOSY_TASK_INDEX"]), int(told["ARGOSY_TASK_ATTEMPT"])] = told
    return found


def test_two_retries_with_other_programs_run_each_task_with_its_own_and_the_manifest_says_which() -> None:
    cluster = Controlled(zones=("us-east-1a",))
    failing(cluster, 3, 5)
    brought = {
        "run": ["python", "f.py"],
        "job": f"{JOBS}1a.json",
        "result": "none",
        "container": {"image": "argosy/digits"},
        "retryStrategy": {"attempts": 1},
    }
    cluster.submit(8, **brought)
    cluster.run_to_rest()
    failing(cluster, 5)
    cluster.retry(job=f"{JOBS}2b.json")
    cluster.run_to_rest()
    failing(cluster)
    cluster.retry(job=f"{JOBS}3c.json")
    cluster.controllers = [cluster.controller()]
    cluster.run_to_rest()
    assert [entry["program"] for entry in cluster.manifest()] == [1, 1, 1, 2, 1, 3, 1, 1]
    record = cluster.record()
    assert [(each.job[-7:-5], each.attempts, each.results) for each in record.programs] == [
        ("1a", 8, 6), ("2b", 2, 1), ("3c", 1, 1),
    ]  # fmt: skip
    assert sum(each.attempts for each in record.programs) == record.attempts
    told = environments(cluster)
    assert {key: env["ARGOSY_JOB"][-7:-5] for key, env in told.items() if key[1] > 1} == {
        (3, 2): "2b", (5, 2): "2b", (5, 3): "3c",
    }  # fmt: skip
    assert [told[5, attempt].get("ARGOSY_FIRST_ATTEMPT") for attempt in (1, 2, 3)] == [None, "2", "3"]
