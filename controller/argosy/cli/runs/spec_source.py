"""The spec that the user means: a file, a shorthand on the command line, or a file with changes.

Changes are applied to the file's data, so that one validation finds all faults and places them in the file.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argosy.cli.figures import counted
from argosy.cli.problems import CliError

if TYPE_CHECKING:
    from argosy.spec.faults import Fault
    from argosy.spec.models import RunSpec
    from argosy.spec.yaml_events import Document


_PART = re.compile(r"([^.\[\]]+)|\[([0-9]{1,6})\]", re.ASCII)
_PATH = re.compile(r"[^.\[\]]+(\[[0-9]{1,6}\])*(\.[^.\[\]]+(\[[0-9]{1,6}\])*)*", re.ASCII)


@dataclass(frozen=True)
class SpecChanges:
    """The command line's changes to the file. batch_size and num_batches count items of the range."""

    batch_size: Annotated[
        int | None, typer.Option("--batch-size", "-s", min=1, help="Items per task: array.shardSize.")
    ] = None
    num_batches: Annotated[
        int | None, typer.Option("--num-batches", "-b", min=1, help="Tasks: array.range 0:(batch size x this).")
    ] = None
    output: Annotated[str | None, typer.Option("--output", "-o", metavar="S3_PREFIX", help="Folder for results.")] = (
        None
    )
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="PATH=VALUE", help="Change one field: resources.vcpus=2, container.command[0]=x."
        ),
    ] = None

    def applied(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """The data with the changes. Raises CliError."""
        changed = self._with_shorthands(data)
        for path, value in self.assignments():
            changed = _with(changed, path, value)
        return changed

    def said(self, fault: Fault) -> Fault:
        """A fault in a --set option is not in the file, and has no line there."""
        from argosy.spec.faults import path_text

        given = [path_text(path) for path, _ in self.assignments()]
        if not any(fault.path == each or fault.path.startswith((f"{each}.", f"{each}[")) for each in given):
            return fault
        return replace(fault, line=None, column=None, message=f"{fault.message} (from --set)")

    def assignments(self) -> list[tuple[list[str | int], Any]]:
        """(path, value) of each --set. Raises CliError."""
        return [_assignment(each) for each in self.changes or ()]

    def as_typed(self) -> list[str]:
        """The options as words of a command line."""
        given = [("--batch-size", self.batch_size), ("--num-batches", self.num_batches), ("--output", self.output)]
        given += [("--set", change) for change in self.changes or ()]
        return [word for name, value in given if value is not None for word in (name, str(value))]

    def _with_shorthands(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """`--batch-size 100 --num-batches 10` means range 0:1000 in shards of 100."""
        changed = dict(data)
        if self.output is not None:
            changed["output"] = self.output
        if self.batch_size is None and self.num_batches is None:
            return changed
        array = dict(data["array"]) if isinstance(data.get("array"), dict) else {}
        if self.batch_size is not None:
            array["shardSize"] = self.batch_size
        if self.num_batches is not None:
            shard = array.get("shardSize")
            if not isinstance(shard, int):
                raise CliError("--num-batches needs --batch-size, or array.shardSize in the file.")
            array = {key: value for key, value in array.items() if key not in ("size", "items", "itemsFrom")}
            array["range"] = f"0:{shard * self.num_batches}"
        return {**changed, "array": array}


class SpecRefused(CliError):
    """A spec with faults, placed in its file where that is possible.

    wanted, document: the spec and its file as far as they could be read; empty and None if they could not.
    """

    def __init__(
        self, name: str, faults: Sequence[Fault], wanted: Mapping[str, Any] | None = None, document: Any = None
    ) -> None:
        details = [each.text(name) for each in faults]
        undone = "changed" if (wanted or {}).get("kind") in ("service", "daemon") else "submitted"
        super().__init__(f"{name} has {counted(len(faults), 'fault')}; nothing was {undone}.", details=details)
        self.name, self.faults, self.wanted, self.document = name, list(faults), dict(wanted or {}), document

    def with_more(self, faults: Sequence[Fault]) -> SpecRefused:
        """The same refusal with faults found elsewhere; a known fault is not repeated."""
        known = {(fault.path, fault.message) for fault in self.faults}
        placed = self.document.placed(faults) if self.document else faults  # some of them are the file's own
        more = [fault for fault in placed if (fault.path, fault.message) not in known]
        return SpecRefused(self.name, [*self.faults, *more], self.wanted, self.document)


def load(file: Path, changes: SpecChanges | None = None) -> tuple[dict[str, Any], Document]:
    """The spec to submit, and the file with its places. Raises CliError, or SpecRefused with every fault, placed.

    The deployment receives the user's text with the changes, not the validated form: it applies its own defaults.
    """
    _, wanted, document = checked(file, changes)
    return wanted, document


def checked(file: Path, changes: SpecChanges | None = None) -> tuple[RunSpec, dict[str, Any], Document]:
    """The validated spec as well. Raises as `load` does."""
    from argosy.api.admission import specs
    from argosy.spec import file as spec_file
    from argosy.spec.faults import SpecError

    changes = changes or SpecChanges()
    changes.assignments()  # these faults come before those of the file
    wanted: dict[str, Any] = {}

    def check(data: Any) -> RunSpec:
        if isinstance(data, dict):
            data = changes.applied(data)
            wanted.update(data)
        return specs.check_spec(data, now=time.time())

    text = read_text(file)
    try:
        parsed, document = spec_file.check_text(text, is_json=spec_file.is_json_name(file.name), check=check)
    except SpecError as refusal:
        known = spec_file.read(text, is_json=spec_file.is_json_name(file.name)) if wanted else None
        faults = [changes.said(fault) for fault in refusal.faults]
        raise SpecRefused(str(file), faults, wanted, known) from refusal
    return parsed, wanted, document


def read_text(file: Path) -> bytes:
    """`-` is standard input. Raises CliError."""
    if str(file) == "-":
        return sys.stdin.buffer.read()
    try:
        return file.read_bytes()
    except OSError as fault:
        step = "`argosy schema` prints what a spec may contain; containers/ has examples"
        raise CliError(f"Cannot read {file}: {fault.strerror}.", next_step=step) from fault


def _parts(path: str) -> list[str | int]:
    """`container.command[2]` -> container, command, 2; empty for what is not a path."""
    if not _PATH.fullmatch(path):
        return []
    return [int(number) if number else name for name, number in _PART.findall(path)]


def _assignment(text: str) -> tuple[list[str | int], Any]:
    """`resources.vcpus=2` -> (path, value as YAML reads it). Raises CliError."""
    from argosy.spec import file as spec_file
    from argosy.spec.faults import SpecError

    path, found, value = text.partition("=")
    parts = _parts(path.strip())
    if not found or not parts:
        raise CliError(f"--set {text!r} must be PATH=VALUE, such as resources.vcpus=2 or container.command[0]=x.")
    try:
        return parts, spec_file.read(value).data if value.strip() else ""
    except SpecError as fault:
        raise CliError(f"--set {text!r}: the value cannot be read: {fault}") from fault


def _with(data: Any, path: Sequence[str | int], value: Any) -> Any:
    """A copy with the value at `path`; anything on the way there that is not a mapping, or a list where a number is
    given, is replaced by one. Raises CliError for an entry beyond the end of a list; the one after it is new."""
    if not path:
        return value
    name, rest = path[0], path[1:]
    if isinstance(name, str):
        known = data if isinstance(data, dict) else {}
        return {**known, name: _with(known.get(name), rest, value)}
    entries = [*data] if isinstance(data, list) else []
    if name > len(entries):
        raise CliError(f"--set: there is no entry [{name}]: the list has {len(entries)}.")
    return [*entries[:name], _with(entries[name] if name < len(entries) else None, rest, value), *entries[name + 1 :]]
