"""The task stream: what ran where and when in the last hour, over all runs, from the replies about each run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from argosy.figures.document import Figure, Page, Table, Tile
from argosy.figures.history import ALIVE, Attempts, Fate, attempts_of
from argosy.figures.lanes import FIRST_S, Lifetime, Timeline, figure, lifetimes
from argosy.figures.markup import element
from argosy.figures.numbers import counted, duration

SPAN_S = 3600.0
_KEY, _TITLE = "stream", "The last hour"


@dataclass(frozen=True, slots=True)
class RunHistory:
    """What one run has done, from DescribeHistory and ListAttempts."""

    run_id: str
    history: Mapping[str, Any]
    attempts: Attempts


def stream_page(told: Sequence[RunHistory], now: float, living: Set[str] | None = None, left_out: int = 0) -> Page:
    """told: of the runs that were open in the last hour. now: epoch seconds. living: ids of the instances that live,
    None = not known. left_out: how many runs are not in `told`."""
    begun = now - SPAN_S
    attempts = _within(told, begun)
    note = [f"{counted(left_out, 'earlier run')} of this hour cannot be shown here."] if left_out else []
    if not len(attempts):
        drawn = Figure(_KEY, _TITLE, empty="No task has run in the last hour.", wide=True)
    else:
        lives = list(_lives(told, attempts, begun, living))
        drawn = figure(_KEY, _TITLE, Timeline(lives, attempts, _by_run(attempts), SPAN_S, begun))
    return Page("Task stream · Argosy", "Task stream", [drawn], tiles=_tiles(attempts), warnings=note)


def _within(told: Sequence[RunHistory], begun: float) -> Attempts:
    """The attempts of all runs that were at work in that hour, cut to it; `begun` is the origin of their times."""
    known: dict[str, int] = {}
    parts = [_shifted(each, place, begun, known) for place, each in enumerate(told)]
    if not parts:
        return attempts_of(())
    columns = [each.name for each in fields(Attempts) if isinstance(getattr(parts[0], each.name), np.ndarray)]
    joined: dict[str, Any] = {name: np.concatenate([getattr(each, name) for each in parts]) for name in columns}
    return replace(parts[0], **joined, instances=list(known), reasons=[""], runs=[each.run_id for each in told])


def _shifted(run: RunHistory, place: int, begun: float, known: dict[str, int]) -> Attempts:
    """place: of the run. known: the rows of the common list of instances, which grows."""
    found, later = run.attempts, run.history["origin"] - begun
    alive = found.outcome == ALIVE
    started, stopped = found.started + later, np.where(alive, SPAN_S, found.stopped + later)
    shown = (found.started > 0) & (alive | found.has_run) & (stopped > FIRST_S) & (started < SPAN_S)
    rows = np.array([known.setdefault(name, len(known)) for name in found.instances] or [0], "u4")
    return replace(
        found,
        started=np.maximum(started, FIRST_S),
        stopped=np.minimum(stopped, SPAN_S),
        instance=rows[found.instance],
        run=np.full(len(found), place, "u2"),
    ).where(shown)


def _lives(told: Sequence[RunHistory], attempts: Attempts, begun: float, living: Set[str] | None) -> Iterator[Lifetime]:
    """By type and id, those on which an attempt ran. One whose end no run knows ends now if it lives, else with its
    last attempt."""
    last = np.zeros(len(attempts.instances))
    np.maximum.at(last, attempts.instance, attempts.stopped)
    until = {name: at for name, at in zip(attempts.instances, last.tolist(), strict=True) if at}
    found: dict[str, Lifetime] = {}
    for run in told:
        for life in lifetimes(run.history, begun):
            if life.id in until and (life.ended or life.id not in found):
                found[life.id] = life
    for name, life in sorted(found.items(), key=lambda each: (each[1].kind, each[0])):
        ends = SPAN_S if living is None or name in living else until[name]
        yield life._replace(ended=min(SPAN_S, life.ended or ends))


def _by_run(attempts: Attempts) -> Table:
    """What each run's attempts came to, the one with the most time first."""
    fates, runs = len(Fate), len(attempts.runs)
    cells = attempts.run.astype("i8") * fates + attempts.fate
    counts = np.bincount(cells, minlength=runs * fates).reshape(runs, fates)
    seconds = np.bincount(attempts.run, attempts.stopped - attempts.started, minlength=runs)
    shown = (Fate.RUNNING, Fate.SUCCEEDED, Fate.FAILED, Fate.LOST)
    rows = [
        (
            element("a", attempts.runs[run], href=f"/runs/{attempts.runs[run]}"),
            *(f"{counts[run, fate]:,}" for fate in shown),
            duration(float(seconds[run])),
        )
        for run in np.argsort(-seconds, kind="stable").tolist()
        if seconds[run]
    ]
    return Table(("Run", ">At work", ">Succeeded", ">Failed", ">Lost", ">Task time in this hour"), rows, stacks=True)


def _tiles(attempts: Attempts) -> list[Tile]:
    counts = np.bincount(attempts.fate, minlength=len(Fate)).tolist()
    ended = sum(counts) - counts[Fate.RUNNING]
    bad = counts[Fate.FAILED]
    return [
        Tile("At work", f"{counts[Fate.RUNNING]:,}", f"{counted(len(np.unique(attempts.run)), 'run')} in this hour"),
        Tile("Ended", f"{ended:,}", f"attempts; {counts[Fate.LOST]:,} lost"),
        Tile("Failed", f"{bad:,}", "attempts", "bad" if bad else ""),
    ]
