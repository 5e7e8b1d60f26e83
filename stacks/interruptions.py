"""Spot notices on command (`argosy interrupt`): the role of their experiments, and the rights of those who start them.

AWS's Fault Injection Service acts with a role, which may only interrupt instances with our tag. Users may make, start
and delete experiments with our tag, none of others, and hand them this role and no other.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from argosy.settings.settings import Settings
from stacks import grants, nag
from stacks.grants import Arns, allow

SERVICE, ROLE = "fis.amazonaws.com", "interrupt"
ACTION = "aws:ec2:send-spot-instance-interruptions"


def interrupter(arns: Arns) -> list[iam.PolicyStatement]:
    """For the experiments."""
    return [
        allow(["ec2:DescribeInstances"], ["*"]),  # takes no resource
        allow(["ec2:SendSpotInstanceInterruptions"], arns.everywhere("ec2", "instance/*"), StringEquals=_ours(arns)),
    ]


def users(arns: Arns) -> list[iam.PolicyStatement]:
    """For users, where the owner allows it."""
    if not arns.settings.allow_interrupt:
        return []
    templates, experiments = (arns.everywhere("fis", f"{name}/*") for name in ("experiment-template", "experiment"))
    tagged: dict[str, str | list[str]] = {"aws:RequestTag/argosy:stage": arns.settings.stage}
    return [
        allow(["fis:CreateExperimentTemplate"], arns.everywhere("fis", f"action/{ACTION}")),
        allow(["fis:CreateExperimentTemplate", "fis:TagResource"], templates, StringEquals=tagged),
        allow(["fis:StartExperiment", "fis:DeleteExperimentTemplate"], templates, StringEquals=_ours(arns)),
        allow(["fis:StartExperiment", "fis:TagResource"], experiments, StringEquals=tagged),
        allow(["fis:GetExperiment"], experiments, StringEquals=_ours(arns)),
        allow(["iam:PassRole"], [arns.role(ROLE)], StringEquals={"iam:PassedToService": SERVICE}),
    ]


def _ours(arns: Arns) -> dict[str, str | list[str]]:
    return {"aws:ResourceTag/argosy:stage": arns.settings.stage}


class Interruptions(Construct):
    """The role, for this account's experiments only."""

    def __init__(self, scope: Construct, id: str, *, settings: Settings) -> None:
        super().__init__(scope, id)
        role = iam.Role(
            self,
            "Role",
            role_name=f"{settings.prefix}-{ROLE}",
            description="Argosy: the role with which experiments interrupt spot instances",
            assumed_by=iam.ServicePrincipal(
                SERVICE, conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}}
            ),
        )
        rights = interrupter(grants.Arns(settings))
        for statement in rights:
            role.add_to_policy(statement)
        nag.acknowledge_wildcards(role, rights)
