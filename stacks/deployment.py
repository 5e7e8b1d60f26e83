"""Which stacks does a deployment have? The home stack, one more for each further cell, and the images if asked for."""

from __future__ import annotations

from dataclasses import dataclass

import aws_cdk as cdk

from controller.settings import Settings
from stacks.cell import CellStack
from stacks.home import HomeStack
from stacks.images import ImagesStack


@dataclass(frozen=True)
class Deployment:
    """The stacks of one deployment."""

    home: HomeStack
    cells: list[CellStack]
    images: ImagesStack | None


def stack_names(settings: Settings) -> list[str]:
    """Home, further cells, images: the stacks that `build` makes of these settings."""
    names = [settings.prefix, *(_cell_name(settings, cell) for cell in settings.cells[1:])]
    return [*names, _images_name(settings)] if settings.images else names


def _cell_name(settings: Settings, cell: str) -> str:
    return f"{settings.prefix}-{cell}"


def _images_name(settings: Settings) -> str:
    return f"{settings.prefix}-images"


def build(app: cdk.App, settings: Settings) -> Deployment:
    """Every stack, with the ownership tag on everything that can carry one."""
    dependencies = app.node.try_get_context("bundle") != "source"
    home = HomeStack(app, settings.prefix, settings=settings, dependencies=dependencies)
    cells = [CellStack(app, _cell_name(settings, cell), settings=settings, region=cell) for cell in settings.cells[1:]]
    images = ImagesStack(app, _images_name(settings), settings=settings) if settings.images else None
    for stack in cells:
        stack.add_stack_dependency(home, "its rules forward to home's event bus, and home's roles are named in it")
    cdk.Tags.of(app).add("argosy:stage", settings.stage)
    return Deployment(home, cells, images)
