"""What is wrong with a schedule, and is it in the file or on the command line?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from argosy.cli.figures import counted
from argosy.cli.problems import CliError
from argosy.cli.runs.spec_source import SpecRefused
from argosy.client.api import ApiError

TYPED = {
    "name": "NAME",
    "expression": "--cron, --rate or --at",
    "zone": "--zone",
    "overlap": "--overlap",
    "startWithin": "--start-within",
}


@contextmanager
def refusals(options: Mapping[str, str] = TYPED) -> Iterator[None]:
    """Around what stores a schedule. Raises CliError: what was typed has no place in the spec's file. options: what is
    typed, by the path of its faults; none while the file is read, whose own name is meant by `name` then."""
    try:
        yield
    except SpecRefused as refusal:
        typed = [f"{options[each.path]}: {each.message}" for each in refusal.faults if each.path in options]
        placed = [each.text(refusal.name) for each in refusal.faults if each.path not in options]
        raise _unchanged(typed, placed, f"{refusal.name} has {counted(len(placed), 'fault')}") from refusal
    except ApiError as refusal:
        typed = [f"{options.get(path, path)}: {message}" for path, message in refusal.faults]
        if not typed:
            raise
        raise _unchanged(typed, [], "") from refusal


def _unchanged(typed: list[str], placed: list[str], of_file: str) -> CliError:
    if len(typed) == 1 and not placed:
        return CliError(f"{typed[0]}; no schedule was changed.")
    subject = of_file if not typed else f"there are {counted(len(typed) + len(placed), 'fault')}"
    return CliError(f"{subject}; no schedule was changed.", details=[*typed, *placed])
