"""The errors that a user's program gets if a request cannot be met."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TypeVar

T = TypeVar("T")

_DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError"})
_SOON = "try again in a few seconds"
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "UnrecognizedClientException"})
# botocore's own, before any call: of IAM Identity Center, and of `aws login`.
_SIGN_IN = {
    **dict.fromkeys(("SSOTokenLoadError", "TokenRetrievalError", "UnauthorizedSSOTokenError"), "aws sso login"),
    **dict.fromkeys(("LoginRefreshRequired", "LoginTokenLoadError"), "aws login"),
}
# Each service has its own code for a request that is signed with a wrong time: JSON services, STS, S3, and two of EC2.
_NOT_SIGNED_WELL = frozenset(
    {"InvalidSignatureException", "SignatureDoesNotMatch", "RequestTimeTooSkewed", "RequestExpired", "AuthFailure"}
)
_WITHOUT_CODE = "403"  # the reply to a HEAD of S3 has no body
_LOCAL_KEY = 'eval "$(argosy local env)"'  # what local mode says of another key
_CLOCK_S = 240.0  # AWS takes five minutes of difference, and S3 fifteen
_SET_THE_CLOCK = "set this machine's clock: `sudo timedatectl set-ntp true`, or `sudo chronyc makestep`"


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

    def __str__(self) -> str:
        """The text for a traceback: the sentence, and every detail below it."""
        return "\n  ".join([self.message, *self.details])


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


def answer_or(otherwise: T, ask: Callable[[], T]) -> T:
    """The answer of a deployment; `otherwise` if none can be reached or it refuses. For answers that are optional.
    Faults of ours are raised.
    """
    try:
        return ask()
    except ArgosyError:
        return otherwise
    except Exception as fault:
        if not is_from_aws(fault):
            raise
        return otherwise


def from_aws(fault: Exception) -> ArgosyError:
    """An error of botocore as a sentence and a next step."""
    code = error_code(fault)
    if _http_status(fault) == HTTPStatus.SERVICE_UNAVAILABLE:
        return ArgosyError("The endpoint is not ready: local mode may still be starting.", next_step=_SOON)
    if code and _LOCAL_KEY in str(fault):
        step = f"type `{_LOCAL_KEY}` in this shell, with the --port of that local mode"
        return ArgosyError("Local mode did not accept the access key: it takes its own only.", next_step=step)
    if code:
        clock = _clock(fault) if code in {*_NOT_SIGNED_WELL, _WITHOUT_CODE} else ""
        return ArgosyError(f"AWS refused the call{clock}. {fault}", next_step=_next_step(code, bool(clock)))
    return _about_credentials(fault) or _about_the_endpoint(fault)


def _about_credentials(fault: Exception) -> ArgosyError | None:
    """Before any call: botocore finds none that it can use."""
    kind = type(fault).__name__
    if kind in ("NoCredentialsError", "PartialCredentialsError"):
        step = (
            "type `aws configure sso` or `aws configure`, or name a profile with --profile; without an account, type "
            "`argosy local` in another terminal and here `export ARGOSY_ENDPOINT_URL=http://127.0.0.1:4566`"
        )
        return ArgosyError("No AWS credentials were found.", next_step=step)
    if kind == "ProfileNotFound":
        name = str(getattr(fault, "kwargs", {}).get("profile", ""))
        step = f"`aws configure list-profiles` shows those there are; `aws configure sso --profile {name}` makes it"
        return ArgosyError(f"There is no profile {name} in the AWS configuration.", next_step=step)
    if kind in _SIGN_IN:
        return ArgosyError(f"The sign-in has expired or was never made: {fault}", next_step=_sign_in(_SIGN_IN[kind]))
    return None


def _about_the_endpoint(fault: Exception) -> ArgosyError:
    kind = type(fault).__name__
    if kind == "EndpointConnectionError":
        endpoint = str(getattr(fault, "kwargs", {}).get("endpoint_url", "the endpoint"))
        step = "for local AWS, type `argosy local`; otherwise check --endpoint-url, --region and the network"
        return ArgosyError(f"Nothing answers at {endpoint}{_named_by(endpoint)}.", next_step=step)
    if kind == "ResponseParserError":
        step = "check --endpoint-url, ARGOSY_ENDPOINT_URL and AWS_ENDPOINT_URL"
        return ArgosyError("The endpoint does not answer like AWS.", next_step=step)
    return ArgosyError(f"The call to AWS failed: {fault}", next_step="type `argosy doctor`")


def _sign_in(command: str) -> str:
    profile = os.environ.get("AWS_PROFILE", "")
    return f"type `{command} --profile {profile}`" if profile else f"type `{command}`, with the --profile that you use"


def _named_by(endpoint: str) -> str:
    """The variable that named the endpoint, which is easily forgotten."""
    names = ("ARGOSY_ENDPOINT_URL", "AWS_ENDPOINT_URL")
    found = next((name for name in names if (url := os.environ.get(name)) and endpoint.startswith(url)), "")
    return f", from {found}" if found else ""


def _http_status(fault: Exception) -> int:
    response = getattr(fault, "response", None)
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)) if isinstance(response, dict) else 0


def _clock(fault: Exception) -> str:
    """By how much this machine's clock differs from the date of AWS's reply; empty if AWS accepts that, or has no
    date."""
    headers = getattr(fault, "response", {}).get("ResponseMetadata", {}).get("HTTPHeaders", {})
    try:
        ahead_s = time.time() - parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, ValueError):
        return ""
    if abs(ahead_s) < _CLOCK_S:
        return ""
    return f": this machine's clock is {abs(ahead_s) / 60:,.0f} minutes {'ahead of' if ahead_s > 0 else 'behind'} AWS's"


def _next_step(code: str, is_clock: bool) -> str:
    if is_clock:
        return _SET_THE_CLOCK
    if code in _NOT_SIGNED_WELL:
        return "check the secret access key, e.g. with `aws configure`, and this machine's clock"
    if code in _DENIED:
        member = "or, as a member of a queue, --as-queue QUEUE"
        return f"ask for the deployment's managed policy argosy-submitter, or use another --profile, {member}"
    if code in _EXPIRED:
        return _sign_in("aws sso login")
    return "type `argosy doctor` to see what is wrong"
