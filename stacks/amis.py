"""Which AMIs do new instances start from? Pinned in cdk.context.json, so that no deployment changes them by itself.

`python -m stacks.amis` pins what is not pinned yet; with `--newest` it pins the newest of all, as AWS names them now.
`make deploy` does the first, `make roll` the second. What the setting `amis` names comes before both.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import boto3

from argosy.settings.amis import newest_ami_parameter
from argosy.settings.settings import Amis, Settings, SettingsError
from stacks.given import PINNED_AMIS, settings_of
from stacks.stays import context_of

CONTEXT = Path("cdk.context.json")
Newest = Callable[[str, str], str]  # (Region, parameter) -> AMI id


def newest(region: str, parameter: str) -> str:
    """AWS's public parameter. Raises botocore's errors."""
    found = boto3.client("ssm", region_name=region).get_parameter(Name=parameter)
    return str(found["Parameter"]["Value"])


def pin(settings: Settings, pinned: Mapping[str, Any], again: bool, ask: Newest = newest) -> dict[str, dict[str, str]]:
    """Region -> kind of image -> AMI id: `pinned`, with what is missing there, or all that is used if `again`."""
    found = {region: dict(kinds) for region, kinds in pinned.items()}
    for region, kind in _used(settings):
        here = found.setdefault(region, {})
        if again or kind not in here:
            here[kind] = ask(region, newest_ami_parameter(kind))
    return found


def _used(settings: Settings) -> Iterator[tuple[str, str]]:
    """What the settings themselves do not pin."""
    for region in settings.cells:
        own = settings.amis.get(region, Amis())
        for kind in sorted({settings.image_of(name) for name in settings.instance_types.all}):
            if getattr(own, kind) is None:
                yield region, kind


def main(arguments: Sequence[str], ask: Newest = newest) -> int:
    """2 when the settings are faulty."""
    stored = json.loads(CONTEXT.read_text()) if CONTEXT.is_file() else {}
    before = stored.get(PINNED_AMIS, {})
    try:
        settings = settings_of(cdk.App(context=context_of(arguments)))
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    after = pin(settings, before, "--newest" in arguments, ask)
    for region, kinds in after.items():
        for kind, ami in kinds.items():
            if (was := before.get(region, {}).get(kind)) != ami:
                print(f"{region} {kind}: {ami} ({f'was {was}' if was else 'new'})")
    if after != before:
        CONTEXT.write_text(json.dumps({**stored, PINNED_AMIS: after}, indent=2) + "\n")
    elif "--newest" in arguments:
        print("The newest AMIs are pinned already.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
