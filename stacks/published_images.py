"""Images that are published already. A deployment keeps them: CloudFormation would delete those that it omits.

`python -m stacks.published_images` prints the folders' names with commas between them; `make deploy` and `make roll`
pass them on as the context "published". A context that you give yourself is final: `-c published= -c images=sweep`
publishes sweep and removes every other.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import aws_cdk as cdk
from botocore.exceptions import BotoCoreError, ClientError

from argosy.settings.settings import Settings, SettingsError
from argosy.settings.values import ALL_IMAGES
from stacks.account import client, profile_of
from stacks.arguments import PUBLISHED, settings_of
from stacks.bundle import ROOT
from stacks.image_assets import GPU
from stacks.stays import context_of

AWS_FAULT = 3
Ask = Callable[[Settings], list[str]]


def parameters(settings: Settings, profile: str | None) -> list[str]:
    """NAME of every parameter `/<prefix>/images/NAME`. Raises botocore's errors."""
    pages = client("ssm", settings.region, profile).get_paginator("get_parameters_by_path")
    found = pages.paginate(Path=f"/{settings.prefix}/images")
    return [each["Name"].rpartition("/")[2] for page in found for each in page["Parameters"]]


def folders(names: Iterable[str], containers: Path = ROOT / "containers") -> tuple[list[str], list[str]]:
    """The folders that publish these names, and the names whose folders are gone."""
    named = sorted({name.removesuffix(f"-{GPU}") for name in names})
    gone = [name for name in named if not (containers / name / "Dockerfile").is_file()]
    return [name for name in named if name not in gone], gone


def main(arguments: Sequence[str], ask: Ask | None = None) -> int:
    """2 when the settings are faulty, 3 when AWS does not answer."""
    context = context_of(arguments)
    if PUBLISHED in context:
        print(context[PUBLISHED])
        return 0
    try:
        settings = settings_of(cdk.App(context=context))
        names = (ask or (lambda given: parameters(given, profile_of(arguments))))(settings) if _some(settings) else []
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    except (BotoCoreError, ClientError) as fault:
        print(f"Which images are published cannot be read: {fault}", file=sys.stderr)
        print("Name them (or none) yourself: -c published=digits,sweep. The others are unpublished.", file=sys.stderr)
        return AWS_FAULT
    kept, gone = folders(names)
    if further := [name for name in kept if name not in settings.images]:
        print(f"Published before, and kept: {', '.join(f'argosy/{name}' for name in further)}.", file=sys.stderr)
    if gone:
        print(f"Unpublished, because containers/ no longer has them: {', '.join(gone)}.", file=sys.stderr)
    print(",".join(kept))
    return 0


def _some(settings: Settings) -> bool:
    """Whether only some images are set. Otherwise every image is published anyway, or their stack is not touched."""
    return bool(settings.images) and settings.images != ALL_IMAGES


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
