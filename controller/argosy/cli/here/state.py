"""Where does local mode keep runs, results and logs? In the user's data folder unless something else is said."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from argosy.cli.problems import CliError


@dataclass(frozen=True)
class StateOptions:
    """What is there again when local mode is started again."""

    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            metavar="DIR",
            file_okay=False,
            help="Where runs, results and logs are kept over restarts. [default: argosy/local in your data folder]",
        ),
    ] = None
    no_state: Annotated[bool, typer.Option("--no-state", help="Keep nothing: all of it goes with the process.")] = False
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget what was kept, and begin anew.")] = False

    @property
    def folder(self) -> Path | None:
        """None: nothing is kept. Raises CliError for options that contradict each other."""
        from argosy.local.keeping.folder import default_folder

        if not self.no_state:
            return (self.state or default_folder()).absolute()
        if self.state is not None or self.fresh:
            other = "--fresh" if self.state is None else "--state"
            raise CliError(f"--no-state keeps nothing, so {other} says nothing: leave one of them out.")
        return None


@contextmanager
def refusals_told() -> Iterator[None]:
    """A folder that cannot be used is a sentence, with what can be done about it."""
    from argosy.local.keeping.folder import StateRefusedError

    try:
        yield
    except StateRefusedError as refused:
        raise CliError(str(refused), next_step=refused.step) from refused
