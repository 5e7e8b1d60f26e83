"""A stored document is corrupt: its run is set aside with a reason, the others continue, and nothing is left behind."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.api.actions import Api
from argosy.model.damage import UnreadableState
from argosy.model.runs import RunStatus, sort_key
from argosy.model.stored import documents
from argosy.model.tasks import TaskStatus
from tests.builders import CELL, RUN_ID
from tests.fakes.aws import refusal
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled

OTHER = "other-261121-062733-aaaa"


def two_runs(endless: bool = False) -> Controlled:
    """Both are at work; `endless`: the first one's tasks run until they are stopped."""
    cluster = Controlled(zones=("us-east-1a",), work_s=300.0)
    if endless:
        cluster.world.workload = lambda task, instance: TaskBehaviour(300.0 if OTHER in task["group"] else float("inf"))
    cluster.submit(6)
    cluster.submit(6, run_id=OTHER, name="other")
    cluster.run_for(150.0)
    assert cluster.record().counts[TaskStatus.RUNNING] == 6
    return cluster


def rot(cluster: Controlled, partition: str, name: str) -> None:
    body = bytearray(cluster.store.items[partition, name])
    body[len(body) // 2] ^= 0xFF
    cluster.store.items[partition, name] = bytes(body)


def nothing_started_twice(cluster: Controlled) -> bool:
    """Both runs have the same indexes."""
    return max(cluster.starts().values()) <= 2


def restarted(cluster: Controlled) -> tuple[str, ...]:
    """A new invocation loads the stored state; returns the reported damage."""
    cluster.controllers = [cluster.controller()]
    report = cluster.controllers[0].tick()
    return report.damage


@pytest.mark.parametrize(
    ("partition", "name"),
    [
        (documents.run_partition(RUN_ID), "TASKS#00000"),
        (documents.run_partition(RUN_ID), "SPEC"),
        (documents.RUNS, sort_key(RUN_ID)),
    ],
)
def test_a_run_that_cannot_be_read_is_set_aside_and_the_others_continue(partition: str, name: str) -> None:
    cluster = two_runs()
    rot(cluster, partition, name)
    (damage,) = restarted(cluster)
    assert RUN_ID in damage
    cluster.run_to_rest()
    record = cluster.record()
    assert record.status == RunStatus.FAILED
    assert record.status_reason.startswith("set aside: the stored ")
    assert "corrupt" in record.status_reason
    assert cluster.record(OTHER).status == RunStatus.SUCCEEDED
    assert cluster.record(OTHER).attempts == 6
    assert not cluster.live_instances()  # its tasks were stopped, its instances are gone
    running = cluster.ecs.list_tasks(cluster="argosy")["taskArns"]
    assert not running


def test_a_record_that_is_gone_is_set_aside_too_and_its_tasks_are_stopped() -> None:
    cluster = two_runs(endless=True)
    del cluster.store.items[documents.RUNS, sort_key(RUN_ID)]
    assert restarted(cluster) == (f"the stored record of {RUN_ID} is corrupt: it is missing",)
    cluster.run_to_rest(limit_s=2400.0)
    assert cluster.record().name == "digits"
    assert cluster.record(OTHER).status == RunStatus.SUCCEEDED


def set_aside_and_restored() -> Controlled:
    """A chunk of the first run's tasks was damaged, both runs have ended, and it has been restored."""
    cluster = two_runs()
    key = documents.run_partition(RUN_ID), "TASKS#00000"
    good = cluster.store.items[key]
    rot(cluster, *key)
    restarted(cluster)
    cluster.run_to_rest()
    cluster.store.items[key] = good
    return cluster


def test_a_run_that_was_set_aside_resumes_once_its_document_is_restored() -> None:
    cluster = set_aside_and_restored()
    cluster.world.workload = lambda task, instance: TaskBehaviour(5.0)
    cluster.retry()
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert nothing_started_twice(cluster)  # attempt numbers are not used again


def test_a_run_that_was_set_aside_ends_when_it_is_cancelled_as_it_is_reopened() -> None:
    """Its tasks still count as live, and no attempt is left whose end would say otherwise."""
    cluster = set_aside_and_restored()
    cluster.retry()
    cluster.world.run_for(1.0)
    cluster.cancel()
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.counts[TaskStatus.CANCELLED]) == (RunStatus.CANCELLED, 6)


RECORD = documents.RUNS, sort_key(RUN_ID)


def kept(cluster: Controlled) -> list[bytes]:
    return list(cluster.store.read_partition(documents.DAMAGED).values())


def test_a_record_that_cannot_be_read_is_kept_byte_for_byte_and_its_place_is_reported() -> None:
    cluster = two_runs()
    rot(cluster, *RECORD)
    rotten = cluster.store.items[RECORD]
    restarted(cluster)
    assert kept(cluster) == [rotten]
    (name,) = cluster.store.read_partition(documents.DAMAGED)
    assert f"its bytes are kept as DAMAGED / {name}" in cluster.record().status_reason
    cluster.run_to_rest()
    assert kept(cluster) == [rotten]


def put_back() -> tuple[Controlled, Any]:
    """A record that was set aside and then put back by hand as it was: it says RUNNING, and no controller works on
    it."""
    cluster = two_runs()
    good = cluster.store.items[RECORD]
    rot(cluster, *RECORD)
    restarted(cluster)
    cluster.run_to_rest()
    cluster.store.items[RECORD] = good
    assert cluster.record().status == RunStatus.RUNNING
    return cluster, Api(cluster.store, Woken(), None, None, "argosy", [CELL], cluster.world.clock)  # type: ignore[arg-type]


class Woken:
    def controller(self) -> None:
        """A tick runs anyway."""


def asked(api: Any, action: str, **fields: Any) -> str:
    """What is said to the user: nothing, when it is done."""
    answer = api.handle({"action": action, "runId": RUN_ID, **fields}, "request-1")
    return str(answer["body"]["error"]["message"]) if answer["statusCode"] != 200 else ""


def test_a_run_that_was_put_back_by_hand_is_taken_in_again_by_a_retry_and_finishes() -> None:
    cluster, api = put_back()
    cluster.world.workload = lambda task, instance: TaskBehaviour(5.0)
    assert not asked(api, "RetryRun")
    cluster.run_to_rest()
    assert (cluster.record().status, cluster.record().retries) == (RunStatus.SUCCEEDED, 1)
    assert nothing_started_twice(cluster)


def test_a_run_that_was_put_back_by_hand_ends_when_it_is_cancelled() -> None:
    cluster, api = put_back()
    assert not asked(api, "CancelRun")
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.counts[TaskStatus.CANCELLED]) == (RunStatus.CANCELLED, 6)
    assert f"{RUN_ID}/_FAILED" in cluster.s3.objects


def test_its_number_may_belong_to_another_run_by_now() -> None:
    cluster, api = put_back()
    for sk in (sort_key(RUN_ID),):
        record = documents.decode(cluster.store.items[documents.RUNS, sk])
        record["number"] = 3
        cluster.store.items[documents.RUNS, sk] = documents.encode(record)
    cluster.submit(3, run_id="third-261121-062733-bbbb", name="third")
    cluster.run_for(100.0)
    cluster.world.workload = lambda task, instance: TaskBehaviour(5.0)
    assert not asked(api, "RetryRun")
    cluster.run_to_rest()
    assert cluster.record().status == cluster.record("third-261121-062733-bbbb").status == RunStatus.SUCCEEDED


@pytest.mark.parametrize("action", ["RetryRun", "CancelRun"])
def test_a_run_that_was_put_back_without_its_tasks_is_refused_with_a_sentence(action: str) -> None:
    cluster, api = put_back()
    rot(cluster, documents.run_partition(RUN_ID), "TASKS#00000")
    assert asked(api, action).startswith(f"the stored data of {RUN_ID} cannot be read (CorruptChunk: ")
    assert not cluster.store.read_partition("INBOX")


def test_a_run_whose_spec_is_corrupt_is_neither_changed_nor_retried_with_another_size_and_both_say_why() -> None:
    cluster = two_runs()
    api = Api(cluster.store, Woken(), None, None, "argosy", [CELL], cluster.world.clock)  # type: ignore[arg-type]
    rot(cluster, documents.run_partition(RUN_ID), "SPEC")
    said = [asked(api, "UpdateRun", changes={"priority": 1})]
    restarted(cluster)
    cluster.run_to_rest()
    said.append(asked(api, "RetryRun", memory=512))
    assert all(each.startswith(f"the stored data of {RUN_ID} cannot be read (error: ") for each in said)
    assert not cluster.store.read_partition("INBOX")


def test_a_run_of_which_only_the_id_is_left_is_refused_with_a_sentence() -> None:
    cluster = two_runs()
    rot(cluster, *RECORD)
    restarted(cluster)
    cluster.run_to_rest()
    api = Api(cluster.store, Woken(), None, None, "argosy", [CELL], cluster.world.clock)  # type: ignore[arg-type]
    assert "restore it first, as docs/guides/operations.md describes" in asked(api, "RetryRun")


def test_what_had_not_been_started_when_a_run_was_set_aside_is_started_after_a_retry() -> None:
    cluster = Controlled(zones=("us-east-1a",), work_s=300.0)
    cluster.submit(40, capacity={"maxInstances": 1})
    cluster.run_for(150.0)
    assert cluster.record().counts[TaskStatus.PENDING] > 20
    key = documents.run_partition(RUN_ID), "TASKS#00000"
    good = cluster.store.items[key]
    rot(cluster, *key)
    restarted(cluster)
    cluster.run_to_rest()
    cluster.store.items[key] = good
    cluster.world.workload = lambda task, instance: TaskBehaviour(5.0)
    cluster.retry()
    cluster.run_to_rest()
    assert cluster.record().counts[TaskStatus.SUCCEEDED] == 40


def test_more_runs_than_a_commit_holds_are_set_aside_over_several_ticks() -> None:
    """The bounds of a commit are asserted by the store."""
    cluster = Controlled(zones=("us-east-1a",), work_s=30.0)
    names = [f"many-261121-0627{number:02d}-aaaa" for number in range(80)]
    for name in names:
        cluster.submit(1, run_id=name, name="many")
    for _ in range(12):
        cluster.tick()
    for name in names:
        rot(cluster, documents.RUNS, sort_key(name))
    restarted(cluster)
    open_now = documents.active_runs(cluster.store.read_partition(documents.STATE))
    assert 0 < len(open_now) < 80
    cluster.run_to_rest()
    assert {cluster.record(name).status for name in names} == {RunStatus.FAILED}
    assert len(kept(cluster)) == 80


def test_a_lost_chunk_of_attempts_costs_each_of_them_a_loss_and_no_task() -> None:
    cluster = two_runs()
    rot(cluster, documents.STATE, "ATTEMPTS#0000")
    (damage,) = restarted(cluster)
    assert "ATTEMPTS#0000" in damage
    cluster.run_to_rest()
    for run_id in (RUN_ID, OTHER):
        assert cluster.record(run_id).counts[TaskStatus.SUCCEEDED] == 6
    assert nothing_started_twice(cluster)
    assert restarted(cluster) == ()  # it has been written again


@pytest.mark.parametrize("name", [documents.POOLS, "INSTANCES"])
def test_lost_capacity_is_seen_again_by_a_sweep_and_nothing_is_bought_before(name: str) -> None:
    cluster = two_runs()
    targets = cluster.fleet_targets()
    for pk, sk in [key for key in cluster.store.items if key[0] == documents.STATE and key[1].startswith(name)]:
        rot(cluster, pk, sk)
    assert restarted(cluster)
    for _ in range(10):
        cluster.tick()
        assert cluster.fleet_targets() == targets
    cluster.run_to_rest()
    for run_id in (RUN_ID, OTHER):
        assert (cluster.record(run_id).status, cluster.record(run_id).attempts) == (RunStatus.SUCCEEDED, 6)
    assert restarted(cluster) == ()


@pytest.mark.parametrize("body", [b"rot", documents.encode([]), documents.encode({"runs": []}), None])
def test_without_its_root_nothing_is_touched(body: bytes | None) -> None:
    cluster = two_runs()
    if body is None:
        del cluster.store.items[documents.STATE, documents.ROOT]
    else:
        cluster.store.items[documents.STATE, documents.ROOT] = body
    cluster.controllers = [cluster.controller()]
    commits = cluster.store.commits
    with pytest.raises(UnreadableState, match="nothing is changed"):
        cluster.tick()
    assert cluster.store.commits == commits


def test_a_run_that_can_never_be_closed_is_given_up_even_if_every_invocation_is_short() -> None:
    """Each controller lives for only a minute: counts have to outlive it."""
    cluster = Controlled(zones=("us-east-1a",), work_s=10.0)
    cluster.submit(2)

    def gone(**request: object) -> object:
        raise refusal("NoSuchBucket", "The specified bucket does not exist")

    cluster.run_for(60.0)
    cluster.s3.put_object = gone  # type: ignore[assignment, method-assign]
    began = cluster.world.now
    while cluster.record().status not in (RunStatus.FAILED, RunStatus.SUCCEEDED):
        cluster.controllers = [cluster.controller()]
        cluster.run_for(60.0)
        assert cluster.world.now - began < 3 * 3600.0, "it is tried forever"
    assert cluster.record().status_reason.startswith("not closed: ")
    cluster.run_to_rest()


def test_instances_whose_attempts_were_lost_with_a_cancelled_run_are_given_back() -> None:
    """Nothing else ends those attempts: without this the instances would count as busy forever."""
    cluster = Controlled(zones=("us-east-1a",), work_s=3000.0, linger_s=60.0)
    cluster.submit(8)
    cluster.tick()
    while cluster.record().counts[TaskStatus.RUNNING] < 8:
        cluster.step()
    cluster.cancel()
    cluster.world.run_for(1.0)
    rot(cluster, documents.STATE, "ATTEMPTS#0000")
    restarted(cluster)
    cluster.run_to_rest(limit_s=1800.0)
    assert cluster.record().status == RunStatus.CANCELLED
    assert not cluster.live_instances()
