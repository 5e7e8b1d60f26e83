"""Does each function hold the rights for the calls in its code, and no others? Both ways, from the sources.

A call is an attribute or a text that names an operation of the service in botocore's own model. For the api, which uses
a part of the store only, the methods that it calls are followed.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import botocore.session
import pytest
from aws_cdk import aws_iam as iam
from botocore import xform_name

from argosy.settings.settings import SHIPPED_FAMILIES, Settings
from stacks import grants

pytestmark = pytest.mark.stacks

AWS = Path(__file__).resolve().parents[2] / "controller" / "argosy" / "aws"
ARNS, BUCKET = grants.Arns(Settings(), "aws", "123456789012"), "arn:aws:s3:::results"
# Where an operation's right has another name, or needs more than one.
RIGHTS = {
    "dynamodb:transact_write_items": (),  # those of the writes in it
    "lambda:invoke": ("lambda:InvokeFunction",),
    "sqs:delete_message_batch": ("sqs:DeleteMessage",),
    "s3:head_object": ("s3:GetObject",),
    "s3:list_objects_v2": ("s3:ListBucket",),
    "s3:list_object_versions": ("s3:ListBucketVersions",),
    "s3:delete_objects": ("s3:DeleteObject", "s3:DeleteObjectVersion"),
}
WRITES = {"Put": "dynamodb:PutItem", "Update": "dynamodb:UpdateItem", "Delete": "dynamodb:DeleteItem"}
# Rights that AWS asks for something else than a call of their name; each is explained where it is granted.
WITHOUT_A_CALL = {"iam:PassRole", "ecs:TagResource", "s3:ListBucket"}

CONTROLLER_ONLY_LEAVES_OUT = {"teardown", "watchdog", "shutdown", "images"}


def parsed(name: str) -> ast.Module:
    return ast.parse((AWS / f"{name}.py").read_text())


@cache
def operations(service: str) -> dict[str, str]:
    """Method name -> operation."""
    model = botocore.session.get_session().get_service_model(service)
    return {xform_name(name): name for name in model.operation_names}


def words(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute):
            yield each.attr
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value


def methods(tree: ast.Module, entries: Iterable[str]) -> Iterator[ast.AST]:
    """The functions of a module that can be reached from those named."""
    known = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    waiting, seen = [name for name in entries if name in known], set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        yield known[name]
        waiting += [word for word in words(known[name]) if word in known and word.startswith("_")]


def needed(nodes: Iterable[ast.AST], services: Iterable[str]) -> set[str]:
    rights: set[str] = set()
    for node in nodes:
        said = set(words(node))
        for service in services:
            for method in said & operations(service).keys():
                rights |= set(RIGHTS.get(f"{service}:{method}", (f"{service}:{operations(service)[method]}",)))
        if "dynamodb" in services:
            rights |= {right for word, right in WRITES.items() if word in said}
    return rights


def granted(statements: Iterable[iam.PolicyStatement]) -> set[str]:
    return {action for statement in statements for action in statement.actions}


def assert_exact(statements: list[iam.PolicyStatement], calls: set[str]) -> None:
    rights = granted(statements)
    assert calls - rights == set(), "calls without a right"
    assert rights - calls - WITHOUT_A_CALL == set(), "rights without a call"


def used_of(ports: str, *rooms: str) -> set[str]:
    """The methods of a port of `ports.py` that modules or packages of argosy use."""
    tree = ast.parse((AWS.parent / "ports.py").read_text())
    (port,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == ports]
    offered = {node.name for node in port.body if isinstance(node, ast.FunctionDef)}
    paths = [
        path for room in rooms for path in ([AWS.parent / room] if "." in room else (AWS.parent / room).rglob("*.py"))
    ]
    return {word for path in paths for word in words(ast.parse(path.read_text())) if word in offered}


@pytest.mark.parametrize("placement_scores", [False, True])
def test_the_controller_has_the_rights_for_its_calls_and_no_others(placement_scores: bool) -> None:
    """Placement scores are asked for only where the owner says so, and the right is given only there."""
    left_out = CONTROLLER_ONLY_LEAVES_OUT | (set() if placement_scores else {"placement_scores"})
    trees = {path.stem: parsed(path.stem) for path in AWS.glob("*.py") if path.stem not in left_out}
    wake = list(methods(trees.pop("wake"), used_of("Wake", "engine")))
    calls = needed([*trees.values(), *wake], ["dynamodb", "sqs", "events", "ecs", "ec2", "s3", "lambda"])
    arns = grants.Arns(Settings(placement_scores=placement_scores), "aws", "123456789012")
    assert_exact(grants.controller(arns, BUCKET), calls)


def test_the_api_has_the_rights_for_its_calls_and_no_others() -> None:
    store = methods(parsed("dynamodb"), used_of("Store", "api", "engine/loading.py"))
    wake = methods(parsed("wake"), {*used_of("Wake", "api"), "stay"})
    items = methods(parsed("items"), ["read_items", "fetch"])
    nodes = [*store, *wake, *items, parsed("images"), parsed("definitions")]
    assert_exact(grants.api(ARNS, BUCKET), needed(nodes, ["dynamodb", "lambda", "events", "ssm", "s3", "ecs"]))


def test_the_controller_may_run_the_families_that_the_owner_allows_and_no_others() -> None:
    arns = grants.Arns(Settings(cells=("eu-west-1",), task_definitions=("train-*",)), "aws", "123456789012")
    [run] = [each for each in grants.controller(arns, BUCKET) if "ecs:RunTask" in each.actions]
    start = "arn:aws:ecs:eu-west-1:123456789012:task-definition/"
    own = [f"{start}{glob}:*" for glob in ("argosy-*", *SHIPPED_FAMILIES, "train-*")]
    assert sorted(run.resources) == sorted(own)


def test_the_families_of_the_images_are_those_that_their_folders_define() -> None:
    files = (AWS.parents[2] / "containers").glob("*/task-definitions.json")
    assert set(SHIPPED_FAMILIES) == {family for path in files for family in json.loads(path.read_text())}


def test_the_watchdog_has_the_rights_for_its_calls_and_no_others() -> None:
    calls = needed([parsed("watchdog"), parsed("shutdown")], ["dynamodb", "ec2"])
    assert_exact(grants.watchdog(ARNS), calls)


def test_the_teardown_has_the_rights_for_its_calls_and_no_others() -> None:
    calls = needed([parsed("teardown"), parsed("shutdown")], ["dynamodb", "events", "ecs", "ec2", "s3"])
    assert_exact(grants.teardown(ARNS, "us-east-1", BUCKET), calls)
