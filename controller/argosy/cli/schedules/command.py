"""The command `schedule`: `create`, `update`, `list`, `show`, `pause`, `resume`, `run-now` and `delete`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.figures import counted
from argosy.cli.problems import CliError
from argosy.cli.runs.spec_source import SpecChanges, SpecRefused, load
from argosy.cli.runs.submission import sent
from argosy.cli.runs.upload_progress import folder_of, packed
from argosy.cli.session import Session, warn
from argosy.cli.tables import PlainTable
from argosy.client.api import ApiError
from argosy.figures.schedule_words import coming_time, local_time, rule, state
from argosy.model.run_terms import duration_of
from argosy.model.schedules.record import Overlap

View = Mapping[str, Any]
TYPED = {
    "name": "NAME",
    "expression": "--cron, --rate or --at",
    "zone": "--zone",
    "overlap": "--overlap",
    "startWithin": "--start-within",
}


@contextmanager
def refusals(options: Mapping[str, str] = TYPED) -> Iterator[None]:
    """Around a call that stores a schedule. Raises CliError: the typed options have no place in the spec's file.
    options: the typed options, by the path of their faults; none while the file is read, when `name` means its own
    name."""
    try:
        yield
    except SpecRefused as refusal:
        typed = [f"{options[each.path]}: {each.message}" for each in refusal.faults if each.path in options]
        placed = [each.text(refusal.name) for each in refusal.faults if each.path not in options]
        raise _unchanged(typed, placed, f"{refusal.name} has {counted(len(placed), 'fault')}") from refusal
    except ApiError as refusal:
        typed = [f"{options.get(path, path)}: {message}" for path, message in refusal.faults]
        if not typed:
            raise
        raise _unchanged(typed, [], "") from refusal


def _unchanged(typed: list[str], placed: list[str], of_file: str) -> CliError:
    if len(typed) == 1 and not placed:
        return CliError(f"{typed[0]}; no schedule was changed.")
    subject = of_file if not typed else f"there are {counted(len(typed) + len(placed), 'fault')}"
    return CliError(f"{subject}; no schedule was changed.", details=[*typed, *placed])


ScheduleArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the schedule.")]


@dataclass(frozen=True)
class TimeOptions:
    """When the schedule fires: one of the three, and its time zone."""

    cron: Annotated[
        str | None,
        typer.Option("--cron", metavar="FIELDS", help="AWS's cron with six fields: '0 3 * * ? *' is daily at 03:00."),
    ] = None
    rate: Annotated[str | None, typer.Option("--rate", metavar="TIME", help="Interval: '6 hours'.")] = None
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="Once: 2026-12-24T18:00, local time in the time zone.")
    ] = None
    zone: Annotated[
        str | None, typer.Option("--zone", metavar="ZONE", help="Time zone, such as Europe/Berlin. [default: UTC]")
    ] = None

    def expression(self) -> str | None:
        """The timing for EventBridge Scheduler; None when nothing was given. Raises CliError for more than one."""
        given = {"cron": self.cron, "rate": self.rate, "at": self.at}
        found = [(kind, text) for kind, text in given.items() if text is not None]
        if len(found) > 1:
            raise CliError(f"--{found[0][0]} and --{found[1][0]} exclude each other: a schedule has one of them.")
        for kind, text in found:
            whole = f"{text}:00" if kind == "at" and text.count(":") == 1 else text
            return f"{kind}({whole.strip()})"
        return None


@dataclass(frozen=True)
class OverlapOptions:
    """What to do with a time that comes due."""

    overlap: Annotated[
        Overlap | None,
        typer.Option("--overlap", help="What to do while an earlier run is still open. [default: skip]"),
    ] = None
    start_within: Annotated[
        str | None,
        typer.Option(
            "--start-within",
            metavar="DURATION",
            help="How late a run may start before its time counts as missed. [default: 30m]",
        ),
    ] = None

    def fields(self) -> dict[str, Any]:
        """The given options for the api. Raises CliError."""
        found: dict[str, Any] = {} if self.overlap is None else {"overlap": self.overlap.value}
        if self.start_within is not None:
            seconds = duration_of(self.start_within)
            if seconds is None:
                raise CliError(f"--start-within {self.start_within!r} is not a duration: write 30m, 2h or 90s.")
            found["startWithin"] = int(seconds)
        return found


HELP = "Start runs on a schedule."
_Spec = Annotated[Path | None, typer.Option("--spec", metavar="FILE", help="The run spec; - is standard input.")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help=HELP, no_args_is_help=True)
    for name, body in _BODIES.items():
        command(group, name, panel=panels.SCHEDULES)(body)
    app.add_typer(group, name="schedule", rich_help_panel=panels.SCHEDULES)


def create(
    session: Session,
    name: ScheduleArgument,
    times: TimeOptions,
    rules: OverlapOptions,
    changes: SpecChanges,
    spec: _Spec = None,
) -> None:
    """Start a run of a spec at every time. Its program is uploaded now, as it is."""
    expression = times.expression()
    if expression is None:
        raise CliError("Say when: --cron '0 3 * * ? *', --rate '6 hours' or --at 2026-12-24T18:00.")
    if spec is None:
        raise CliError("Say what to run: --spec FILE.")
    fields = {"name": name, "expression": expression, "zone": times.zone or "UTC", **rules.fields()}
    _told(session, _with_spec(session, spec, changes, partial(session.api.create_schedule, **fields)))


def update(
    session: Session,
    name: ScheduleArgument,
    times: TimeOptions,
    rules: OverlapOptions,
    changes: SpecChanges,
    spec: _Spec = None,
    revision: Annotated[
        int | None, typer.Option("--revision", help="Only if this revision is current. [default: no check]")
    ] = None,
) -> None:
    """Change what is given of a schedule; the rest stays."""
    fields: dict[str, Any] = {"name": name, **rules.fields()}
    fields |= {} if (expression := times.expression()) is None else {"expression": expression}
    fields |= {} if times.zone is None else {"zone": times.zone}
    if spec is None and len(fields) == 1:
        raise CliError("Say what to change: --spec, --cron, --rate, --at, --zone, --overlap or --start-within.")
    fields["revision"] = session.api.schedule(name)["revision"] if revision is None else revision
    if spec is None:
        with refusals():
            _told(session, session.api.update_schedule(**fields))
        return
    _told(session, _with_spec(session, spec, changes, partial(session.api.update_schedule, **fields)))


def list_(session: Session) -> None:
    """All schedules, with their next times and last verdicts."""
    found = session.api.schedules()
    if session.wants_json:
        session.print_json(found)
    elif found["schedules"]:
        session.console.print(_table(found["schedules"]))
    else:
        session.console.print("There are no schedules.")


def show(
    session: Session,
    name: ScheduleArgument,
    times: Annotated[
        int | None,
        typer.Option("--next", metavar="TIMES", min=1, help="Number of upcoming times to show. [default: 5]"),
    ] = None,
) -> None:
    """One schedule: its next times, and what became of the last ones."""
    view = session.api.schedule(name, times)
    if session.wants_json:
        session.print_json(view)
        return
    for line in _lines(view):
        session.console.print(line)
    if view["fires"]:
        session.console.print(_verdicts(view))


def pause(session: Session, name: ScheduleArgument) -> None:
    """Start nothing until it is resumed."""
    _told(session, session.api.pause_schedule(name))


def resume(session: Session, name: ScheduleArgument) -> None:
    """Resume from now; missed times stay missed."""
    _told(session, session.api.resume_schedule(name))


def run_now(
    session: Session,
    name: ScheduleArgument,
    client_token: Annotated[
        str | None, typer.Option("--client-token", help="A second request with the same token starts nothing.")
    ] = None,
) -> None:
    """Start its run now, whatever else is open."""
    view = session.api.run_schedule_now(name, client_token or session.tools.new_token())
    if session.wants_json:
        session.print_json(view)
        return
    session.console.print(f"{view['runId']} started, results in {view['output']}")
    session.console.print(f"next: {session.again('watch ' + view['runId'])}", style="dim")


def delete(session: Session, name: ScheduleArgument) -> None:
    """Start nothing any more. Its runs stay."""
    view = session.api.delete_schedule(name)
    if session.wants_json:
        session.print_json(view)
    else:
        session.console.print(f"{name} is deleted; its runs are kept.")


_BODIES: dict[str, Any] = {
    "create": create,
    "update": update,
    "list": list_,
    "show": show,
    "pause": pause,
    "resume": resume,
    "run-now": run_now,
    "delete": delete,
}


def _with_spec(session: Session, file: Path, changes: SpecChanges, call: Any) -> Any:
    """The answer of `call` to the spec of a file, whose program is uploaded."""
    with refusals({}):
        spec, document = load(file, changes)
        checked = partial(sent, name=str(file), document=document)
        form = packed(session, spec, folder_of(file), checked, keeps=True)
    with refusals():
        return checked(lambda each: call(spec=each), form)


def _told(session: Session, view: Any) -> None:
    if session.wants_json:
        session.print_json(view)
        return
    for line in _lines(view):
        session.console.print(line)
    for sentence in view.get("warnings", ()):
        warn(sentence)


def _table(schedules: list[View]) -> PlainTable:
    """One row for each schedule."""
    shown = PlainTable("NAME", "STATE", "NEXT", "LAST", "~EXPRESSION", least=["LAST"])
    for each in schedules:
        last = each["last"]
        verdict = "-" if last is None else f"{last['verdict']} {local_time(last['scheduledTime'], each['zone'])}"
        shown.add_row(each["name"], state(each), local_time(each["next"], each["zone"]), verdict, rule(each))
    return shown


def _lines(view: View) -> Iterator[str]:
    """The facts of one schedule, without its verdicts; times are in its own zone."""
    zone = view["zone"]
    yield f"{view['name']}: {state(view)}, {rule(view)}"
    yield f"while a run is open: {view['overlap']}; a run may start up to {view['startWithin'] / 60:g} minutes late"
    if not view["armed"]:
        yield "EventBridge Scheduler does not have the last change: run that command again"
    if view["overdue"]:
        yield f"no run was started for {local_time(view['overdue'], zone)}"
    if view["waiting"]:
        yield f"the start of {local_time(view['waiting'], zone)} waits for the previous run to end"
    times = [coming_time(each, zone) for each in view["nextTimes"]]
    yield f"next: {', '.join(times)}" if times else "next: never" if view["state"] == "ENABLED" else "next: paused"


def _verdicts(view: View) -> PlainTable:
    """Its last times, the newest first."""
    shown = PlainTable("TIME", "VERDICT", "RUN", "~REASON")
    for each in view["fires"]:
        verdict = f"{each['verdict']} by hand" if each["byHand"] else each["verdict"]
        shown.add_row(
            local_time(each["scheduledTime"], view["zone"]), verdict, each["runId"] or "-", each["reason"] or "-"
        )
    return shown
