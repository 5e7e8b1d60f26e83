"""What does `argosy results RUN --merge` do and say? One file of all rows, and which tasks it lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

import typer

from argosy import layout
from argosy.cli import figures
from argosy.cli.problems import AWS_FAULT, RUN_FAILED, CliError
from argosy.cli.runs.manifest_entries import entries, open_manifest
from argosy.cli.runs.merge import Merged, Part, deliver, planned, write_rows
from argosy.cli.session import Session

FORMATS = ("jsonl", "csv")
NAMED = 10  # missing tasks that are told one by one


def merge(session: Session, view: Mapping[str, Any], form: str, target: str | None, partial: bool) -> None:
    """Merge, or refuse because results are missing (exit 1), and say so."""
    if form not in FORMATS:
        raise CliError(f"--format is {' or '.join(FORMATS)}, not {form}.")
    name = target or f"{view['runId']}.{form}"
    merged = Merged()

    def write(file: IO[bytes]) -> None:
        s3 = session.client("s3")
        write_rows(s3, _parts(s3, view, partial, merged), form, file, merged)
        if merged.missing_count and not partial:
            raise _incomplete(session, view, merged)

    size = deliver(name, write)
    if session.wants_json:
        session.print_json(_document(view, merged, form, name, size))
        return
    for line in _told(view, merged, name, size):
        typer.echo(line, err=name == "-")


def _parts(s3: Any, view: Mapping[str, Any], partial: bool, merged: Merged) -> Iterator[Part]:
    output = str(view["output"])
    bucket, prefix = layout.split_s3(output)
    # A run that was reopened still has the manifest of its earlier end: that counts no longer.
    body = open_manifest(s3, output) if view["status"] in figures.TERMINAL else None
    if body is not None:
        seen = 0
        for entry in entries(body):
            seen += 1
            yield from planned([entry], bucket, prefix, merged)
        if seen != view["tasks"]["total"]:
            raise CliError(
                f"The manifest names {seen} tasks, the run has {view['tasks']['total']}.", exit_code=AWS_FAULT
            )
    elif partial:
        yield from _parts_there_are(s3, bucket, prefix, int(view["tasks"]["total"]), merged)
    else:
        raise CliError(
            f"{view['runId']} has ended {view['status']} but has no manifest at {layout.manifest_uri(output)}.",
            next_step="it is written at the very end: wait a little; --partial takes the parts there are",
            exit_code=AWS_FAULT,
        )


def _parts_there_are(s3: Any, bucket: str, prefix: str, total: int, merged: Merged) -> Iterator[Part]:
    """Of a run that goes on: only finished parts. S3 lists them by name, and their names sort like their indexes."""
    due = 0
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}parts/"):
        for each in page.get("Contents", ()):
            index = layout.part_index(each["Key"].removeprefix(prefix))
            if index is None or index < due:
                continue
            for missing in range(due, index):
                merged.lacks(missing, "not there yet")
            due = index + 1
            yield Part(index, bucket, (each["Key"],), int(each["Size"]))
    for missing in range(due, total):
        merged.lacks(missing, "not there yet")


def _incomplete(session: Session, view: Mapping[str, Any], merged: Merged) -> CliError:
    total = view["tasks"]["total"]
    run = view["runId"]
    return CliError(
        f"{figures.counted(merged.missing_count, 'task')} of {total:,} in {run}"
        f" {'has' if merged.missing_count == 1 else 'have'} no result: nothing was written.",
        details=_missing(merged),
        next_step=f"`{session.again(f'status {run} --tasks')}` says why;"
        f" `{session.again(f'results {run} --merge --partial')}` merges the others",
        exit_code=RUN_FAILED,
    )


def _missing(merged: Merged) -> list[str]:
    lines = [f"task {index}: {why}" for index, why in sorted(merged.missing)[:NAMED]]
    more = merged.missing_count - len(lines)
    return [*lines, f"and {more:,} more"] if more else lines


def _told(view: Mapping[str, Any], merged: Merged, name: str, size: int) -> Iterator[str]:
    whole = f"{merged.parts:,} of {view['tasks']['total']:,} tasks"
    yield f"{view['runId']} {view['status']}: {figures.counted(merged.rows, 'row')} of {whole}, {figures.size(size)}"
    if merged.missing_count:
        yield "without a result:"
        yield from (f"  {line}" for line in _missing(merged))
    if name != "-":
        yield f"merged into {name}"


def _document(view: Mapping[str, Any], merged: Merged, form: str, name: str, size: int) -> dict[str, Any]:
    return {
        "runId": view["runId"],
        "status": view["status"],
        "output": view["output"],
        "mergedTo": name,
        "format": form,
        "rows": merged.rows,
        "bytes": size,
        "tasks": {"total": view["tasks"]["total"], "merged": merged.parts, "missing": merged.missing_count},
        "missing": [{"index": index, "why": why} for index, why in sorted(merged.missing)],
    }
