"""Which errors does a user's program get when a request cannot be met?"""

from __future__ import annotations

from collections.abc import Sequence

_DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError"})
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "UnrecognizedClientException"})


class ArgosyError(Exception):
    """A refusal the user can act on: one sentence, and what to type next.

    details: further lines, such as every fault of a spec. is_users_fault: a different request would succeed; otherwise
    the fault lies with AWS or the deployment.
    """

    def __init__(
        self, message: str, *, next_step: str = "", details: Sequence[str] = (), is_users_fault: bool = False
    ) -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step
        self.details = list(details)
        self.is_users_fault = is_users_fault


class InvalidInput(ArgosyError):
    """The user's input is wrong."""

    def __init__(self, message: str, *, next_step: str = "", details: Sequence[str] = ()) -> None:
        super().__init__(message, next_step=next_step, details=details, is_users_fault=True)


def error_code(fault: Exception) -> str:
    """The code in an answer of AWS, such as AccessDeniedException; empty for everything else."""
    response = getattr(fault, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


def is_denied(fault: Exception) -> bool:
    """Whether AWS refused the call for lack of rights."""
    return error_code(fault) in _DENIED


def is_from_aws(fault: Exception) -> bool:
    """Whether boto3 or botocore raised it. Looked up by module name, so that botocore need not be imported."""
    return type(fault).__module__.partition(".")[0] in ("botocore", "boto3")


def from_aws(fault: Exception) -> ArgosyError:
    """What botocore raised, as a sentence and a next step."""
    code = error_code(fault)
    if code:
        return ArgosyError(f"AWS refused the call. {fault}", next_step=_next_step(code))
    kind = type(fault).__name__
    if kind in ("NoCredentialsError", "PartialCredentialsError"):
        step = "type `aws configure sso` or `aws configure`, or name a profile with --profile"
        return ArgosyError("No AWS credentials were found.", next_step=step)
    if kind == "EndpointConnectionError":
        endpoint = getattr(fault, "kwargs", {}).get("endpoint_url", "the endpoint")
        step = "for local AWS type `argosy local`, else check --endpoint-url, --region and the network"
        return ArgosyError(f"Nothing answers at {endpoint}.", next_step=step)
    return ArgosyError(f"The call to AWS failed: {fault}", next_step="type `argosy doctor`")


def _next_step(code: str) -> str:
    if code in _DENIED:
        return "ask for the deployment's managed policy argosy-submitter, or name another --profile"
    if code in _EXPIRED:
        return "renew the credentials, e.g. `aws sso login`"
    return "type `argosy doctor` to see what is wrong"
