"""How does a user say on the command line when something is to start, and how?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from argosy.cli.problems import CliError
from argosy.model.run_terms import duration_of
from argosy.model.schedules.record import Overlap

ScheduleArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the schedule.")]


@dataclass(frozen=True)
class Times:
    """When it fires: one of the three, and what its clock shows."""

    cron: Annotated[
        str | None,
        typer.Option("--cron", metavar="FIELDS", help="Six fields of AWS's cron: '0 3 * * ? *' is at three."),
    ] = None
    rate: Annotated[str | None, typer.Option("--rate", metavar="TIME", help="Every so often: '6 hours'.")] = None
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="Once: 2026-12-24T18:00, as the clock of the zone shows.")
    ] = None
    zone: Annotated[
        str | None, typer.Option("--zone", metavar="ZONE", help="Such as Europe/Berlin. [default: UTC]")
    ] = None

    def expression(self) -> str | None:
        """As EventBridge Scheduler takes it; None when nothing was given. Raises CliError for more than one."""
        given = {"cron": self.cron, "rate": self.rate, "at": self.at}
        found = [(kind, text) for kind, text in given.items() if text is not None]
        if len(found) > 1:
            raise CliError(f"--{found[0][0]} and --{found[1][0]} exclude each other: a schedule has one of them.")
        for kind, text in found:
            whole = f"{text}:00" if kind == "at" and text.count(":") == 1 else text
            return f"{kind}({whole.strip()})"
        return None


@dataclass(frozen=True)
class OverlapRules:
    """What becomes of a time."""

    overlap: Annotated[
        Overlap | None,
        typer.Option("--overlap", help="At a time at which a run of it is still open. [default: skip]"),
    ] = None
    start_within: Annotated[
        str | None,
        typer.Option(
            "--start-within", metavar="DURATION", help="A time nobody came for so long is missed. [default: 30m]"
        ),
    ] = None

    def fields(self) -> dict[str, Any]:
        """What was given, as the api takes it. Raises CliError."""
        found: dict[str, Any] = {} if self.overlap is None else {"overlap": self.overlap.value}
        if self.start_within is not None:
            seconds = duration_of(self.start_within)
            if seconds is None:
                raise CliError(f"--start-within {self.start_within!r} is no duration: write 30m, 2h or 90s.")
            found["startWithin"] = int(seconds)
        return found
