"""`argosy results RUN --merge`: one file of all rows, and the tasks that it lacks."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from argosy.cli import figures
from argosy.cli.outside_text import say
from argosy.cli.problems import RUN_FAILED, CliError
from argosy.cli.session import Session
from argosy.client.results.files import whole_file
from argosy.client.results.merge import MergeResult, UnreadablePart, parts_of_run, write_rows
from argosy.model.wording import first_of

FORMATS = ("jsonl", "csv")
NAMED = 10  # missing tasks that are listed one by one


def merge(session: Session, view: Mapping[str, Any], form: str, target: str | None, partial: bool) -> None:
    """Merge, or refuse because results are missing (exit 1), and say so."""
    if form not in FORMATS:
        raise CliError(f"--format is {' or '.join(FORMATS)}, not {form}.")
    name = target or f"{view['runId']}.{form}"
    merged = MergeResult(skips_bad=partial)

    def write(file: IO[bytes]) -> None:
        s3 = session.client("s3")
        write_rows(s3, parts_of_run(s3, view, partial, merged), form, file, merged)
        if merged.missing_count and not merged.parts and not view.get("expectsResult", True):
            raise leaves_none(session, view)
        if merged.missing_count and not partial:
            raise _incomplete(session, view, merged)

    try:
        size = deliver(name, write)
    except UnreadablePart as fault:
        raise _unreadable(session, view, fault) from fault
    if session.wants_json:
        document = {"mergedTo": name, "format": form, "rows": merged.rows, "bytes": size}
        session.print_json({**_run(view), **document, **_tasks(view, merged)})
        return
    for line in _told(view, merged, name, size):
        say(line, err=name == "-")


def leaves_none(session: Session, view: Any) -> CliError:
    """The refusal for a run whose spec defines no results."""
    run = view["runId"]
    return CliError(
        f"{run} has no results: its spec asks for none (`result: none`, or no `${{part}}`).",
        next_step=f"`{session.again(f'logs {run}')}` shows what its tasks printed",
    )


def deliver(target: str, write: Callable[[IO[bytes]], None]) -> int:
    """Call `write` with a file that becomes `target` if nothing is raised ("-": standard output); returns its bytes."""
    if target == "-":
        with TemporaryFile() as spool:
            write(spool)
            size = spool.tell()
            spool.seek(0)
            shutil.copyfileobj(spool, sys.stdout.buffer)
            return size
    try:
        with whole_file(Path(target)) as file:
            write(file)
            return file.tell()
    except OSError as fault:
        raise CliError(f"{target} cannot be written: {fault.strerror or fault}.") from fault


def _unreadable(session: Session, view: Mapping[str, Any], fault: UnreadablePart) -> CliError:
    run = view["runId"]
    step = (
        f"`{session.again(f'results {run} --merge --partial')}` merges the others; `"
        f"{session.again(f'logs {run} --task {fault.index}')}` shows what the task printed"
    )
    return CliError(fault.message, next_step=step, details=fault.details, exit_code=RUN_FAILED)


def _incomplete(session: Session, view: Mapping[str, Any], merged: MergeResult) -> CliError:
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


def _missing(merged: MergeResult) -> list[str]:
    lines = [f"task {index}: {why}" for index, why in sorted(merged.missing)]
    return first_of(lines, NAMED, merged.missing_count)


def _told(view: Mapping[str, Any], merged: MergeResult, name: str, size: int) -> Iterator[str]:
    tasks = f"{merged.parts:,} of {view['tasks']['total']:,} tasks"
    yield f"{view['runId']} {view['status']}: {figures.counted(merged.rows, 'row')} of {tasks}, {figures.size(size)}"
    if merged.missing_count:
        yield "without a result:"
        yield from (f"  {line}" for line in _missing(merged))
    if name != "-":
        yield f"merged into {name}"


def _run(view: Mapping[str, Any]) -> dict[str, Any]:
    return {key: view[key] for key in ("runId", "status", "output")}


def _tasks(view: Mapping[str, Any], merged: MergeResult) -> dict[str, Any]:
    counts = {"total": view["tasks"]["total"], "merged": merged.parts, "missing": merged.missing_count}
    missing = [{"index": index, "why": why} for index, why in sorted(merged.missing)]
    return {"tasks": counts, "missing": missing}
