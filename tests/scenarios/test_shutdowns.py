"""Interruptions do not count, even where the operating system's own end of a task is heard before that of its host."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.layout import ATTEMPT_METADATA, part_uri, split_s3
from argosy.messages.ecs import key_of_task
from argosy.model.tasks import TaskStatus
from tests.harness.simulation.campaign import run_trial
from tests.harness.simulation.faults import kinds_of
from tests.harness.simulation.plan import TrialPlan
from tests.harness.simulation.world.virtual_task import SIGTERM_CODE, TaskBehaviour
from tests.scenarios.controlled import Controlled


def told_by_tasks_alone(message: dict[str, Any]) -> bool:
    """Nothing that EC2 says arrives."""
    return bool(message["source"] == "aws.ec2")


@pytest.mark.parametrize("code", [143, 137, 1])
def test_a_run_with_one_attempt_a_task_survives_the_graceful_shutdown_of_its_hosts(code: int) -> None:
    cluster = Controlled(zones=("us-east-1a",), work_s=300.0, lose=told_by_tasks_alone)
    usual = cluster.world.agent_behaviour
    cluster.world.agent_behaviour = lambda instance: replace(usual(instance), shutdown_code=code)
    cluster.submit(8, retryStrategy={"attempts": 1})
    while not cluster.live_instances() or cluster.record().counts[TaskStatus.RUNNING] < 8:
        cluster.step()
    for instance in cluster.live_instances():
        cluster.world.ec2.lose(instance["InstanceId"])
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.interruptions) == ("SUCCEEDED", 8)


def second_attempts_write(cluster: Controlled) -> None:
    """The results of first attempts are never there."""

    def write(message: dict[str, Any]) -> None:
        detail = message["detail"]
        key = key_of_task(detail) if detail.get("lastStatus") == "STOPPED" else None
        if key is not None and key.attempt == 2:
            _, name = split_s3(part_uri(f"s3://results/{key.run_id}/", key.index, ".jsonl"))
            cluster.s3.put_object(Key=name, Body=b"{}", Metadata={ATTEMPT_METADATA: "2"})

    cluster.world.sinks.insert(0, write)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_spot_interruption_that_a_program_answers_with_0_and_no_result_uses_up_no_attempt(restarted: bool) -> None:
    cluster = Controlled(zones=("us-east-1a",))
    cluster.world.workload = lambda task, instance: TaskBehaviour(duration_s=300.0, obeys_with=0)
    second_attempts_write(cluster)
    cluster.submit(8, expects_result=True, retryStrategy={"attempts": 1})
    while not cluster.live_instances() or cluster.record().counts[TaskStatus.RUNNING] < 8:
        cluster.step()
    for instance in cluster.live_instances():
        cluster.world.interrupt(instance["InstanceId"])
    if restarted:
        while not cluster.record().counts[TaskStatus.VERIFYING]:
            cluster.step()
        cluster.controllers = [cluster.controller()]
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.interruptions, record.attempts) == ("SUCCEEDED", 8, 16)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_missing_result_uses_up_no_attempt_if_its_hosts_shutdown_is_reported_after_the_lookup(
    restarted: bool,
) -> None:
    """Once EC2 is queried for the hosts, it reports that they are ending."""
    cluster = Controlled(zones=("us-east-1a",), lose=told_by_tasks_alone)
    cluster.world.workload = lambda task, instance: TaskBehaviour(duration_s=300.0, obeys_with=0)
    second_attempts_write(cluster)
    cluster.submit(8, expects_result=True, retryStrategy={"attempts": 1})
    while not cluster.live_instances() or cluster.record().counts[TaskStatus.RUNNING] < 8:
        cluster.step()
    hosts = list(cluster.world.agents)
    for host in hosts:
        for task in list(cluster.world.agents[host].tasks.values()):
            task.kill(SIGTERM_CODE)
    cluster.run_for(cluster.policy.fate_s / 2)
    assert not cluster.record().counts[TaskStatus.RUNNING]
    if restarted:
        cluster.controllers = [cluster.controller()]
        cluster.run_for(cluster.policy.fate_s / 2)
    for host in hosts:
        cluster.world.ec2.lose(host)
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.interruptions, record.attempts) == ("SUCCEEDED", 8, 16)


def test_missing_results_use_up_attempts_where_nothing_has_happened_to_their_hosts() -> None:
    cluster = Controlled(zones=("us-east-1a",), tick_s=5.0)
    cluster.world.workload = lambda task, instance: TaskBehaviour(duration_s=30.0)
    cluster.submit(8, expects_result=True, retryStrategy={"attempts": 1})
    while not cluster.live_instances() or not cluster.record().counts[TaskStatus.VERIFYING]:
        cluster.step()
    ended = cluster.world.now
    while cluster.record().counts[TaskStatus.VERIFYING]:
        cluster.tick()
    apart_s = 15.0  # between the first instance that joins and the last
    assert cluster.policy.fate_s <= cluster.world.now - ended <= 2 * cluster.policy.fate_s + apart_s
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.interruptions, record.counts[TaskStatus.FAILED]) == ("FAILED", 0, 8)


@pytest.mark.parametrize("seed", [19, 20, 41])
def test_seeds_in_which_shutdowns_were_once_booked_on_users(seed: int) -> None:
    verdict = run_trial(TrialPlan(seed, kinds_of("os-shutdown,host-loss,events-lost"), every_kind=True))
    assert verdict.ok, verdict.violations
    assert verdict.seen["os-shutdown"]
