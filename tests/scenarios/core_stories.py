"""Twelve stories that have to end well under every reading of AWS's contracts (`argosy.emulator.readings`)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from argosy.aws import teardown
from argosy.model.inbox import EnvironmentRequest, ScaleRequest
from argosy.model.runs import RunStatus
from argosy.model.services.environments import DeploymentStatus
from argosy.spec.parse import parse_spec, to_json
from tests.builders import RUN_ID, submit_request
from tests.fakes.ending import cell, deleting
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled, index_of
from tests.scenarios.services import FOR_EVER_S, ask, deploy, form, running, status, until

Story = Callable[[Collection[str]], Controlled]
STORIES: dict[str, Story] = {}
ONE, TWO = ("us-east-1a",), ("us-east-1a", "us-east-1b")
SLOW_S = 3_000.0  # a queue that sleeps for 20 minutes, and patience before it


def story(tell: Story) -> Story:
    """Tells it and checks that it ends well; the result is the world, in which nothing costs money any more."""
    STORIES[tell.__name__] = tell
    return tell


def world(readings: Collection[str], zones: tuple[str, ...] = ONE, work_s: float = 60.0, **policy: Any) -> Controlled:
    cluster = Controlled(zones=zones, work_s=work_s, linger_s=30.0, cool_down_s=0.0, **policy)
    cluster.world.readings |= set(readings)
    return cluster


def ended(cluster: Controlled, run_status: RunStatus = RunStatus.SUCCEEDED) -> Controlled:
    cluster.run_to_rest()
    assert cluster.record(RUN_ID).status == run_status
    return cluster


@story
def a_run_to_its_end(readings: Collection[str]) -> Controlled:
    cluster = world(readings)
    cluster.submit(12)
    return ended(cluster)


@story
def an_interruption(readings: Collection[str]) -> Controlled:
    cluster = world(readings, TWO, work_s=200.0)
    cluster.submit(4)
    cluster.run_for(360.0)  # under docker-restart-blocks an instance joins late
    for instance in cluster.live_instances():
        cluster.world.interrupt(instance["InstanceId"])
    return ended(cluster)


@story
def a_teardown_in_the_middle(readings: Collection[str]) -> Controlled:
    cluster = world(readings, TWO, work_s=3_600.0)
    cluster.submit(6)
    cluster.submit(3, "on-demand-270115-080000-abcd", capacity={"purchase": "on-demand"})
    cluster.run_for(100.0)
    assert cluster.live_instances()
    there, event = cell(ec2=lambda region: cluster.world.ec2_client()), deleting(cluster.world.now)
    end = cluster.world.now + 600.0
    while not teardown.complete(event, there, cluster.world.now, deadline=0.0, clock=lambda: 0.0):
        cluster.pass_time(10.0)
        assert cluster.world.now < end, "the stack's deletion never completes"
    assert not cluster.live_instances()
    return cluster


@story
def a_service_with_an_on_demand_base_and_a_rollout(readings: Collection[str]) -> Controlled:
    cluster = world(readings, work_s=FOR_EVER_S)
    for revision in (1, 2):
        deploy(cluster, revision, form(3, "serve" * revision, {"onDemandBase": 1}, healthySeconds=5))
        until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED, SLOW_S)
    assert sum(running(cluster).values()) == 3
    purchases = {each.get("InstanceLifecycle", "") for each in cluster.live_instances()}
    assert purchases == {"", "spot"}
    return deleted(cluster)


def deleted(cluster: Controlled) -> Controlled:
    ask(cluster, "delete")
    cluster.run_to_rest()
    return cluster


@story
def a_service_that_is_scaled_and_replaced_in_place(readings: Collection[str]) -> Controlled:
    """Its tasks fill the instance, so that a new one needs the room of one that stops."""
    cluster = world(readings, work_s=FOR_EVER_S, max_instances=1)
    for revision in (1, 2):
        spec = form(8, "serve" * revision, minHealthyPercent=50, maxOverPercent=0, healthySeconds=5)
        deploy(cluster, revision, spec)
        until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED, SLOW_S)
    ask(cluster, "scale", desired=2)
    until(cluster, lambda: sum(running(cluster).values()) == 2)
    return deleted(cluster)


@story
def a_cancelled_run(readings: Collection[str]) -> Controlled:
    cluster = world(readings, work_s=3_600.0)
    cluster.submit(6)
    cluster.run_for(300.0)
    cluster.cancel()
    return ended(cluster, RunStatus.CANCELLED)


@story
def a_retry_after_lost_instances(readings: Collection[str]) -> Controlled:
    cluster = world(readings, TWO)
    cluster.world.workload = lambda task, at: TaskBehaviour(100.0, exit_code=int(index_of(task) == 1))
    cluster.submit(4, retryStrategy={"attempts": 1})
    cluster.run_for(290.0)
    for instance in cluster.live_instances():
        cluster.world.ec2.lose(instance["InstanceId"])
    ended(cluster, RunStatus.PARTIAL)
    cluster.world.workload = lambda task, at: TaskBehaviour(100.0)
    cluster.retry()
    return ended(cluster)


@story
def a_floor_that_is_moved(readings: Collection[str]) -> Controlled:
    cluster = world(readings)
    for wanted in (3, 1, 0):
        cluster.put(ScaleRequest(cluster.world.now, wanted, (), 0.0), f"cluster#scale#{wanted}")
        cluster.run_for(400.0)
        assert len(cluster.live_instances()) == wanted
    cluster.run_to_rest()
    return cluster


@story
def a_daemon_beside_a_run(readings: Collection[str]) -> Controlled:
    cluster = world(readings)
    cluster.world.workload = lambda task, at: TaskBehaviour(FOR_EVER_S if task["group"].startswith("env:") else 300.0)
    spec = to_json(
        parse_spec(
            {
                "version": 1, "kind": "daemon", "name": "web", "daemon": {},
                "container": {"image": "argosy/web", "command": ["watch"]},
                "resources": {"vcpus": 0.5, "memory": 256},
            }
        )
    )  # fmt: skip
    run_id, now = "web-270115-080001-k3f9", cluster.world.now
    submit = submit_request(run_id, now, spec, 1, "argosy/web", "s3://results/w/", False)
    cluster.put(EnvironmentRequest("web", cluster.world.now, "create", revision=1, is_daemon=True), "web#create")
    cluster.put(EnvironmentRequest("web", cluster.world.now, "deploy", revision=1, token="t", submit=submit), "web#go")
    cluster.submit(2)
    until(cluster, lambda: sum(running(cluster).values()) == 3)
    return ended(cluster)


@story
def two_pools_without_capacity_or_quota(readings: Collection[str]) -> Controlled:
    cluster = world(readings, TWO)
    cluster.world.ec2.set_shortage("c5.xlarge/us-east-1a", 0)
    cluster.world.ec2.set_spot_quota("Standard", 8)
    cluster.submit(16)
    return ended(cluster)


@story
def a_budget(readings: Collection[str]) -> Controlled:
    cluster = world(readings, work_s=1_000.0)
    cluster.submit(40, capacity={"budgetUsd": 0.05})
    cluster.run_to_rest()
    record = cluster.record(RUN_ID)
    assert record.status in (RunStatus.PARTIAL, RunStatus.FAILED)
    return cluster


@story
def a_pull_longer_than_usual(readings: Collection[str]) -> Controlled:
    cluster = world(readings)
    cluster.world.workload = lambda task, at: TaskBehaviour(30.0, pull_s=900.0)
    cluster.submit(4)
    ended(cluster)
    assert cluster.record().attempts == 4
    return cluster


def spent_nothing_more(cluster: Controlled) -> bool:
    """Whether nothing lives, no fleet would launch anything, and no order is open."""
    state = cluster.controllers[0].state
    orders = [pool for pool in state.pools.values() if pool.on_demand_count] if state else []
    fleets = [each for each in cluster.world.ec2.ledger.fleets.values() if each.is_live and each.total_target]
    return not (cluster.live_instances() or fleets or orders)
