"""The AMIs of new instances, pinned in cdk.context.json, so that no deployment changes them by itself.

`python -m stacks.amis` pins the AMIs that are not pinned yet: the deployed ones, else the newest. With `--newest` it
pins AWS's newest AMI for every kind. `make deploy` does the first, `make roll` the second. The setting `amis` takes
precedence over both.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from botocore.exceptions import BotoCoreError, ClientError

from argosy.settings.amis import newest_ami_parameter
from argosy.settings.settings import Amis, Settings, SettingsError
from stacks.account import client, profile_of
from stacks.arguments import PINNED_AMIS, settings_of
from stacks.stays import context_of

CONTEXT = Path("cdk.context.json")
AWS_FAULT = 3


class Account:
    """AWS's answers. Every method raises botocore's errors."""

    def __init__(self, profile: str | None) -> None:
        self._profile = profile

    def newest(self, region: str, parameter: str) -> str:
        """AWS's public parameter."""
        found = client("ssm", region, self._profile).get_parameter(Name=parameter)
        return str(found["Parameter"]["Value"])

    def deployed(self, settings: Settings) -> Mapping[str, Amis]:
        """By Region, the AMIs in the controller's settings; nothing before the first deployment."""
        functions = client("lambda", settings.region, self._profile)
        try:
            function = functions.get_function_configuration(FunctionName=f"{settings.prefix}-controller")
        except functions.exceptions.ResourceNotFoundException:
            return {}
        return amis_of(function["Environment"]["Variables"]["ARGOSY_SETTINGS"])


def amis_of(text: str) -> dict[str, Amis]:
    """The AMIs in the text of `Settings.to_json`, also from another version."""
    return {region: Amis.model_validate(each) for region, each in json.loads(text).get("amis", {}).items()}


def pin(settings: Settings, pinned: Mapping[str, Any], again: bool, account: Account) -> dict[str, dict[str, str]]:
    """Region -> kind of image -> AMI id: `pinned`, with the missing ones, or every used one looked up if `again`."""
    found = {region: dict(kinds) for region, kinds in pinned.items()}
    wanted = [(region, kind) for region, kind in _used(settings) if again or kind not in found.get(region, {})]
    deployed = account.deployed(settings) if wanted and not again else {}
    for region, kind in wanted:
        same = getattr(deployed.get(region), kind, None)
        found.setdefault(region, {})[kind] = same or account.newest(region, newest_ami_parameter(kind))
    return found


def _used(settings: Settings) -> Iterator[tuple[str, str]]:
    """The AMIs that the settings themselves do not pin."""
    for region in settings.cells:
        own = settings.amis.get(region, Amis())
        for kind in sorted({settings.image_of(name) for name in settings.instance_types.all}):
            if getattr(own, kind) is None:
                yield region, kind


def main(arguments: Sequence[str], account: Account | None = None) -> int:
    """2 when the settings are faulty, 3 when AWS does not answer."""
    stored = json.loads(CONTEXT.read_text()) if CONTEXT.is_file() else {}
    before = stored.get(PINNED_AMIS, {})
    try:
        settings = settings_of(cdk.App(context=context_of(arguments)))
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    try:
        after = pin(settings, before, "--newest" in arguments, account or Account(profile_of(arguments)))
    except (BotoCoreError, ClientError) as fault:
        print(f"The AMIs cannot be pinned: {fault}", file=sys.stderr)
        print("Nothing was changed. Allow the call, or name the AMIs in the setting `amis`.", file=sys.stderr)
        return AWS_FAULT
    for region, kinds in after.items():
        for kind, ami in kinds.items():
            if (was := before.get(region, {}).get(kind)) != ami:
                print(f"{region} {kind}: {ami} ({f'was {was}' if was else 'new'})")
    if after != before:
        CONTEXT.write_text(json.dumps({**stored, PINNED_AMIS: after}, indent=2) + "\n")
        print(f"Commit {CONTEXT}, which holds these pins for every checkout that deploys.")
    elif "--newest" in arguments:
        print("The newest AMIs are pinned already.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
