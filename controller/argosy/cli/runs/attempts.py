"""The command `attempts`: a run's attempts, where, when, and how they ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.figures import counted, duration
from argosy.cli.options import RunId
from argosy.cli.problems import CliError
from argosy.cli.session import Session
from argosy.cli.typed_values import past_moment

if TYPE_CHECKING:
    from argosy.cli.tables import PlainTable
    from argosy.client.checkpoints import SavedCheckpoint

JSON = dict[str, Any]
ALIVE = "running"
_LEAST = ("TOOK", "STARTED (UTC)")


def register(app: typer.Typer) -> None:
    command(app, "attempts", panel=panels.RUNS)(attempts)


@dataclass(frozen=True)
class AttemptOptions:
    """The filters of a run's attempts; an attempt passes all of them."""

    task: Annotated[int | None, typer.Option("--task", min=0, help="Only attempts of this task.")] = None
    outcome: Annotated[
        list[str] | None, typer.Option("--outcome", help="Only this outcome: failed, interrupted, running, ...")
    ] = None
    instance: Annotated[str | None, typer.Option("--instance", help="Only attempts on this instance.")] = None
    since: Annotated[
        str | None, typer.Option("--since", help="Only attempts that ended since, or still run: 10m, 17:03.")
    ] = None


def attempts(
    session: Session,
    run: RunId,
    which: AttemptOptions,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Show at most this many, the latest.")] = 1000,
) -> None:
    """A run's attempts that all filters choose, the last to end last."""
    outcomes = _outcomes(which.outcome or [])
    since = 0.0 if which.since is None else past_moment(which.since, session.tools.now())
    found = _RowsOfRun(session, run, which.task)
    chosen, shown = 0, deque[JSON](maxlen=limit)  # a run may have millions
    for row in found.rows():
        if (
            (not outcomes or row["outcome"] in outcomes)
            and which.instance in (None, row["instance"])
            and (row["stoppedAt"] is None or row["stoppedAt"] >= since)
        ):
            chosen += 1
            shown.append(row)
    saved = _saved(session, run, which.task) if any(row["outcome"] != "succeeded" for row in shown) else []
    if session.wants_json:
        more = {"checkpoints": [each.to_json() for each in saved]} if saved else {}
        session.print_json({**_document(shown, chosen, found), **more})
    else:
        _print(session, shown, chosen, found)
        _print_saved(session, saved)


def _saved(session: Session, run: str, task: int | None) -> list[SavedCheckpoint]:
    from argosy.client.checkpoints import checkpoints_of

    return checkpoints_of(session.access, session.api.describe(run), task)


def _print_saved(session: Session, saved: list[SavedCheckpoint]) -> None:
    if saved:
        from argosy.cli.runs.views import checkpoint_table

        session.console.print(checkpoint_table(saved, session.tools.now()))


def _document(shown: Iterable[JSON], chosen: int, found: _RowsOfRun) -> JSON:
    from argosy.figures.history import dated

    rows = [dated(row) for row in shown]
    left_out = chosen - len(rows)
    return {"attempts": rows, "leftOut": left_out, "notRead": found.not_read, "damaged": found.damaged}


def _print(session: Session, shown: Collection[JSON], chosen: int, found: _RowsOfRun) -> None:
    if shown:
        session.console.print(_table(shown))
    left_out = chosen - len(shown)
    more = f"; {counted(left_out, 'earlier one')}: --limit {2 * len(shown)} shows more" if left_out else ""
    session.console.print(f"{counted(len(shown), 'attempt')}{more}.", style="dim")
    if found.not_read:
        session.console.print(f"{counted(found.not_read, 'attempt')} more would make the reply too large.")
    if found.damaged:
        session.console.print(f"{counted(found.damaged, 'piece')} of the history cannot be read.")


def _outcomes(wanted: list[str]) -> set[str]:
    """Raises CliError for any other text."""
    from argosy.model.ended_attempts import Outcome

    known = [ALIVE, *(each.name.lower() for each in Outcome)]
    if unknown := {each.lower() for each in wanted} - {*known}:
        raise CliError(f"--outcome {min(unknown)} is unknown; known: {', '.join(known)}.")
    return {each.lower() for each in wanted}


class _RowsOfRun:
    """The attempts of one task, or of all. not_read: how many more exceed a reply; damaged: pieces of the history that
    could not be read."""

    def __init__(self, session: Session, run: str, task: int | None) -> None:
        self._session, self._run, self._task = session, run, task
        self.not_read = self.damaged = 0

    def rows(self) -> Iterator[JSON]:
        """Times are epoch seconds."""
        return self._of_all() if self._task is None else self._of_one(self._task)

    def _of_one(self, task: int) -> Iterator[JSON]:
        reply = self._session.api.task(self._run, task)
        self.not_read, self.damaged = reply["attemptsLeftOut"], reply["damaged"]
        for each in reply["attempts"]:
            yield {
                "index": task,
                "attempt": each["attempt"],
                "program": each.get("program") or 1,
                "outcome": (each["outcome"] or ALIVE).lower(),
                "exitCode": each["exitCode"],
                "reason": each["reason"],
                "instance": each["instance"],
                "startedAt": _epoch(each["startedAt"]),
                "stoppedAt": _epoch(each["stoppedAt"]),
                "pullSeconds": (each.get("startUp") or {}).get("pullSeconds"),
            }

    def _of_all(self) -> Iterator[JSON]:
        from argosy.figures.history import rows_of_attempts

        return rows_of_attempts(list(self._pages()))

    def _pages(self) -> Iterator[JSON]:
        token: str | None = None
        while True:
            page = self._session.api.attempts(self._run, token)
            self.not_read += page["leftOut"]
            self.damaged += page["damaged"]
            yield page
            token = page["nextToken"]
            if token is None:
                return


def _epoch(iso: str | None) -> float | None:
    return None if iso is None else datetime.fromisoformat(iso).timestamp()


def _table(rows: Iterable[JSON]) -> PlainTable:
    from argosy.cli.tables import PlainTable

    listed = list(rows)
    versions = any(row["program"] > 1 for row in listed)
    heads = (">TASK", ">ATTEMPT", *([">PROGRAM"] if versions else []), "OUTCOME", ">EXIT", "INSTANCE", "STARTED (UTC)")
    table = PlainTable(*heads, ">TOOK", "~REASON", least=_LEAST)
    for row in listed:
        table.add_row(
            str(row["index"]),
            str(row["attempt"]),
            *([str(row["program"])] if versions else []),
            row["outcome"],
            "-" if row["exitCode"] is None else str(row["exitCode"]),
            row["instance"] or "-",
            _clock(row["startedAt"]),
            _took(row),
            row["reason"] or "",
        )
    return table


def _clock(at: float | None) -> str:
    return "-" if at is None else f"{datetime.fromtimestamp(at, UTC):%m-%d %H:%M:%S}"


def _took(row: Mapping[str, Any]) -> str:
    known = row["startedAt"] is not None and row["stoppedAt"] is not None
    return duration(row["stoppedAt"] - row["startedAt"]) if known else "-"
