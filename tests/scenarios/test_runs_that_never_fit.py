"""A run whose task is larger than a whole limit: it waits alone, says both numbers, and ends; then all is at rest."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.model.policy import Policy, VcpuQuota
from argosy.model.runs import RunStatus
from tests.builders import CELL, RUN_ID
from tests.scenarios.controlled import Controlled

TYPES = ("c5.xlarge", "c5.4xlarge", "g4dn.xlarge", "g4dn.12xlarge")
SMALL, OTHER = "small-261121-070000-aaaa", "other-261121-070000-bbbb"
PATIENCE_S = Policy().unaffordable_patience_s


def of(vcpus: float, gpus: int = 0) -> dict[str, Any]:
    return {"resources": {"vcpus": vcpus, "memory": 512, "gpus": gpus}}


@pytest.mark.parametrize(
    ("document", "large", "said"),
    [
        ({"queues": {"c": {"cap": {"vcpus": 1}}}}, of(2), "a task needs 2 vCPUs, the cap of queue c is 1"),
        ({"queues": {"c": {"cap": {"gpus": 1}}}}, of(1, 4), "a task needs 4 GPUs, the cap of queue c is 1"),
        ({"queues": {"c": {"cap": {"usdPerHour": 0.2}}}}, of(8), " an hour, the cap of queue c is $0.20"),
        ({"queues": {"c": {}, "d": {}}, "limits": {"usdPerHour": 0.2}}, of(12), " an hour, limits.usdPerHour is $0.20"),
    ],
)
def test_it_closes_its_limit_to_no_other_run_and_ends_after_its_patience(
    document: dict[str, Any], large: dict[str, Any], said: str
) -> None:
    cluster = Controlled(TYPES, ("us-east-1a",), work_s=60.0)
    cluster.share({"version": 1, **document})
    cluster.tick()
    cluster.submit(2, **large, queue="c", priority=1)
    cluster.run_for(60)
    cluster.submit(2, SMALL, **of(1), queue="c")
    cluster.submit(2, OTHER, **of(0.25), queue=[*document["queues"]][-1])
    cluster.run_for(600)
    assert {cluster.record(each).status for each in (SMALL, OTHER)} == {RunStatus.SUCCEEDED}
    assert said in cluster.record().waiting
    assert PATIENCE_S - 600 < cluster.run_to_rest() < PATIENCE_S
    assert cluster.record().status is RunStatus.FAILED
    assert "It has waited 6" in cluster.record().status_reason
    assert said in cluster.record().status_reason


def test_a_run_above_a_whole_quota_ends_as_well() -> None:
    cluster = Controlled(TYPES[:2], ("us-east-1a",), vcpu_quotas=(VcpuQuota(CELL, "spot", "standard", 8),))
    cluster.submit(1, **of(8))
    cluster.submit(2, SMALL, **of(1))
    cluster.run_for(600)
    assert cluster.record(SMALL).status is RunStatus.SUCCEEDED
    told = f"a task needs an instance of 16 vCPUs, the vCPU quota of spot Standard in {CELL} is 8"
    assert cluster.record().waiting == told
    cluster.run_to_rest()
    assert cluster.record().status is RunStatus.FAILED


def test_a_run_larger_than_every_instance_type_of_the_deployment_ends_as_well() -> None:
    """Its type was taken out of the deployment after it was submitted."""
    cluster = Controlled(("c5.xlarge",))
    cluster.submit(1, **of(8))
    cluster.run_to_rest()
    assert cluster.record().status is RunStatus.FAILED
    assert cluster.record().status_reason.startswith("can never run here: needs ")


def test_a_run_that_a_lower_cap_shuts_out_keeps_what_runs_and_is_saved_by_a_higher_one() -> None:
    cluster = Controlled(("c5.xlarge",), work_s=1_200.0)
    cluster.share({"version": 1, "queues": {"c": {"cap": {"vcpus": 4}}}})
    cluster.submit(4, **of(2), queue="c")
    cluster.run_for(300)
    cluster.share({"version": 1, "queues": {"c": {"cap": {"vcpus": 1}}}}, base=1)
    cluster.run_for(2_000)  # its first two tasks have ended, and it waits
    assert cluster.record().waiting == "a task needs 2 vCPUs, the cap of queue c is 1"
    cluster.share({"version": 1, "queues": {"c": {"cap": {"vcpus": 2}}}}, base=2)
    cluster.run_for(60)
    assert cluster.record().unaffordable_since == 0
    cluster.run_to_rest()
    assert cluster.record().status is RunStatus.SUCCEEDED


def test_runs_that_wait_for_one_that_never_fits_do_not_wait_forever() -> None:
    cluster = Controlled(("c5.xlarge",))
    cluster.share({"version": 1, "queues": {"c": {"cap": {"vcpus": 1}}, "d": {}}})
    cluster.submit(1, **of(2), queue="c", priority=100)
    cluster.submit(1, SMALL, **of(1), queue="d", dependsOn=[{"run": RUN_ID, "type": "N_TO_N"}])
    cluster.submit(1, OTHER, **of(1), queue="d", dependsOn=[{"run": SMALL, "type": "ALL", "on": "end"}])
    cluster.run_to_rest()
    assert [cluster.record(each).status.value for each in (RUN_ID, SMALL, OTHER)] == ["FAILED", "FAILED", "SUCCEEDED"]
