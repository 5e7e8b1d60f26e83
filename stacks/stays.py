"""What will `make destroy` take away, and what stays? Read from the arguments that the CDK is given, by the same code.

`python -m stacks.stays -c results=destroy` prints it. What was switched on with -c at deploy has to be named again:
without `-c images=true` that stack is not among those that the CDK destroys.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aws_cdk as cdk

from argosy.settings.settings import Settings, SettingsError
from stacks.deployment import stack_names
from stacks.given import settings_of

CDK_JSON = Path("cdk.json")
_BUCKET = {
    "retain": "The results bucket STAYS with all that is in it (setting results: retain); delete it yourself later.",
    "destroy": "The results bucket is DELETED with all that is in it (setting results: destroy).",
}


def context_of(arguments: Sequence[str]) -> dict[str, Any]:
    """cdk.json's context with the `-c` and `--context` of a cdk command line; its other arguments are passed over."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-c", "--context", action="append", default=[])
    given, _ = parser.parse_known_args(list(arguments))
    context = dict(json.loads(CDK_JSON.read_text()).get("context", {}))
    return context | {name: value for name, _, value in (each.partition("=") for each in given.context)}


def lines(settings: Settings) -> list[str]:
    """What to say before anything is destroyed."""
    names = ", ".join(stack_names(settings))
    return [
        f"This destroys {names} and nothing else. Give the same ARGS as to make deploy: they decide which stacks.",
        _BUCKET[settings.results] + " The bucket goes by what was deployed, not by what is said now.",
    ]


def main(arguments: Sequence[str]) -> int:
    """2 when the settings are faulty."""
    try:
        settings = settings_of(cdk.App(context=context_of(arguments)))
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(lines(settings)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
