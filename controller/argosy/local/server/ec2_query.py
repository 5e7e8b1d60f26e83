"""The EC2 query protocol (`A.1.B=x` in, XML out), mapped to boto3's dicts.

Driven by botocore's EC2 model: `queryName` or the capitalised `locationName` for requests, `locationName` and `<item>`
for replies. The parts that the query protocol of other services shares with it are here, too.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from argosy.emulator.botocore_check import service_model
from argosy.local.server.protocol import BadRequestError, Reply, WireRefusal, by_name, operation_model

NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"
Tree = dict[str, Any]  # nested: {"Filter": {"1": {"Name": "x"}}}; leaves are strings


class Ec2Wire:
    """The EC2 query protocol."""

    def __init__(self) -> None:
        self.service = service_model("ec2")

    def read(self, headers: Mapping[str, str], body: bytes) -> tuple[Any, dict[str, Any]]:
        """See protocol.Wire."""
        return parameters(self.service, body)

    def write(self, operation: Any, result: Mapping[str, Any], request_id: str) -> Reply:
        """See protocol.Wire."""
        name, body = f"{operation.name}Response", [f"<requestId>{request_id}</requestId>"]
        if operation.output_shape is not None:
            fill(body, result, operation.output_shape, "item")
        return xml_reply(200, f'<{name} xmlns="{NAMESPACE}">', body, f"</{name}>")

    def refuse(self, refusal: WireRefusal, request_id: str) -> Reply:
        """See protocol.Wire; EC2 has no further details in its errors."""
        said = f"<Code>{escape(refusal.code)}</Code><Message>{escape(refusal.message)}</Message>"
        body = [f"<Errors><Error>{said}</Error></Errors><RequestID>{request_id}</RequestID>"]
        return xml_reply(refusal.status, "<Response>", body, "</Response>")


def parameters(service: Any, body: bytes) -> tuple[Any, dict[str, Any]]:
    """As `read` of a Wire: (operation model, parameters as boto3 names them). Raises BadRequestError."""
    try:
        fields = dict(parse_qsl(body.decode(), keep_blank_values=True))
    except UnicodeDecodeError as fault:
        raise BadRequestError("MalformedQueryString", "the body is not UTF-8") from fault
    operation = operation_model(service, fields.pop("Action", ""), "InvalidAction")
    fields.pop("Version", None)
    return operation, _structure(_tree(fields), operation.input_shape) if operation.input_shape else {}


def action_of(body: bytes) -> str:
    """The Action of a query request; empty when there is none."""
    return dict(parse_qsl(body.decode("utf-8", "replace"))).get("Action", "")


def xml_reply(status: int, start: str, body: list[str], end: str) -> Reply:
    """The parts put together."""
    text = "".join(["<?xml version='1.0' encoding='utf-8'?>\n", start, *body, end])
    return Reply(status, text.encode(), {"Content-Type": "text/xml;charset=UTF-8"})


def _tree(fields: Mapping[str, str]) -> Tree:
    root: Tree = {}
    for key, value in fields.items():
        node: Any = root
        *path, leaf = key.split(".")
        for part in path:
            node = node.setdefault(part, {})
            if not isinstance(node, dict):
                raise BadRequestError("MalformedQueryString", f"{key} is both a value and a structure")
        node[leaf] = value
    return root


def _query_name(member: Any, name: str) -> str:
    named = member.serialization.get("queryName")
    if named:
        return str(named)
    located = str(member.serialization.get("name", name))
    return located[0].upper() + located[1:]


def _structure(tree: Tree, shape: Any) -> dict[str, Any]:
    present = [(name, member, tree.get(_query_name(member, name))) for name, member in shape.members.items()]
    return {name: _value(node, member) for name, member, node in present if node is not None}


def _value(node: Any, shape: Any) -> Any:
    kind = shape.type_name
    if kind in ("structure", "list") and not isinstance(node, dict):
        if node == "":  # an empty list or structure
            return [] if kind == "list" else {}
        raise BadRequestError("InvalidParameterValue", f"{shape.name}: expected a structure, got {node!r}")
    if kind == "structure":
        return _structure(node, shape)
    if kind == "list":
        return [_value(node[index], shape.member) for index in sorted(node, key=_position)]
    return _scalar(node, kind, shape.name)


def _position(index: str) -> int:
    if not index.isdigit():
        raise BadRequestError("MalformedQueryString", f"{index!r} is not a list position")
    return int(index)


def _scalar(text: Any, kind: str, name: str) -> Any:
    try:
        if kind in ("integer", "long"):
            return int(text)
        if kind in ("float", "double"):
            return float(text)
        if kind == "boolean":
            return {"true": True, "false": False}[text.lower()]
        if kind == "timestamp":
            moment = datetime.fromisoformat(text)
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return base64.b64decode(text, validate=True) if kind == "blob" else str(text)
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error) as fault:
        raise BadRequestError("InvalidParameterValue", f"{name}: {text!r} is not a valid {kind}") from fault


def fill(body: list[str], result: Mapping[str, Any], shape: Any, item_tag: str) -> None:
    """As text, since the standard library writes its trees slowly, and a sweep reads every instance. item_tag: of
    elements of
    lists that have no name of their own.
    """
    members = by_name(shape)
    for name, value in result.items():
        if name in members and value is not None:
            wire_name, member = members[name]
            _element(body, wire_name, value, member, item_tag)


def _element(body: list[str], tag: str, value: Any, shape: Any, item_tag: str) -> None:
    body.append(f"<{tag}>")
    if shape.type_name == "structure":
        fill(body, value, shape, item_tag)
    elif shape.type_name == "list":
        tag_of_item = shape.member.serialization.get("name", item_tag)
        for item in value:
            _element(body, tag_of_item, item, shape.member, item_tag)
    else:
        body.append(escape(_text(value)))
    body.append(f"</{tag}>")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
