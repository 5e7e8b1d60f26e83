"""The command `update`: changes to an open run's terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.options import RunId
from argosy.cli.problems import CliError
from argosy.cli.runs.event_sentences import changes_in_words
from argosy.cli.session import Session

UNSET = {
    "budget-usd": "budgetUsd",
    "max-hourly-cost": "maxHourlyCost",
    "deadline": "deadline",
    "max-instances": "maxInstances",
    "max-concurrent-tasks": "maxConcurrentTasks",
}
"""The limits that can be taken away, by their options."""


def register(app: typer.Typer) -> None:
    command(app, "update", panel=panels.RUNS)(update)


@dataclass(frozen=True)
class NewTerms:
    """The run's terms from now on."""

    priority: Annotated[int | None, typer.Option("--priority", help="Priority in its queue: -100 to 100.")] = None
    queue: Annotated[str | None, typer.Option("--queue", help="Queue to move the run to.")] = None
    budget_usd: Annotated[
        float | None, typer.Option("--budget-usd", metavar="USD", help="Budget for all its attempts together.")
    ] = None
    max_hourly_cost: Annotated[
        float | None,
        typer.Option("--max-hourly-cost", metavar="USD", help="The most that its instances may cost per hour."),
    ] = None
    deadline: Annotated[
        str | None, typer.Option("--deadline", metavar="WHEN", help="A time, or a duration from now: 2h.")
    ] = None
    max_instances: Annotated[int | None, typer.Option("--max-instances", help="The most instances at a time.")] = None
    max_concurrent_tasks: Annotated[
        int | None, typer.Option("--max-concurrent-tasks", help="The most tasks that run at a time.")
    ] = None
    unset: Annotated[
        list[str] | None, typer.Option("--unset", metavar="OPTION", help="Remove a limit, such as deadline.")
    ] = None

    def changes(self) -> dict[str, Any]:
        """The changes for the api. Raises CliError."""
        given = {
            "priority": self.priority,
            "queue": self.queue,
            **{name: getattr(self, option.replace("-", "_")) for option, name in UNSET.items()},
        }
        found = {name: value for name, value in given.items() if value is not None}
        for option in self.unset or ():
            name = UNSET.get(option.removeprefix("--"))
            if name is None:
                raise CliError(f"--unset {option} is unknown; known: {', '.join(UNSET)}.")
            if name in found:
                raise CliError(f"--unset {option} contradicts --{option.removeprefix('--')}: give one of them.")
            found[name] = None
        return found


def update(
    session: Session,
    run: RunId,
    terms: NewTerms,
    reason: Annotated[str, typer.Option("--reason", help="Reason, kept with the run.")] = "",
    client_token: Annotated[
        str | None, typer.Option("--client-token", help="A second request with the same token changes nothing.")
    ] = None,
) -> None:
    """Change what an open run asks for, from the next tick on."""
    changes = terms.changes()
    if not changes:
        raise CliError(
            "Say what to change.", next_step=f"type `{session.again(f'update {run} --priority 5')}`, or see --help"
        )
    view = session.api.update(run, changes, reason, client_token or session.tools.new_token())
    if session.wants_json:
        session.print_json(view)
        return
    console = session.console
    if not view["created"]:
        console.print(f"{view['runId']}: this client token was already used to change it; nothing is changed twice.")
        return
    told = changes_in_words({name: view["changes"].get(name) for name in changes})
    console.print(f"{view['runId']} changes with the next tick: {told}.")
    console.print(f"next: {session.again(f'status {run}')}", style="dim")
