"""The commands of `argosy`. Each has its own module; heavy imports are inside their functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar

import typer

from argosy.cli import help, panels
from argosy.cli.cluster import instances, prices, queues
from argosy.cli.deployment import access, doctor
from argosy.cli.here import local
from argosy.cli.here.demo import command as demo
from argosy.cli.late import Late, LateGroup
from argosy.cli.outside_text import say
from argosy.cli.problems import AWS_FAULT, USAGE, print_traceback
from argosy.cli.runs import (
    attempts,
    cost,
    events,
    exec,
    explain,
    logs,
    plan,
    results,
    retry,
    run,
    status,
    submit,
    tasks,
    ui,
    update,
    validate,
    watch,
)
from argosy.cli.start import lacking

_ENV = "Services and daemons: create, deploy, update, scale, roll back."
_QUERY = "Show which instances a placement expression matches."
_SCHEDULE = "Start runs on a schedule."
_CATALOGUE = "Instance types: their sizes and prices."


class Commands(LateGroup):
    """All of them. Modules that are slow to import are only named here, with the first line of their help."""

    late: ClassVar[Mapping[str, Late]] = {
        "env": Late("argosy.cli.services.command", _ENV, panels.SERVICES),
        "query": Late("argosy.cli.cluster.query", _QUERY, panels.CLUSTER),
        "report": Late("argosy.cli.runs.report", "Runs as a page; benchmarks side by side.", panels.RUNS),
        "schedule": Late("argosy.cli.schedules.command", _SCHEDULE, panels.SCHEDULES),
        "catalogue": Late("argosy.cli.cluster.catalogue.command", _CATALOGUE, panels.CLUSTER),
    }


_RUNS = (
    run,
    submit,
    plan,
    watch,
    status,
    tasks,
    attempts,
    ui,
    retry,
    update,
    explain,
    cost,
    results,
    logs,
    exec,
    events,
    validate,
)
app = typer.Typer(
    name="argosy",
    cls=Commands,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for part in (*_RUNS, instances, queues, prices, doctor, access, local, demo):
    part.register(app)
help.register(app, panels.HERE)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        say(f"argosy {version('argosy')}")
        raise typer.Exit


@app.callback(
    epilog="Start here: `argosy demo` needs no AWS account. Exit codes: 0 ok, 1 the run has failures, "
    "2 usage or invalid spec, 3 AWS error, 4 wait timed out, 130 interrupted."
)
def argosy(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Massive batch computations in containers on Amazon ECS over EC2 Spot."""


def main(program: Callable[[], object] = app) -> None:
    """The entry point. A fault of Argosy's own exits 3, so that 1 keeps its meaning: the run has failures."""
    try:
        program()
    except Exception as fault:
        if said := lacking(fault):
            say(said, err=True)
            raise SystemExit(USAGE) from fault
        print_traceback(fault)
        raise SystemExit(AWS_FAULT) from fault
