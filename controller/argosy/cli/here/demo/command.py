"""The whole of Argosy in under two minutes on one machine: `demo`.

Starts an AWS in this process, submits two real runs, takes one instance away in the middle of its work, downloads the
results and reports what was measured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from argosy.cli import figures, panels
from argosy.cli.command import command
from argosy.cli.here.demo.supervision import (
    LOOK_INTERVAL_S,
    TIME_LIMIT_S,
    RunSupervisor,
    StepLog,
    download_results,
    embedded_aws,
    session_in,
)
from argosy.cli.here.examples import example
from argosy.cli.here.local import settings_of
from argosy.cli.here.runtime import PROCESS, BaseImage, Runtime, engine_of
from argosy.cli.problems import RUN_FAILED, CliError
from argosy.cli.session import Session

RUN_FILES = ("digits/run.yaml", "digits/run-gpu.yaml")
GPU_TYPES = ("g5.12xlarge",)  # 4 GPUs each, so that tasks on one instance must get different ones
TOUR_FILE = "python/daemon.yaml"
REPORTS = ("report.html", "gpu-report.html")
SECONDS_PER_TASK = 6.0
TASK_PROCESSES = 12  # they mostly sleep, so more of them than cores


def register(app: typer.Typer) -> None:
    command(app, "demo", panel=panels.HERE, connected=False)(demo)


def demo(
    session: Session,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the summary and the results.")] = Path(
        "out/demo"
    ),
    runtime: Runtime = PROCESS,
    base_image: BaseImage = None,
    tour: Annotated[
        int | None,
        typer.Option("--tour", min=1, max=20, metavar="N", help="Show services instead, on 1, 2 and N instances."),
    ] = None,
) -> None:
    """A real batch here, with GPUs and a spot interruption."""
    if tour is not None:
        _take_tour(session, tour)
        return
    from argosy.cli.here.demo import report
    from argosy.cli.html_file import write
    from argosy.cli.runs.report import run_report

    engine, settings = engine_of(runtime), settings_of(None, base_image=base_image)
    types = settings.instance_types.model_copy(update={"gpu": GPU_TYPES})
    settings = settings.model_copy(update={"instance_types": types})
    log = StepLog(session, session.tools.now())
    first, second = map(example, RUN_FILES)
    with embedded_aws(TASK_PROCESSES, engine=engine, settings=settings) as aws:
        log.welcome(aws)
        inside = session_in(session, aws)
        forecast = _planned(inside, first, log)
        runs = [_submit(inside, first, log)]
        # Bought together, the GPU machines' spare vCPUs would take the first run too, and no c5 would be seen.
        _until_bought(inside)
        runs.append(_submit(inside, second, log))
        supervisor = RunSupervisor(inside, aws, log)
        ended = supervisor.until_ended([run["runId"] for run in runs])
        views = [inside.api.describe_with_cost(view["runId"]) for view in ended]
        folders = [out / "results", out / "gpu-results"]
        manifests = [download_results(inside, view, folder) for view, folder in zip(views, folders, strict=True)]
        cluster = inside.api.cluster()
        for run, name in zip(runs, REPORTS, strict=True):
            write(inside, run_report(inside, run["runId"]), out / name, f"argosy report run {run['runId']}")
    took_s = session.tools.now() - log.begun
    rows = report.rows_of(folders[0])
    found = report.summary(views, manifests, cluster, rows, supervisor.taken) | {"seconds": took_s}
    found["plan"] = report.plan_held(forecast, views[0])
    (out / "summary.json").write_text(json.dumps(found, indent=2) + "\n")
    _print(session, found, out)
    if found["tasks"]["succeeded"] != found["tasks"]["total"]:
        raise typer.Exit(RUN_FAILED)


def _take_tour(session: Session, largest: int) -> None:
    """Services, from one instance to many and back to none."""
    from argosy.cli.here.demo.tour import Tour, report

    log = StepLog(session, session.tools.now())
    with embedded_aws(2 * largest) as aws:
        log.welcome(aws)
        taken = Tour(session_in(session, aws), aws, example(TOUR_FILE), log, [])
        taken.take(largest)
    found = report(taken.steps)
    slowest = found["slowestSeconds"]
    log.step(f"all instances are free; the slowest change took {slowest:.1f} s (limit {found['mostSeconds']:.0f} s)")
    if session.wants_json:
        session.print_json(found)


def _until_bought(inside: Session) -> None:
    """Wait until the cluster has ordered instances. Raises CliError when it never does."""
    deadline = inside.tools.now() + TIME_LIMIT_S
    while not any(fleet["spotTarget"] for fleet in inside.api.cluster()["fleets"]):
        if inside.tools.now() > deadline:
            raise CliError("The cluster ordered no instances.", next_step="see the log that local AWS named")
        inside.tools.sleep(LOOK_INTERVAL_S)


def _print(session: Session, found: Mapping[str, Any], out: Path) -> None:
    from argosy.cli.here.demo import report

    if session.wants_json:
        session.print_json(found)
        return
    session.console.print()
    session.console.print(report.closing_table(found, out / "results"))
    session.console.print(f"\nThe same figures, unrounded: {out / 'summary.json'}", style="dim")
    session.console.print(f"Report of the demo: {out / REPORTS[0]}", style="dim")
    session.console.print("next: argosy local", style="dim")
    session.console.print(f"then, in another terminal: argosy submit {example(RUN_FILES[0])}", style="dim")


def _planned(inside: Session, file: Path, log: StepLog) -> Any:
    """The forecast of `argosy plan` for the run, before anything is started."""
    from argosy.cli.runs.plan import between
    from argosy.cli.runs.spec_source import load

    spec, _ = load(file)
    reply = inside.api.plan(slowed(spec))
    log.step(f"forecast of {file}: buys {bought_in_words(reply['instances'])}")
    log.step(f"  costs {between(reply['costUsd'], figures.money)}")
    log.step(f"  ends after {between(reply['seconds'], figures.duration)}")
    return reply


def bought_in_words(rows: Sequence[Mapping[str, Any]]) -> str:
    """`9 x c5.large spot` of a plan's instances, the zones of a type added up."""
    counts: dict[str, int] = {}
    for row in rows:
        name = f"{row['instanceType']} {row['purchase']}"
        counts[name] = counts.get(name, 0) + row["count"]
    return ", ".join(f"{count} x {name}" for name, count in counts.items()) or "nothing"


def _submit(inside: Session, file: Path, log: StepLog) -> Any:
    from argosy.cli.runs.spec_source import load

    spec, _ = load(file)
    view = inside.api.submit(slowed(spec), inside.tools.new_token())
    gpus = f" with {figures.counted(view['gpus'], 'GPU')} each" if view["gpus"] else ""
    log.step(f"submitted {view['runId']}: {figures.counted(view['tasks']['total'], 'task')}{gpus} ({file})")
    return view


def slowed(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The same run with images that take a while: at their real pace a task would end before an interruption does."""
    container = spec["container"]
    command = [*container["command"], "--seconds-per-image", str(SECONDS_PER_TASK / spec["array"]["shardSize"])]
    return {**spec, "container": {**container, "command": command}}
