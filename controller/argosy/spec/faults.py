"""Faults of a run spec: their paths, and pydantic's findings in plain words.

`SpecError` says that a spec was refused; its `faults` are all of them, not only the first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from argosy.spec.suggestions import near_field, suggestion

FAULT_LIMIT = 100  # a million bad items must not cause a reply of a million lines
_PLAIN_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing to correct.

    path: such as `array.shardSize` or `container.command[2]`; empty = the whole spec.
    line, column: from 1; None when the spec does not come from a file.
    """

    path: str
    message: str
    line: int | None = None
    column: int | None = None

    def text(self, file_name: str | None = None) -> str:
        """`run.yaml:12:9: array.shardSize: must be at least 1`."""
        place = [file_name] if file_name else []
        if self.line is not None:
            place.append(f"{self.line}:{self.column}")
        return ": ".join(part for part in (":".join(place), self.path, self.message) if part)


class SpecError(ValueError):
    """The spec was refused, and nothing was changed."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults: list[Fault] = capped(faults)
        super().__init__("; ".join(fault.text() for fault in self.faults))


def capped(faults: Iterable[Fault]) -> list[Fault]:
    """The first FAULT_LIMIT faults without repetitions, and a last one that counts the others."""
    unique = list(dict.fromkeys(faults))
    if len(unique) <= FAULT_LIMIT:
        return unique
    return [*unique[:FAULT_LIMIT], Fault("", f"and {len(unique) - FAULT_LIMIT} more faults")]


def path_text(parts: Sequence[str | int]) -> str:
    """(`array`, `items`, 3) -> `array.items[3]`. Other names than plain ones are quoted: `tags["a b"]`."""
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_NAME.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f'["{shown(part)}"]'
    return text


def shown(value: Any) -> str:
    """A value as part of a message: short, on one line, without control characters."""
    text = value if isinstance(value, str) else repr(value)
    clean = "".join(char if char.isprintable() else "?" for char in text[:81])
    return clean if len(text) <= 80 else clean[:80] + "..."


def from_pydantic(errors: Iterable[Mapping[str, Any]], fields_at: Callable[[str], Sequence[str]]) -> list[Fault]:
    """One fault for each of pydantic's findings. fields_at: the fields of the model at a path, for "did you mean"."""
    faults = []
    for error in errors:
        if error["type"] == "extra_forbidden":
            holder, name = _plain_location(error["loc"][:-1]), error["loc"][-1]
            faults.append(Fault(path_text([*holder, name]), _unknown_field(holder, str(name), fields_at)))
        else:
            place = _plain_location(error["loc"])
            faults.append(Fault(path_text(place), _message(error, str(place[-1:])) + _meant(place, error)))
    return faults


def _plain_location(location: Sequence[str | int]) -> list[str | int]:
    """The location without pydantic's marks for a mapping's key and for the branch of a field with two forms."""
    plain: list[str | int] = []
    for part in location:
        branch = part in ("map", "list", "text") and plain[-1:] in (["environment"], ["run"], ["inputs"])
        branch |= part in ("all", "count", "part") and plain[-1:] == ["gpus"]
        if part != "[key]" and not branch:
            plain.append(part)
    return plain


def _unknown_field(holder: Sequence[str | int], name: str, fields_at: Callable[[str], Sequence[str]]) -> str:
    path = path_text(holder)
    near = near_field(name, fields_at, path)
    return f"unknown field; did you mean {near}?" if near else f"unknown field; known: {', '.join(fields_at(path))}"


def _meant(place: Sequence[str | int], error: Mapping[str, Any]) -> str:
    """A suggestion from the user's own text, so it may be shown."""
    context = error.get("ctx", {})
    said = suggestion(place, str(error["type"]), error.get("input"), str(context.get("expected", "")))
    return "".join(char if char.isprintable() else "?" for char in said)


def _message(error: Mapping[str, Any], field: str) -> str:
    context = dict(error.get("ctx", {}))
    context |= {name: bound_text(context[name], field) for name in ("ge", "le", "gt") if name in context}
    kind = str(error["type"])
    template = _MESSAGES.get(kind)
    if template is None:
        return str(error["msg"])
    given = error.get("input")
    size = len(given) if isinstance(given, (str, list, Mapping)) else 0
    return template.format(**{**context, "got": _kind_of(given), "size": size})


def bound_text(value: float, field: str = "") -> str:
    """`1/1024`, `1,000,000`, `1,209,600 (14 days)` or `25,165,824 (24 TiB)`."""
    if 0 < value < 0.001:
        return f"1/{1 / value:g}"
    days, tib = value / 86_400, value / 2**20
    named = f" ({days:g} days)" if "Seconds" in field and days > 1 else ""
    named = f" ({tib:g} TiB)" if "emory" in field and tib >= 1 else named
    return f"{value:,.12g}{named}"


def _kind_of(value: Any) -> str:
    """A description of the user's input."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"the number {shown(value)}"
    if isinstance(value, str):
        return f'the text "{shown(value)}"'
    return "a mapping" if isinstance(value, Mapping) else "a list"


_MESSAGES = {
    "missing": "is required",
    "argosy": "{message}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "greater_than": "must be greater than {gt}",
    "int_type": "must be a whole number, not {got}",
    "int_from_float": "must be a whole number, not {got}",
    "float_type": "must be a number, not {got}",
    "finite_number": "must be a finite number",
    "string_type": "must be text (in quotes), not {got}",
    "string_unicode": "must be valid Unicode text",
    "string_pattern_mismatch": "must match {pattern}",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must not be empty",
    "too_long": "must have at most {max_length} entries, not {size}",
    "too_short": "must not be empty",
    "literal_error": "must be {expected}, not {got}",
    "list_type": "must be a list, not {got}",
    "tuple_type": "must be a list, not {got}",
    "dict_type": "must be a mapping, not {got}",
    "mapping_type": "must be a mapping, not {got}",
    "model_type": "must be a mapping, not {got}",
    "model_attributes_type": "must be a mapping, not {got}",
}
