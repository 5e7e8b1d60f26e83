"""`argosy access`: rights on a queue, and commands through its entrance."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.cli import RUN_ID, World, api_error, refusal, run_view
from tests.fakes.sharing import sharing

ARN = "arn:aws:lambda:us-east-1:123456789012:function:argosy-api:q-research"


@pytest.fixture
def world() -> World:
    return World().answers("DescribeSharing", sharing())


def test_an_entrance_is_made_once_and_its_policy_is_printed(world: World) -> None:
    first = world.argosy("access", "research")
    assert first.exit_code == 0, first.output
    assert "The queue research now has an entrance." in first.stdout
    assert "Attach argosy-member and this policy" in first.stdout
    policy = json.loads(first.stdout[first.stdout.index("{") : first.stdout.rindex("}") + 1])
    assert policy["Statement"] == [{"Effect": "Allow", "Action": "lambda:InvokeFunction", "Resource": ARN}]
    assert "already had an entrance" in world.argosy("access", "research").stdout
    assert world.document("access", "research") == {
        "queue": "research",
        "aliasArn": ARN,
        "created": False,
        "managedPolicy": "argosy-member",
        "policy": policy,
    }


def test_an_entrance_to_an_old_version_is_repaired(world: World) -> None:
    world.argosy("access", "research")
    alias = world.functions.aliases["q-research"]
    for wrong in ({"FunctionVersion": "7"}, {"RoutingConfig": {"AdditionalVersionWeights": {"7": 0.5}}}):
        alias |= wrong
        assert world.argosy("access", "research").exit_code == 0
        assert (alias["FunctionVersion"], alias["RoutingConfig"]) == ("$LATEST", {})


def test_a_queue_that_is_not_there_gets_none(world: World) -> None:
    result = world.argosy("access", "sales")
    assert result.exit_code == 2
    assert "There is no queue sales; the queues are: default, night, research." in result.stderr
    assert not world.functions.aliases


def test_entrances_are_listed_and_removed(world: World) -> None:
    assert "No queue has an entrance" in world.argosy("access").stdout
    for queue in ("research", "night"):
        world.argosy("access", queue)
    world.functions.aliases["q-gone"] = {"Name": "q-gone", "AliasArn": "arn-gone", "FunctionVersion": "$LATEST"}
    world.functions.aliases["live"] = {"Name": "live", "AliasArn": "arn-live", "FunctionVersion": "$LATEST"}
    rows = [line.split()[0] for line in world.argosy("access").stdout.splitlines()]
    assert rows == ["QUEUE", "gone", "night", "research"]
    assert world.document("access")["entrances"][0] == {"queue": "gone", "aliasArn": "arn-gone", "exists": False}
    assert "has an entrance. Its runs keep running." in world.argosy("access", "gone", "--remove").stdout
    assert "had no entrance" in world.argosy("access", "gone", "--remove").stdout
    assert world.document("access", "night", "--remove") == {"queue": "night", "removed": True}
    assert set(world.functions.aliases) == {"q-research", "live"}
    assert "Name the queue" in world.argosy("access", "--remove").stderr


def test_a_refusal_by_lambda_is_reported(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(**_: Any) -> Any:
        raise refusal("AccessDeniedException", "not you", "CreateAlias")

    monkeypatch.setattr(world.functions, "create_alias", denied)
    result = world.argosy("access", "research")
    assert (result.exit_code, "not you" in result.stderr) == (3, True)


@pytest.mark.parametrize(("words", "shell"), [(("--as-queue", "research"), {}), ((), {"ARGOSY_QUEUE": "research"})])
def test_every_command_comes_through_the_entrance_that_is_named(
    world: World, words: tuple[str, ...], shell: dict[str, str]
) -> None:
    world.argosy("access", "research")
    world.answers("DescribeRun", run_view())
    assert world.argosy("status", RUN_ID, *words, **shell).exit_code == 0
    assert world.functions.qualifiers[-1] == "q-research"
    assert world.argosy("status", RUN_ID).exit_code == 0
    assert world.functions.qualifiers[-1] == ""


def test_a_next_step_comes_through_the_same_entrance(world: World) -> None:
    world.argosy("access", "night")
    world.answers("ScaleCluster", {"floor": None})
    assert (
        "next: argosy cluster --as-queue night" in world.argosy("cluster", "scale", "0", "--as-queue", "night").stdout
    )
    told = world.argosy("cluster", "scale", "0", "--as-queue", "", ARGOSY_QUEUE="night").stdout
    assert "next: argosy cluster --as-queue ''" in told


def test_a_missing_entrance_is_reported_with_the_command_that_creates_it(world: World) -> None:
    result = world.argosy("queues", "--as-queue", "research")
    assert result.exit_code == 2
    assert "argosy-api has no entrance for the queue research." in result.stderr
    assert "next: its owner creates one with `argosy access research`" in result.stderr
    bad = world.argosy("queues", "--as-queue", "no queue")
    assert (bad.exit_code, "'no queue' is not a name of a queue." in bad.stderr) == (2, True)


def test_a_refusal_at_the_entrance_is_the_users_fault(world: World) -> None:
    world.answers("CancelRun", api_error(403, "AccessDeniedException", "the run x belongs to the queue prod"))
    result = world.argosy("cancel", RUN_ID)
    assert (result.exit_code, "the run x belongs to the queue prod" in result.stderr) == (2, True)
