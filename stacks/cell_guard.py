"""A custom resource by which `cdk deploy` refuses to leave out a cell that still costs money.

Every resource that lists the cells (the functions' settings, the parameter that the command reads) depends on it, so
CloudFormation updates it first. When it refuses, the whole update is rolled back. It runs
`controller/argosy/aws/cell_guard.py`.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import CfnResource
from aws_cdk import custom_resources as cr
from constructs import Construct

from argosy.settings.settings import Settings
from stacks import bundle, ending_grants, grants, nag
from stacks.functions import Function, FunctionProps, log_group
from stacks.store import Store


class CellGuard(Construct):
    """`resource` holds the cells' names; it is in the home stack only."""

    def __init__(self, scope: Construct, id: str, *, settings: Settings, store: Store) -> None:
        super().__init__(scope, id)
        function = Function(
            self,
            "Guard",
            settings=settings,
            props=FunctionProps(
                name="cell-guard",
                description="Argosy: refuses to leave out a cell that still has instances",
                code=bundle.small_code(bundle.CELL_GUARD_FILES),
                handler="argosy.aws.cell_guard.on_event",
                rights=ending_grants.cell_guard(grants.Arns(settings)),
                environment={"ARGOSY_STAGE": settings.stage, "ARGOSY_TABLE": f"{settings.prefix}-state"},
                timeout_s=300,
                memory_mib=256,
            ),
        ).function
        provider = cr.Provider(
            self,
            "Provider",
            on_event_handler=function,
            log_group=log_group(self, "Logs", name=f"/aws/lambda/{settings.prefix}-cells", settings=settings),
        )
        nag.acknowledge_provider(provider, [nag.logical_id(function)])
        self.resource = cdk.CustomResource(
            self,
            "Resource",
            resource_type="Custom::ArgosyCells",
            service_token=provider.service_token,
            properties={"Cells": list(settings.cells)},
        )
        self.resource.node.add_dependency(store.table)
        node = self.resource.node.default_child
        assert isinstance(node, CfnResource)
        node.override_logical_id("Cells")
