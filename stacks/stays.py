"""What will `make destroy` delete, and what stays?

The same code as the CDK's reads the arguments. `python -m stacks.stays -c results=destroy` prints the answer. `python
-m stacks.stays --cell eu-west-1` prints the name of the stack of one further cell, which `make destroy-cell` destroys
alone. An option given with -c at deployment has to be given again: without `-c images=true` that stack is not among
those that the CDK destroys.
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
from stacks.arguments import settings_of
from stacks.deployment import cell_stack_name, stack_names

CDK_JSON = Path("cdk.json")
_BUCKET = {
    "retain": "The results bucket and its contents are KEPT (setting results: retain); delete it yourself later.",
    "destroy": "The results bucket and its contents are DELETED (setting results: destroy).",
}


def context_of(arguments: Sequence[str]) -> dict[str, Any]:
    """cdk.json's context with the `-c` and `--context` of a cdk command line; its other arguments are ignored."""
    given = _given(arguments)
    context = dict(json.loads(CDK_JSON.read_text()).get("context", {}))
    return context | {name: value for name, _, value in (each.partition("=") for each in given.context)}


def _given(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-c", "--context", action="append", default=[])
    parser.add_argument("--cell")
    given, _ = parser.parse_known_args(list(arguments))
    return given


def stack_of(settings: Settings, cell: str) -> str:
    """The stack of one further cell. Raises ValueError with a sentence for any other Region."""
    further = settings.cells[1:]
    if cell in further:
        return cell_stack_name(settings, cell)
    if cell == settings.region:
        raise ValueError(f"{cell} is home: make destroy takes down the whole deployment")
    known = ", ".join(further) or "none"
    raise ValueError(
        f"{cell} is not a further cell of these settings (they name: {known}). Name it for this command, as in the "
        f'deployment that made it: ARGS="-c cells={",".join(settings.cells)},{cell}"'
    )


def lines(settings: Settings) -> list[str]:
    """The message before anything is destroyed."""
    names = ", ".join(stack_names(settings))
    return [
        f"This destroys {names} and nothing else. Give the same ARGS as for `make deploy`: they decide which stacks.",
        _BUCKET[settings.results] + " The deployed setting decides about the bucket, not this command's.",
    ]


def main(arguments: Sequence[str]) -> int:
    """2 when the settings are faulty, or the cell is not one of theirs."""
    try:
        settings = settings_of(cdk.App(context=context_of(arguments)))
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    cell = _given(arguments).cell
    if cell is None:
        print("\n".join(lines(settings)))
        return 0
    try:
        print(stack_of(settings, cell))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
