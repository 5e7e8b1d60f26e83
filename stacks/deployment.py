"""The stacks of a deployment: home, one for each further cell, and on request the images and the examples."""

from __future__ import annotations

from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam

from argosy.settings.settings import Settings
from stacks.cell import CellStack
from stacks.examples import ExamplesStack
from stacks.home import HomeStack
from stacks.images import ImagesStack


@dataclass(frozen=True)
class Deployment:
    """The stacks of one deployment."""

    home: HomeStack
    cells: list[CellStack]
    images: ImagesStack | None
    examples: list[ExamplesStack]


def stack_names(settings: Settings) -> list[str]:
    """Home, further cells, images, examples: the stacks that `build` makes of these settings."""
    names = [cell_stack_name(settings, cell) for cell in settings.cells]
    names += [_images_name(settings)] if settings.images else []
    return names + ([_examples_name(settings, cell) for cell in settings.cells] if settings.examples else [])


def cell_stack_name(settings: Settings, cell: str) -> str:
    """The home stack has the deployment's own name."""
    return settings.prefix if cell == settings.region else f"{settings.prefix}-{cell}"


def _images_name(settings: Settings) -> str:
    return f"{settings.prefix}-images"


def _examples_name(settings: Settings, cell: str) -> str:
    """The stack of a further cell carries the cell's name. Task definitions are regional, so every cell has its own."""
    return f"{cell_stack_name(settings, cell)}-examples"


def build(app: cdk.App, settings: Settings) -> Deployment:
    """Every stack, with the ownership tag, and the owner's tags, on everything that can carry one."""
    # Not a synthesiser of our own for each stack: jsii hands back one that is bound to none.
    app.node.set_context("@aws-cdk/core:bootstrapQualifier", settings.bootstrap_qualifier)
    dependencies = app.node.try_get_context("bundle") != "source"
    home = HomeStack(app, settings.prefix, settings=settings, dependencies=dependencies)
    cells = [
        CellStack(app, cell_stack_name(settings, cell), settings=settings, region=cell, dependencies=dependencies)
        for cell in settings.cells[1:]
    ]
    images = ImagesStack(app, _images_name(settings), settings=settings) if settings.images else None
    for stack in cells:
        stack.add_stack_dependency(home, "its rules forward to home's event bus, and home's roles are named in it")
    examples = _examples(app, settings, [home, *cells]) if settings.examples else []
    for key, value in {**settings.tags, "argosy:stage": settings.stage}.items():
        cdk.Tags.of(app).add(key, value)
    if settings.permissions_boundary:
        iam.PermissionsBoundary.of(app).apply(_boundary(home, settings.permissions_boundary))
    return Deployment(home, cells, images, examples)


def _boundary(stack: cdk.Stack, policy: str) -> iam.IManagedPolicy:
    """policy: its ARN, or the name of one of this account."""
    arn = policy if policy.startswith("arn:") else f"arn:{cdk.Aws.PARTITION}:iam::{cdk.Aws.ACCOUNT_ID}:policy/{policy}"
    return iam.ManagedPolicy.from_managed_policy_arn(stack, "Boundary", arn)


def _examples(app: cdk.App, settings: Settings, cells: list[HomeStack | CellStack]) -> list[ExamplesStack]:
    made = []
    for cell, stack in zip(settings.cells, cells, strict=True):
        examples = ExamplesStack(app, _examples_name(settings, cell), settings=settings, region=cell)
        examples.add_stack_dependency(stack, "the log group of its tasks is made there")
        if stack is not cells[0]:
            examples.add_stack_dependency(cells[0], "the roles of its tasks are made there")
        made.append(examples)
    return made
