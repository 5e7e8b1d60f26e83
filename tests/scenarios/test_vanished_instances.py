"""What ends while no message tells of it is found out by the sweep: counted, and replaced once, not over and over."""

from __future__ import annotations

from controller.model.tasks import TaskStatus
from tests.builders import RUN_ID
from tests.scenarios.controlled import Controlled

ABSENT_S = 2 * 3600.0  # longer than EC2 shows what has ended


def test_what_vanished_unseen_is_not_added_to_its_fleets_target_beside_its_replacement() -> None:
    cluster = Controlled(zones=("us-east-1a",), work_s=600.0, lose=lambda message: True, max_instances=6)
    cluster.submit(16)
    while len(cluster.live_instances()) < 4 or cluster.record()["counts"][TaskStatus.RUNNING] < 16:
        cluster.tick()
    for instance in cluster.live_instances():
        cluster.world.ec2.lose(instance["InstanceId"])
    cluster.world.run_for(ABSENT_S)
    most = 0
    for _ in range(200):
        cluster.tick()
        most = max(most, len(cluster.live_instances()))
    assert most <= 6
    cluster.run_to_rest()
    assert cluster.record(RUN_ID)["status"] == "SUCCEEDED"


def test_ends_that_no_message_told_of_are_counted_and_with_all_messages_there_are_none() -> None:
    deaf, hearing = Controlled(lose=lambda message: True), Controlled()
    for cluster in (deaf, hearing):
        cluster.submit(8)
        cluster.run_to_rest()
        assert cluster.record(RUN_ID)["status"] == "SUCCEEDED"
    assert deaf.repaired >= 8
    assert hearing.repaired == 0
