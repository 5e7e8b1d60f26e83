"""Refusals: a user's error becomes an envelope, not an exception."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.spec.faults import Fault

_STATUS_CODES = {
    "ValidationException": 400,
    "AccessDeniedException": 403,
    "ResourceNotFoundException": 404,
    "ConflictException": 409,
    "ChangesExpired": 410,
    "ThrottlingException": 429,
}


class RequestRefused(Exception):
    """A user's error, which becomes a reply."""

    def __init__(self, code: str, message: str, faults: Sequence[Fault] = ()) -> None:
        super().__init__(message)
        self.code, self.message, self.faults = code, message, faults


def conflict(message: str) -> RequestRefused:
    """The request contradicts what is stored."""
    return RequestRefused("ConflictException", message)


def not_found(message: str) -> RequestRefused:
    """The request names something that does not exist."""
    return RequestRefused("ResourceNotFoundException", message)


def throttled(message: str) -> RequestRefused:
    """The same request may succeed later."""
    return RequestRefused("ThrottlingException", message)


def envelope_of_error(code: str, message: str, request_id: str, faults: Sequence[Fault] = ()) -> dict[str, Any]:
    """An error as users get it. Codes without a status in the table are faults of ours: 500."""
    error: dict[str, Any] = {"code": code, "message": message, "requestId": request_id}
    error["fieldList"] = [{"path": fault.path, "message": fault.message} for fault in faults]
    return {"statusCode": _STATUS_CODES.get(code, 500), "body": {"error": error}}


def envelope_of_faults(faults: Sequence[Fault], request_id: str) -> dict[str, Any]:
    """The same for invalid fields."""
    message = "1 field is invalid" if len(faults) == 1 else f"{len(faults)} fields are invalid"
    return envelope_of_error("ValidationException", message, request_id, faults)
