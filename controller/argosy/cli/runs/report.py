"""What do finished runs say side by side? `report benchmark` reads benchmark runs, or logs that were kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argosy.cli import figures
from argosy.cli.problems import CliError
from argosy.cli.runs.reading import RUN_PANEL
from argosy.cli.session import Session, command

if TYPE_CHECKING:
    from argosy.cli.runs.benchmark_records import Measurement

PANEL = RUN_PANEL
HELP = "Benchmark runs side by side."


def register(app: typer.Typer) -> None:
    report = typer.Typer(help=HELP, no_args_is_help=True)
    command(report, "benchmark", panel=PANEL)(benchmark)
    report.callback()(_report)
    app.add_typer(report, name="report", rich_help_panel=PANEL)


def _report() -> None:
    """Benchmark runs side by side."""


def benchmark(
    session: Session,
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="RUN...", help="Benchmark runs.", show_default=False)
    ] = None,
    files: Annotated[
        list[Path] | None,
        typer.Option("--file", metavar="LOG", help="A benchmark's log or part that was kept; may be repeated."),
    ] = None,
) -> None:
    """Images per second, scaling and cost of training benchmarks; unlike batches per GPU are not compared."""
    from argosy.catalogue.lookup import load_catalogue
    from argosy.cli.runs import benchmark_table

    if not runs and not files:
        raise CliError(
            "Name runs, or logs with --file.",
            next_step="`argosy runs` lists the runs; containers/tensorflow-benchmark has specs for 1, 4 and 8 GPUs",
        )
    kept = _kept(files or ())
    found = [each for run in runs or () for each in of_run(session, run)] + kept
    catalogue = load_catalogue(session.deployment.region) if runs else load_catalogue()
    measured = [benchmark_table.priced(each, catalogue) for each in found]
    rows, notes = benchmark_table.comparison(measured), benchmark_table.notes(measured)
    if session.wants_json:
        session.print_json({"measurements": rows, "notes": notes})
        return
    session.console.print(benchmark_table.table(rows))
    session.console.print(
        "\nLINEAR: share of perfect scaling. WHOLE TASK: images/s with start and warm-up. $/M: US dollars per million"
        " images at full speed; $/M WHOLE: with start and warm-up.",
        style="dim",
    )
    for note in notes:
        session.console.print(note, style="yellow")


def _kept(files: Sequence[Path]) -> list[Measurement]:
    """Raises CliError that names what is wrong with every file."""
    from argosy.cli.runs.benchmark_records import NoRecord, read

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
    from argosy.cli.runs.manifest_entries import entries, open_manifest

    view = session.api.describe(run)
    body = open_manifest(session.client("s3"), str(view["output"])) if view["status"] in figures.TERMINAL else None
    if body is None:
        raise CliError(
            f"{run} is {view['status']} and has no results to report yet.",
            next_step=f"wait for it with `{session.again(f'watch {run}')}`",
        )
    done = [entry for entry in entries(body) if entry["status"] == "SUCCEEDED" and entry["keys"]]
    if not done:
        raise CliError(f"No task of {run} succeeded.", next_step=f"type `{session.again(f'status {run}')}`")
    seconds = sum(entry["seconds"] for entry in done)
    for entry in done:
        measured = _of_entry(session, view, entry)
        share = entry["seconds"] / seconds if seconds else 1 / len(done)
        yield _paid(measured, entry["seconds"], view["costUsd"] * share, _hourly(view, seconds))


def _hourly(view: Any, seconds: float) -> float | None:
    """What the tasks' part of their instances costs while they work: nothing booted, idled or done again in it."""
    useful = view.get("usefulUsd")
    return useful / seconds * 3600 if useful and seconds else None


def _paid(measured: Measurement, seconds: float, usd: float, hourly: float | None) -> Measurement:
    """The task as it ran, but for the baseline, which tasks of one GPU do not have."""
    if not seconds:
        return replace(measured, usd=usd, share_usd_per_hour=hourly)
    own = max(seconds - measured.baseline_s, 0.0)
    return replace(measured, usd=usd * own / seconds, share_usd_per_hour=hourly, total_s=own or measured.total_s)


def _of_entry(session: Session, view: Any, entry: Any) -> Measurement:
    from argosy import layout
    from argosy.cli.runs.benchmark_records import NoRecord, read

    bucket, _ = layout.split_s3(str(view["output"]))
    text = (
        session.client("s3").get_object(Bucket=bucket, Key=entry["keys"][0])["Body"].read().decode("utf-8", "replace")
    )
    name = str(view["runId"]) + (f" task {entry['index']}" if view["tasks"]["total"] > 1 else "")
    try:
        measured = read(text, name)
    except NoRecord as fault:
        step = session.again(f"results {view['runId']}")
        raise CliError(f"{name} is no benchmark: {fault}.", next_step=f"type `{step}`") from fault
    return replace(measured, instance_type=entry["instanceType"])
