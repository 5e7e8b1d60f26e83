"""A fleet that cannot launch: the reason reaches the run and `explain`, an operator is alerted, and a repair is
detected."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.emulator.ec2.service import LaunchObstacle
from argosy.engine.report import TickReport
from argosy.model.runs import RunStatus
from tests.scenarios.controlled import Controlled

A, B = "c5.xlarge/us-east-1a", "c5.xlarge/us-east-1b"
DEAD_IMAGE = LaunchObstacle(
    "launchSpecTemporarilyBlacklisted",
    "Repeated errors have occurred processing the launch specification. Error message: The image id '[ami-1]' does not "
    "exist",
)
FULL_SUBNET = LaunchObstacle(
    "spotFleetRequestConfigurationInvalid",
    "c5.xlarge, ami-1, Linux/UNIX: There are not enough free addresses in subnet 'subnet-1' to satisfy the request.",
)


def fleet_messages_lost(message: dict[str, Any]) -> bool:
    return message["detail-type"] in ("EC2 Fleet Error", "EC2 Fleet Information")


@pytest.mark.parametrize(
    ("obstacle", "says", "mended_by"),
    [(DEAD_IMAGE, "machine image (AMI) cannot be used", 3600.0), (FULL_SUBNET, "no free address", 600.0)],
)
def test_the_reason_reaches_the_run_and_its_explanation_and_a_cure_is_noticed(
    obstacle: LaunchObstacle, says: str, mended_by: float
) -> None:
    cluster = Controlled(zones=("us-east-1a", "us-east-1b"))
    for pool in (A, B):
        cluster.world.ec2.set_obstacle(pool, obstacle)
    cluster.submit(4)
    cluster.run_for(60)
    for sentence in (cluster.record().waiting, cluster.explained()):
        assert says in sentence
        assert obstacle.description[:60] in sentence
    assert cluster.fleet_targets() == {A: 0, B: 0}
    for pool in (A, B):
        cluster.world.ec2.set_obstacle(pool, None)
    assert cluster.run_to_rest() < mended_by + 900
    assert cluster.record().status == RunStatus.SUCCEEDED


def test_one_fleet_that_cannot_launch_leaves_the_work_to_the_others_and_is_counted() -> None:
    cluster = Controlled(zones=("us-east-1a", "us-east-1b"), work_s=120.0)
    cluster.world.ec2.set_obstacle(A, DEAD_IMAGE)
    cluster.world.ec2.set_obstacle(B, None)
    cluster.submit(8)
    reports: list[TickReport] = []
    for _ in range(60):
        reports.append(cluster.controllers[0].tick())
        cluster.pass_time(2.0)
    assert max(report.to_mend for report in reports) == 1
    assert [sentence for report in reports for sentence in report.short if "machine image" in sentence]
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED


def test_where_events_are_lost_the_fleet_s_history_tells_the_reason_at_the_second_shortage() -> None:
    cluster = Controlled(zones=("us-east-1a",), lose=fleet_messages_lost, order_patience_s=60.0, tick_s=5.0)
    cluster.world.ec2.set_obstacle(A, DEAD_IMAGE)
    cluster.submit(4)
    cluster.run_for(120)
    assert "did not arrive" in cluster.record().waiting
    cluster.run_for(cluster.policy.cool_off_s + 120)
    assert "machine image (AMI) cannot be used" in cluster.record().waiting


def test_a_fleet_s_history_is_read_seldom() -> None:
    cluster = Controlled(zones=("us-east-1a",), lose=fleet_messages_lost, order_patience_s=60.0)
    cluster.world.ec2.set_shortage(A, 0)
    asked: list[float] = []
    ask = cluster.ec2.describe_fleet_history

    def counted(**request: Any) -> Any:
        asked.append(cluster.world.now)
        return ask(**request)

    cluster.ec2.describe_fleet_history = counted
    cluster.submit(4)
    cluster.run_for(3600)
    assert 1 <= len(asked) <= 3600 / cluster.policy.history_every_s
