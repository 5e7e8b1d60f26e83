"""The command `results`: a run's results, listed or copied to this disk."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from argosy.cli import figures, panels
from argosy.cli.command import command
from argosy.cli.options import RunId
from argosy.cli.problems import CliError
from argosy.cli.session import Session
from argosy.client.progress import TERMINAL
from argosy.client.results.files import DownloadCounts, ResultFile, by_task, download, result_files
from argosy.client.results.manifest import NoManifest

# In a folder that is made for results: the next `argosy run` in the folder above need not upload them.
NOT_UPLOADED = "# results: argosy run leaves them out\n*\n"


@dataclass(frozen=True)
class ResultOptions:
    """What to do with the results: copy them, merge them, or only list them."""

    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Copy the results there, DIR/000123/NAME of task 123; continues."),
    ] = None
    flat: Annotated[bool, typer.Option("--flat", help="With --out: all in one folder, DIR/000123-NAME.")] = False
    download: Annotated[
        Path | None,
        typer.Option("--download", metavar="DIR", help="Copy the results and the manifest there, with S3's names."),
    ] = None
    partial: Annotated[bool, typer.Option("--partial", help="Accept a run that has not ended or lacks results.")] = (
        False
    )
    merge: Annotated[bool, typer.Option("--merge", help="Merge all rows into one file, in task order.")] = False
    form: Annotated[
        str | None,
        typer.Option("--format", metavar="FORMAT", help="Format of the merged file: jsonl (default) or csv."),
    ] = None
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="The merged file; - is standard output."),
    ] = None

    @property
    def layout(self) -> str:
        return "s3" if self.out is None else "flat" if self.flat else "tasks"


def register(app: typer.Typer) -> None:
    command(app, "results", panel=panels.RUNS)(results)


def results(session: Session, run: RunId, wanted: ResultOptions) -> None:
    """Where a run's results are; copies them here, or merges them."""
    _check(session, wanted)
    view = session.api.describe(run)
    if view["status"] not in TERMINAL and not wanted.partial:
        if env := view.get("environment"):
            raise CliError(
                f"{run} is a revision's run of {env}, whose tasks keep running: its results are never complete.",
                next_step=f"`{session.again(f'logs {run}')}` shows what they print; --partial takes the results so far",
            )
        raise CliError(
            f"{run} is still {view['status']}: its results are not complete.",
            next_step=f"wait for it with `{session.again(f'watch {run}')}`, or take the results so far with --partial",
        )
    try:
        if wanted.merge:
            from argosy.cli.runs.merge import merge

            merge(session, view, wanted.form or "jsonl", wanted.output, wanted.partial)
        else:
            copy_results(session, view, wanted.out or wanted.download, wanted.partial, wanted.layout)
    except NoManifest as fault:
        fault.next_step += "; --partial takes the results so far"
        raise


def _check(session: Session, wanted: ResultOptions) -> None:
    if not wanted.merge and (wanted.form or wanted.output):
        raise CliError("--format and --output need --merge.", next_step="add --merge")
    if wanted.merge and (wanted.out or wanted.download):
        raise CliError("--merge writes one file, --out and --download copy all files: choose one.")
    if wanted.out and wanted.download:
        raise CliError("--out and --download lay the files out differently: choose one.")
    if wanted.flat and not wanted.out:
        raise CliError("--flat needs --out.", next_step="add --out DIR")
    if wanted.output == "-" and session.wants_json:
        raise CliError("--json and --output - would both write to standard output.", next_step="name a file")


def copy_results(session: Session, view: Any, folder: Path | None, partial: bool, layout: str = "tasks") -> None:
    """Lists the files, and copies them if a folder is given. layout: tasks | flat | s3."""
    s3 = session.client("s3")
    files, manifest = result_files(s3, view, partial)
    if folder is not None and not files and not view.get("expectsResult", True):
        raise _leaves_none(session, view)
    done = None
    if folder is not None:
        chosen = files if layout == "s3" else by_task(files, layout == "flat")
        try:
            done = _copied(s3, chosen, folder, manifest if layout == "s3" else None)
        except OSError as fault:
            raise CliError(f"{fault.filename or folder} cannot be written: {fault.strerror or fault}.") from fault
    if session.wants_json:
        shown = files if done is None else done.files
        session.print_json({**_document(view, shown, folder), "manifest": manifest})
        return
    _print(session, view, files, folder)
    if folder is not None and done is not None and files:
        session.console.print(_said_of(done, folder))


def _copied(s3: Any, files: Sequence[ResultFile], folder: Path, manifest: Any) -> DownloadCounts:
    is_new = not folder.exists()
    done = download(s3, files, folder)
    if is_new:
        (folder / ".argosyignore").write_text(NOT_UPLOADED)
    if manifest is not None:
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    return done


def _said_of(done: DownloadCounts, folder: Path) -> str:
    there = len(done.files) - done.copied
    before = f"; {figures.counted(there, 'file')} there already" if there else ""
    named = f"{folder / done.files[0].path}{', ...' if len(done.files) > 1 else ''}"
    return f"copied to {folder}/: {figures.counted(done.copied, 'file')}, {figures.size(done.size)}{before} ({named})"


def _document(view: Any, files: Sequence[ResultFile], folder: Path | None) -> dict[str, Any]:
    return {
        "runId": view["runId"],
        "status": view["status"],
        "output": view["output"],
        "downloadedTo": str(folder) if folder else None,
        "files": [{"key": each.key, "path": each.path, "bytes": each.size} for each in files],
    }


def _leaves_none(session: Session, view: Any) -> CliError:
    from argosy.cli.runs.merge import leaves_none

    return leaves_none(session, view)


def _print(session: Session, view: Any, files: Sequence[ResultFile], folder: Path | None) -> None:
    if not files and not view.get("expectsResult", True):
        raise _leaves_none(session, view)
    total = figures.size(sum(each.size for each in files))
    tasks = view["tasks"]
    session.console.print(
        f"{view['runId']} {view['status']}: {tasks['succeeded']:,} of {tasks['total']:,} tasks have a result,"
        f" {figures.counted(len(files), 'file')}, {total}"
    )
    if not files:
        step = session.again(f"status {view['runId']} --tasks")
        session.console.print(f"next: {step}", style="dim")
    elif folder is None:
        session.console.print(f"in {view['output']}")
        again = session.again(f"results {view['runId']} --out {view['name']}-results")
        session.console.print(f"next: {again}", style="dim")
        merged = session.again(f"results {view['runId']} --merge")
        session.console.print(f"  or: {merged}    (all rows in one file)", style="dim")
