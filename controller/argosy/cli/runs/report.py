"""The command `report`: `report run` writes a run as a page, `report benchmark` compares measurements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from argosy import layout
from argosy.catalogue.lookup import load_catalogue
from argosy.cli import figures, panels
from argosy.cli.command import command
from argosy.cli.console import PlainText
from argosy.cli.html_file import write
from argosy.cli.options import RunId
from argosy.cli.problems import CliError
from argosy.cli.session import Session
from argosy.cli.tables import PlainTable
from argosy.client.benchmarks import Measurement, NoRecord, comparable_groups, comparison, paid, priced, read
from argosy.client.progress import TERMINAL
from argosy.client.results.manifest import open_manifest
from argosy.figures.document import Page

HELP = "Runs as a page; benchmarks side by side."


def register(app: typer.Typer) -> None:
    report = typer.Typer(help=HELP, no_args_is_help=True)
    command(report, "run", panel=panels.RUNS, as_json=False)(run)
    command(report, "benchmark", panel=panels.RUNS)(benchmark)
    report.callback()(_report)
    app.add_typer(report, name="report", rich_help_panel=panels.RUNS)


def _report() -> None:
    """Runs as a page; benchmarks side by side."""


def run(
    session: Session,
    run: RunId,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="File to write. [default: RUN.html]", show_default=False),
    ] = None,
) -> None:
    """A run as one page, open or ended: what happened, how long, at what cost."""
    file = html or Path(f"{run}.html")
    write(session, run_report(session, run), file, f"argosy report run {run}")


def run_report(session: Session, run: str) -> Page:
    """Raises CliError for an unknown id."""
    from argosy.ui.deployment_reader import DeploymentReader, NoSuchPage

    try:
        return DeploymentReader(session.access, session.tools.now).read_run(run)
    except NoSuchPage as why:
        raise CliError(str(why), next_step="`argosy status` lists the runs") from why


def benchmark(
    session: Session,
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="RUN...", help="Benchmark runs.", show_default=False)
    ] = None,
    files: Annotated[
        list[Path] | None,
        typer.Option("--file", metavar="LOG", help="Saved log or part of a benchmark; may be repeated."),
    ] = None,
) -> None:
    """Speed, scaling and cost of training and inference; different batches per GPU are not compared."""
    if not runs and not files:
        raise CliError(
            "Name runs, or give logs with --file.",
            next_step="`argosy runs` lists the runs; containers/pytorch-training has specs for 1, 4 and 8 GPUs",
        )
    kept = _kept(files or ())
    found = [each for run in runs or () for each in of_run(session, run)] + kept
    catalogue = load_catalogue(session.deployment.region) if runs else load_catalogue()
    measured = [priced(each, catalogue) for each in found]
    rows, remarks = comparison(measured), notes(measured)
    if session.wants_json:
        session.print_json({"measurements": rows, "notes": remarks})
        return
    session.console.print(table(rows))
    session.console.print(
        f"\nLINEAR: share of perfect scaling. WHOLE TASK: {unit_of(rows)}/s with start and warm-up. $/M: US dollars per"
        f" million {unit_of(rows)} at full speed; $/M WHOLE: with start and warm-up.",
        style="dim",
    )
    for remark in remarks:
        session.console.print(remark, style="yellow")


def _kept(files: Sequence[Path]) -> list[Measurement]:
    """Raises CliError with the faults of every file."""
    found, faults = [], []
    for file in files:
        try:
            found.append(read(file.read_text(encoding="utf-8", errors="replace"), file.stem))
        except OSError as fault:
            faults.append(f"{file}: {fault.strerror}")
        except NoRecord as fault:
            faults.append(f"{file}: {fault}")
    if faults:
        what = figures.counted(len(faults), "file")
        raise CliError(f"{what} cannot be used.", details=faults)
    return found


def of_run(session: Session, run: str) -> Iterator[Measurement]:
    """One for each task with a result. Raises CliError when there is none."""
    view = session.api.describe(run)
    manifest = open_manifest(session.client("s3"), str(view["output"])) if view["status"] in TERMINAL else None
    if manifest is None:
        raise CliError(
            f"{run} is {view['status']} and has no results to report yet.",
            next_step=f"wait for it with `{session.again(f'watch {run}')}`",
        )
    done = [entry for entry in manifest.entries() if entry["status"] == "SUCCEEDED" and entry["keys"]]
    if not done:
        raise CliError(f"No task of {run} succeeded.", next_step=f"type `{session.again(f'status {run}')}`")
    seconds = sum(entry["seconds"] for entry in done)
    for entry in done:
        measured = _of_entry(session, view, entry)
        share = entry["seconds"] / seconds if seconds else 1 / len(done)
        yield paid(measured, entry["seconds"], view["costUsd"] * share, _hourly(view, seconds))


def _hourly(view: Any, seconds: float) -> float | None:
    """USD an hour for the tasks' share of their instances while they work; boot, idle and lost time are left out."""
    useful = view.get("usefulUsd")
    return useful / seconds * 3600 if useful and seconds else None


def _of_entry(session: Session, view: Any, entry: Any) -> Measurement:
    bucket, _ = layout.split_s3(str(view["output"]))
    key = max(entry["keys"], key=lambda each: (each.endswith("/benchmark.json"), "/parts/" in each))
    text = session.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read().decode("utf-8", "replace")
    name = str(view["runId"]) + (f" task {entry['index']}" if view["tasks"]["total"] > 1 else "")
    try:
        measured = read(text, name)
    except NoRecord as fault:
        step = session.again(f"results {view['runId']}")
        raise CliError(f"{name} is not a benchmark: {fault}.", next_step=f"type `{step}`") from fault
    return replace(measured, instance_type=entry["instanceType"])


def notes(measurements: Sequence[Measurement]) -> list[str]:
    """A sentence for every two groups of measurements that are not compared, with the difference."""
    groups = comparable_groups(measurements)
    return [
        f"not compared: {_names(first)} with {_names(second)}: {_difference(first[0], second[0])}"
        for number, first in enumerate(groups)
        for second in groups[number + 1 :]
    ]


def _names(group: Sequence[Measurement]) -> str:
    return ", ".join(f"{each.source} ({figures.counted(each.gpus, 'GPU')})" for each in group)


def _difference(one: Measurement, other: Measurement) -> str:
    parts = []
    if one.batch_per_gpu != other.batch_per_gpu:
        what = "images" if one.unit == other.unit == "images" else "examples"
        parts.append(f"different batches per GPU, {one.batch_per_gpu} and {other.batch_per_gpu} {what}")
    mine, theirs = dict(one.setting), dict(other.setting)
    for name in dict.fromkeys([*mine, *theirs]):
        if mine.get(name) != theirs.get(name):
            parts += [f"{name} {mine.get(name, 'unknown')} and {theirs.get(name, 'unknown')}"]
    return "; ".join(parts)


def unit_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """What all rows count: images, tokens, or, where they differ, units."""
    units = {row["unit"] for row in rows}
    return str(*units) if len(units) == 1 else "units"


def table(rows: Sequence[Mapping[str, Any]]) -> PlainTable:
    """For a person; `base` marks the measurement that the others of its group are compared with."""
    columns = (
        ">GPUS",
        ">BATCH/GPU",
        f">{unit_of(rows).upper()}/S",
        ">+/-",
        ">SCALING",
        ">LINEAR",
        ">WHOLE TASK",
        ">$/M",
        ">$/M WHOLE",
    )
    grid = PlainTable(*columns, "~MEASURED BY", least=("$/M WHOLE", "WHOLE TASK", "LINEAR", "BATCH/GPU", "+/-", "$/M"))
    bases = {row["comparedWith"] for row in rows}
    for row in rows:
        unit, capital = row["unit"], row["unit"].capitalize()
        grid.add_row(
            str(row["gpus"]),
            str(row["batchPerGpu"]),
            f"{row[f'{unit}PerSecond']:.2f}",
            _shown(row["deviation"], "{:.1f}"),
            _shown(row["scaling"], "{:.2f} x", "base" if row["source"] in bases else "-"),
            _shown(row["shareOfLinear"], "{:.0%}"),
            _shown(row[f"wholeTask{capital}PerSecond"], "{:.1f}"),
            _money(row[f"usdPerMillion{capital}"]),
            _money(row[f"wholeTaskUsdPerMillion{capital}"]),
            PlainText(_measured_by(row)),
        )
    return grid


def _measured_by(row: Mapping[str, Any]) -> str:
    emulated = row["setting"].get("emulated") == "yes" and row["pinnedGpus"]
    parts = [row["source"], row["instanceType"], row["devices"]]
    parts += [f"{figures.counted(len(row['pinnedGpus']), 'GPU')} pinned, CPUs used instead"] if emulated else []
    return ", ".join(str(part) for part in parts if part)


def _shown(value: float | None, pattern: str, without: str = "-") -> str:
    return without if value is None else pattern.format(value)


def _money(usd: float | None) -> str:
    return "-" if usd is None else figures.money(usd)
