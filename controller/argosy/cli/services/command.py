"""The command `env`: services and daemons deployed, updated, scaled and ended."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.figures import counted, duration
from argosy.cli.options import SpecFile, WaitTimeout
from argosy.cli.plain_help import PlainCommand
from argosy.cli.problems import RUN_FAILED, WAIT_TIMED_OUT, CliError
from argosy.cli.runs.spec_source import SpecChanges, load
from argosy.cli.runs.submission import sent
from argosy.cli.runs.upload_progress import folder_of, packed
from argosy.cli.session import Session, warn
from argosy.cli.typed_values import CountCommand
from argosy.client.deploying import followed
from argosy.client.waiting import PatientLook, Pauses, WaitTimedOut

LOOK_S = 2.0
FROZEN = "the environment is frozen, so this waits until it is thawed"
Name = Annotated[str, typer.Argument(metavar="NAME", help="The environment: the name in its spec.")]
ClientToken = Annotated[
    str | None, typer.Option("--client-token", help="A second request with the same token deploys nothing.")
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for the end of the deployment.")]
Why = Annotated[str, typer.Option("--reason", help="Reason, kept with the environment.")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="Services and daemons: create, deploy, update, scale, roll back.", no_args_is_help=True)
    for name, body in (
        ("create", create), ("update", update), ("deploy", deploy), ("rollback", rollback), ("status", status),
        ("list", listed), ("deployments", deployments), ("scale", scale), ("freeze", freeze), ("thaw", thaw),
        ("stop", stop), ("delete", delete), ("endpoints", endpoints),
    ):  # fmt: skip
        form = CountCommand if body is scale else PlainCommand
        command(group, name, panel=panels.SERVICES, as_lines=body is status, form=form)(body)
    app.add_typer(group, name="env", rich_help_panel=panels.SERVICES)


def create(session: Session, file: SpecFile, changes: SpecChanges) -> None:
    """Store the first revision of a service or daemon; nothing is started yet."""
    view = _sent(session, file, changes, session.api.create_environment)
    if session.wants_json:
        session.print_json(view)
        return
    session.console.print(f"{view['name']} created, revision {view['revision']}; nothing runs yet.")
    _warn_and_next(session, view, f"env deploy {view['name']}")


def update(
    session: Session,
    file: SpecFile,
    changes: SpecChanges,
    base: Annotated[
        int | None, typer.Option("--base", min=1, help="Refuse unless this is the newest revision. [default: no check]")
    ] = None,
) -> None:
    """Store another revision; what runs stays until it is deployed."""

    def updated(spec: Any) -> Any:
        name = str(spec.get("name", ""))
        newest = base or session.api.environment(name)["latestRevision"]
        return session.api.update_environment(name, newest, spec)

    view = _sent(session, file, changes, updated)
    if session.wants_json:
        session.print_json(view)
        return
    number = view["revision"]
    session.console.print(
        f"{view['name']} now has revision {number}; it is not deployed yet."
        if view["created"]
        else f"{view['name']}: revision {number} is identical; no new revision was created."
    )
    step = "deploy" if view["created"] else "status"
    _warn_and_next(session, view, f"env {step} {view['name']}")


def _sent(session: Session, file: SpecFile, changes: SpecChanges, call: Any) -> Any:
    spec, document = load(file, changes)
    checked = partial(sent, name=str(file), document=document)
    return checked(call, packed(session, spec, folder_of(file), checked))


def _warn_and_next(session: Session, view: Any, step: str) -> None:
    for sentence in view.get("warnings", ()):
        warn(sentence)
    session.console.print(f"next: {session.again(step)}", style="dim")


def deploy(
    session: Session,
    name: Name,
    revision: Annotated[
        int | None, typer.Option("--revision", min=1, help="Revision to deploy. [default: the newest]")
    ] = None,
    client_token: ClientToken = None,
    wait: Wait = False,
    wait_timeout: WaitTimeout = None,
) -> None:
    """Replace what runs by a revision, a few tasks at a time."""
    view = session.api.start_deployment(name, revision, client_token or session.tools.new_token())
    _deploying(session, view, wait, wait_timeout)


def rollback(
    session: Session,
    name: Name,
    client_token: ClientToken = None,
    wait: Wait = False,
    wait_timeout: WaitTimeout = None,
) -> None:
    """Go back to the revision that was completed before."""
    view = session.api.roll_back(name, client_token or session.tools.new_token())
    _deploying(session, view, wait, wait_timeout)


def _deploying(session: Session, view: Any, wait: bool, wait_timeout: float | None) -> None:
    name = view["name"]
    waits = view["created"] and view["frozenByUser"]
    if waits and not session.wants_json:
        session.console.print(f"Revision {view['deploying']} of {name} is next; {FROZEN}: {view['statusReason']}.")
        session.console.print(f"next: {session.again(f'env thaw {name}')}", style="dim")
    if wait or wait_timeout is not None:
        _follow(session, view, wait_timeout)
        return
    if waits and not session.wants_json:
        return
    if session.wants_json:
        session.print_json(view)
        return
    said = "is being deployed" if view["created"] else "was already deployed with this token; nothing is done twice"
    session.console.print(f"Revision {view['deploying']} of {name} {said}.")
    session.console.print(f"next: {session.again(f'env status {name}')}", style="dim")


def _follow(session: Session, begun: Any, wait_timeout: float | None) -> None:
    """Wait until the deployment, and a roll-back that follows it, have ended. Raises typer.Exit unless it completes."""
    name, told = begun["name"], set[str]()
    tools = session.tools
    look = PatientLook(lambda: session.api.environment(name), tools.sleep, warn)
    view, ours = begun, list[Any]()
    try:
        for view, ours in followed(begun, look, Pauses(tools.now, tools.sleep, LOOK_S, wait_timeout)):
            if not session.wants_json:
                _tell(session, view, ours, told)
    except WaitTimedOut as late:
        raise _timed_out(session, begun, late) from late
    if session.wants_json:
        session.print_json(view)
    if ours[0]["status"] != "COMPLETED":
        raise typer.Exit(RUN_FAILED)


def _tell(session: Session, view: Any, deployments: Sequence[Any], told: set[str]) -> None:
    from argosy.cli.services.views import deployment_line

    for line in (deployment_line(view, each) for each in deployments):
        if line not in told:
            session.console.print(line)
        told.add(line)


def _timed_out(session: Session, begun: Any, late: WaitTimedOut) -> CliError:
    if session.wants_json:
        session.print_json(late.view)
    name = begun["name"]
    return CliError(
        f"Revision {begun['deploying']} of {name} was still being deployed after {duration(late.waited_s)}; "
        "the deployment continues.",
        next_step=session.again(f"env status {name}"),
        exit_code=WAIT_TIMED_OUT,
    )


def status(
    session: Session,
    name: Name,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh every two seconds.")] = False,
) -> None:
    """How an environment is doing, and its latest deployments."""
    from argosy.cli.services.views import environment_lines, revision_table

    if watch:
        from argosy.cli.services.watching import watch as watched

        watched(session, name)
        return
    view = session.api.environment(name)
    if session.wants_json:
        session.print_json(view)
        return
    for line in environment_lines(view):
        session.console.print(line)
    session.console.print()
    session.console.print(revision_table(view))
    for step in _next_steps(view):
        session.console.print(f"next: {session.again(step)}", style="dim")


def _next_steps(view: Any) -> list[str]:
    name = view["name"]
    if view["status"] == "LEFT":
        return [f"env delete {name}"]
    tried = {each["revision"] for each in view["deployments"]}
    if view["latestRevision"] not in tried:
        return [f"env deploy {name}"]
    runs = [each["runId"] for each in view["revisions"] if each["revision"] == view["targetRevision"]]
    if view["status"] == "FROZEN":
        return [f"env thaw {name}", *(f"attempts {run}" for run in runs if run)]
    return [f"tasks {run}" for run in runs if run]


def listed(
    session: Session,
    prefix: Annotated[str, typer.Option("--prefix", metavar="TEXT", help="Only names with this prefix.")] = "",
) -> None:
    """All environments."""
    from argosy.cli.services.views import environment_table

    found = session.api.environments(prefix)
    if session.wants_json:
        session.print_json(found)
    elif found["environments"]:
        session.console.print(environment_table(found["environments"]))
    elif prefix:
        session.console.print(f"No environment's name begins with {prefix}. next: {session.again('env list')}")
    else:
        session.console.print(f"No environments yet. next: {session.again('env create service.yaml')}")


def deployments(session: Session, name: Name) -> None:
    """The latest deployments of an environment, and how each ended."""
    from argosy.cli.services.views import deployment_table

    view = session.api.environment(name)
    if session.wants_json:
        session.print_json({"name": name, "deployments": view["deployments"]})
    elif view["deployments"]:
        session.console.print(deployment_table(view["deployments"]))
    else:
        session.console.print(f"{name} was never deployed. next: {session.again(f'env deploy {name}')}")


def endpoints(session: Session, name: Name) -> None:
    """Where the tasks of an environment are reached: address and port of each."""
    from argosy.cli.services.views import endpoint_table

    view = session.api.endpoints(name)
    if session.wants_json:
        session.print_json({"name": name, "endpoints": view["endpoints"]})
    elif view["endpoints"]:
        session.console.print(endpoint_table(view["endpoints"]))
    else:
        session.console.print(f"No task of {name} has an endpoint: none runs, or its spec has no container.ports.")
        session.console.print(f"next: {session.again(f'env status {name}')}", style="dim")


def scale(
    session: Session,
    name: Name,
    desired: Annotated[int, typer.Argument(metavar="TASKS", min=0, help="Number of tasks to run.")],
) -> None:
    """How many tasks of a service are to run, without another revision."""
    view = session.api.scale_environment(name, desired)
    if view["status"] == "FROZEN" and not session.wants_json:
        session.console.print(f"{name} will have {counted(desired, 'task')}; {FROZEN}.")
        session.console.print(f"next: {session.again(f'env thaw {name}')}", style="dim")
        return
    _changed(session, view, f"{name} is scaled to {desired}.")


def freeze(session: Session, name: Name, reason: Why = "") -> None:
    """Start, replace and scale nothing; tasks that run stay."""
    _changed(session, session.api.freeze_environment(name, reason), f"{name} is frozen.")


def thaw(session: Session, name: Name) -> None:
    """Thaw a frozen environment."""
    _changed(session, session.api.thaw_environment(name), f"{name} is thawed.")


def stop(session: Session, name: Name, reason: Why = "") -> None:
    """Stop the deployment under way; its tasks stay as they are, and the environment is frozen."""
    _changed(session, session.api.stop_deployment(name, reason), f"The deployment of {name} is stopped.")


def delete(
    session: Session,
    name: Name,
    leave_tasks: Annotated[
        bool, typer.Option("--leave-tasks", help="Keep its tasks; a new environment of the same name takes them over.")
    ] = False,
) -> None:
    """Stop the tasks of an environment and forget it."""
    view = session.api.delete_environment(name, "leave" if leave_tasks else "stop")
    if session.wants_json:
        session.print_json(view)
        return
    if leave_tasks and view["running"]:
        going = f"{counted(view['running'], 'running task')} {'continues' if view['running'] == 1 else 'continue'}"
        session.console.print(f"{name} is deleted; {going}, and no others are started.")
        session.console.print(f"stop them: {session.again(f'env delete {name}')}", style="dim")
        return
    told = f"{counted(view['running'], 'running task')} {'is' if view['running'] == 1 else 'are'} being stopped"
    session.console.print(f"{name} is being deleted: {told if view['running'] else 'no task is running'}.")


def _changed(session: Session, view: Any, sentence: str) -> None:
    if session.wants_json:
        session.print_json(view)
        return
    session.console.print(sentence)
    session.console.print(f"next: {session.again('env status ' + view['name'])}", style="dim")
