"""Which commands has `argosy`? What each does is in its own module; heavy imports are inside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, ClassVar

import typer

from argosy.cli.cluster import prices
from argosy.cli.deployment import doctor
from argosy.cli.here import demo, local
from argosy.cli.late import Late, LateGroup
from argosy.cli.problems import AWS_FAULT, print_traceback
from argosy.cli.runs import cost, explain, logs, plan, reading, results, retry, submit, watch


class Commands(LateGroup):
    """All of them; those of modules that are slow to import are named here."""

    late: ClassVar = {
        "query": Late("argosy.cli.cluster.query", "Which instances an expression chooses.", reading.SEE_PANEL),
        "report": Late("argosy.cli.runs.report", "Benchmark runs side by side.", reading.RUN_PANEL),
        "demo-tensorflow": Late(
            "argosy.cli.here.demo_tensorflow",
            "TensorFlow here: train, classify, benchmark.",
            local.TRY_PANEL,
        ),
        "simulate": Late(
            "argosy.cli.here.simulate",
            "Run the controller in a simulated AWS with faults.",
            local.TRY_PANEL,
        ),
        "catalogue": Late("argosy.cli.cluster.catalogue", "Instance types: size and price.", reading.SEE_PANEL),
        "bench": Late("argosy.cli.bench.place", "Measure Argosy on this machine.", local.TRY_PANEL),
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
for part in (submit, plan, watch, reading, retry, explain, cost, results, logs, prices, doctor, local, demo):
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
