"""Which commands has `argosy`? What each does is in its own module; heavy imports are inside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, ClassVar

import typer

from controller.cli import (
    cluster_prices,
    cost,
    demo,
    doctor,
    explain,
    local,
    logs,
    plan,
    results,
    retry,
    runs,
    submit,
    watch,
)
from controller.cli.late import Late, LateGroup
from controller.cli.problems import AWS_FAULT, print_traceback


class Commands(LateGroup):
    """All of them; those of modules that are slow to import are named here."""

    late: ClassVar = {
        "query": Late("controller.cli.query", "Which instances does a placement expression choose?", runs.SEE_PANEL),
        "report": Late("controller.cli.report", "Benchmark runs side by side.", runs.RUN_PANEL),
        "demo-tensorflow": Late(
            "controller.cli.demo_tensorflow",
            "TensorFlow here: train, classify, benchmark.",
            local.TRY_PANEL,
        ),
        "simulate": Late(
            "controller.cli.simulate",
            "Run the controller in a simulated AWS with faults.",
            local.TRY_PANEL,
        ),
        "catalogue": Late("controller.cli.catalogue", "Instance types: what they hold and cost.", runs.SEE_PANEL),
        "bench": Late("controller.cli.bench", "Measure Argosy on this machine.", local.TRY_PANEL),
    }


app = typer.Typer(
    name="argosy",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for part in (submit, plan, watch, runs, retry, explain, cost, results, logs, cluster_prices, doctor, local, demo):
    part.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"argosy {version('argosy')}")
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
        print_traceback(fault)
        raise SystemExit(AWS_FAULT) from fault
