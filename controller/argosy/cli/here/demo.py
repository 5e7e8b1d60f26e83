"""The whole of Argosy in under two minutes on one machine: `demo`.

Starts an AWS in this process, submits two real runs, takes one instance away in the middle of its work, downloads the
results and reports what was measured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argosy.cli import figures
from argosy.cli.here.local import TRY_PANEL
from argosy.cli.problems import RUN_FAILED, WAIT_TIMED_OUT, CliError
from argosy.cli.session import Session, command
from argosy.client.aws_clients import Place

if TYPE_CHECKING:
    from argosy.cli.here.local_aws import Embedded

RUN_FILES = (Path("containers/digits/run.yaml"), Path("containers/digits/run-gpu.yaml"))
SECONDS_PER_TASK = 6.0
MIDDLE_S = 1.5  # an instance is taken when its tasks have been running this long
TASK_PROCESSES = 12  # they mostly sleep, so more of them than cores
TIME_LIMIT_S = 300.0  # far beyond what it takes; a demo must not hang
LOOK_INTERVAL_S = 0.5
NOTICE_S = 4.0  # AWS gives 120 s; shortened so that a viewer sees the end of the instance
AGAIN_AFTER_S = 15.0  # if by then nothing was interrupted, the tasks had just ended: another instance is taken


def register(app: typer.Typer) -> None:
    command(app, "demo", panel=TRY_PANEL, connected=False, as_json=True)(demo)


def demo(
    session: Session,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the summary and the results go.")] = Path(
        "out/demo"
    ),
) -> None:
    """A real batch here, with GPUs and a spot interruption."""
    from argosy.cli.here import demo_report
    from argosy.cli.here.local_aws import started

    for file in RUN_FILES:
        if not file.exists():
            raise CliError(f"{file} is not here.", next_step="type `argosy demo` in a checkout of Argosy")
    begun = session.tools.now()
    with started(TASK_PROCESSES) as aws:
        show = Show(session, begun)
        show.step(f"local AWS at {aws.endpoint_url}: nothing leaves this machine, nothing costs money")
        inside = Session(session.tools, Place(endpoint_url=aws.endpoint_url, region=aws.region))
        first, second = RUN_FILES
        forecast = _planned(inside, first, show)
        runs = [_submit(inside, first, show)]
        # Bought together, the GPU machines' spare vCPUs would take the first run too, and no c5 would be seen.
        _until_bought(inside)
        runs.append(_submit(inside, second, show))
        play = Play(inside, aws, show)
        views = [inside.api.describe_with_cost(view["runId"]) for view in play.until_ended([r["runId"] for r in runs])]
        folders = [out / "results", out / "gpu-results"]
        manifests = [download(inside, view, folder) for view, folder in zip(views, folders, strict=True)]
        cluster = inside.api.cluster()
    took_s = session.tools.now() - begun
    rows = demo_report.rows_of(folders[0])
    found = demo_report.summary(views, manifests, cluster, rows, play.taken) | {"seconds": took_s}
    found["plan"] = demo_report.plan_held(forecast, views[0])
    (out / "summary.json").write_text(json.dumps(found, indent=2) + "\n")
    _print(session, found, out)
    if found["tasks"]["succeeded"] != found["tasks"]["total"]:
        raise typer.Exit(RUN_FAILED)


def _until_bought(inside: Session) -> None:
    """Until the cluster has ordered instances. Raises CliError when it never does."""
    deadline = inside.tools.now() + TIME_LIMIT_S
    while not any(fleet["spotTarget"] for fleet in inside.api.cluster()["fleets"]):
        if inside.tools.now() > deadline:
            raise CliError("The cluster ordered no instances.", next_step="look at the log that local AWS named")
        inside.tools.sleep(LOOK_INTERVAL_S)


def _print(session: Session, found: Mapping[str, Any], out: Path) -> None:
    from argosy.cli.here import demo_report

    if session.wants_json:
        session.print_json(found)
        return
    session.console.print()
    session.console.print(demo_report.closing_table(found, out / "results"))
    session.console.print(f"\nThe same figures, unrounded: {out / 'summary.json'}", style="dim")
    session.console.print("next: argosy local, then argosy submit containers/digits/run.yaml", style="dim")


def _planned(inside: Session, file: Path, show: Show) -> Any:
    """What `argosy plan` says of the run before anything is started."""
    from argosy.cli.runs import spec_source
    from argosy.cli.runs.plan import between

    spec, _ = spec_source.load(file, spec_source.Shorthands(), [])
    reply = inside.api.plan(slowed(spec))
    show.step(f"forecast of {file}: buys {bought_in_words(reply['instances'])}")
    show.step(f"  costs {between(reply['costUsd'], figures.money)}")
    show.step(f"  ends after {between(reply['seconds'], figures.duration)}")
    return reply


def bought_in_words(rows: Sequence[Mapping[str, Any]]) -> str:
    """`9 x c5.large spot` of a plan's instances, the zones of a type added up."""
    counts: dict[str, int] = {}
    for row in rows:
        name = f"{row['instanceType']} {row['purchase']}"
        counts[name] = counts.get(name, 0) + row["count"]
    return ", ".join(f"{count} x {name}" for name, count in counts.items()) or "nothing"


def _submit(inside: Session, file: Path, show: Show) -> Any:
    from argosy.cli.runs import spec_source

    spec, _ = spec_source.load(file, spec_source.Shorthands(), [])
    view = inside.api.submit(slowed(spec), inside.tools.new_token())
    gpus = f" with {figures.counted(view['gpus'], 'GPU')} each" if view["gpus"] else ""
    show.step(f"submitted {view['runId']}: {figures.counted(view['tasks']['total'], 'task')}{gpus} ({file})")
    return view


def slowed(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The same run with images that take a while: at their real pace a task would end before an interruption does."""
    container = spec["container"]
    command = [*container["command"], "--seconds-per-image", str(SECONDS_PER_TASK / spec["array"]["shardSize"])]
    return {**spec, "container": {**container, "command": command}}


def download(inside: Session, view: Mapping[str, Any], folder: Path) -> Any:
    """Into an empty folder: parts of an earlier demo must not be counted. Returns the manifest."""
    import shutil

    from argosy.cli.runs.results import fetch, find

    shutil.rmtree(folder, ignore_errors=True)
    found, manifest = find(inside.client("s3"), view, partial=False)
    fetch(inside.client("s3"), found, folder)
    return manifest


@dataclass
class Show:
    """One line per step, with the time since the start; on standard error when the answer is JSON."""

    session: Session
    begun: float

    def step(self, text: str) -> None:
        since = figures.duration(self.session.tools.now() - self.begun)
        typer.echo(f"{since:>7}  {text}", err=self.session.wants_json)


class Play:
    """Watches the runs, and takes away an instance that is busy with the first one. Times in seconds."""

    interrupts = True
    notice_s = NOTICE_S
    time_limit_s = TIME_LIMIT_S

    def __init__(self, session: Session, aws: Embedded, show: Show) -> None:
        self.session = session
        self._aws = aws
        self._show = show
        self._last_line = ""
        self._interrupted_at: float | None = None
        self.taken: list[str] = []  # ids of the instances that were taken away

    def until_ended(self, run_ids: Sequence[str]) -> list[Any]:
        """The final views in the order given. Raises CliError when they take too long."""
        tools = self.session.tools
        deadline = tools.now() + self.time_limit_s
        while True:
            views = [self.session.api.describe(run_id) for run_id in run_ids]
            self._tell(views)
            if all(view["status"] in figures.TERMINAL for view in views):
                return views
            if self.interrupts and views[0]["status"] not in figures.TERMINAL and not views[0]["interruptions"]:
                self._interrupt(run_ids[0])
            if tools.now() > deadline:
                raise CliError(f"The runs had not ended after {self.time_limit_s:.0f} s.", exit_code=WAIT_TIMED_OUT)
            tools.sleep(LOOK_INTERVAL_S)

    def busiest(self, view: Mapping[str, Any]) -> str | None:
        """The instance to take away, if it is time: `view` has the run's tasks."""
        return busiest_instance(view["taskList"])

    def _tell(self, views: Sequence[Mapping[str, Any]]) -> None:
        """One line for all runs, when tasks have ended or a status is new."""
        line = "; ".join(
            f"{view['name']} {view['status'].lower()} {view['tasks']['succeeded']}/{view['tasks']['total']}"
            + (f", {view['interruptions']} interrupted" if view["interruptions"] else "")
            for view in views
        )
        if self._last_line != line:
            self._last_line = line
            self._show.step(line)

    def _interrupt(self, run_id: str) -> None:
        """As AWS does it: a warning, then the end of the instance."""
        now = self.session.tools.now()
        if self._interrupted_at is not None and now < self._interrupted_at + AGAIN_AFTER_S:
            return
        busiest = self.busiest(self.session.api.describe_with_tasks(run_id))
        if busiest is None:
            return
        try:
            self._aws.interrupt(busiest, self.notice_s)
        except (KeyError, ValueError):
            return  # it has just gone by itself; the next look finds another
        self._interrupted_at = now
        self.taken.append(busiest)
        self._show.step(f"spot interruption: {busiest} will be taken away in {self.notice_s:.0f} s (AWS gives 120 s)")


def busiest_instance(tasks: Sequence[Mapping[str, Any]]) -> str | None:
    """The instance with the most tasks in the middle of their work, of equals the one with the most left to do."""
    running: dict[str, list[float]] = {}
    for each in tasks:
        if each["status"] == "RUNNING" and each["instance"] and (each["seconds"] or 0.0) >= MIDDLE_S:
            running.setdefault(each["instance"], []).append(each["seconds"])
    return max(running, key=lambda name: (len(running[name]), -min(running[name])), default=None)
