"""Which settings was a command given? cdk.json's context and the `-c NAME=VALUE` after it, alike for every command."""

from __future__ import annotations

import aws_cdk as cdk

from argosy.settings.settings import Settings, load_settings

_SPELLINGS = [field.alias or name for name, field in Settings.model_fields.items()]


def settings_of(app: cdk.App) -> Settings:
    """cdk.json's context "argosy", and over it what was given by itself: `-c stage=dev`. Raises SettingsError."""
    given = dict(app.node.try_get_context("argosy") or {})
    for name in _SPELLINGS:
        value = app.node.try_get_context(name)
        if value is not None:
            given[name] = value
    return load_settings(given)
