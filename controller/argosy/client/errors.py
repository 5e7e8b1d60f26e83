"""What does a user's program hear when a request cannot be met?"""

from __future__ import annotations

from collections.abc import Sequence


class ArgosyError(Exception):
    """A refusal the user can act on: one sentence, and what to type next.

    details: further lines, such as every fault of a spec. is_users_fault: asking for something else puts it right;
    otherwise the fault is with AWS or the deployment.
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
    """What the user handed in is wrong."""

    def __init__(self, message: str, *, next_step: str = "", details: Sequence[str] = ()) -> None:
        super().__init__(message, next_step=next_step, details=details, is_users_fault=True)


def error_code(fault: Exception) -> str:
    """The code in an answer of AWS, such as AccessDeniedException; empty for everything else."""
    response = getattr(fault, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""
