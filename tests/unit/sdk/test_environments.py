"""Services from a program."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import yaml

import argosy
from argosy.client.waiting import AWS_INTERVAL_S
from tests.fakes.cli import World, api_error
from tests.fakes.environments import RUN, SERVICE, created, deploying, deployment, environment
from tests.fakes.sdk import client_of

SPEC: dict[str, Any] = yaml.safe_load(SERVICE)
INVALID = api_error(400, "ValidationException", "1 field is invalid", ("container.image", "is unknown"))


def sent(world: World) -> dict[str, Any]:
    return dict(world.functions.requests[-1])


def seen(*latest: dict[str, Any]) -> dict[str, Any]:
    return environment(deployments=[deployment(1), *latest])


def test_creating_stores_a_revision_and_starts_nothing() -> None:
    world = World().answers("CreateEnvironment", {"name": "web", "revision": 1, "warnings": ["mind this"]})
    stored = client_of(world).environments.create(SPEC)
    assert sent(world) == {"action": "CreateEnvironment", "spec": SPEC}
    assert (stored.environment, stored.number, stored.created) == ("web", 1, True)
    assert stored.warnings == ("mind this",)


def test_an_update_is_based_on_the_newest_revision_or_on_the_given_one() -> None:
    same = {"name": "web", "revision": 4, "created": False, "warnings": []}
    world = World().answers("DescribeEnvironment", environment(latestRevision=4)).answers("UpdateEnvironment", same)
    environments = client_of(world).environments
    assert not environments.update(SPEC).created
    assert sent(world) == {"action": "UpdateEnvironment", "name": "web", "baseRevision": 4, "spec": SPEC}
    environments.update(SPEC, base=2)
    assert sent(world)["baseRevision"] == 2
    assert [each["action"] for each in world.functions.requests].count("DescribeEnvironment") == 1


def test_faults_of_the_spec_are_an_invalid_spec() -> None:
    with pytest.raises(argosy.InvalidSpec, match="is unknown"):
        client_of(World().answers("CreateEnvironment", INVALID)).environments.create(SPEC)


def test_an_environment_says_how_it_is_doing() -> None:
    world = World().answers("DescribeEnvironment", environment()).answers("ListEnvironments", {"environments": []})
    environments = client_of(world).environments
    web = environments.show("web")
    assert (web.name, web.status, web.reason, web.target) == ("web", "COMPLETED", None, 1)
    assert (web.desired, web.healthy, web.cost) == (3, 3, 0.25)
    [first], [deployed] = web.revisions, web.deployments
    assert (first.number, first.run_id, first.healthy, first.running) == (1, RUN, 3, 3)
    assert (deployed.number, deployed.status, deployed.is_rollback) == (1, "COMPLETED", False)
    assert deployed.ended_at is not None
    assert (deployed.ended_at - deployed.started_at).total_seconds() == 30
    assert repr(web) == "<argosy environment web COMPLETED 3/3 healthy>"
    assert environments.all("we") == []
    assert sent(world) == {"action": "ListEnvironments", "prefix": "we"}


def test_one_that_was_never_deployed_has_no_target() -> None:
    assert client_of(World().answers("DescribeEnvironment", created())).environments.show("web").target is None


def test_one_that_is_not_there_is_an_error_that_says_what_to_type() -> None:
    world = World().answers("DescribeEnvironment", api_error(404, "ResourceNotFoundException", "no such environment"))
    with pytest.raises(argosy.ArgosyError, match="no such environment") as refused:
        client_of(world).environments.show("web")
    assert "argosy env list" in refused.value.__notes__[0]


def test_changes_are_a_call_each() -> None:
    world = World()
    for action in ("ScaleEnvironment", "FreezeEnvironment", "ThawEnvironment", "StopDeployment", "DeleteEnvironment"):
        world.answers(action, environment())
    environments = client_of(world).environments
    assert environments.scale("web", 5).name == "web"
    assert sent(world) == {"action": "ScaleEnvironment", "name": "web", "desired": 5}
    environments.freeze("web", "a look")
    assert sent(world) == {"action": "FreezeEnvironment", "name": "web", "reason": "a look"}
    environments.freeze("web")
    assert not sent(world).get("reason")
    environments.thaw("web")
    environments.stop("web")
    environments.delete("web")
    assert sent(world) == {"action": "DeleteEnvironment", "name": "web"}
    environments.delete("web", leave_tasks=True)
    assert sent(world) == {"action": "DeleteEnvironment", "name": "web", "tasks": "leave"}


def test_a_deployment_is_begun_once_for_a_token_and_waited_for_later() -> None:
    world = World().answers("StartDeployment", deploying(2))
    world.answers("DescribeEnvironment", seen(), seen(deployment(2, 2, "IN_PROGRESS")), seen(deployment(2, 2)))
    begun = client_of(world).environments.deploy("web", 2, client_token="mine")
    assert sent(world) == {"action": "StartDeployment", "name": "web", "revision": 2, "clientToken": "mine"}
    assert (begun.environment, begun.revision, begun.status, begun.has_ended) == ("web", 2, "PENDING", False)
    assert begun.refresh().status == "PENDING"
    assert begun.wait().status == "COMPLETED"
    assert begun.has_ended
    assert world.slept == [AWS_INTERVAL_S]
    assert repr(begun) == "<argosy deployment of web, revision 2: COMPLETED>"


def test_a_roll_back_is_waited_for_at_once() -> None:
    world = World().answers("RollBackDeployment", deploying(1))
    world.answers("DescribeEnvironment", seen(deployment(2, 1)))
    assert client_of(world).environments.rollback("web", wait=True).status == "COMPLETED"


def failing() -> World:
    failed = deployment(2, 2, "FAILED", reason="3 of its tasks failed")
    back = deployment(3, 1, reason="deployment 2 failed", isRollback=True)
    world = World().answers("StartDeployment", deploying(2))
    return world.answers("DescribeEnvironment", seen(failed, {**back, "status": "IN_PROGRESS"}), seen(failed, back))


def test_a_deployment_that_fails_is_raised_once_its_roll_back_has_ended() -> None:
    with pytest.raises(argosy.DeploymentFailed) as failed:
        client_of(failing()).environments.deploy("web", wait=True)
    assert str(failed.value).splitlines() == [
        "Deployment 2 of web to revision 2: FAILED: 3 of its tasks failed",
        "  deployment 3 to revision 1: COMPLETED: deployment 2 failed",
    ]
    assert failed.value.__notes__ == ["next: `argosy env status web` shows its runs"]
    assert [each.number for each in failed.value.deployment.deployments] == [2, 3]


def test_one_that_fails_is_no_error_where_it_is_not_to_be_checked() -> None:
    assert client_of(failing()).environments.deploy("web").wait(check=False).status == "FAILED"


def test_an_asynchronous_program_awaits_it() -> None:
    async def program() -> Any:
        return await client_of(failing()).environments.deploy("web")

    with pytest.raises(argosy.DeploymentFailed):
        asyncio.run(program())


def test_a_wait_that_is_too_long_says_what_continues() -> None:
    world = World().answers("StartDeployment", deploying(2))
    world.answers("DescribeEnvironment", seen(deployment(2, 2, "WAITING")))
    with pytest.raises(argosy.WaitTimedOut, match="Revision 2 of web was still being deployed after 5 s"):
        client_of(world).environments.deploy("web", wait=True, timeout=5)
