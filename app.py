"""Which stacks does this deployment consist of? Reads the settings and builds them; asks no account, network or git."""

from __future__ import annotations

import sys

import aws_cdk as cdk

from controller.settings import Settings, SettingsError, load_settings
from stacks.deployment import build

_SPELLINGS = [field.alias or name for name, field in Settings.model_fields.items()]


def settings_of(app: cdk.App) -> Settings:
    """cdk.json's context "argosy", and over it what was given by itself: `-c stage=dev`. Raises SettingsError."""
    given = dict(app.node.try_get_context("argosy") or {})
    for name in _SPELLINGS:
        value = app.node.try_get_context(name)
        if value is not None:
            given[name] = value
    return load_settings(given)


def main(app: cdk.App) -> int:
    """Write the templates; 2 when the settings are faulty."""
    try:
        settings = settings_of(app)
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    build(app, settings)
    if app.node.try_get_context("nag") == "true":
        import cdk_nag  # a second of loading that only the check needs

        cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks(app))
    app.synth()
    return 0


if __name__ == "__main__":
    sys.exit(main(cdk.App()))
