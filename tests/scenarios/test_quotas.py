"""Two queues at a vCPU quota, from the inbox to the tasks."""

from __future__ import annotations

from typing import Any

from argosy.model.policy import VcpuQuota
from argosy.model.runs import RunStatus
from argosy.model.tasks import TaskStatus
from tests.builders import CELL, RUN_ID
from tests.scenarios.controlled import Controlled

OTHER, CPU = "other-261121-070000-aaaa", "small-261121-070000-bbbb"
QUEUES: dict[str, Any] = {"version": 1, "queues": {"default": {"weight": 1}, "research": {"weight": 3}, "late": {}}}
GPU = {"resources": {"vcpus": 4, "memory": 4096, "gpus": 1}}


def test_two_queues_share_a_quota_by_weight_and_a_cpu_run_does_not_wait() -> None:
    quotas = VcpuQuota(CELL, "spot", "g", 32), VcpuQuota(CELL, "spot", "standard", 256)
    cluster = Controlled(("c5.xlarge", "g4dn.xlarge"), work_s=120.0, vcpu_quotas=quotas)
    cluster.share(QUEUES)
    cluster.submit(400, **GPU)
    cluster.submit(400, OTHER, queue="research", **GPU)
    cluster.tick()
    cluster.submit(4, CPU, queue="late")
    began = cluster.world.now
    said, running = set(), []
    while cluster.world.now - began < 1_500:
        cluster.step()
        said |= {cluster.record(each).waiting for each in (RUN_ID, OTHER)}
        if cluster.world.now - began > 400:
            running.append([cluster.record(each).counts[TaskStatus.RUNNING] for each in (RUN_ID, OTHER)])
    assert cluster.record(CPU).status is RunStatus.SUCCEEDED
    assert f"held back by the vCPU quota of spot G and VT in {CELL} (32)" in said
    means = [sum(each[number] for each in running) / len(running) for number in (0, 1)]
    assert sum(means) > 6.5, means  # of 8
    assert 0.2 <= means[0] / sum(means) <= 0.3, means
    cluster.cancel()
    cluster.cancel(OTHER)
    cluster.run_to_rest()


def test_a_quota_of_0_that_only_ec2_knows_is_the_reason_and_nothing_is_bought_until_it_is_raised() -> None:
    cluster = Controlled(zones=("us-east-1a",), work_s=30.0)
    cluster.world.ec2.set_spot_quota("Standard", 0)
    cluster.submit(4)
    cluster.run_for(300)
    for told in (cluster.record().waiting, cluster.explained()):
        assert "[spotInstanceCountLimitExceeded: Max spot instance count exceeded]" in told
        assert "argosy doctor shows it; ask for more in Service Quotas" in told
    assert not cluster.world.ec2.ledger.instances
    cluster.world.ec2.set_spot_quota("Standard", None)
    cluster.run_to_rest()
    assert cluster.record().status is RunStatus.SUCCEEDED
