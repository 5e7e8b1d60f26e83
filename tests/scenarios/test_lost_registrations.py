"""An instance missing from ECS takes no work, even without a message; one that registers again does."""

from __future__ import annotations

from collections import Counter
from typing import Any

from argosy.model.instances import Instance, InstanceStatus
from argosy.model.runs import RunStatus
from argosy.model.tasks import TaskStatus
from tests.fakes.aws import refusal
from tests.scenarios.controlled import Controlled


def unheard(message: dict[str, Any]) -> bool:
    return "Container Instance" in message["detail-type"] or "EC2" in message["detail-type"]


def at_work(tasks: int = 12, work_s: float = 60.0, **options: Any) -> Controlled:
    cluster = Controlled(zones=("us-east-1a",), work_s=work_s, lose=unheard, max_instances=1, **options)
    cluster.submit(tasks)
    cluster.tick()
    while cluster.record().counts[TaskStatus.RUNNING] < 4:
        cluster.step()
    return cluster


def known(cluster: Controlled) -> Instance:
    state = cluster.controllers[0].state
    assert state is not None
    (instance,) = [each for each in state.instances.values() if each.alive]
    return instance


def registered(cluster: Controlled) -> list[str]:
    return list(cluster.ecs.list_container_instances(cluster=cluster.world.cluster)["containerInstanceArns"])


def deregister(cluster: Controlled) -> None:
    (arn,) = registered(cluster)
    cluster.ecs.deregister_container_instance(cluster=cluster.world.cluster, containerInstance=arn, force=True)


def launch_numbers(cluster: Controlled) -> int:
    return int(cluster.run.tasks["launch"].max())


def test_an_instance_that_was_deregistered_unheard_is_replaced_and_its_run_ends() -> None:
    cluster = at_work()
    (old,) = [instance["InstanceId"] for instance in cluster.live_instances()]
    deregister(cluster)
    began, most = cluster.world.now, 0
    while cluster.record().status != RunStatus.SUCCEEDED:
        cluster.step()
        if cluster.record().status == RunStatus.RUNNING:
            most = max(most, launch_numbers(cluster))
        assert cluster.world.now - began < 2700.0
    assert most <= 20  # it is not asked again in every tick
    cluster.run_to_rest()
    assert old not in [instance["InstanceId"] for instance in cluster.live_instances()]


class Partly:
    """ECS whose listings of container instances show nothing, or break off, on request."""

    def __init__(self, real: Any) -> None:
        self.real, self.blind, self.broken = real, False, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def list_container_instances(self, **request: Any) -> Any:
        if self.broken:
            raise refusal("ServerException", "try again")
        return {"containerInstanceArns": []} if self.blind else self.real.list_container_instances(**request)


def test_what_a_listing_leaves_out_is_disconnected_after_five_minutes_and_put_right_when_it_shows_again() -> None:
    cluster = at_work(work_s=3000.0, sweep_s=30.0)  # if it were idle, it would be released at once
    line = Partly(cluster.ecs)
    cluster.ecs, cluster.controllers = line, [cluster.controller(line)]
    cluster.run_for(400.0)
    line.blind = True
    cluster.run_for(240.0)
    assert known(cluster).placeable  # a listing may lag
    cluster.run_for(150.0)
    assert not known(cluster).placeable
    line.blind = False
    cluster.run_for(60.0)
    assert known(cluster).placeable
    assert len(cluster.world.ec2_client().describe_instances()["Reservations"]) == 1


def test_an_agent_that_registers_again_gets_work_at_once_whatever_its_version() -> None:
    cluster = at_work(200)
    (host,) = cluster.live_instances()
    cluster.run_for(300.0)
    old = known(cluster).arn
    deregister(cluster)
    cluster.run_for(120.0)
    agent = cluster.world.agents[host["InstanceId"]]
    agent.arn = ""  # it has no record of the registration
    agent.reconnect()
    cluster.run_for(150.0)
    assert known(cluster).id == host["InstanceId"]
    assert known(cluster).arn != old
    assert known(cluster).placeable
    assert cluster.controllers[0].state.attempts.on_instance(host["InstanceId"])  # type: ignore[union-attr]


def test_listings_of_container_instances_that_break_off_say_nothing() -> None:
    cluster = at_work(200)
    line = Partly(cluster.ecs)
    cluster.ecs, cluster.controllers = line, [cluster.controller(line)]
    line.broken = True
    cluster.run_for(1500.0)
    assert known(cluster).placeable
    assert known(cluster).status is InstanceStatus.ACTIVE


def test_an_instance_that_refuses_whatever_the_reason_is_left_alone_for_ever_longer() -> None:
    cluster = at_work()
    real, asked, refuses = cluster.ecs, Counter[int](), {"on": True}

    class Refusing:
        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def run_task(self, **request: Any) -> Any:
            if not refuses["on"]:
                return real.run_task(**request)
            asked[int(cluster.world.now)] += 1
            return {"tasks": [], "failures": [{"arn": "arn:x", "reason": "AGENT"}]}

    cluster.controllers = [cluster.controller(Refusing())]
    cluster.run_for(900.0)
    assert len(asked) <= 20  # times at which it was called; a tick takes two seconds
    refuses["on"] = False
    cluster.run_for(310.0)
    assert known(cluster).refusals == 0
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
