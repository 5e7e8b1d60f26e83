"""The schedules of a deployment: one group of EventBridge Scheduler, which is deleted with everything in it.

The api makes them while the deployment is used. The role that they fire with may invoke the api function, nothing else.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from argosy.settings.settings import Settings
from stacks import grants


class Schedules(Construct):
    """`group` and `role`."""

    def __init__(self, scope: Construct, id: str, *, settings: Settings) -> None:
        super().__init__(scope, id)
        arns = grants.Arns(settings)
        self.group = scheduler.CfnScheduleGroup(self, "Group", name=settings.prefix)
        # For this account's schedules of this group only: https://docs.aws.amazon.com/scheduler/latest/UserGuide/
        # cross-service-confused-deputy-prevention.html
        ours = {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID, "aws:SourceArn": arns.schedule_group}
        self.role = iam.Role(
            self,
            "Role",
            role_name=f"{settings.prefix}-schedules",
            description="Argosy: the role with which schedules fire",
            assumed_by=iam.ServicePrincipal("scheduler.amazonaws.com", conditions={"StringEquals": ours}),
        )
        for statement in grants.schedules(arns):
            self.role.add_to_policy(statement)
