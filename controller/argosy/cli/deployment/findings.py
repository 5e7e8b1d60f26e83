"""The finding of a check of `argosy doctor`, or the reason why the check failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from argosy.cli.deployment.remedies import NO_RIGHT, NO_RIGHT_IN_ORGANIZATION
from argosy.client.errors import ArgosyError, error_code, from_aws, is_denied, is_from_aws


@dataclass(frozen=True)
class Finding:
    """state: ok; note = works, but worth checking; wrong = runs will not work; denied = the user lacks the right to
    check."""

    name: str
    state: str
    says: str
    type_this: str = ""

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "state": self.state, "says": self.says, "next": self.type_this or None}


Check = Callable[[], list[Finding]]


def ok(name: str, says: str) -> list[Finding]:
    return [Finding(name, "ok", says)]


def wrong(name: str, says: str, type_this: str) -> list[Finding]:
    return [Finding(name, "wrong", says, type_this)]


def note(name: str, says: str, type_this: str = "") -> list[Finding]:
    return [Finding(name, "note", says, type_this)]


def looked_at(name: str, check: Check) -> list[Finding]:
    """The findings of a check. A call that AWS refuses or that fails is a finding too."""
    try:
        return check()
    except ArgosyError as error:
        return wrong(name, error.message, error.next_step)
    except Exception as fault:
        if is_denied(fault):
            operation = getattr(fault, "operation_name", "this")
            by_organization = "service control policy" in str(fault)
            says = f"cannot tell: you may not call {operation}" + (f": {fault}" if by_organization else "")
            return [Finding(name, "denied", says, NO_RIGHT_IN_ORGANIZATION if by_organization else NO_RIGHT)]
        if not is_from_aws(fault):
            raise
        said = from_aws(fault)
        return wrong(name, said.message, said.next_step)


def missing(fault: Exception, *codes: str) -> bool:
    """Whether AWS answered that the thing does not exist."""
    return error_code(fault) in codes
