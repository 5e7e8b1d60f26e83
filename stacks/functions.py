"""A Lambda function with its role, which has the given rights and no others, and its log group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as destinations
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from argosy.settings.settings import Settings
from argosy.settings.values import LOG_RETENTION_DAYS
from stacks import nag
from stacks.bundle import ARCHITECTURE, RUNTIME

_RETENTION = dict(zip(LOG_RETENTION_DAYS, logs.RetentionDays, strict=False))  # both ascend from one day to two years


def log_group(scope: Construct, id: str, *, name: str, settings: Settings) -> logs.LogGroup:
    """A log group that keeps its lines for the set number of days and is deleted with the stack."""
    return logs.LogGroup(
        scope,
        id,
        log_group_name=name,
        retention=_RETENTION[settings.log_retention_days],
        removal_policy=cdk.RemovalPolicy.DESTROY,
    )


@dataclass(frozen=True, kw_only=True)
class FunctionProps:
    """The differences between functions. An asynchronous event that fails is retried, then goes to `dead_letters`."""

    name: str  # without the deployment's prefix
    description: str
    code: lambda_.Code
    handler: str
    rights: Sequence[iam.PolicyStatement]
    environment: Mapping[str, str]
    timeout_s: int
    memory_mib: int
    dead_letters: sqs.IQueue | None = None
    retries: int = 0
    reserved_concurrency: int | None = None


class Function(Construct):
    """`function` and its `role`."""

    def __init__(self, scope: Construct, id: str, *, settings: Settings, props: FunctionProps) -> None:
        super().__init__(scope, id)
        full_name = f"{settings.prefix}-{props.name}"
        self.log_group = log_group(self, "Logs", name=f"/aws/lambda/{full_name}", settings=settings)
        self.role = iam.Role(
            self, "Role", description=props.description, assumed_by=iam.ServicePrincipal("lambda.amazonaws.com")
        )
        self.log_group.grant_write(self.role)
        for statement in props.rights:
            self.role.add_to_policy(statement)
        nag.acknowledge_wildcards(self.role, props.rights)
        self.function = lambda_.Function(
            self,
            "Function",
            function_name=full_name,
            description=props.description,
            runtime=RUNTIME,
            architecture=ARCHITECTURE,
            code=props.code,
            handler=props.handler,
            role=self.role,
            environment=dict(props.environment),
            timeout=cdk.Duration.seconds(props.timeout_s),
            memory_size=props.memory_mib,
            log_group=self.log_group,
            retry_attempts=props.retries,
            on_failure=destinations.SqsDestination(props.dead_letters) if props.dead_letters else None,
            reserved_concurrent_executions=props.reserved_concurrency,
        )
