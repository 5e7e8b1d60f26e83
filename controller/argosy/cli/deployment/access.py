"""Who may use a queue?"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.problems import CliError
from argosy.cli.session import Session

_Named = Annotated[
    str | None, typer.Argument(metavar="[QUEUE]", help="Without QUEUE: list the entrances.", show_default=False)
]
_Remove = Annotated[bool, typer.Option("--remove", help="Remove the queue's entrance.")]


def register(app: typer.Typer) -> None:
    command(app, "access", panel=panels.SETUP)(access)


def access(session: Session, queue: _Named = None, *, remove: _Remove = False) -> None:
    """Let people use a queue and no other: prints the policy."""
    from argosy.client.entrances import Entrances

    entrances = Entrances(session.client("lambda"), session.deployment.api_function)
    if queue is None:
        if remove:
            raise CliError("Name the queue whose entrance to remove: `argosy access QUEUE --remove`.")
        _list(session, entrances.all())
        return
    if remove:
        _say_removed(session, queue, entrances.remove(queue))
        return
    names = [each["name"] for each in session.api.sharing()["queues"]]
    if queue not in names:
        raise CliError(f"There is no queue {queue[:63]}; the queues are: {', '.join(sorted(names))}.")
    _say_made(session, queue, *entrances.make(queue))


def _say_made(session: Session, queue: str, arn: str, is_new: bool) -> None:
    from argosy.client.entrances import policy_for

    policy, managed = policy_for(arn), f"{session.deployment.prefix}-member"
    if session.wants_json:
        said = {"queue": queue, "aliasArn": arn, "created": is_new, "managedPolicy": managed, "policy": policy}
        session.print_json(said)
        return
    there = "now has an entrance" if is_new else "already had an entrance"
    session.console.print(f"The queue {queue} {there}. Anyone who may invoke it can act within the queue only.")
    session.console.print(
        f"Attach {managed} and this policy to the members of the queue, but not {session.deployment.prefix}-submitter:"
    )
    session.console.print(json.dumps(policy, indent=2))
    session.console.print(f"They type: argosy submit FILE --as-queue {queue}, or set ARGOSY_QUEUE={queue}", style="dim")


def _say_removed(session: Session, queue: str, was_there: bool) -> None:
    if session.wants_json:
        session.print_json({"queue": queue, "removed": was_there})
        return
    said = "no longer has an entrance" if was_there else "had no entrance"
    session.console.print(f"The queue {queue} {said}. Its runs keep running.")


def _list(session: Session, found: dict[str, str]) -> None:
    from argosy.cli.tables import PlainTable

    names = {each["name"] for each in session.api.sharing()["queues"]}
    if session.wants_json:
        rows = [{"queue": queue, "aliasArn": arn, "exists": queue in names} for queue, arn in found.items()]
        session.print_json({"entrances": rows})
        return
    if not found:
        session.console.print("No queue has an entrance: every user of this deployment may use all of it.")
        return
    table = PlainTable("QUEUE", "ENTRANCE", "NOTE")
    for queue, arn in found.items():
        table.add_row(queue, arn, "-" if queue in names else "no such queue: every request is refused")
    session.console.print(table)
