"""The sweep detects instances that ended without a message: they are counted, and replaced once, not repeatedly."""

from __future__ import annotations

from argosy.model.tasks import TaskStatus
from tests.builders import RUN_ID
from tests.scenarios.controlled import LONGEST_PAUSE_S, Controlled

ABSENT_S = 2 * 3600.0  # longer than EC2 shows ended instances


def test_a_vanished_instance_is_not_added_to_its_fleets_target_along_with_its_replacement() -> None:
    cluster = Controlled(zones=("us-east-1a",), work_s=600.0, lose=lambda message: True, max_instances=6)
    cluster.submit(16)
    while len(cluster.live_instances()) < 4 or cluster.record().counts[TaskStatus.RUNNING] < 16:
        cluster.step()
    for instance in cluster.live_instances():
        cluster.world.ec2.lose(instance["InstanceId"])
    cluster.world.run_for(ABSENT_S)
    most = 0
    for _ in range(100):
        cluster.tick()
        most = max(most, len(cluster.live_instances()))
    assert most <= 6
    cluster.run_to_rest()
    assert cluster.record(RUN_ID).status == "SUCCEEDED"


def test_ends_without_a_message_are_counted_and_with_all_messages_there_are_none() -> None:
    deaf, hearing = Controlled(lose=lambda message: True), Controlled()
    for cluster in (deaf, hearing):
        cluster.submit(8)
        cluster.run_to_rest()
        assert cluster.record(RUN_ID).status == "SUCCEEDED"
    assert deaf.repaired >= 8
    assert hearing.repaired == 0


def test_no_run_pays_for_the_time_in_which_it_was_doubtful_whether_an_instance_is_gone() -> None:
    cluster = Controlled(zones=("us-east-1a",), work_s=3000.0, lose=lambda message: True)
    cluster.submit(4)
    while not cluster.live_instances() or cluster.record().counts[TaskStatus.RUNNING] < 4:
        cluster.step()
    (lost,) = [each["InstanceId"] for each in cluster.live_instances()]
    cluster.run_for(600.0)
    cluster.world.ec2.lose(lost)
    cluster.world.ec2.ledger.instances.pop(lost)  # EC2 need not show it until the sweep
    lost_at = cluster.world.now
    cluster.run_for(1200.0)
    state = cluster.controllers[0].state
    assert state is not None
    assert not state.instances[lost].alive
    assert state.instances[lost].stopped_at - lost_at <= cluster.policy.sweep_s + LONGEST_PAUSE_S


def test_a_run_that_uses_up_very_many_instances_does_not_name_them_all_for_ever() -> None:
    cluster = Controlled(zones=("us-east-1a",), work_s=4000.0, max_named_instances=3, forget_instance_s=120.0)
    cluster.submit(4)
    used: set[str] = set()
    for _ in range(12):
        while not (live := cluster.live_instances()) or cluster.record().counts[TaskStatus.RUNNING] < 4:
            cluster.step()
        used |= {each["InstanceId"] for each in live}
        for each in live:
            cluster.world.interrupt(each["InstanceId"], notice_s=30.0)
        cluster.run_for(200.0)
    assert len(used) >= 10
    assert len(cluster.record().instances) <= 5
    state = cluster.controllers[0].state
    assert state is not None
    assert len(state.instances) <= 6
