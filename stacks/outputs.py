"""Access to a deployment: stack outputs, an SSM parameter for the CLI, and a policy for its users.

The first six names, with exports `<prefix>:<name>`, are those of brentley/tensorflow-container and of AWS's public ECS
templates, so that tools written for these work here.
"""

from __future__ import annotations

from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from argosy.settings.settings import Settings
from stacks import grants, interruptions, nag
from stacks.cell import Cell
from stacks.store import Store

_POLICIES = {
    "submitter": "Argosy: submit and view runs, read their results and logs",
    "member": "Argosy: view runs, read their results and logs; with a queue's entrance, submit to it",
}
_ORDINALS = ("One", "Two", "Three", "Four", "Five", "Six")


@dataclass(frozen=True, slots=True)
class HomeParts:
    """The parts of the home stack that its outputs name."""

    cell: Cell
    store: Store
    api: lambda_.Function
    controller: lambda_.Function


class Outputs(Construct):
    """The outputs of the home stack, the policies of its users, and the parameter that the command reads."""

    def __init__(self, scope: Construct, id: str, *, settings: Settings, deployed: HomeParts) -> None:
        super().__init__(scope, id)
        self._prefix = settings.prefix
        subnet = "PublicSubnet" if settings.subnets == "public" else "PrivateSubnet"
        shared = {
            "ClusterName": deployed.cell.cluster.cluster_name,
            "VpcId": deployed.cell.network.vpc.vpc_id,
            **{
                f"{subnet}{ordinal}": each.subnet_id
                for ordinal, each in zip(_ORDINALS, deployed.cell.network.subnets, strict=False)
            },
            "ContainerSecurityGroup": deployed.cell.network.security_group.security_group_id,
            "ECSTaskExecutionRole": deployed.cell.execution_role.role_arn,
        }
        of = grants.Arns(settings), deployed.store.bucket.bucket_arn
        ours = {
            "ApiFunctionName": deployed.api.function_name,
            "ControllerFunctionName": deployed.controller.function_name,
            "ResultsBucketName": deployed.store.bucket.bucket_name,
            "LogGroupName": deployed.cell.log_group.log_group_name,
            **{
                f"TaskDefinition{name.title().replace('-', '')}": definition.task_definition_arn
                for name, definition in deployed.cell.task_definitions.by_shape.items()
            },
            "SubmitterPolicyArn": self._policy(
                "Submitters", "submitter", [*grants.submitter(*of), *interruptions.users(of[0])]
            ),
            "MemberPolicyArn": self._policy("Members", "member", grants.member(*of)),
        }
        for name, value in shared.items():
            self._output(name, value, exported=True)
        for name, value in ours.items():
            self._output(name, value, exported=False)
        self.parameter = self._parameter(settings, deployed.store)

    def _output(self, name: str, value: str, *, exported: bool) -> None:
        output = cdk.CfnOutput(self, name, value=value, export_name=f"{self._prefix}:{name}" if exported else None)
        output.override_logical_id(name)

    def _policy(self, id: str, name: str, rights: list[iam.PolicyStatement]) -> str:
        """Its ARN."""
        policy = iam.ManagedPolicy(
            self,
            id,
            managed_policy_name=f"{self._prefix}-{name}",
            description=_POLICIES[name],
            statements=rights,
        )
        nag.acknowledge_wildcards(policy, rights)
        return policy.managed_policy_arn

    def _parameter(self, settings: Settings, store: Store) -> ssm.StringParameter:
        described = {
            "stage": settings.stage,
            "region": settings.region,
            "cells": list(settings.cells),
            "cluster": settings.prefix,
            "apiFunction": f"{settings.prefix}-api",
            "controllerFunction": f"{settings.prefix}-controller",
            "bucket": store.bucket.bucket_name,
            "logGroup": f"/ecs/{settings.prefix}/tasks",
            "table": f"{settings.prefix}-state",
            "queueUrl": store.queue.queue_url,
            "python": settings.python,
            "allowExec": settings.allow_exec,
            "allowInterrupt": settings.allow_interrupt,
            "inputDays": settings.input_days,
            "identity": grants.signed_for(settings),
        }
        return ssm.StringParameter(
            self,
            "Deployment",
            parameter_name=f"/{settings.prefix}/deployment",
            description="Argosy: where its command finds this deployment",
            string_value=cdk.Stack.of(self).to_json_string(described),
        )
