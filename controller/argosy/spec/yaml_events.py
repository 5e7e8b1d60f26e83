"""YAML's parse events as data, with a line and a column for every value.

Stricter than YAML: no duplicate keys, anchors or tags, one document, bounded depth. Works without recursion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from ruamel.yaml.events import AliasEvent, DocumentStartEvent, MappingStartEvent, ScalarEvent, SequenceStartEvent

from argosy.spec.bounds import DEPTH_LIMIT
from argosy.spec.faults import Fault, SpecError, path_text, shown

_LAST_PART = re.compile(r'(\.?[^.\[\]"]+|\["[^"]*"\]|\[[0-9]+\])$')
_CORE_TAG = "tag:yaml.org,2002:"


@dataclass(slots=True)
class Document:
    """A file as data, with the place (line, column, from 1) of each value; in a mapping, the place of its key."""

    data: Any = None
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)  # found while reading; they have a place

    def place(self, fault: Fault) -> Fault:
        """The fault with its place. A missing part has the place of the nearest part around it."""
        path = fault.path
        while path and path not in self.places:
            path = _LAST_PART.sub("", path, count=1) if _LAST_PART.search(path) else ""
        line, column = self.places.get(path, (1, 1))
        return fault if fault.line is not None else replace(fault, line=line, column=column)

    def placed(self, faults: Iterable[Fault]) -> list[Fault]:
        """These faults and those found while reading, in the order of the file."""
        everything = [*self.faults, *(self.place(fault) for fault in faults)]
        return sorted(dict.fromkeys(everything), key=lambda fault: (fault.line or 0, fault.column or 0))


def too_deep(line: int, column: int) -> Fault:
    return Fault("", f"is nested deeper than {DEPTH_LIMIT} levels", line, column)


@dataclass(slots=True)
class _OpenNode:
    """A mapping or list that has not ended yet; `key` is the key whose value comes next."""

    value: dict[str, Any] | list[Any]
    path: tuple[str | int, ...]
    key: str | None = None
    key_place: tuple[int, int] = (1, 1)
    skips: bool = False  # the next value belongs to a duplicate key


class EventReader:
    """Builds a Document from parse events. Its own stack keeps deep nesting from exhausting Python's."""

    def __init__(self, resolve: Callable[[str], str]) -> None:
        self.document = Document()
        self.documents = 0
        self._resolve = resolve
        self._stack: list[_OpenNode] = []

    def take(self, event: Any) -> None:
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        if isinstance(event, DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                raise SpecError([Fault("", "a second document begins here; a file holds one run", line, column)])
            if event.version not in (None, (1, 2)):
                raise SpecError([Fault("", "only YAML 1.2 is read: remove the %YAML line", line, column)])
        elif isinstance(event, AliasEvent) or getattr(event, "anchor", None):
            raise SpecError([Fault("", "anchors and aliases (& and *) are not allowed", line, column)])
        elif isinstance(event, (MappingStartEvent, SequenceStartEvent)):
            self._open(event, line, column)
        elif isinstance(event, ScalarEvent):
            self._scalar(event, line, column)
        elif type(event).__name__ in ("MappingEndEvent", "SequenceEndEvent"):
            self._stack.pop()

    def _open(self, event: Any, line: int, column: int) -> None:
        self._refuse_tag(event, line, column)
        if len(self._stack) >= DEPTH_LIMIT:
            raise SpecError([too_deep(line, column)])
        if self._stack and self._wants_key():
            raise SpecError([Fault("", "a key must be plain text", line, column)])
        value: dict[str, Any] | list[Any] = {} if isinstance(event, MappingStartEvent) else []
        self._stack.append(_OpenNode(value, self._store(value, line, column)))

    def _scalar(self, event: Any, line: int, column: int) -> None:
        self._refuse_tag(event, line, column)
        if self._stack and self._wants_key():
            self._key(str(event.value), line, column)
            return
        value: Any = event.value
        if event.implicit[0]:
            value = self._plain(event.value)
        self._store(value, line, column)

    def _refuse_tag(self, event: Any, line: int, column: int) -> None:
        tag = getattr(event, "tag", None)
        if tag and str(tag) != "!":
            raise SpecError([Fault("", f"tags are not allowed: {shown(str(tag))}", line, column)])

    def _wants_key(self) -> bool:
        top = self._stack[-1]
        return isinstance(top.value, dict) and top.key is None

    def _key(self, key: str, line: int, column: int) -> None:
        top = self._stack[-1]
        top.key, top.key_place, top.skips = key, (line, column), False
        if isinstance(top.value, dict) and key in top.value:
            path = path_text((*top.path, key))
            first = self.document.places[path][0]
            self.document.faults.append(Fault(path, f"is written twice, first on line {first}", line, column))
            top.skips = True

    def _store(self, value: Any, line: int, column: int) -> tuple[str | int, ...]:
        """Put a value into the mapping or list that is open; returns its path."""
        if not self._stack:
            self.document.data = value
            return ()
        top = self._stack[-1]
        path: tuple[str | int, ...]
        if isinstance(top.value, list):
            path = (*top.path, len(top.value))
            top.value.append(value)
        else:
            path = (*top.path, str(top.key))
            if not top.skips:
                top.value[str(top.key)] = value
            (line, column), top.key = top.key_place, None
        self.document.places.setdefault(path_text(path), (line, column))
        return path

    def _plain(self, text: str) -> Any:
        """A plain scalar by YAML 1.2's core schema; text outside the schema (dates, 012) stays text."""
        kind = self._resolve(text).removeprefix(_CORE_TAG)
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == "true"
        if kind == "int":
            return _integer(text)
        if kind == "float":
            return _float(text)
        return text


def _integer(text: str) -> Any:
    """Decimal, 0x or 0o. A number that is too long stays text, which no number field accepts."""
    if re.fullmatch(r"[-+]?(0|[1-9][0-9]{0,40}|0o[0-7]{1,40}|0x[0-9a-fA-F]{1,40})", text, re.ASCII):
        return int(text, 0)
    return text


def _float(text: str) -> Any:
    plain = text.lower().replace(".inf", "inf").replace(".nan", "nan")
    return text if "_" in plain else float(plain)
