"""What may a role of the templates do, by an evaluator of IAM policies that is not ours?

The evaluator is iam-simulate, which knows AWS's list of actions, their resources and condition keys, and refuses a
request that AWS could not have received. `make test-engines` fetches it where npm is there.
"""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.stacks.templates import Template, text

JSON = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]
EVALUATOR = ROOT / "build/rights/evaluate.mjs"
ACCOUNT = "123456789012"
NAMES = {"<Partition>": "aws", "<Region>": "us-east-1", "<AccountId>": ACCOUNT}
NEEDED = pytest.mark.skipif(
    not (shutil.which("node") and (EVALUATOR.parent / ".installed").exists()),
    reason="there is no iam-simulate: needs npm",
)


@dataclass(frozen=True)
class Asked:
    """One request as IAM sees it: `ecs:RunTask` of a resource's ARN, with the context keys of the service."""

    action: str
    resource: str = "*"
    context: JSON = field(default_factory=dict)


def policies_of(template: Template, role: str) -> list[JSON]:
    """The identity policies of the role with this logical id, with the names of the default deployment."""
    kinds = ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
    found = [(id, each) for kind in kinds for id, each in template.of_type(kind).items()]
    return [_policy(id, each, template) for id, each in found if {"Ref": role} in each.get("Roles", ())]


def managed(template: Template, name: str) -> list[JSON]:
    """The managed policy with this name, which an owner attaches to users."""
    found = template.of_type("AWS::IAM::ManagedPolicy").items()
    return [_policy(id, each, template) for id, each in found if each.get("ManagedPolicyName") == name]


def _policy(id: str, properties: JSON, template: Template) -> JSON:
    return {"name": id, "policy": _resolved(properties["PolicyDocument"], template)}


def _resolved(value: Any, template: Template) -> Any:
    if isinstance(value, list):
        return [_resolved(each, template) for each in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and next(iter(value)) in ("Ref", "Fn::GetAtt", "Fn::Join", "Fn::Sub"):
        arns = {"<ResultsBucket.Arn>": "arn:aws:s3:::argosy-results"}
        arns |= {f"<{id}.Arn>": f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:{id}:*" for id in template.resources}
        names = {**arns, "<ResultsBucket.Arn>": "arn:aws:s3:::argosy-results", **NAMES}
        return functools.reduce(lambda found, name: found.replace(name, names[name]), names, text(value))
    return {name: _resolved(each, template) for name, each in value.items()}


def results(asked: Sequence[tuple[list[JSON], Asked]]) -> list[str]:
    """Allowed, ImplicitlyDenied or ExplicitlyDenied for each; anything else says why the request is no valid one."""
    lines = [json.dumps(_simulation(policies, each)) for policies, each in asked]
    command = ["node", str(EVALUATOR)]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return [str(json.loads(line)) for line in done.stdout.splitlines()]


def _simulation(policies: list[JSON], asked: Asked) -> JSON:
    resource = {"resource": asked.resource, "accountId": ACCOUNT}
    principal = f"arn:aws:iam::{ACCOUNT}:role/asked"
    request = {"principal": principal, "action": asked.action, "resource": resource, "contextVariables": asked.context}
    return {
        "request": request,
        "identityPolicies": policies,
        "serviceControlPolicies": [],
        "resourceControlPolicies": [],
    }
