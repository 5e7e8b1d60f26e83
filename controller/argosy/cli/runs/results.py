"""What did a run produce, and onto my disk with it? Follows the manifest, so that a zombie's files never count."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import typer

from argosy import layout
from argosy.cli import figures
from argosy.cli.problems import AWS_FAULT, CliError
from argosy.cli.runs.reading import RUN_PANEL, RunId
from argosy.cli.runs.whole_files import whole
from argosy.cli.session import Session, command
from argosy.client.errors import error_code

PARALLEL_GETS = 16
CHUNK_BYTES = 1 << 20


def register(app: typer.Typer) -> None:
    command(app, "results", panel=RUN_PANEL)(results)


@dataclass(frozen=True)
class Found:
    """An object of the run. path: below the run's folder, also where it goes below the download folder."""

    bucket: str
    key: str
    path: str
    size: int  # bytes; 0 when not known


def results(
    session: Session,
    run: RunId,
    download: Annotated[Path | None, typer.Option("--download", metavar="DIR", help="Copy the results there.")] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Also of a run that has not ended, or that lacks results.")
    ] = False,
    merge: Annotated[bool, typer.Option("--merge", help="All rows in one file, in the order of the tasks.")] = False,
    form: Annotated[
        str | None, typer.Option("--format", metavar="FORMAT", help="Of the merged file: jsonl (default) or csv.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="The merged file; - is standard output.")
    ] = None,
) -> None:
    """Where a run's results are; copies them here, or merges them."""
    _check(session, download, merge, form, output)
    view = session.api.describe(run)
    if view["status"] not in figures.TERMINAL and not partial:
        raise CliError(
            f"{run} is still {view['status']}: its results are not complete.",
            next_step=f"wait for it with `{session.again(f'watch {run}')}`, or take what there is with --partial",
        )
    if merge:
        from argosy.cli.runs.results_merged import merge as write_merged

        write_merged(session, view, form or "jsonl", output, partial)
        return
    found, manifest = find(session.client("s3"), view, partial)
    if download is not None:
        fetch(session.client("s3"), found, download)
        if manifest is not None:
            (download / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    if session.wants_json:
        session.print_json(_document(view, found, manifest, download))
        return
    _print(session, view, found, download)


def _check(session: Session, download: Path | None, merge: bool, form: str | None, output: str | None) -> None:
    if not merge and (form or output):
        raise CliError("--format and --output are about the merged file.", next_step="add --merge")
    if merge and download:
        raise CliError("--merge makes one file, --download copies them all: choose one.")
    if output == "-" and session.wants_json:
        raise CliError("--json and --output - would both write to standard output.", next_step="name a file")


def _document(view: Any, found: list[Found], manifest: Any, download: Path | None) -> dict[str, Any]:
    return {
        "runId": view["runId"],
        "status": view["status"],
        "output": view["output"],
        "downloadedTo": str(download) if download else None,
        "files": [{"key": each.key, "path": each.path, "bytes": each.size} for each in found],
        "manifest": manifest,
    }


def _print(session: Session, view: Any, found: list[Found], download: Path | None) -> None:
    total = figures.size(sum(each.size for each in found))
    tasks = view["tasks"]
    session.console.print(
        f"{view['runId']} {view['status']}: {tasks['succeeded']:,} of {tasks['total']:,} tasks have a result,"
        f" {figures.counted(len(found), 'file')}, {total}"
    )
    if not found:
        step = session.again(f"status {view['runId']} --tasks")
        session.console.print(f"next: {step}", style="dim")
    elif download is None:
        session.console.print(f"in {view['output']}")
        again = session.again(f"results {view['runId']} --download {view['name']}-results")
        session.console.print(f"next: {again}", style="dim")
        merged = session.again(f"results {view['runId']} --merge")
        session.console.print(f"  or: {merged}    (all rows in one file)", style="dim")
    else:
        session.console.print(f"copied to {download}/")


def find(s3: Any, view: Mapping[str, Any], partial: bool) -> tuple[list[Found], dict[str, Any] | None]:
    """The files of the committed attempts, and the manifest; without one (`partial`), whatever parts there are. The
    manifest of a run that goes on is of an earlier end, before a retry reopened it, and counts no longer."""
    output = str(view["output"])
    bucket, prefix = layout.split_s3(output)
    if partial and view["status"] not in figures.TERMINAL:
        return list(_listed(s3, bucket, prefix)), None
    _, key = layout.split_s3(layout.manifest_uri(output))
    try:
        manifest = json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
    except Exception as fault:
        if error_code(fault) not in ("NoSuchKey", "404"):
            raise
        if not partial:
            raise CliError(
                f"{view['runId']} has ended {view['status']} but has no manifest at {layout.manifest_uri(output)}.",
                next_step="it is written at the very end: wait a little; --partial takes the parts there are",
                exit_code=AWS_FAULT,
            ) from fault
        return list(_listed(s3, bucket, prefix)), None
    return list(_committed(manifest, bucket, prefix)), manifest


def _committed(manifest: Mapping[str, Any], bucket: str, prefix: str) -> Iterator[Found]:
    for entry in manifest["entries"]:
        keys = entry.get("keys") or ()
        for key in keys:
            whole = key if key.startswith(prefix) else prefix + key
            yield _found(bucket, prefix, whole, int(entry.get("bytes") or 0) if len(keys) == 1 else 0)


def _listed(s3: Any, bucket: str, prefix: str) -> Iterator[Found]:
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}parts/"):
        for each in page.get("Contents", ()):
            yield _found(bucket, prefix, each["Key"], int(each["Size"]))


def _found(bucket: str, prefix: str, key: str, size: int) -> Found:
    """Raises CliError for a key that would leave the download folder: tasks choose the names below their prefix."""
    path = PurePosixPath(key.removeprefix(prefix))
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise CliError(f"The key {key!r} does not lie below the run's folder: nothing was copied.", exit_code=AWS_FAULT)
    return Found(bucket, key, str(path), size)


def fetch(s3: Any, found: list[Found], directory: Path) -> int:
    """Copies all of it, several at a time, each file complete or not there; returns the bytes."""
    from concurrent.futures import ThreadPoolExecutor

    directory.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(PARALLEL_GETS) as pool:
        return sum(pool.map(lambda each: _get(s3, each, directory), found))


def _get(s3: Any, found: Found, directory: Path) -> int:
    target = directory / found.path
    target.parent.mkdir(parents=True, exist_ok=True)
    body, count = s3.get_object(Bucket=found.bucket, Key=found.key)["Body"], 0
    with whole(target) as file:
        while chunk := body.read(CHUNK_BYTES):
            count += file.write(chunk)
    return count
