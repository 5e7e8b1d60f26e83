"""How are runs started by the clock? `schedule create`, `update`, `list`, `show`, `pause`, `resume`, `run-now` and
`delete`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.problems import CliError
from argosy.cli.runs.packed import folder_of, packed
from argosy.cli.runs.spec_source import SpecChanges, load
from argosy.cli.runs.submission import sent
from argosy.cli.schedules import views
from argosy.cli.schedules.options import OverlapRules, ScheduleArgument, Times
from argosy.cli.schedules.refused import refusals
from argosy.cli.session import Session, warn

HELP = "Start runs by the clock."
_Spec = Annotated[Path | None, typer.Option("--spec", metavar="FILE", help="The run spec; - is standard input.")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help=HELP, no_args_is_help=True)
    for name, body in _BODIES.items():
        command(group, name, panel=panels.SCHEDULES)(body)
    app.add_typer(group, name="schedule", rich_help_panel=panels.SCHEDULES)


def create(
    session: Session,
    name: ScheduleArgument,
    times: Times,
    rules: OverlapRules,
    changes: SpecChanges,
    spec: _Spec = None,
) -> None:
    """Start a run of a spec at every time. Its program is uploaded now, as it is."""
    expression = times.expression()
    if expression is None:
        raise CliError("Say when: --cron '0 3 * * ? *', --rate '6 hours' or --at 2026-12-24T18:00.")
    if spec is None:
        raise CliError("Say what is to run: --spec FILE.")
    fields = {"name": name, "expression": expression, "zone": times.zone or "UTC", **rules.fields()}
    _told(session, _with_spec(session, spec, changes, partial(session.api.create_schedule, **fields)))


def update(
    session: Session,
    name: ScheduleArgument,
    times: Times,
    rules: OverlapRules,
    changes: SpecChanges,
    spec: _Spec = None,
    revision: Annotated[
        int | None, typer.Option("--revision", help="Only if it is still at this one. [default: as it is now]")
    ] = None,
) -> None:
    """Change what is given of a schedule; the rest stays."""
    fields: dict[str, Any] = {"name": name, **rules.fields()}
    fields |= {} if (expression := times.expression()) is None else {"expression": expression}
    fields |= {} if times.zone is None else {"zone": times.zone}
    if spec is None and len(fields) == 1:
        raise CliError("Say what is to change: --spec, --cron, --rate, --at, --zone, --overlap or --start-within.")
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
        session.console.print(views.table(found["schedules"]))
    else:
        session.console.print("There are no schedules.")


def show(
    session: Session,
    name: ScheduleArgument,
    times: Annotated[
        int | None,
        typer.Option("--next", metavar="TIMES", min=1, help="How many times to come are shown. [default: 5]"),
    ] = None,
) -> None:
    """One schedule: its next times, and what became of the last ones."""
    view = session.api.schedule(name, times)
    if session.wants_json:
        session.print_json(view)
        return
    for line in views.lines(view):
        session.console.print(line)
    if view["fires"]:
        session.console.print(views.verdicts(view))


def pause(session: Session, name: ScheduleArgument) -> None:
    """Start nothing until it is resumed."""
    _told(session, session.api.pause_schedule(name))


def resume(session: Session, name: ScheduleArgument) -> None:
    """Go on from now; what was missed stays so."""
    _told(session, session.api.resume_schedule(name))


def run_now(
    session: Session,
    name: ScheduleArgument,
    client_token: Annotated[
        str | None, typer.Option("--client-token", help="Asking again with the same token does not start twice.")
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
        session.console.print(f"{name} is deleted; its runs stay.")


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
    """What `call` answers to the spec of a file, whose program is uploaded."""
    with refusals({}):
        spec, document = load(file, changes)
        checked = partial(sent, name=str(file), document=document)
        form = packed(session, spec, folder_of(file), checked)
    with refusals():
        return checked(lambda each: call(spec=each), form)


def _told(session: Session, view: Any) -> None:
    if session.wants_json:
        session.print_json(view)
        return
    for line in views.lines(view):
        session.console.print(line)
    for sentence in view.get("warnings", ()):
        warn(sentence)
