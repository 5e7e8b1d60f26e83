"""Is the account ready for `make deploy`?

It runs `argosy doctor`, which also makes the service roles. `python -m stacks.preflight -c cells=us-east-1,eu-west-1`
takes the CDK's arguments. It exits 3 when something is wrong: CloudFormation would find it too, after minutes and with
a roll-back.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import aws_cdk as cdk

from argosy.settings.settings import Settings, SettingsError
from argosy.settings.values import ALL_IMAGES
from stacks.arguments import FIRST_IMAGES, settings_of
from stacks.offers import refresh
from stacks.stays import context_of

ARGOSY = Path(sys.executable).parent / "argosy"
ALL_THE_SAME = "To deploy anyway, add CHECKED_ACCOUNT=no."


def command(settings: Settings, profile: str | None) -> list[str]:
    """The doctor's command line for a deployment with these settings."""
    words = [
        str(ARGOSY),
        "doctor",
        "--account",
        "--fix",
        "--stage",
        settings.stage,
        "--settings",
        settings.to_json(),
    ]
    return [*words, "--profile", profile] if profile else words


def images_note(settings: Settings, engine: str) -> str:
    """The names of images that runs can use afterwards."""
    if settings.images:
        names = "every image" if settings.images == ALL_IMAGES else ", ".join(f"argosy/{n}" for n in settings.images)
        return f"Publishes {names}, built by {engine or 'docker'}."
    if engine:
        return "Publishes no image, as the settings say."
    first = ",".join(FIRST_IMAGES)
    return (
        f"Neither Docker nor podman answers, so argosy/{first} is not published; runs can use images from registries. "
        f'To publish it later: make deploy ARGS="-c images={first}"'
    )


def main(arguments: Sequence[str]) -> int:
    """2 when the settings are faulty, else the doctor's exit code."""
    context = context_of(arguments)
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--ask", default="yes")
    parser.add_argument("--profile")
    given, _ = parser.parse_known_args(list(arguments))
    try:
        settings = settings_of(cdk.App(context=context))
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    print(images_note(settings, str(context.get("engine", ""))), flush=True)
    if given.ask == "no":
        return 0
    status = subprocess.run(command(settings, given.profile), check=False).returncode
    if status:
        print(ALL_THE_SAME, file=sys.stderr)
        return status
    refresh(settings, given.profile)  # the list that the doctor has just quoted decides which fleets are made
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
