"""Deadlines and on-demand fallback under the real engine: spot capacity dries up, comes back, never exists, or is not
allowed."""

from __future__ import annotations

from collections import Counter
from typing import Any

from argosy.model.purchases import PurchaseStance
from argosy.model.runs import RunStatus
from argosy.model.tasks import TaskStatus
from tests.scenarios.controlled import ZONES, Controlled

SPOT_THEN = {"purchase": "spot-then-on-demand"}


def dry_up(cluster: Controlled, dry: bool = True) -> None:
    """No more spot capacity of c5.xlarge is available, and the existing instances are taken away; or it is available
    again."""
    for zone in ZONES:
        cluster.world.ec2.set_shortage(f"c5.xlarge/{zone}", 0 if dry else None)
    for instance in cluster.live_instances() if dry else ():
        if instance.get("InstanceLifecycle") == "spot":
            cluster.world.interrupt(instance["InstanceId"], notice_s=1.0)


def bought(cluster: Controlled) -> Counter[str]:
    """How many instances there have been in all, by purchase option."""
    return Counter(each.purchase for each in cluster.world.ec2.ledger.instances.values())


def ended_at(cluster: Controlled) -> float:
    return float(cluster.record().stopped_at)


def submit(cluster: Controlled, tasks: int, **capacity: Any) -> str:
    return cluster.submit(
        tasks,
        array={"size": tasks, "expectedSeconds": 60},
        capacity={**SPOT_THEN, **capacity},
        placement={"maxConcurrentTasks": 8},
    )


def test_a_deadline_run_falls_back_when_spot_dries_up_and_is_done_in_time() -> None:
    cluster = Controlled()
    submit(cluster, 160, deadline="1h")  # 160 minutes of work on 8 places: 20 minutes, and 40 of slack
    for _ in range(40):
        cluster.tick()
    assert bought(cluster) == {"spot": 2}
    dry_up(cluster)
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.steering.late) == (RunStatus.SUCCEEDED, False)
    assert ended_at(cluster) <= record.deadline_at
    assert bought(cluster)["on-demand"] == 2


def test_as_long_as_there_is_slack_it_waits_for_spot() -> None:
    cluster = Controlled()
    submit(cluster, 160, deadline="3h")
    cluster.run_for(400)
    dry_up(cluster)
    cluster.run_for(1800)
    assert bought(cluster)["on-demand"] == 0
    dry_up(cluster, False)
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert bought(cluster)["on-demand"] == 0


def test_it_says_since_when_and_why_it_buys_on_demand() -> None:
    cluster = Controlled()
    dry_up(cluster)
    submit(cluster, 160, deadline="40m")
    cluster.run_for(1200)
    steering = cluster.run.steering
    assert steering.stance is not PurchaseStance.SPOT
    assert steering.reason.startswith("on-demand since 08:")
    assert "of slack left" in steering.reason


def test_a_run_without_a_deadline_falls_back_after_the_wait_and_comes_back_to_spot() -> None:
    cluster = Controlled()
    dry_up(cluster)
    submit(cluster, 320)
    cluster.run_for(580)
    assert bought(cluster) == {}
    cluster.run_for(200)
    assert bought(cluster) == {"on-demand": 2}
    assert "tasks had waited 10 min for spot" in cluster.run.steering.reason
    dry_up(cluster, False)
    cluster.run_for(1500)
    assert cluster.run.steering.stance is PurchaseStance.SPOT
    live = Counter(each.get("InstanceLifecycle", "on-demand") for each in cluster.live_instances())
    assert live == {"spot": 2}, "what was bought on demand has been let go of"
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED


def test_the_users_own_patience_counts_instead() -> None:
    cluster = Controlled()
    dry_up(cluster)
    submit(cluster, 8, fallback={"afterWaitSeconds": 60})
    cluster.run_for(200)
    assert bought(cluster) == {"on-demand": 2}


def test_another_chance_for_the_only_pool_is_no_end_of_the_wait() -> None:
    cluster = Controlled(zones=("us-east-1a",))
    dry_up(cluster)
    submit(cluster, 8, fallback={"afterWaitSeconds": 400})  # it cools off and is tried again twice in the meantime
    cluster.run_for(600)
    assert bought(cluster) == {"on-demand": 2}


def test_spot_alone_never_buys_on_demand() -> None:
    cluster = Controlled()
    dry_up(cluster)
    cluster.submit(8, capacity={"purchase": "spot"})
    cluster.tick_s = 60.0
    cluster.run_for(4 * 3600)
    assert bought(cluster) == {}
    dry_up(cluster, False)
    cluster.run_to_rest()
    assert set(bought(cluster)) == {"spot"}


def test_a_task_that_was_lost_too_often_goes_to_on_demand_and_only_that_one() -> None:
    cluster = Controlled(zones=("us-east-1a",), work_s=600.0)
    cluster.submit(8, capacity={**SPOT_THEN, "fallback": {"afterInterruptions": 1}})
    cluster.run_for(200)
    assert bought(cluster) == {"spot": 2}
    cluster.world.interrupt(cluster.live_instances()[0]["InstanceId"])
    cluster.run_to_rest()
    assert (cluster.record().status, cluster.record().interruptions) == (RunStatus.SUCCEEDED, 4)
    assert bought(cluster)["on-demand"] == 1


def test_a_run_whose_interruptions_repeat_too_much_work_stays_on_demand() -> None:
    cluster = Controlled(zones=("us-east-1a",), work_s=600.0)
    cluster.submit(8, capacity={**SPOT_THEN, "fallback": {"afterRedoneUsd": 0.001}})
    cluster.run_for(200)
    cluster.world.interrupt(cluster.live_instances()[0]["InstanceId"])
    cluster.run_to_rest()
    assert bought(cluster)["on-demand"] == 1  # the notice came before the loss was known, and a spot instance with it
    record = cluster.record()
    assert record.steering.stance is PurchaseStance.FIRM
    assert "to the end: interruptions have repeated work worth $0.0" in record.steering.reason


def test_a_run_that_can_no_longer_meet_its_deadline_is_late_and_continues() -> None:
    cluster = Controlled()
    submit(cluster, 160, deadline="10m")
    cluster.run_for(60)
    assert "missed by" in cluster.run.steering.reason
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.steering.late) == (RunStatus.SUCCEEDED, True)
    assert bought(cluster) == {"on-demand": 2}


def test_controllers_that_are_replaced_remember_where_a_run_stands() -> None:
    cluster = Controlled()
    submit(cluster, 160, deadline="1h")
    cluster.run_for(400)
    dry_up(cluster)
    for tick in range(3000):
        if tick % 7 == 0:
            cluster.controllers = [cluster.controller()]
        if cluster.step() and cluster.record().status == RunStatus.SUCCEEDED:
            break
    assert ended_at(cluster) <= cluster.record().deadline_at


def test_a_run_over_its_duration_ends_with_what_it_has() -> None:
    cluster = Controlled(work_s=120.0)
    cluster.submit(40, timeout={"runDurationSeconds": 500}, placement={"maxConcurrentTasks": 8})
    cluster.run_to_rest()
    record = cluster.record()
    assert record.status == RunStatus.PARTIAL
    assert record.status_reason == "the run took longer than timeout.runDurationSeconds allows: 500 s"
    assert 500 <= ended_at(cluster) - record.submitted_at < 600
    assert record.counts[TaskStatus.SUCCEEDED] + record.counts[TaskStatus.CANCELLED] == 40
    assert f"{record.id}/_FAILED" in cluster.s3.objects


def test_a_run_whose_time_limit_passes_before_anything_has_run_has_failed() -> None:
    cluster = Controlled()
    dry_up(cluster)
    cluster.submit(4, timeout={"runDurationSeconds": 300})
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.FAILED
    assert bought(cluster) == {}


def test_a_budget_does_not_keep_a_run_from_falling_back() -> None:
    """Where nothing has a price now, money is not the reason to ask for nothing: the wait counts."""
    cluster = Controlled()
    dry_up(cluster)
    submit(cluster, 16, budgetUsd=5)
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert bought(cluster)["on-demand"] > 0
