"""The commands `validate` and `schema`: a spec file's faults, and the schema of such files."""

from __future__ import annotations

from typing import Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.figures import counted
from argosy.cli.options import SpecFile
from argosy.cli.problems import USAGE, CliError
from argosy.cli.runs.spec_source import SpecChanges, SpecRefused, checked
from argosy.cli.runs.upload_progress import folder_faults, folder_of
from argosy.cli.session import Session

NOT_CHECKED = "The limits of a deployment (instance sizes, buckets, images) are checked by argosy {}."


_KINDS = {"service": "a service: {:,} tasks", "daemon": "a daemon: one task on each matching instance"}


def register(app: typer.Typer) -> None:
    command(app, "validate", panel=panels.SPECS, connected=False)(validate)
    command(app, "schema", panel=panels.SPECS, connected=False, as_json=False)(schema)


def validate(session: Session, file: SpecFile, changes: SpecChanges) -> None:
    """Check a run spec: every fault at once, with its line."""
    try:
        spec, wanted, document = checked(file, changes)
        if faults := folder_faults(wanted, folder_of(file)):
            raise SpecRefused(str(file), document.placed(faults), wanted, document)
    except SpecRefused as refusal:
        if not session.wants_json:
            details = [fault.text(str(file)) for fault in refusal.faults]
            raise CliError(f"{file} has {counted(len(details), 'fault')}.", details=details) from refusal
        rows = [{"path": f.path, "message": f.message, "line": f.line, "column": f.column} for f in refusal.faults]
        session.print_json({"valid": False, "file": str(file), "faults": rows})
        raise typer.Exit(USAGE) from refusal
    if session.wants_json:
        session.print_json({"valid": True, "file": str(file), "faults": []})
        return
    session.console.print(f"{file} is valid: {_summary(spec)}")
    session.console.print(NOT_CHECKED.format("env create" if spec.kind in _KINDS else "submit"), style="dim")


def _summary(parsed: Any) -> str:
    """`digits, 18 tasks of 1 vCPU, 1,024 MiB`; for a service or daemon also its kind."""
    from argosy.spec import shards
    from argosy.spec.parse import to_json

    form = to_json(parsed)
    try:
        tasks = _KINDS.get(str(form.get("kind")), "{:,} tasks").format(shards.task_count(form))
    except ValueError:
        tasks = f"one task per item of {form['array']['itemsFrom']}"
    needs = form.get("resources")
    if not needs:
        return f"{form['name']}, {tasks}, sized by the task definition {form['taskDefinition']}"
    count = "all GPUs of an instance" if needs.get("gpus") == "ALL" else f"{needs.get('gpus')} GPU"
    gpus = f", {count}" if needs.get("gpus") else ""
    share = f", {needs['gpuShare']['memoryMib']:,} MiB of a GPU" if "gpuShare" in needs else ""
    return f"{form['name']}, {tasks} of {needs['vcpus']:g} vCPU, {needs['memory']:,} MiB{gpus}{share}"


def schema(session: Session) -> None:
    """Print the JSON Schema of run specs, for editors."""
    from argosy.spec.parse import schema as run_schema

    session.print_json(run_schema())
