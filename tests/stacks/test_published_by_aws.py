"""What AWS publishes about the services that act on our templates: EC2 Fleet's role, the agent's policy and its
settings.

Managed policies are moto's copies of AWS's own (`moto.iam.aws_managed_policies`, with version and date); the agent's
settings are those of its README (`tests/data/ecs-agent-variables.json`, with version and commit). See
tests/contract/README.md for all sources.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from moto.iam.aws_managed_policies import aws_managed_policies_data

from tests.stacks.templates import Template, text

pytestmark = pytest.mark.stacks

AGENT = json.loads((Path(__file__).resolve().parents[1] / "data/ecs-agent-variables.json").read_text())
# The parts of the agent's policy that our instances' role leaves out, and why.
NOT_FOR_THE_INSTANCE = {
    "ecs:CreateCluster": "the cluster is the stack's",
    "ecr:GetAuthorizationToken": "the execution role pulls",
    "ecr:BatchCheckLayerAvailability": "the execution role pulls",
    "ecr:GetDownloadUrlForLayer": "the execution role pulls",
    "ecr:BatchGetImage": "the execution role pulls",
    "logs:CreateLogStream": "the execution role writes (ECS_ENABLE_AWSLOGS_EXECUTIONROLE_OVERRIDE)",
    "logs:PutLogEvents": "the execution role writes (ECS_ENABLE_AWSLOGS_EXECUTIONROLE_OVERRIDE)",
    "ecs:ListTagsForResource": "only for the tags in a task's metadata, which no run asks for",
    "ec2:DescribeTags": "only for an agent that is told to propagate the tags of its instance, which ours is not",
}


@cache
def managed(name: str) -> list[dict[str, Any]]:
    """The statements of a managed policy."""
    return list(json.loads(aws_managed_policies_data)[name]["Document"]["Statement"])


def launch_data(*templates: Template) -> list[dict[str, Any]]:
    found = [each.of_type("AWS::EC2::LaunchTemplate").values() for each in templates]
    return [each["LaunchTemplateData"] for group in found for each in group]


def test_ec2_fleet_may_set_every_tag_that_a_launch_template_asks_for(home: Template, wide: dict[str, Template]) -> None:
    """EC2 refuses the whole launch otherwise: no instance would ever start."""
    tagging = [each for each in managed("AWSEC2FleetServiceRolePolicy") if "ec2:CreateTags" in each["Action"]]
    allowed = {resource.split(":")[-1].split("/")[0] for each in tagging for resource in each["Resource"]}
    assert allowed == {"instance", "spot-instances-request", "volume"}
    for data in launch_data(home, *wide.values()):
        assert {each["ResourceType"] for each in data["TagSpecifications"]} <= allowed


def granted(template: Template, described: str) -> set[str]:
    """The actions of the inline policies of the roles with these words in their description or name."""
    roles = {id for id, each in template.of_type("AWS::IAM::Role").items() if described in json.dumps(each)}
    found: set[str] = set()
    for each in template.of_type("AWS::IAM::Policy").values():
        if {role.get("Ref") for role in each["Roles"]} & roles:
            statements = each["PolicyDocument"]["Statement"]
            lists = [s["Action"] if isinstance(s["Action"], list) else [s["Action"]] for s in statements]
            found |= {action for actions in lists for action in actions}
    return found


def expanded(actions: set[str]) -> set[str]:
    """`ecs:Submit*` as the three calls that the agent makes under it (ecs-agent/api/ecs/client)."""
    submits = {"ecs:SubmitTaskStateChange", "ecs:SubmitContainerStateChange", "ecs:SubmitAttachmentStateChanges"}
    return {each for action in actions for each in (submits if action == "ecs:Submit*" else {action})}


def test_the_agent_has_every_right_of_awss_policy_but_those_left_out_with_a_reason(home: Template) -> None:
    wanted = expanded(actions_in(managed("AmazonEC2ContainerServiceforEC2Role")))
    ours = expanded(granted(home, "argosy-instance-"))
    assert wanted - ours == NOT_FOR_THE_INSTANCE.keys()


def actions_in(statements: list[dict[str, Any]]) -> set[str]:
    lists = [each["Action"] if isinstance(each["Action"], list) else [each["Action"]] for each in statements]
    return {action for actions in lists for action in actions}


def test_the_execution_role_pulls_and_logs_as_its_own_policy_does(home: Template) -> None:
    assert actions_in(managed("AmazonECSTaskExecutionRolePolicy")) <= granted(home, "argosy-execution")


def settings_of_agents(*templates: Template) -> list[dict[str, str]]:
    scripts = [text(data["UserData"]) for data in launch_data(*templates)]
    return [dict(re.findall(r"^(ECS_[A-Z_]+)=(.*)$", script, re.MULTILINE)) for script in scripts]


def test_every_setting_of_an_agent_is_one_that_it_reads(home: Template, wide: dict[str, Template]) -> None:
    for found in settings_of_agents(home, *wide.values()):
        assert found.keys() - set(AGENT["variables"]) == set()
        assert found["ECS_IMAGE_PULL_BEHAVIOR"] in AGENT["pullBehaviors"]


def test_no_duration_is_below_what_the_agent_accepts(home: Template) -> None:
    """It falls back to its default silently."""
    units = {"s": 1, "m": 60, "h": 3600}
    for found in settings_of_agents(home):
        for name, least in AGENT["leastSeconds"].items():
            assert int(found[name][:-1]) * units[found[name][-1]] >= least
