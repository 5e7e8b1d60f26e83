"""The source of a spec: a file, or a mapping that the program made."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

from argosy.client.errors import InvalidInput
from argosy.sdk.errors import InvalidSpec

DEPTH = 20  # deeper than any field; what is below is left to the check


@dataclass(frozen=True, slots=True)
class SpecGiven:
    """data: as the user wrote it, defaults not filled in. name: of its file, or empty. folder: what `workdir` is
    relative to."""

    data: Mapping[str, Any]
    name: str
    folder: Path


def given(spec: str | os.PathLike[str] | Mapping[str, Any], after: Sequence[str] = ()) -> SpecGiven:
    """What is submitted. after: ids of runs that it depends on besides its own `dependsOn`. Raises InvalidSpec with
    every fault, and InvalidInput for a file that cannot be read."""
    if isinstance(spec, Mapping):
        return _from_mapping(spec, after)
    return _from_file(Path(spec), after)


def _depending(data: Mapping[str, Any], after: Sequence[str]) -> Mapping[str, Any]:
    """Faulty entries are left to the check."""
    own = data.get("dependsOn", [])
    if not after or not isinstance(own, list):
        return data
    return {**data, "dependsOn": [*own, *({"run": each} for each in after)]}


def _from_mapping(spec: Mapping[str, Any], after: Sequence[str]) -> SpecGiven:
    from argosy.api.admission import specs
    from argosy.spec.faults import SpecError

    data = _depending(_as_in_a_file(spec), after)
    try:
        specs.check_spec(data, now=time.time())
    except SpecError as refusal:
        raise InvalidSpec("", refusal.faults) from refusal
    return SpecGiven(data, "", Path.cwd())


def _as_in_a_file(value: Any, depth: int = DEPTH) -> Any:
    """With texts for paths, lists for tuples and plain integers for numpy's; other values that JSON lacks are
    refused."""
    if depth == 0:
        return value
    if isinstance(value, Mapping):
        return {name: _as_in_a_file(each, depth - 1) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_as_in_a_file(each, depth - 1) for each in value]
    if isinstance(value, int):
        return value
    if isinstance(value, Integral):  # numpy's say that they are
        return int(value)
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _from_file(path: Path, after: Sequence[str]) -> SpecGiven:
    from argosy.api.admission import specs
    from argosy.spec import file as spec_file
    from argosy.spec.faults import SpecError

    try:
        text = path.read_bytes()
    except OSError as fault:
        raise InvalidInput(f"Cannot read {path}: {fault.strerror}.") from fault
    is_json = spec_file.is_json_name(path.name)
    try:
        _, document = spec_file.check_text(
            text, is_json=is_json, check=lambda data: specs.check_spec(_depending(data, after), now=time.time())
        )
    except SpecError as refusal:
        raise InvalidSpec(str(path), refusal.faults) from refusal
    return SpecGiven(_depending(document.data, after), str(path), path.parent)
