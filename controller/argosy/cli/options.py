"""Which arguments and options do several commands share?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RunId = Annotated[str, typer.Argument(metavar="RUN", help="The run id that `argosy submit` printed.")]
SpecFile = Annotated[Path, typer.Argument(metavar="FILE", help="Run spec in YAML or JSON; - reads standard input.")]
WaitTimeout = Annotated[
    float | None, typer.Option("--wait-timeout", min=0, metavar="SECONDS", help="Stop waiting then: exit code 4.")
]
