"""Can the grants of our roles take effect at AWS? Checked against AWS's own list of actions, resources and conditions.

`tests/data/service-authorization.json` is the part of the Service Authorization Reference that our actions are in. A
right on a resource or under a condition that an action does not support is no right at all, and that shows only when
the first call is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.stacks.templates import Statement, Template

pytestmark = pytest.mark.stacks

DATA = Path(__file__).resolve().parents[1] / "data" / "service-authorization.json"
# Granted on "*" although the action supports resources, each with the reason.
EVERYWHERE = {
    "ecs:ListTasks",  # the cluster is a condition, as in ECS's own example
    "ecs:RegisterTaskDefinition",  # the name is the hash of the content; PassRole decides the roles of a definition
}
# Resource types that the reference calls optional, but that a call needs whenever the fleet has one.
ASKED_FOR_TOO = {
    "ec2:ModifyFleet": {"image", "launch-template", "subnet"},
    "ec2:CreateFleet": {"image", "launch-template", "subnet", "volume"},
    "ec2:RunInstances": {"launch-template", "volume"},
}


@cache
def actions() -> dict[str, Any]:
    return dict(json.loads(DATA.read_text())["actions"])


def ours(home: Template, wide: dict[str, Template]) -> Iterator[Statement]:
    """But for what CDK's provider framework grants itself."""
    for template in (home, *wide.values()):
        yield from (each for each in template.statements() if "Provider" not in each.policy)


def types_of(action: str, resource: str) -> set[str]:
    """The action's resource types that an ARN of a policy, perhaps with wildcards, may match."""
    known = actions()[action]["resources"]
    return {name for name, kind in known.items() if _may_be(kind["arn"], resource)}


def _may_be(arn: str, resource: str) -> bool:
    """arn: AWS's `arn:${Partition}:ecs:${Region}:${Account}:task/${ClusterName}/${TaskId}`."""
    if not resource.startswith("arn:") or (arn.endswith(":${BucketName}") and "/" in resource):
        return False  # "*", a reference, or an object, for a bucket's name has no slash
    parts = zip(re.sub(r"\$\{\w+\}", "*", arn).split(":", 5), resource.split(":", 5), strict=True)
    return all(_meet(one, other) for one, other in parts)


@cache
def _meet(one: str, other: str) -> bool:
    """Whether some text fits both, where * matches anything."""
    if not one or not other:
        return set(one + other) <= {"*"}
    if one[0] == "*":
        return _meet(one[1:], other) or _meet(one, other[1:])
    if other[0] == "*":
        return _meet(one, other[1:]) or _meet(one[1:], other)
    return one[0] == other[0] and _meet(one[1:], other[1:])


def test_every_action_exists_and_every_resource_is_of_a_kind_that_it_accepts(
    home: Template, wide: dict[str, Template]
) -> None:
    found = 0
    for statement in ours(home, wide):
        for action in statement.actions:
            assert action in actions(), f"{action} is no action of AWS, or new: add it to {DATA.name}"
            for resource in statement.resources:
                if resource == "*":
                    assert not actions()[action]["resources"] or action in EVERYWHERE, action
                elif not resource.startswith("<"):  # a reference to a resource of the same stack
                    assert types_of(action, resource), f"{action} knows nothing like {resource}"
                found += 1
    assert found > 200


def test_every_condition_is_one_that_the_action_accepts(home: Template, wide: dict[str, Template]) -> None:
    for statement in ours(home, wide):
        keys = {key for operator in statement.conditions.values() for key in operator}
        for action in statement.actions:
            for resource in statement.resources:
                matched = [actions()[action]["resources"][name] for name in types_of(action, resource)]
                known = {key for kind in matched for key in kind["conditionKeys"]} | set(
                    actions()[action]["conditionKeys"]
                )
                general = {re.sub(r"^(aws:(Resource|Request)Tag)/.*", r"\1/${TagKey}", key) for key in keys}
                assert general <= known, f"{action} on {resource}: {general - known}"


def test_every_role_has_its_actions_on_all_kinds_of_resources_that_aws_asks_for(
    home: Template, wide: dict[str, Template]
) -> None:
    for template in (home, *wide.values()):
        of_role: dict[str, list[Statement]] = {}
        for each in template.statements():  # of a role with many rights, CDK puts some into a second policy
            of_role.setdefault(re.split("DefaultPolicy|OverflowPolicy", each.policy)[0], []).append(each)
        for policy, mine in of_role.items():
            if "Provider" in policy:
                continue
            for action in {action for each in mine for action in each.actions} - EVERYWHERE:
                kinds = actions()[action]["resources"]
                asked = {name for name, kind in kinds.items() if kind["required"]} | ASKED_FOR_TOO.get(action, set())
                granted = {resource for each in mine if action in each.actions for resource in each.resources}
                if any(resource.startswith("<") for resource in granted):
                    continue
                covered = {name for resource in granted for name in types_of(action, resource)}
                assert asked <= covered, f"{policy}: {action} is granted on no {asked - covered}"


def test_a_fleet_that_is_not_ours_is_protected_whatever_else_modify_fleet_may_touch(
    home: Template, wide: dict[str, Template]
) -> None:
    """Image and subnet are granted without a condition, because they need not carry our tag; the fleet never is."""
    seen = set()
    for statement in ours(home, wide):
        if "ec2:ModifyFleet" in statement.actions:
            kinds = {name for resource in statement.resources for name in types_of("ec2:ModifyFleet", resource)}
            tagged = "aws:ResourceTag/argosy:stage" in statement.conditions.get("StringEquals", {})
            assert tagged == ("fleet" in kinds), kinds
            seen |= kinds
    assert seen == {"fleet", "image", "launch-template", "subnet"}
