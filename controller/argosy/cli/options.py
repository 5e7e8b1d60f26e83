"""Which arguments and options do several commands share?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from argosy.cli import completing

_MEANT = "a run's id, the beginning of it, its name (the newest one), or `last`"
RunId = Annotated[
    str, typer.Argument(metavar="RUN", help=f"{_MEANT[0].upper()}{_MEANT[1:]}.", autocompletion=completing.runs)
]
RunsOf = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help=f"{_MEANT[0].upper()}{_MEANT[1:]}; an environment's name means all of its runs.",
        autocompletion=completing.runs,
    ),
]
AnyRunId = Annotated[
    str | None,
    typer.Argument(metavar="RUN", help=f"Only this one: {_MEANT}.", show_default=False, autocompletion=completing.runs),
]
SpecFile = Annotated[Path, typer.Argument(metavar="FILE", help="Run spec in YAML or JSON; - reads standard input.")]
SpecFiles = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="Run specs in YAML or JSON; - reads standard input.")
]
WaitTimeout = Annotated[
    float | None, typer.Option("--wait-timeout", min=0, metavar="SECONDS", help="Stop waiting then: exit code 4.")
]
