"""Which spec does a program mean: a file, or the mapping that it made itself?"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argosy.client.errors import InvalidInput
from argosy.sdk.errors import InvalidSpec


@dataclass(frozen=True, slots=True)
class SpecGiven:
    """data: as the user wrote it, defaults not filled in. name: of its file, or empty. folder: what `workdir` is
    relative to."""

    data: Mapping[str, Any]
    name: str
    folder: Path


def given(spec: str | os.PathLike[str] | Mapping[str, Any]) -> SpecGiven:
    """What is submitted. Raises InvalidSpec with every fault, and InvalidInput for a file that cannot be read."""
    if isinstance(spec, Mapping):
        return _from_mapping(spec)
    return _from_file(Path(spec))


def _from_mapping(spec: Mapping[str, Any]) -> SpecGiven:
    from argosy.api import admission
    from argosy.spec.faults import SpecError

    try:
        admission.check_spec(spec, now=time.time())
    except SpecError as refusal:
        raise InvalidSpec("", refusal.faults) from refusal
    return SpecGiven(spec, "", Path.cwd())


def _from_file(path: Path) -> SpecGiven:
    from argosy.api import admission
    from argosy.spec import file as spec_file
    from argosy.spec.faults import SpecError

    try:
        text = path.read_bytes()
    except OSError as fault:
        raise InvalidInput(f"Cannot read {path}: {fault.strerror}.") from fault
    is_json = spec_file.is_json_name(path.name)
    try:
        _, document = spec_file.check_text(
            text, is_json=is_json, check=lambda data: admission.check_spec(data, now=time.time())
        )
    except SpecError as refusal:
        raise InvalidSpec(str(path), refusal.faults) from refusal
    return SpecGiven(document.data, str(path), path.parent)
