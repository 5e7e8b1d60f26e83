"""What does the command say, and which exit code does it give, when something is wrong?

0 ok | 1 the run finished with failures | 2 usage or invalid spec | 3 AWS error | 4 wait timed out | 130 interrupted
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from argosy.client.errors import ArgosyError, error_code

OK = 0
RUN_FAILED = 1
USAGE = 2
AWS_FAULT = 3
WAIT_TIMED_OUT = 4
INTERRUPTED = 130

_DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError"})
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "UnrecognizedClientException"})


class CliError(ArgosyError):
    """A refusal with an exit code of its own."""

    def __init__(self, message: str, *, next_step: str = "", exit_code: int = USAGE, details: Sequence[str] = ()):
        super().__init__(message, next_step=next_step, details=details)
        self.exit_code = exit_code


def exit_code_of(error: ArgosyError) -> int:
    if isinstance(error, CliError):
        return error.exit_code
    return USAGE if error.is_users_fault else AWS_FAULT


def is_denied(fault: Exception) -> bool:
    return error_code(fault) in _DENIED


def is_from_aws(fault: Exception) -> bool:
    """Looked up by module name, so that a command that failed earlier need not import botocore."""
    return type(fault).__module__.partition(".")[0] in ("botocore", "boto3")


def from_aws(fault: Exception) -> CliError:
    """What botocore raised, as a sentence and a next step."""
    code = error_code(fault)
    if code:
        return CliError(f"AWS refused the call. {fault}", next_step=_next_step(code), exit_code=AWS_FAULT)
    kind = type(fault).__name__
    if kind in ("NoCredentialsError", "PartialCredentialsError"):
        step = "type `aws configure sso` or `aws configure`, or name a profile with --profile"
        return CliError("No AWS credentials were found.", next_step=step, exit_code=AWS_FAULT)
    if kind == "EndpointConnectionError":
        endpoint = getattr(fault, "kwargs", {}).get("endpoint_url", "the endpoint")
        step = "for local AWS type `argosy local`, else check --endpoint-url, --region and the network"
        return CliError(f"Nothing answers at {endpoint}.", next_step=step, exit_code=AWS_FAULT)
    return CliError(f"AWS could not be asked: {fault}", next_step="type `argosy doctor`", exit_code=AWS_FAULT)


def _next_step(code: str) -> str:
    if code in _DENIED:
        return "ask for the deployment's managed policy argosy-submitter, or name another --profile"
    if code in _EXPIRED:
        return "renew the credentials, e.g. `aws sso login`"
    return "type `argosy doctor` to see what is wrong"


def show(error: ArgosyError) -> None:
    """On standard error, so that what is piped stays clean."""
    typer.secho(f"error: {error.message}", err=True, fg="red")
    for line in error.details:
        typer.echo(f"  {line}", err=True)
    if error.next_step:
        typer.echo(f"next: {error.next_step}", err=True)


@contextmanager
def reported() -> Iterator[None]:
    """Turns what a command raises into a message and an exit code. Faults of our own keep their traceback."""
    try:
        yield
    except ArgosyError as error:
        show(error)
        raise typer.Exit(exit_code_of(error)) from error
    except KeyboardInterrupt as stop:
        typer.echo("Interrupted.", err=True)
        raise typer.Exit(INTERRUPTED) from stop
    except Exception as fault:
        if not is_from_aws(fault):
            raise
        said = from_aws(fault)
        show(said)
        raise typer.Exit(said.exit_code) from fault


def print_traceback(fault: BaseException) -> None:
    """A fault of Argosy's own: everything that helps to report it."""
    hook: Any = sys.excepthook
    hook(type(fault), fault, fault.__traceback__)
    typer.echo("This is a fault in Argosy itself: please report it with the lines above.", err=True)
