"""The text of a run spec file as data, with the line of each fault.

YAML 1.2 is read from ruamel.yaml's event stream (`yaml_events`), which has lines and columns and needs no recursion.
JSON is read by the standard library and takes its places from the same events. Both are stricter than their formats: no
duplicate keys, anchors or tags, one document, bounded size and depth. `check_text` reports every fault with its place.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.reader import ReaderError

from argosy.spec.bounds import SIZE_LIMIT
from argosy.spec.faults import Fault, SpecError, shown
from argosy.spec.models import RunSpec
from argosy.spec.parse import parse_spec
from argosy.spec.yaml_events import Document, EventReader, too_deep


def check_text(
    text: str | bytes, *, is_json: bool = False, check: Callable[[Any], RunSpec] = parse_spec
) -> tuple[RunSpec, Document]:
    """The spec in a file. Raises SpecError with every fault, each with line and column.

    check: turns the data into a spec, for instance with the limits of a deployment (`admission.check_spec`).
    """
    document = read(text, is_json=is_json)
    try:
        spec = check(document.data)
    except SpecError as refusal:
        raise SpecError(document.placed(refusal.faults)) from refusal
    if document.faults:
        raise SpecError(document.placed(()))
    return spec, document


def read(text: str | bytes, *, is_json: bool = False) -> Document:
    """Raises SpecError when the text cannot be read at all; other faults are in `Document.faults`."""
    decoded = _decoded(text)
    if not is_json:
        return _read_yaml(decoded)
    data = _read_json(decoded)
    try:
        # JSON may be indented with tabs, YAML may not; a JSON string cannot contain a tab.
        document = _read_yaml(decoded.replace("\t", " "))
    except SpecError:
        document = Document(faults=[])  # JSON that is not YAML, such as a key of 2,000 characters: without places
    document.data = data
    return document


def _decoded(text: str | bytes) -> str:
    if len(text) > 4 * SIZE_LIMIT:
        raise SpecError([Fault("", f"the file is larger than {4 * SIZE_LIMIT // 1024} KiB", 1, 1)])
    try:
        return text.decode("utf-8-sig") if isinstance(text, bytes) else text.removeprefix("\ufeff")
    except UnicodeDecodeError as fault:
        before = bytes(text[: fault.start])  # type: ignore[arg-type]
        line = before.count(b"\n") + 1
        raise SpecError([Fault("", "the file is not UTF-8 text", line, 1)]) from fault


def _read_json(text: str) -> Any:
    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        first: dict[str, Any] = {}
        for key, value in pairs:
            first.setdefault(key, value)  # if a key is written twice, the first counts, as in _read_yaml
        return first

    try:
        return json.loads(text, object_pairs_hook=members)
    except json.JSONDecodeError as fault:
        raise SpecError([Fault("", f"not JSON: {fault.msg}", fault.lineno, fault.colno)]) from fault
    except RecursionError as fault:
        raise SpecError([too_deep(1, 1)]) from fault
    except ValueError as fault:  # Python refuses integers of more than 4,300 digits
        raise SpecError([Fault("", f"not JSON: {shown(str(fault))}", 1, 1)]) from fault


def _read_yaml(text: str) -> Document:
    yaml = YAML(typ="rt", pure=True)
    reader = EventReader(lambda value: str(yaml.resolver.resolve(ScalarNode, value, (True, False))))
    try:
        for event in yaml.parse(text):
            reader.take(event)
    except SpecError:
        raise
    except MarkedYAMLError as fault:
        raise SpecError([_unreadable(fault)]) from fault
    except ReaderError as fault:
        line, column = _line_and_column(text, fault.position)
        raise SpecError(
            [Fault("", f"not YAML: U+{ord(text[fault.position]):04X} is not allowed", line, column)]
        ) from fault
    except (YAMLError, ValueError, OverflowError) as fault:  # escapes beyond Unicode
        raise SpecError([Fault("", f"not YAML: {shown(str(fault))}", 1, 1)]) from fault
    if not reader.documents:
        raise SpecError([Fault("", "the file is empty", 1, 1)])
    return reader.document


def _unreadable(fault: MarkedYAMLError) -> Fault:
    """The message names the remedy where it is known: at a quote's opening rather than at the end of the file."""
    mark, problem = fault.problem_mark or fault.context_mark, shown(fault.problem or str(fault))
    if "quoted scalar" in (fault.context or "") and fault.context_mark is not None and "end of stream" in problem:
        mark, problem = fault.context_mark, "the quote that opens here is not closed"
    elif "\\t" in problem and "cannot start any token" in problem:
        problem = "the line begins with a tab: indent it with blanks"
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    return Fault("", f"not YAML: {problem}", line, column)


def _line_and_column(text: str, position: int) -> tuple[int, int]:
    return text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)


def is_json_name(file_name: str) -> bool:
    return file_name.lower().endswith(".json")
