"""Which spec does the user mean: a file, a shorthand on the command line, or a file with changes?

Changes are applied to the file's data, so that one validation finds all faults and places them in the file.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argosy.cli.figures import counted
from argosy.cli.problems import CliError

if TYPE_CHECKING:
    from argosy.spec.faults import Fault
    from argosy.spec.yaml_events import Document


@dataclass(frozen=True)
class SpecChanges:
    """What the command line changes in the file. batch_size and num_batches count items of the range."""

    batch_size: Annotated[
        int | None, typer.Option("--batch-size", "-s", min=1, help="Items per task: array.shardSize.")
    ] = None
    num_batches: Annotated[
        int | None, typer.Option("--num-batches", "-b", min=1, help="Tasks: array.range 0:(batch size x this).")
    ] = None
    output: Annotated[str | None, typer.Option("--output", "-o", metavar="S3_PREFIX", help="Where results go.")] = None
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Change one field, e.g. resources.vcpus=2.")
    ] = None

    def applied(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """The data with the changes. Raises CliError."""
        changed = self._with_shorthands(data)
        for path, value in self.assignments():
            changed = _with(changed, path, value)
        return changed

    def assignments(self) -> list[tuple[list[str], Any]]:
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

    wanted, document: the spec and its file as far as they could be read; empty and None where they could not.
    """

    def __init__(
        self, name: str, faults: Sequence[Fault], wanted: Mapping[str, Any] | None = None, document: Any = None
    ) -> None:
        details = [each.text(name) for each in faults]
        super().__init__(f"{name} has {counted(len(faults), 'fault')}; nothing was submitted.", details=details)
        self.name, self.faults, self.wanted, self.document = name, list(faults), dict(wanted or {}), document

    def with_more(self, faults: Sequence[Fault]) -> SpecRefused:
        """The same refusal with faults found elsewhere; a fault that is known already is not repeated."""
        known = {(fault.path, fault.message) for fault in self.faults}
        placed = self.document.placed(faults) if self.document else faults  # some of them are the file's own
        more = [fault for fault in placed if (fault.path, fault.message) not in known]
        return SpecRefused(self.name, [*self.faults, *more], self.wanted, self.document)


def load(file: Path, changes: SpecChanges | None = None) -> tuple[dict[str, Any], Document]:
    """The spec to submit, and the file with its places. Raises CliError, or SpecRefused with every fault, placed.

    What is sent is what the user wrote with the changes, not the validated form: defaults are the deployment's.
    """
    from argosy.api import admission
    from argosy.spec import file as spec_file
    from argosy.spec.faults import SpecError
    from argosy.spec.models import RunSpec

    changes = changes or SpecChanges()
    changes.assignments()  # these faults come before those of the file
    wanted: dict[str, Any] = {}

    def check(data: Any) -> RunSpec:
        if isinstance(data, dict):
            data = changes.applied(data)
            wanted.update(data)
        return admission.check_spec(data, now=time.time())

    text = read_text(file)
    try:
        _, document = spec_file.check_text(text, is_json=spec_file.is_json_name(file.name), check=check)
    except SpecError as refusal:
        known = spec_file.read(text, is_json=spec_file.is_json_name(file.name)) if wanted else None
        raise SpecRefused(str(file), refusal.faults, wanted, known) from refusal
    return wanted, document


def read_text(file: Path) -> bytes:
    """`-` is standard input. Raises CliError."""
    if str(file) == "-":
        return sys.stdin.buffer.read()
    try:
        return file.read_bytes()
    except OSError as fault:
        step = "`argosy schema` prints what a spec may contain; containers/ has examples"
        raise CliError(f"Cannot read {file}: {fault.strerror}.", next_step=step) from fault


def _assignment(text: str) -> tuple[list[str], Any]:
    """`resources.vcpus=2` -> (path, value as YAML reads it). Raises CliError."""
    from argosy.spec import file as spec_file
    from argosy.spec.faults import SpecError

    path, found, value = text.partition("=")
    parts = path.strip().split(".")
    if not found or not all(parts):
        raise CliError(f"--set {text!r} must be PATH=VALUE, such as resources.vcpus=2.")
    try:
        return parts, spec_file.read(value).data if value.strip() else ""
    except SpecError as fault:
        raise CliError(f"--set {text!r}: the value cannot be read: {fault}") from fault


def _with(data: Mapping[str, Any], path: list[str], value: Any) -> dict[str, Any]:
    """A copy with the value at `path`; anything on the way there that is not a mapping is replaced by one."""
    name, rest = path[0], path[1:]
    inner = data.get(name)
    return {**data, name: _with(inner if isinstance(inner, dict) else {}, rest, value) if rest else value}
