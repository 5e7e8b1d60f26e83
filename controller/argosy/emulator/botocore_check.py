"""Do requests and replies of a model have the shapes that AWS's own service models prescribe?

`SimulatedClient` replaces a boto3 client over any model with boto3-style methods: adapters run on it unchanged. In
strict mode a member that AWS does not know, or one of another type, is an error in requests and in replies.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from types import SimpleNamespace
from typing import Any

from botocore import xform_name
from botocore.errorfactory import ClientExceptionsFactory
from botocore.exceptions import ClientError, OperationNotPageableError, ParamValidationError
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.paginate import Paginator, PaginatorModel
from botocore.validate import ParamValidator

JSON = dict[str, Any]


class ShapeMismatch(AssertionError):
    """A reply that AWS could not have given: the model is wrong."""


class SimulatedClient:
    """A boto3 client's methods over `model`, its paginators and its modelled exceptions. Not the waiters.

    Raises boto3's errors: ParamValidationError, and ClientError or its modelled subclass. With `strict` off shapes
    are not checked (for a simulation of a million tasks) and replies share parts with the model.
    """

    checks_replies = True
    """Off where they are copies already, of a model that is checked elsewhere."""

    def __init__(self, model: Any, service: str, *, strict: bool = True, region: str = "us-east-1") -> None:
        self._model = model
        self._service = service_model(service)
        self._strict = strict
        self.exceptions = _exceptions(service)
        self.meta = SimpleNamespace(region_name=region, service_model=self._service)
        self._methods: dict[str, Callable[..., JSON]] = {}

    def __getattr__(self, name: str) -> Callable[..., JSON]:
        operation_name = _operations(self._service.service_name).get(name)
        if operation_name is None:
            raise AttributeError(f"{self._service.service_name} has no operation {name!r}")
        method = getattr(self._model, name, None)
        if method is None:
            raise NotImplementedError(f"the simulation does not offer {operation_name}")
        return self._methods.setdefault(name, self._bound(operation_name, method))

    def can_paginate(self, name: str) -> bool:
        """Whether botocore knows how to page through this operation."""
        return _operations(self._service.service_name).get(name) in _pagination(self._service.service_name)

    def get_paginator(self, name: str) -> Paginator:
        """botocore's own paginator with its own configuration."""
        if not self.can_paginate(name):
            raise OperationNotPageableError(operation_name=name)
        operation_name = _operations(self._service.service_name)[name]
        config = PaginatorModel({"pagination": dict(_pagination(self._service.service_name))})
        operation = self._service.operation_model(operation_name)
        return Paginator(getattr(self, name), config.get_paginator(operation_name), operation)

    def close(self) -> None:
        """There is nothing to close."""

    def _bound(self, operation_name: str, method: Callable[..., JSON]) -> Callable[..., JSON]:
        operation = self._service.operation_model(operation_name)

        def call(**request: Any) -> JSON:
            if self._strict:
                check_request(operation, request)
            try:
                reply = method(**request)
            except ClientError as error:
                if self._strict:
                    check_code(operation, error.response["Error"]["Code"])
                raise self._modelled(error) from None
            reply = check_reply(operation, reply) if self._strict and self.checks_replies else dict(reply)
            reply["ResponseMetadata"] = {"RequestId": "simulated", "HTTPStatusCode": 200, "RetryAttempts": 0}
            return reply

        return call

    def _modelled(self, error: ClientError) -> ClientError:
        kind = self.exceptions.from_code(error.response["Error"]["Code"])
        return kind(error.response, error.operation_name)


def check_request(operation: Any, request: Mapping[str, Any]) -> None:
    """Raises botocore's ParamValidationError, as boto3 does before it sends anything."""
    if operation.input_shape is not None and _is_valid(operation.input_shape)(request):
        return
    report = ParamValidator().validate(request, operation.input_shape)
    if report.has_errors():
        raise ParamValidationError(report=report.generate_report())


# The errors that any operation may raise, besides those that its model names:
# https://docs.aws.amazon.com/AmazonECS/latest/APIReference/CommonErrors.html and DynamoDB's and SQS's pages like it.
COMMON_ERRORS = frozenset({"AccessDeniedException", "ThrottlingException", "ValidationException", "ServiceUnavailable"})


def check_code(operation: Any, code: str) -> None:
    """Raises ShapeMismatch for an error that AWS's model of the operation does not name. EC2's and S3's name none."""
    named = {shape.metadata.get("error", {}).get("code", shape.name) for shape in operation.error_shapes}
    named |= {shape.name for shape in operation.error_shapes}
    if operation.service_model.service_name in ("ecs", "dynamodb", "sqs") and code not in named | COMMON_ERRORS:
        raise ShapeMismatch(f"{operation.name}: AWS names no error {code}, only {', '.join(sorted(named))}")


def check_reply(operation: Any, reply: Mapping[str, Any]) -> JSON:
    """A deep copy of the reply. Raises ShapeMismatch with the path of what is wrong."""
    if operation.output_shape is None:
        if reply:
            raise ShapeMismatch(f"{operation.name}: the reply should be empty")
        return {}
    try:
        return _copier(operation.output_shape)(reply)  # type: ignore[no-any-return]
    except ShapeMismatch as wrong:
        raise ShapeMismatch(f"{operation.name}{wrong}") from None


@cache
def service_model(service: str) -> Any:
    """botocore's description of a service, loaded once: for EC2 that takes a second."""
    return ServiceModel(Loader().load_service_model(service, "service-2"), service)


@cache
def _exceptions(service: str) -> Any:
    """The modelled exceptions, as a client's `exceptions` has them."""
    return ClientExceptionsFactory().create_client_exceptions(service_model(service))


@cache
def _operations(service: str) -> Mapping[str, str]:
    """boto3's method names and the operations they stand for."""
    return {xform_name(name): name for name in service_model(service).operation_names}


@cache
def _pagination(service: str) -> Mapping[str, Any]:
    return Loader().load_service_model(service, "paginators-1")["pagination"]  # type: ignore[no-any-return]


Copier = Callable[[Any], Any]  # a copy of a value that has the shape, or raises ShapeMismatch


@cache
def _copier(shape: Any) -> Copier:
    """Made once for each shape, for a simulation checks millions of values."""
    return _MAKERS.get(shape.type_name, _scalar)(shape)


def _structure(shape: Any) -> Copier:
    members, required = shape.members, frozenset(shape.required_members)
    known = members.keys()
    copiers: dict[str, Copier] = {}  # each made at its first value: a shape may hold itself

    def made(name: str) -> Copier:
        return copiers.setdefault(name, _copier(members[name]))

    def refuse(value: Any) -> None:
        _expect(isinstance(value, dict), value, shape)
        if unknown := value.keys() - known:
            raise ShapeMismatch(f": AWS has no {', '.join(sorted(unknown))} in {shape.name}")
        raise ShapeMismatch(f": {', '.join(sorted(required - value.keys()))} must be there in {shape.name}")

    def copy(value: Any) -> JSON:
        if not isinstance(value, dict) or not required <= value.keys() <= known:
            refuse(value)
        copied, name = {}, ""
        try:
            for name, each in value.items():
                copied[name] = (copiers.get(name) or made(name))(each)
        except ShapeMismatch as wrong:
            raise ShapeMismatch(f".{name}{wrong}") from None
        return copied

    return copy


def _map(shape: Any) -> Copier:
    copier = _copier(shape.value)

    def copy(value: Any) -> JSON:
        _expect(isinstance(value, dict), value, shape)
        name = ""
        try:
            return {(name := key): copier(each) for key, each in value.items()}
        except ShapeMismatch as wrong:
            raise ShapeMismatch(f".{name}{wrong}") from None

    return copy


def _list(shape: Any) -> Copier:
    copier = _copier(shape.member)

    def copy(value: Any) -> list[Any]:
        _expect(isinstance(value, list), value, shape)
        place = 0
        try:
            return [copier(value[place := at]) for at in range(len(value))]
        except ShapeMismatch as wrong:
            raise ShapeMismatch(f"[{place}]{wrong}") from None

    return copy


def _string(shape: Any) -> Copier:
    enum = frozenset(shape.enum)

    def copy(value: Any) -> Any:
        if not isinstance(value, str) or (enum and value not in enum):
            _expect(False, value, shape)
        return value

    return copy


def _scalar(shape: Any) -> Copier:
    kind = shape.type_name

    def copy(value: Any) -> Any:
        _expect(_is_scalar(value, kind), value, shape)
        return value

    return copy


_MAKERS: Mapping[str, Callable[[Any], Copier]] = {
    "structure": _structure,
    "map": _map,
    "list": _list,
    "string": _string,
}
_SCALARS: Mapping[str, Any] = {"character": str, "integer": int, "long": int, "blob": (bytes, bytearray, io.IOBase)}


def _is_scalar(value: Any, kind: str) -> bool:
    if isinstance(value, bool) or kind == "boolean":
        return isinstance(value, bool) and kind == "boolean"
    if kind == "timestamp":
        return isinstance(value, datetime) and value.tzinfo is not None
    return isinstance(value, _SCALARS.get(kind, (int, float)))


def _expect(right: bool, value: Any, shape: Any) -> None:
    if not right:
        raise ShapeMismatch(f": {value!r:.80} is no {shape.type_name} of {shape.name}")


# botocore's validator takes a tenth of the controller's time in local mode. So functions that are made once for each
# shape accept what it certainly accepts; it decides about the rest, and words its refusals.
Acceptance = Callable[[Any], bool]
_TYPES: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "long": int,
    "boolean": bool,
    "float": (float, int),
    "double": (float, int),
    "blob": (bytes, bytearray, str),
    "timestamp": datetime,
}


@cache
def _is_valid(shape: Any) -> Acceptance:
    """Whether botocore certainly accepts a value of this shape."""
    made = _ACCEPTANCES.get(shape.type_name)
    if made is not None:
        return made(shape)
    kinds, least = _TYPES.get(shape.type_name, ()), shape.metadata.get("min")
    if least is None and not shape.serialization.get("hostLabel"):
        return lambda value: isinstance(value, kinds)
    if shape.type_name != "string" or least is None:
        return lambda value: False
    return lambda value: isinstance(value, str) and len(value) >= least


def _valid_structure(shape: Any) -> Acceptance:
    members, required = shape.members, frozenset(shape.metadata.get("required", ()))
    if shape.is_tagged_union or shape.is_document_type:
        return lambda value: False
    known: dict[str, Acceptance] = {}  # each made at its first value: a shape may hold itself

    def made(name: str) -> Acceptance:
        plain = name in members and not members[name].serialization.get("jsonvalue")
        return known.setdefault(name, _is_valid(members[name]) if plain else lambda value: False)

    def accepts(value: Any) -> bool:
        return (
            isinstance(value, dict)
            and required <= value.keys()
            and all((known.get(name) or made(name))(each) for name, each in value.items())
        )

    return accepts


def _valid_list(shape: Any) -> Acceptance:
    accepts, least = _is_valid(shape.member), shape.metadata.get("min", 0)
    return lambda value: isinstance(value, list | tuple) and len(value) >= least and all(map(accepts, value))


def _valid_map(shape: Any) -> Acceptance:
    key, each = _is_valid(shape.key), _is_valid(shape.value)
    return lambda value: isinstance(value, dict) and all(map(key, value)) and all(map(each, value.values()))


_ACCEPTANCES: Mapping[str, Callable[[Any], Acceptance]] = {
    "structure": _valid_structure,
    "list": _valid_list,
    "map": _valid_map,
}
