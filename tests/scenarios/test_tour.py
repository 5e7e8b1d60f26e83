"""The tour of services in virtual time: a cluster of 1, 2, 10 and no instances, and tasks that follow each change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from argosy.model.inbox import ScaleRequest
from argosy.model.services.environments import DeploymentStatus
from argosy.spec.parse import parse_spec, to_json
from tests.scenarios.controlled import Controlled
from tests.scenarios.services import ask, deploy, form, running, service, state_of, status

MOST_S, MOST_OF_A_DEPLOYMENT_S = 120.0, 100.0


def one_on_each(command: str) -> dict[str, object]:
    spec = {name: value for name, value in form(0, command, healthySeconds=5).items() if name in KEPT}
    spec |= {"placement": {"constraints": ["distinctInstance"]}}
    return to_json(parse_spec(spec))


KEPT = ("version", "kind", "name", "container", "resources", "service")


def scaled(cluster: Controlled, instances: int) -> None:
    cluster.put(ScaleRequest(cluster.world.now, instances), f"cluster#scale#{cluster.world.now}")
    ask(cluster, "scale", desired=instances)


def seconds_until(cluster: Controlled, holds: Callable[[], bool]) -> float:
    began = cluster.world.now
    cluster.tick()
    while not holds():
        cluster.tick()
        assert cluster.world.now - began < 900.0
    return cluster.world.now - began


def spread_over(cluster: Controlled, instances: int) -> bool:
    """A task runs on each of that many instances, and there are no others."""
    state = state_of(cluster)
    on = Counter(bytes(state.attempts["instance"][row]).decode() for row in state.attempts.live().tolist())
    alone = sorted(on.values()) == [1] * instances
    return alone and sum(running(cluster).values()) == instances == len(cluster.live_instances())


def deployed(cluster: Controlled, number: int) -> bool:
    deployments = state_of(cluster).environments["web"].deployments
    return len(deployments) == number and status(cluster) is DeploymentStatus.COMPLETED


def test_tasks_follow_a_cluster_of_one_two_ten_and_none_and_a_deployment_takes_less_than_100_seconds() -> None:
    cluster = service(zones=("us-east-1a",), linger_s=60.0, cool_down_s=60.0, tick_s=5.0)
    deploy(cluster, 1, one_on_each("serve"))
    for size in (1, 2, 10):
        scaled(cluster, size)
        assert seconds_until(cluster, lambda size=size: spread_over(cluster, size)) <= MOST_S  # type: ignore[misc]
    deploy(cluster, 2, {**one_on_each("again"), "service": {"desired": 0, "update": {"healthySeconds": 5}}})
    assert seconds_until(cluster, lambda: deployed(cluster, 2)) <= MOST_OF_A_DEPLOYMENT_S
    scaled(cluster, 0)
    assert seconds_until(cluster, lambda: not cluster.live_instances()) <= MOST_S
    ask(cluster, "delete")
    cluster.run_to_rest()
    assert not state_of(cluster).environments
