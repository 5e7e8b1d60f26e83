"""DynamoDB's expressions, in the forms that the project uses.

Conditions: comparisons and attribute_exists / attribute_not_exists, joined by OR of AND without brackets; updates: one
SET of values; key conditions: `pk = :name`. Other forms are refused as AWS refuses a syntax error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from argosy.emulator.operations import Refusal

JSON = dict[str, Any]

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {"=": eq, "<>": ne, "<=": le, ">=": ge, "<": lt, ">": gt}
_COMPARISON = re.compile(r"(#?\w+)\s*(=|<>|<=|>=|<|>)\s*(:\w+)")
_EXISTENCE = re.compile(r"(attribute_exists|attribute_not_exists)\((#?\w+)\)")


def holds(request: JSON, item: JSON | None) -> bool:
    """Whether a request's ConditionExpression holds for the item. Without one it does."""
    condition = request.get("ConditionExpression")
    if condition is None:
        return True
    return any(
        all(_term(term, request, item or {}) for term in re.split(r"\s+AND\s+", part)) for part in _or(condition)
    )


def assign(request: JSON, item: JSON) -> JSON:
    """The item after an UpdateExpression of the form `SET a = :a, b = :b`."""
    expression = request["UpdateExpression"].strip()
    if not expression.startswith("SET "):
        raise Refusal("ValidationException", f"Invalid UpdateExpression: Syntax error: {expression!r}")
    after = dict(item)
    for part in expression.removeprefix("SET ").split(","):
        name, _, value = (piece.strip() for piece in part.partition("="))
        after[_name(name, request)] = _value(value, request)
    return after


def partition_of(request: JSON) -> str:
    """The partition that a KeyConditionExpression names."""
    match = _COMPARISON.fullmatch(request["KeyConditionExpression"].strip())
    if match is None or match[2] != "=" or _name(match[1], request) != "pk":
        raise Refusal("ValidationException", "Query condition missed key schema element: pk")
    return str(_value(match[3], request)["S"])


def projected(request: JSON, item: JSON) -> JSON:
    """The item, or the part that a ProjectionExpression names: whole attributes, separated by commas."""
    if "ProjectionExpression" not in request:
        return dict(item)
    names = [_name(name.strip(), request) for name in request["ProjectionExpression"].split(",")]
    return {name: item[name] for name in names if name in item}


def _or(condition: str) -> list[str]:
    return re.split(r"\s+OR\s+", condition.strip())


def _term(term: str, request: JSON, item: JSON) -> bool:
    if match := _EXISTENCE.fullmatch(term.strip()):
        return (_name(match[2], request) in item) == (match[1] == "attribute_exists")
    if match := _COMPARISON.fullmatch(term.strip()):
        stored, given = item.get(_name(match[1], request)), _value(match[3], request)
        if stored is None or stored.keys() != given.keys():
            return match[2] == "<>"
        return _OPERATORS[match[2]](_comparable(stored), _comparable(given))
    raise Refusal("ValidationException", f"Invalid ConditionExpression: Syntax error: {term!r}")


def _comparable(value: JSON) -> Any:
    (kind, content), *_ = value.items()
    return Decimal(content) if kind == "N" else content


def _name(name: str, request: JSON) -> str:
    if not name.startswith("#"):
        return name
    try:
        return str(request["ExpressionAttributeNames"][name])
    except KeyError:
        raise Refusal("ValidationException", f"An expression attribute name is not defined: {name}") from None


def _value(name: str, request: JSON) -> JSON:
    try:
        return dict(request["ExpressionAttributeValues"][name])
    except KeyError:
        raise Refusal("ValidationException", f"An expression attribute value is not defined: {name}") from None
