"""Which stacks does this deployment consist of? Reads the settings and builds them; asks no git.

It asks the account one question, what EC2 offers (`stacks.offers`), and only where the CDK has found credentials.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "controller"))  # this checkout's argosy, installed or not

try:
    import aws_cdk as cdk

    from argosy.settings.settings import SettingsError
    from stacks.arguments import settings_of
    from stacks.deployment import build
    from stacks.offers import offers_for
    from stacks.runner import FAILED, build_for_deployment
except ModuleNotFoundError as missing:
    sys.exit(f"{missing}. Type: python3 -m venv .venv && .venv/bin/pip install -r requirements.txt")


def main(app: cdk.App) -> int:
    """Write the templates; 1 when the runner cannot be built for a deployment, 2 when the settings are faulty."""
    try:
        settings = settings_of(app, offers_for(app))
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    if app.node.try_get_context("bundle") != "source" and not build_for_deployment():
        print(FAILED, file=sys.stderr)
        return 1
    build(app, settings)
    if app.node.try_get_context("nag") == "true":
        import cdk_nag  # a second of loading that only the check needs

        cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks(app))
    app.synth()
    return 0


if __name__ == "__main__":
    sys.exit(main(cdk.App()))
