"""The settings of a command: cdk.json's context and the `-c NAME=VALUE` after it, alike for every command."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import aws_cdk as cdk

from argosy.settings.live_offers import LiveOffers, with_live_offers
from argosy.settings.settings import Amis, Settings, load_settings
from argosy.settings.values import ALL_IMAGES, with_qualifier

LIVE_OFFERS = "argosy:offers"  # in cdk.context.json, which `stacks.offers` writes
PINNED_AMIS = "argosy:amis"  # in cdk.context.json, which `stacks.amis` writes and the CDK reads
# The images that the README submits: published by `make deploy` where Docker or podman answers and the settings name
# no others. Then the context "engine" is not empty.
FIRST_IMAGES = ("digits",)
PUBLISHED = "published"  # the images that an earlier deployment published, from `stacks.published_images`
# Parameters of brentley/tensorflow-container's stack, which buys one type.
SINGLE_TYPES = {"cpuInstanceType": "cpu", "gpuInstanceType": "gpu"}
_SPELLINGS = [field.alias or name for name, field in Settings.model_fields.items()]


def offers_kept(app: cdk.App) -> dict[str, LiveOffers]:
    """By Region, what EC2 offered when it was last asked."""
    kept = app.node.try_get_context(LIVE_OFFERS) or {}
    return {region: LiveOffers.from_json(each) for region, each in kept.items()}


def settings_of(app: cdk.App, offers: Callable[[Settings], Mapping[str, LiveOffers]] | None = None) -> Settings:
    """cdk.json's context "argosy", overridden by single values: `-c stage=dev`. AMIs that neither names are those
    pinned in cdk.context.json; images that are published already stay so. Raises SettingsError.

    offers: what EC2 offers in the cells of the settings; None = what it offered when it was last asked.
    """
    given = with_qualifier(app.node.try_get_context("argosy") or {}, app.node.get_all_context())
    for name in _SPELLINGS:
        value = app.node.try_get_context(name)
        if value is not None:
            given[name] = value
    for name, kind in SINGLE_TYPES.items():
        if value := app.node.try_get_context(name):
            given["instanceTypes"] = {**(given.get("instanceTypes") or {}), kind: value}
    if app.node.try_get_context("engine"):
        given.setdefault("images", FIRST_IMAGES)
    live = offers or (lambda _: offers_kept(app))
    settings = load_settings(given, lambda found: with_live_offers(found, live(found)))
    pinned = app.node.try_get_context(PINNED_AMIS) or {}
    own = {cell: settings.amis.get(cell, Amis()).model_dump(exclude_none=True) for cell in settings.cells}
    amis = {cell: Amis(**{**pinned.get(cell, {}), **own[cell]}) for cell in settings.cells}
    changes: dict[str, object] = {"amis": {cell: each for cell, each in amis.items() if each != Amis()}}
    if settings.images and settings.images != ALL_IMAGES:
        published = (app.node.try_get_context(PUBLISHED) or "").split(",")
        changes["images"] = tuple(dict.fromkeys((*settings.images, *filter(None, published))))
    return settings.model_copy(update=changes)
