"""Messages and exit codes of a command when something is wrong.

0 ok | 1 the run finished with failures | 2 usage or invalid spec | 3 AWS error | 4 wait timed out | 130 interrupted
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from argosy.cli.outside_text import say
from argosy.cli.own_name import as_typed
from argosy.client.errors import ArgosyError, from_aws, is_from_aws
from argosy.figures.markup import visible

OK = 0
RUN_FAILED = 1
USAGE = 2
AWS_FAULT = 3
WAIT_TIMED_OUT = 4
INTERRUPTED = 130


class CliError(ArgosyError):
    """A refusal that chooses its exit code."""

    def __init__(self, message: str, *, next_step: str = "", exit_code: int = USAGE, details: Sequence[str] = ()):
        super().__init__(message, next_step=next_step, details=details)
        self.exit_code = exit_code


def exit_code_of(error: ArgosyError) -> int:
    if isinstance(error, CliError):
        return error.exit_code
    return USAGE if error.is_users_fault else AWS_FAULT


def show(error: ArgosyError) -> None:
    """On standard error, so that piped output stays clean."""
    colour = None if os.environ.get("NO_COLOR") or os.environ.get("TERM", "").lower() == "dumb" else "red"
    typer.secho(visible(f"error: {error.message}"), err=True, fg=colour)
    for line in error.details:
        say(f"  {line}", err=True)
    if error.next_step:
        say(f"next: {as_typed(error.next_step)}", err=True)


@contextmanager
def reported() -> Iterator[None]:
    """Turns an exception of a command into a message and an exit code. Argosy's own faults keep their traceback."""
    try:
        yield
    except ArgosyError as error:
        show(error)
        raise typer.Exit(exit_code_of(error)) from error
    except KeyboardInterrupt as stop:
        say("Interrupted.", err=True)
        raise typer.Exit(INTERRUPTED) from stop
    except Exception as fault:
        if not is_from_aws(fault):
            raise
        refusal = from_aws(fault)
        show(refusal)
        raise typer.Exit(exit_code_of(refusal)) from fault


def print_traceback(fault: BaseException) -> None:
    """A fault of Argosy's own, with everything that helps to report it."""
    hook: Any = sys.excepthook
    hook(type(fault), fault, fault.__traceback__)
    say("This is a bug in Argosy: please report it with the lines above.", err=True)
