"""A plain HTTP request as a call on a model of an AWS service, and its result as a reply.

The codecs read botocore's own service models, so that unmodified boto3 programs and the AWS CLI work without any code
per operation. This module has the shared parts of all protocols, and JSON 1.1 (ECS). The EC2 query protocol is in
`ec2_query`.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any, Protocol

from botocore import xform_name
from botocore.exceptions import ClientError
from botocore.validate import ParamValidator

from argosy.emulator.botocore_check import service_model

# Codes that are AWS's fault, not the caller's: clients retry them.
_SERVER_FAULTS = frozenset({"ServerException", "InternalError", "InternalFailure", "ServiceUnavailable"})


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP reply, whole in memory."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


class BadRequestError(Exception):
    """A request that no model sees: unreadable, unknown operation or parameters of the wrong shape."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class WireRefusal:
    """An error as AWS answers it. details: further members of the reply."""

    code: str
    message: str
    status: int = 400
    details: Mapping[str, Any] = field(default_factory=dict)


class Wire(Protocol):
    """One protocol of one service."""

    service: Any  # botocore.model.ServiceModel

    def read(self, headers: Mapping[str, str], body: bytes) -> tuple[Any, dict[str, Any]]:
        """(operation model, parameters as boto3 names them). `headers` has lower-case keys. Raises BadRequestError."""

    def write(self, operation: Any, result: Mapping[str, Any], request_id: str) -> Reply:
        """The reply for a result in boto3's shape; members that the model does not know are left out."""

    def refuse(self, refusal: WireRefusal, request_id: str) -> Reply:
        """The reply for a refusal."""


def operation_model(service: Any, name: str, unknown_code: str) -> Any:
    """The named operation; BadRequestError with AWS's code for an operation that the service does not have."""
    if name not in service.operation_names:
        raise BadRequestError(unknown_code, f"The action {name!r} is not valid for this web service.")
    return service.operation_model(name)


def answer(wire: Wire, model: Any, headers: Mapping[str, str], body: bytes) -> Reply:
    """Read one request, call the model's method of that name, write the reply."""
    request_id = str(uuid.uuid4())
    try:
        operation, parameters = wire.read(headers, body)
        _validate(operation, parameters)
        method = getattr(model, xform_name(operation.name), None)
        if method is None:
            raise BadRequestError("InvalidAction", f"The embedded AWS does not offer {operation.name}.")
        return wire.write(operation, method(**parameters) or {}, request_id)
    except BadRequestError as refusal:
        return wire.refuse(WireRefusal(refusal.code, refusal.message), request_id)
    except ClientError as refusal:
        return wire.refuse(_refusal(refusal), request_id)


def _validate(operation: Any, parameters: Mapping[str, Any]) -> None:
    if operation.input_shape is not None:
        report = ParamValidator().validate(parameters, operation.input_shape)
        if report.has_errors():
            raise BadRequestError("InvalidParameterException", report.generate_report())


def _refusal(refusal: ClientError) -> WireRefusal:
    error = refusal.response.get("Error", {})
    details = {key: value for key, value in refusal.response.items() if key not in ("Error", "ResponseMetadata")}
    code = str(error.get("Code", "InternalError"))
    status = 500 if code in _SERVER_FAULTS else 400
    return WireRefusal(code, str(error.get("Message", "")), status, details)


class JsonWire:
    """JSON 1.1: the operation in X-Amz-Target, times as epoch seconds, errors as `__type`."""

    def __init__(self, service_name: str) -> None:
        self.service = service_model(service_name)
        self.target_prefix = str(self.service.metadata["targetPrefix"])

    def read(self, headers: Mapping[str, str], body: bytes) -> tuple[Any, dict[str, Any]]:
        """See Wire."""
        name = headers.get("x-amz-target", "").rpartition(".")[2]
        operation = operation_model(self.service, name, "UnknownOperationException")
        try:
            document = json.loads(body or b"{}")
        except (ValueError, RecursionError) as fault:
            raise BadRequestError("SerializationException", str(fault)) from fault
        if not isinstance(document, dict):
            raise BadRequestError("SerializationException", "the body must be a JSON object")
        return operation, _from_json(document, operation.input_shape) if operation.input_shape else {}

    def write(self, operation: Any, result: Mapping[str, Any], request_id: str) -> Reply:
        """See Wire."""
        return self._reply(200, _to_json(result, operation.output_shape) if operation.output_shape else {}, request_id)

    def refuse(self, refusal: WireRefusal, request_id: str) -> Reply:
        """See Wire."""
        document = {"__type": refusal.code, "message": refusal.message, **refusal.details}
        return self._reply(refusal.status, document, request_id)

    def _reply(self, status: int, document: Mapping[str, Any], request_id: str) -> Reply:
        headers = {"Content-Type": "application/x-amz-json-1.1", "x-amzn-RequestId": request_id}
        return Reply(status, json.dumps(document).encode(), headers)


# botocore recomputes it at each access, which was half of the time of an ECS reply.
@cache
def by_name(shape: Any) -> dict[str, tuple[str, Any]]:
    """Members of a structure: (name on the wire, shape) by boto3's name."""
    return {name: (member.serialization.get("name", name), member) for name, member in shape.members.items()}


@cache
def _by_wire_name(shape: Any) -> dict[str, tuple[str, Any]]:
    """The other way round: (boto3's name, shape) by name on the wire."""
    return {wire_name: (name, member) for name, (wire_name, member) in by_name(shape).items()}


def _from_json(value: Any, shape: Any) -> Any:
    """JSON to boto3's Python values; members unknown to the shape are ignored, as AWS does. Odd types are left to
    validation."""
    kind = shape.type_name
    if value is None:
        return None
    if kind == "structure" and isinstance(value, dict):
        members = _by_wire_name(shape)
        known = [(members[key], item) for key, item in value.items() if key in members and item is not None]
        return {name: _from_json(item, member) for (name, member), item in known}
    if kind == "list" and isinstance(value, list):
        return [_from_json(item, shape.member) for item in value]
    if kind == "map" and isinstance(value, dict):
        return {key: _from_json(item, shape.value) for key, item in value.items()}
    if kind == "timestamp" and isinstance(value, int | float):
        return datetime.fromtimestamp(value, UTC)
    if kind == "blob" and isinstance(value, str):
        return base64.b64decode(value)
    return value


_PLAIN = frozenset({"string", "character", "integer", "long", "float", "double", "boolean"})  # are as they are in JSON


@cache
def _to_wire(shape: Any) -> dict[str, tuple[str, Any]]:
    """Members of a structure by boto3's name: (name on the wire, shape, or None if the value stays as it is)."""
    return {
        name: (wire_name, None if member.type_name in _PLAIN else member)
        for name, (wire_name, member) in by_name(shape).items()
    }


def _to_json(value: Any, shape: Any) -> Any:
    """boto3's Python values to JSON."""
    kind = shape.type_name
    if kind == "structure":
        members = _to_wire(shape)
        known = [(members[name], item) for name, item in value.items() if name in members and item is not None]
        return {name: item if member is None else _to_json(item, member) for (name, member), item in known}
    if kind == "list":
        return list(value) if shape.member.type_name in _PLAIN else [_to_json(item, shape.member) for item in value]
    if kind == "map":
        return {str(key): _to_json(item, shape.value) for key, item in value.items()}
    if kind == "timestamp":
        return value.timestamp() if isinstance(value, datetime) else value
    if kind == "blob":
        return base64.b64encode(value).decode()
    return value


class OwnService:
    """A whole service of JSON 1.1 that a model answers: a `front.OwnPart`."""

    def __init__(self, name: str, model: Any) -> None:
        """name: as boto3 has it."""
        self._wire, self._model = JsonWire(name), model
        self.target = f"{self._wire.target_prefix}."

    def reply(self, headers: Mapping[str, str], body: bytes) -> Reply:
        return answer(self._wire, self._model, headers, body)
