"""A cell, one Region's share: network, cluster, launch templates, fleets, task definitions, and its own teardown.

The home stack holds the first cell; every further cell is a separate stack whose events are sent to home's bus.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct, IConstruct

from argosy.messages.eventbridge import MESSAGE_KINDS, MessageKind
from argosy.messages.urgent import UrgentKind
from argosy.settings.settings import Settings
from stacks import grants, nag
from stacks.alarms import CellAlarms
from stacks.capacity import Fleets
from stacks.functions import log_group
from stacks.launch import LaunchTemplates
from stacks.network import Network
from stacks.runner import Runner
from stacks.tasks import TaskDefinitions, TaskRoles
from stacks.teardown import Teardown
from stacks.watchdog import Watchdog


class Cell(Construct):
    """One Region's share of the deployment."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Settings,
        region: str,
        roles: TaskRoles,
        dependencies: bool,
    ) -> None:
        super().__init__(scope, id)
        self.network = Network(self, "Network", settings=settings, region=region)
        self.cluster = ecs.Cluster(self, "Cluster", cluster_name=settings.prefix, vpc=self.network.vpc)
        self.log_group = log_group(self, "TaskLogs", name=f"/ecs/{settings.prefix}/tasks", settings=settings)
        self.execution_role = roles.execution
        self.runner = Runner(self, "Runner", settings=settings, dependencies=dependencies)
        self.instance_role = instance_role(self, settings, region, self.runner)
        self.templates = LaunchTemplates(
            self,
            "Launch",
            settings=settings,
            role=self.instance_role,
            security_group=self.network.security_group,
            runner=self.runner,
        )
        self.fleets = Fleets(
            self,
            "Fleets",
            settings=settings,
            subnets=self.network.subnets,
            templates=self.templates,
        )
        self.task_definitions = TaskDefinitions(
            self,
            "Tasks",
            settings=settings,
            roles=roles,
            log_group=self.log_group,
        )

    @property
    def parts(self) -> list[IConstruct]:
        """Every part; fleets are represented by their lists, because a dependency on a list is one on its fleets."""
        return [*(child for child in self.node.children if child is not self.fleets), *self.fleets.lists]


def instance_role(scope: Construct, settings: Settings, region: str, runner: Runner) -> iam.Role:
    """Named, so that the controller's rights can name it from another Region's stack."""
    role = iam.Role(
        scope,
        "InstanceRole",
        role_name=f"{settings.prefix}-instance-{region}",
        description="The ECS agent on Argosy's container instances",
        assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"),
        managed_policies=[
            iam.ManagedPolicy.from_aws_managed_policy_name(name) for name in grants.managed_for_instance(settings)
        ],
    )
    rights = grants.instance(grants.Arns(settings), region, [each.arn for each in runner.of.values()])
    for statement in rights:
        role.add_to_policy(statement)
    nag.acknowledge_wildcards(role, rights)
    return role


class CellStack(cdk.Stack):
    """A further Region: its cell, the forwarding of its events, its watchdog, its alarms, its teardown."""

    def __init__(self, scope: Construct, id: str, *, settings: Settings, region: str, dependencies: bool) -> None:
        super().__init__(
            scope,
            id,
            env=cdk.Environment(region=region),
            description=f"Argosy: the cell of {settings.prefix} in {region}",
        )
        arns = grants.Arns(settings)
        roles = TaskRoles(
            iam.Role.from_role_arn(self, "ExecutionRole", arns.role("execution"), mutable=False),
            iam.Role.from_role_arn(self, "TaskRole", arns.role("task"), mutable=False),
        )
        self.cell = Cell(self, "Cell", settings=settings, region=region, roles=roles, dependencies=dependencies)
        forwarding = EventForwarder(self, "Forwarding", settings=settings, region=region)
        watchdog = Watchdog(self, "Watchdog", settings=settings, region=region, dead_letters=forwarding.undelivered)
        alarms = CellAlarms(
            self,
            "Alarms",
            settings=settings,
            watchdog=watchdog.function,
            undelivered=forwarding.undelivered,
        )
        self.teardown = Teardown(self, "Teardown", settings=settings, region=region)
        self.teardown.runs_before(*self.cell.parts, forwarding, watchdog, alarms)
        nag.acknowledge_cell(self)


class EventForwarder(Construct):
    """Every event that the controller listens to, sent on to the deployment's own bus in the home Region.

    ECS's events are those of our cluster. EC2's events name only their instance: those of the account's other instances
    in this Region are forwarded too, and the controller ignores them.
    """

    def __init__(self, scope: Construct, id: str, *, settings: Settings, region: str) -> None:
        super().__init__(scope, id)
        arns = grants.Arns(settings)
        self.undelivered = sqs.Queue(
            self,
            "Undelivered",
            queue_name=f"{settings.prefix}-undelivered",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=cdk.Duration.days(14),
        )
        home = events.EventBus.from_event_bus_arn(self, "Home", arns.of("events", f"event-bus/{settings.prefix}"))
        cluster = arns.of("ecs", f"cluster/{settings.prefix}", region)
        for kind in MESSAGE_KINDS:
            events.Rule(
                self,
                kind.rule,
                rule_name=f"{settings.prefix}-{kind.rule}",
                description=f"{kind.detail_type}, to {settings.region}",
                event_pattern=event_pattern(kind, [cluster]),
                targets=[targets.EventBus(home, dead_letter_queue=self.undelivered)],
            )


def event_pattern(
    kind: MessageKind | UrgentKind, clusters: list[str], account: list[str] | None = None
) -> events.EventPattern:
    """CDK's form of a kind's pattern: the rules let through exactly what the controller parses."""
    pattern = kind.pattern(clusters)
    return events.EventPattern(
        source=pattern["source"], detail_type=pattern["detail-type"], detail=pattern.get("detail"), account=account
    )
