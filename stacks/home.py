"""The home stack: everything of a deployment that exists once, and the first cell. It only wires.

Reading order: this file, `grants.py` and `ending_grants.py` (rights), `cell.py`, `capacity.py`,
`launch.py`, `boot.py`, then the rest.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from argosy.settings.settings import Settings
from argosy.settings.values import HOME_TAG
from stacks import bundle, grants, nag
from stacks.cell import Cell
from stacks.cell_guard import CellGuard
from stacks.events import Events
from stacks.functions import Function, FunctionProps
from stacks.interruptions import Interruptions
from stacks.observability import Functions, Observability
from stacks.outputs import HomeParts, Outputs
from stacks.schedules import Schedules
from stacks.store import Store
from stacks.tasks import TaskRoles
from stacks.teardown import Teardown
from stacks.watchdog import Watchdog

# 1,769 MB are one whole vCPU; a tick is numpy on one core. A second of it costs 0.000023 USD.
CONTROLLER_MEMORY_MIB, CONTROLLER_TIMEOUT_S = 1769, 900
API_MEMORY_MIB, API_TIMEOUT_S = 1024, 60
# ECS says for which account it assumes a task's role: no other account's tasks may have it (ECS's guide on task roles).
# The guide has no such condition for the execution role, which is assumed for the agent.
ASSUMED_FOR = {"task": {"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}}}


class HomeStack(cdk.Stack):
    """The home Region's stack."""

    def __init__(self, scope: Construct, id: str, *, settings: Settings, dependencies: bool) -> None:
        super().__init__(
            scope,
            id,
            env=cdk.Environment(region=settings.region),
            description=f"Argosy: batch computations on ECS and EC2 Spot, stage {settings.stage}",
            termination_protection=False,
        )
        self.store = Store(self, "Store", settings=settings)
        roles = self._task_roles(settings)
        self.cell = Cell(
            self, "Cell", settings=settings, region=settings.region, roles=roles, dependencies=dependencies
        )
        self.api, self.controller = self._functions(
            settings, roles, bundle.controller_code(self, dependencies=dependencies)
        )
        Events(self, "Events", settings=settings, store=self.store, api=self.api, controller=self.controller)
        Schedules(self, "Schedules", settings=settings)
        self._bake_profile(settings)
        if settings.allow_interrupt:
            Interruptions(self, "Interruptions", settings=settings)
        self.watchdog = Watchdog(
            self, "Watchdog", settings=settings, region=settings.region, dead_letters=self.store.dead_letters
        )
        guard = CellGuard(self, "CellGuard", settings=settings, store=self.store)
        Observability(
            self,
            "Observability",
            settings=settings,
            store=self.store,
            functions=Functions(api=self.api, controller=self.controller, watchdog=self.watchdog.function),
        )
        deployed = HomeParts(self.cell, self.store, self.api, self.controller)
        outputs = Outputs(self, "Outputs", settings=settings, deployed=deployed)
        for learns in (self.api, self.controller, self.watchdog.function, outputs.parameter):
            learns.node.add_dependency(guard.resource)
        self.teardown = Teardown(
            self,
            "Teardown",
            settings=settings,
            region=settings.region,
            bucket=self.store.bucket if settings.results == "destroy" else None,
        )
        apart = (self.cell, self.teardown)
        self.teardown.runs_before(*self.cell.parts, *(part for part in self.node.children if part not in apart))
        nag.acknowledge_home(self)

    def _task_roles(self, settings: Settings) -> TaskRoles:
        arns, bucket = grants.Arns(settings), self.store.bucket.bucket_arn
        rights = {"execution": grants.execution(arns), "task": grants.task(arns, bucket)}
        roles = {}
        for name, statements in rights.items():
            roles[name] = iam.Role(
                self,
                f"{name.capitalize()}Role",
                role_name=f"{settings.prefix}-{name}",
                description=f"Argosy: {name} role of every task",
                assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com", conditions=ASSUMED_FOR.get(name)),
            )
            for statement in statements:
                roles[name].add_to_policy(statement)
            nag.acknowledge_wildcards(roles[name], statements)
        cdk.Tags.of(roles["execution"]).add(HOME_TAG, settings.region)  # for the doctor: roles have no Region
        return TaskRoles(roles["execution"], roles["task"])

    def _bake_profile(self, settings: Settings) -> None:
        """The profile that `argosy image bake` names: of the account, and so for every cell."""
        name, rights = f"{settings.prefix}-bake", grants.bake(grants.Arns(settings))
        role = iam.Role(
            self,
            "BakeRole",
            role_name=name,
            description="Argosy: pulls the image of an AMI",
            assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"),
        )
        for statement in rights:
            role.add_to_policy(statement)
        nag.acknowledge_wildcards(role, rights)
        iam.CfnInstanceProfile(self, "BakeProfile", instance_profile_name=name, roles=[role.role_name])

    def _functions(
        self, settings: Settings, roles: TaskRoles, code: lambda_.Code
    ) -> tuple[lambda_.Function, lambda_.Function]:
        arns, bucket = grants.Arns(settings), self.store.bucket.bucket_arn
        environment = self._environment(settings, roles)
        api = Function(
            self,
            "Api",
            settings=settings,
            props=FunctionProps(
                name="api",
                description="Argosy: submit, describe, list and cancel runs",
                code=code,
                handler="argosy.handlers.api",
                rights=grants.api(arns, bucket),
                environment=environment,
                timeout_s=API_TIMEOUT_S,
                memory_mib=API_MEMORY_MIB,
                dead_letters=self.store.dead_letters,
                retries=2,  # for scheduled calls: the scheduler hands over once and does not see a later fault
            ),
        )
        controller = Function(
            self,
            "Controller",
            settings=settings,
            props=FunctionProps(
                name="controller",
                description="Argosy: places tasks and manages the fleets",
                code=code,
                handler="argosy.handlers.controller",
                rights=grants.controller(arns, bucket),
                environment=environment,
                timeout_s=CONTROLLER_TIMEOUT_S,
                memory_mib=CONTROLLER_MEMORY_MIB,
                dead_letters=self.store.dead_letters,
                reserved_concurrency=settings.reserved_concurrency or None,
            ),
        )
        return api.function, controller.function

    def _environment(self, settings: Settings, roles: TaskRoles) -> dict[str, str]:
        """The same names in local mode. Names, not references, where a reference would make a circle."""
        return {
            "ARGOSY_STAGE": settings.stage,
            "ARGOSY_TABLE": self.store.table.table_name,
            "ARGOSY_QUEUE_URL": self.store.queue.queue_url,
            "ARGOSY_CLUSTER": settings.prefix,
            "ARGOSY_BUCKET": self.store.bucket.bucket_name,
            "ARGOSY_LOG_GROUP": f"/ecs/{settings.prefix}/tasks",
            "ARGOSY_CONTROLLER_FUNCTION": f"{settings.prefix}-controller",
            "ARGOSY_TICK_RULE": f"{settings.prefix}-tick",
            "ARGOSY_EXECUTION_ROLE_ARN": roles.execution.role_arn,
            "ARGOSY_TASK_ROLE_ARN": roles.task.role_arn,
            "ARGOSY_API_FUNCTION_ARN": grants.Arns(settings).function("api"),
            "ARGOSY_SCHEDULES_ROLE_ARN": grants.Arns(settings).role("schedules"),
            "ARGOSY_IDENTITY": self.to_json_string(grants.signed_for(settings)),
            "ARGOSY_SETTINGS": settings.to_json(),
        }
