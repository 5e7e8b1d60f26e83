"""The life of a cluster under the real engine: growth, interruption, shortage, crashes, lost events, going to zero."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from argosy.model.runs import RunStatus
from argosy.model.tasks import TaskStatus, TaskTable
from tests.builders import RUN_ID
from tests.fakes.aws import refusal
from tests.scenarios.controlled import Controlled


def succeeded(cluster: Controlled) -> int:
    return int(cluster.record().counts[TaskStatus.SUCCEEDED])


def test_a_batch_grows_the_cluster_once_runs_and_goes_back_to_zero() -> None:
    cluster = Controlled()
    cluster.submit(48)
    cluster.run_for(300)
    assert sum(cluster.fleet_targets().values()) == 12  # 48 tasks of 1 vCPU on 4 each
    assert sorted(cluster.fleet_targets().values()) == [4, 4, 4]
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert (succeeded(cluster), cluster.record().attempts) == (48, 48)
    assert set(cluster.fleet_targets().values()) == {0}
    assert not cluster.live_instances()
    assert f"{RUN_ID}/_SUCCESS" in cluster.s3.objects


def test_capacity_does_not_oscillate() -> None:
    cluster = Controlled()
    cluster.submit(24)
    seen = []
    for _ in range(25):
        cluster.tick()
        seen.append(sum(cluster.fleet_targets().values()))
    assert sorted(set(seen)) in ([0, 6], [6])
    assert seen == sorted(seen)


def test_a_shortage_in_the_cheapest_pool_moves_the_purchase_to_the_next() -> None:
    def price(instance_type: str, zone: str, *when: float) -> float:
        return 0.05 if zone == "us-east-1a" else 0.09

    cluster = Controlled(zones=("us-east-1a", "us-east-1b"), prices=price)
    cluster.world.ec2.set_shortage("c5.xlarge/us-east-1a", 0)
    cluster.submit(8)
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
    zones = {
        m["detail"]["availabilityZone"] for m in cluster.world.events if m["detail-type"] == "ECS Task State Change"
    }
    assert zones == {"us-east-1b"}


def test_interruptions_cost_time_but_no_user_attempt_and_no_task() -> None:
    cluster = Controlled(work_s=300.0)
    cluster.submit(16, retryStrategy={"attempts": 1})
    cluster.run_for(200)
    for instance in cluster.live_instances()[:2]:
        cluster.world.interrupt(instance["InstanceId"])
    cluster.run_to_rest()
    assert (cluster.record().status, succeeded(cluster)) == (RunStatus.SUCCEEDED, 16)
    assert cluster.record().interruptions == 8
    assert cluster.record().attempts == 24
    assert max(cluster.starts().values()) == 1


def test_nothing_is_placed_on_an_instance_after_its_warning() -> None:
    cluster = Controlled(zones=("us-east-1a",), work_s=30.0)
    cluster.submit(40, capacity={"maxInstances": 2})
    cluster.run_for(80)
    victim = cluster.live_instances()[0]["InstanceId"]
    cluster.world.interrupt(victim)
    warned_at = cluster.world.now
    cluster.tick()
    cluster.run_to_rest()
    late = [
        message
        for message in cluster.world.events
        if message["detail-type"] == "ECS Task State Change"
        and message["detail"]["lastStatus"] == "PENDING"
        and cluster.world.ecs.ledger.instance(message["detail"]["containerInstanceArn"]).ec2_instance_id == victim
        and message["time"] > _iso(warned_at)
    ]
    assert not late
    assert succeeded(cluster) == 40


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_without_a_single_event_the_sweeps_bring_the_run_to_its_end() -> None:
    cluster = Controlled(lose=lambda message: True)
    cluster.submit(12)
    cluster.run_to_rest()
    assert (cluster.record().status, succeeded(cluster)) == (RunStatus.SUCCEEDED, 12)
    assert max(cluster.starts().values()) == 1


@pytest.mark.parametrize("every", [2, 3, 7])
def test_a_controller_that_is_replaced_every_few_ticks_starts_nothing_twice(every: int) -> None:
    cluster = Controlled()
    cluster.submit(24)
    for tick in range(2000):
        if tick % every == 0:
            cluster.controllers = [cluster.controller()]
        if cluster.step() and cluster.record().status == RunStatus.SUCCEEDED:
            break
    assert succeeded(cluster) == 24
    assert cluster.starts() == {(str(index), "1"): 1 for index in range(24)}


def test_a_controller_that_dies_in_the_middle_of_launching_starts_nothing_twice() -> None:
    cluster = Controlled()
    cluster.submit(24)
    cluster.run_for(60)  # until instances are about to register

    class Dying:
        """A client of a process that is killed after its third RunTask: the effect is there, the reply is not."""

        def __init__(self) -> None:
            self.left = 3

        def __getattr__(self, name: str) -> object:
            return getattr(cluster.ecs, name)

        def run_task(self, **request: object) -> object:
            reply = cluster.ecs.run_task(**request)
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
            return reply

    cluster.controllers = [cluster.controller(Dying())]
    with pytest.raises(KeyboardInterrupt):
        cluster.run_to_rest()
    cluster.controllers = [cluster.controller()]
    cluster.run_to_rest()
    assert succeeded(cluster) == 24
    assert cluster.starts() == {(str(index), "1"): 1 for index in range(24)}


def test_three_controllers_at_once_commit_one_at_a_time_and_start_nothing_twice() -> None:
    cluster = Controlled()
    cluster.controllers = [cluster.controller() for _ in range(3)]
    cluster.submit(24)
    for _ in range(2000):
        cluster.tick()
        if cluster.record().status == RunStatus.SUCCEEDED:
            break
    assert cluster.conflicts > 0
    assert succeeded(cluster) == 24
    assert cluster.starts() == {(str(index), "1"): 1 for index in range(24)}


def test_cancelling_stops_everything_and_the_cluster_goes_to_zero() -> None:
    cluster = Controlled(work_s=36_000.0)
    cluster.submit(24)
    cluster.run_for(200)
    cluster.cancel()
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.CANCELLED
    assert not cluster.live_instances()
    assert set(cluster.fleet_targets().values()) == {0}


def test_queued_tasks_of_a_cancelled_run_never_start() -> None:
    """Neither those that wait for a place nor those that wait at an agent, whatever ends and frees its place."""
    cluster = Controlled(work_s=20.0)
    cluster.submit(400)
    while not cluster.starts():
        cluster.step()
    assert len(cluster.starts()) < 400
    cluster.cancel()
    cluster.tick()
    before = cluster.starts()
    cluster.run_to_rest()
    assert cluster.starts() == before
    assert cluster.record().status == RunStatus.CANCELLED


def test_the_kill_switch_launches_nothing_more() -> None:
    cluster = Controlled()
    cluster.store.killed = "the stack is being deleted"
    cluster.submit(24)
    cluster.run_for(300)
    assert set(cluster.fleet_targets().values()) == {0}
    assert not cluster.starts()


def test_a_run_stays_in_the_zone_it_asks_for() -> None:
    cluster = Controlled()
    cluster.submit(8, placement={"constraints": ["attribute:ecs.availability-zone == us-east-1c"]})
    cluster.run_for(100)
    assert {pool for pool, target in cluster.fleet_targets().items() if target} == {"c5.xlarge/us-east-1c"}
    cluster.run_to_rest()
    assert succeeded(cluster) == 8


def test_gpu_tasks_fill_gpu_instances_and_share_no_gpu() -> None:
    cluster = Controlled(types=("c5.xlarge", "p3.8xlarge"), zones=("us-east-1a",), work_s=600.0)
    cluster.submit(8, resources={"vcpus": 1, "memory": 1024, "gpus": 1})
    cluster.run_for(300)
    arns = cluster.ecs.list_tasks(cluster="argosy")["taskArns"]
    tasks = cluster.ecs.describe_tasks(cluster="argosy", tasks=arns)["tasks"]
    pinned = [(task["containerInstanceArn"], gpu) for task in tasks for gpu in task["containers"][0]["gpuIds"]]
    assert len(pinned) == len(set(pinned)) == 8
    assert cluster.fleet_targets() == {"c5.xlarge/us-east-1a": 0, "p3.8xlarge/us-east-1a": 2}
    cluster.run_to_rest()
    assert succeeded(cluster) == 8


@pytest.mark.parametrize(
    "chunk_rows", [pytest.param(32, id="32"), pytest.param(8_192, id="as in production", marks=pytest.mark.deep)]
)
def test_tasks_in_123_chunks_are_cancelled_in_one_commit_and_block_no_other_run(
    chunk_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In production the chunks of a million tasks are as many, more than a transaction holds."""
    monkeypatch.setattr(TaskTable, "chunk_rows", chunk_rows)
    cluster = Controlled(max_instances=20)
    cluster.submit(122 * chunk_rows + 1)
    cluster.run_for(120)
    cluster.cancel()
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.CANCELLED
    assert not cluster.live_instances()


def test_a_launch_that_is_refused_for_good_ends_the_run_and_frees_the_cluster() -> None:
    cluster = Controlled()
    cluster.submit(24)

    class Denied:
        def __getattr__(self, name: str) -> object:
            return getattr(cluster.ecs, name)

        def run_task(self, **request: object) -> object:
            raise refusal("AccessDeniedException", "not authorized to perform: iam:PassRole")

    cluster.controllers = [cluster.controller(Denied())]
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.FAILED
    assert "PassRole" in cluster.record().status_reason
    assert not cluster.live_instances()


def test_an_interruption_long_after_the_order_is_replaced_at_once_in_the_same_pool() -> None:
    cluster = Controlled(zones=("us-east-1a",), work_s=2000.0)
    cluster.submit(8)
    cluster.run_for(900)
    victim = cluster.live_instances()[0]["InstanceId"]
    cluster.world.interrupt(victim)
    cluster.tick()
    assert [each["State"]["Name"] for each in cluster.live_instances()].count("pending") == 1  # 120 s before the end
    cluster.run_for(300)
    assert len(cluster.live_instances()) == 2
    assert cluster.fleet_targets() == {"c5.xlarge/us-east-1a": 2}
    cluster.run_to_rest()
    assert succeeded(cluster) == 8


def test_one_listing_that_forgets_an_instance_loses_nothing() -> None:
    cluster = Controlled(zones=("us-east-1a",), work_s=3000.0)
    cluster.submit(4)
    cluster.run_for(700)
    forgetful = {"left": 1}
    honest = cluster.ec2

    class Forgetful:
        def __getattr__(self, name: str) -> object:
            return getattr(honest, name)

        def describe_instances(self, **request: object) -> object:
            if forgetful["left"]:
                forgetful["left"] -= 1
                return {"Reservations": []}
            return honest.describe_instances(**request)

    cluster.ec2 = Forgetful()
    cluster.controllers = [cluster.controller()]
    cluster.run_to_rest()
    assert cluster.record().attempts == 4


def test_a_bucket_that_is_gone_ends_the_run_with_that_reason_and_without_a_storm_of_commits() -> None:
    cluster = Controlled()
    cluster.submit(4)

    def denied(**request: object) -> object:
        raise refusal("NoSuchBucket", "The specified bucket does not exist")

    cluster.run_for(100)
    cluster.s3.put_object = denied  # type: ignore[method-assign]
    cluster.s3.upload_fileobj = denied  # type: ignore[assignment, method-assign]
    before = cluster.store.commits
    took = cluster.run_to_rest()
    assert cluster.record().status == RunStatus.FAILED
    assert "bucket" in cluster.record().status_reason
    assert cluster.store.commits - before < took / 2


@pytest.mark.deep
def test_events_of_a_whole_storm_fit_into_commits() -> None:
    """Ten thousand tasks scattered over a run of a million end while the controller is away."""
    cluster = Controlled(types=("c5.9xlarge",), work_s=100.0, max_instances=120, growth_per_tick=120)
    cluster.submit(1_000_000, resources={"vcpus": 0.25, "memory": 128})
    cluster.run_for(400)
    cluster.events.lose = lambda message: True
    cluster.controllers = [cluster.controller()]
    cluster.world.run_for(600)
    cluster.run_for(400)
    assert succeeded(cluster) > 3000
    assert max(cluster.starts().values()) == 1


def test_many_small_runs_fit_into_commits_after_an_outage_and_while_capacity_is_short() -> None:
    cluster = Controlled(types=("c5.9xlarge",), zones=("us-east-1a",), work_s=30.0)
    cluster.world.ec2.set_shortage("c5.9xlarge/us-east-1a", 0)
    ids = [cluster.submit(1, run_id=f"small{n}-261121-062733-aaaa", name=f"small{n}") for n in range(130)]
    cluster.run_for(150)
    cluster.world.ec2.set_shortage("c5.9xlarge/us-east-1a", None)
    cluster.run_to_rest()
    assert {cluster.record(run_id).status for run_id in ids} == {RunStatus.SUCCEEDED}
    assert max(cluster.starts().values()) == 130  # each run's task 0, attempt 1
