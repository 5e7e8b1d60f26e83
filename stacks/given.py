"""The settings of a command: cdk.json's context and the `-c NAME=VALUE` after it, alike for every command."""

from __future__ import annotations

import aws_cdk as cdk

from argosy.settings.settings import Amis, Settings, load_settings
from argosy.settings.values import ALL_IMAGES

PINNED_AMIS = "argosy:amis"  # in cdk.context.json, which `stacks.amis` writes and the CDK reads
# The images that the README submits: published by `make deploy` where Docker or podman answers and the settings name
# no others. Then the context "engine" is not empty.
FIRST_IMAGES = ("digits",)
PUBLISHED = "published"  # the images that an earlier deployment published, from `stacks.published`
_SPELLINGS = [field.alias or name for name, field in Settings.model_fields.items()]


def settings_of(app: cdk.App) -> Settings:
    """cdk.json's context "argosy", overridden by single values: `-c stage=dev`. AMIs that neither names are those
    pinned in cdk.context.json; images that are published already stay so. Raises SettingsError."""
    given = dict(app.node.try_get_context("argosy") or {})
    for name in _SPELLINGS:
        value = app.node.try_get_context(name)
        if value is not None:
            given[name] = value
    if app.node.try_get_context("engine"):
        given.setdefault("images", FIRST_IMAGES)
    settings = load_settings(given)
    pinned = app.node.try_get_context(PINNED_AMIS) or {}
    own = {cell: settings.amis.get(cell, Amis()).model_dump(exclude_none=True) for cell in settings.cells}
    amis = {cell: Amis(**{**pinned.get(cell, {}), **own[cell]}) for cell in settings.cells}
    changes: dict[str, object] = {"amis": {cell: each for cell, each in amis.items() if each != Amis()}}
    if settings.images and settings.images != ALL_IMAGES:
        published = (app.node.try_get_context(PUBLISHED) or "").split(",")
        changes["images"] = tuple(dict.fromkeys((*settings.images, *filter(None, published))))
    return settings.model_copy(update=changes)
