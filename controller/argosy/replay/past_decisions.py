"""Why was a task placed where it was, or why did it wait, at an earlier moment?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from argosy.api.waiting.explanation import explain_run
from argosy.model.actions import Action, Launch
from argosy.model.moment import Moment
from argosy.model.runs import Run
from argosy.placement.custom import OwnFunctions
from argosy.replay.chains import NotRecorded, SegmentStore, chains_before
from argosy.replay.scene import Scene
from argosy.replay.steps import Line, Replay, Tick
from argosy.scheduler.decide import NO_FUNCTIONS


@dataclass(slots=True)
class TickBeforeDecision:
    """A controller just before it decides."""

    moment: Moment
    rest: Iterator[Tick]  # the same tick, once it has decided
    strange: list[str] = field(default_factory=list)  # reasons why it may not be exactly so, in sentences

    def decide(self) -> list[Action]:
        """What it decided. The state in `moment` changes with it. Once only."""
        tick = next(self.rest)
        self.strange += tick.differences
        return tick.actions


def standstill(shelf: SegmentStore, at: float, functions: OwnFunctions = NO_FUNCTIONS) -> TickBeforeDecision:
    """Before its last decision until `at` (epoch seconds). Raises NotRecorded."""
    told = ""
    for chain in chains_before(shelf, at):
        lines, ticks, gap = _until(chain.lines(shelf), at)
        if ticks:
            replay = Replay(functions)
            steps = replay.ticks(islice(chain.lines(shelf), lines))
            differences = [each for tick in islice(steps, 2 * ticks - 2) for each in tick.differences]
            moment = next(steps).moment
            return TickBeforeDecision(moment, steps, [*replay.strangeness, *dict.fromkeys(differences), *gap])
        told = " ".join(gap) or told
    raise NotRecorded(told or "nothing was recorded in the hour before that time")


def _until(lines: Iterator[Line], at: float) -> tuple[int, int, list[str]]:
    """The number of lines up to the last tick until `at`, the number of ticks among them, and the reason why the record
    breaks off, in a sentence. No line is kept: those of 15 minutes at full size would take 2 GB."""
    among = ticks = until = 0
    try:
        for number, (_, line) in enumerate(lines, 1):
            ticks += line[0] == "tick"
            if line[0] == "tick" and line[1]["decidedAt"] <= at:
                until, among = number, ticks
    except NotRecorded as missing:
        return until, among, [str(missing)]
    return until, among, []


@dataclass(slots=True)
class _CachedSegments:
    """A shelf that fetches each file once, although files are read more than once."""

    shelf: SegmentStore
    fetched: dict[str, bytes] = field(default_factory=dict)

    def names(self, folder: str) -> list[str]:
        return self.shelf.names(folder)

    def get(self, name: str) -> bytes:
        if name not in self.fetched:
            self.fetched[name] = self.shelf.get(name)
        return self.fetched[name]


def why(
    shelf: SegmentStore, run_id: str, index: int | None, at: float, functions: OwnFunctions = NO_FUNCTIONS
) -> dict[str, Any]:
    """What was known of a run in the last tick until `at` (epoch seconds), as ExplainRun would have answered then, and
    why the

    attempt that the task had was placed where it was. Raises NotRecorded.
    run: None if it was not open. placement: None if the task had no attempt. exact: whether code, platform, every
    decision and every document were the same here as there; `differences` lists the others.
    """
    shelf = _CachedSegments(shelf)
    found = standstill(shelf, at, functions)
    moment = found.moment
    run = moment.state.runs.get(run_id)
    reply = {
        "runId": run_id,
        "index": index,
        "at": moment.now,
        "version": moment.state.version,
        "run": None if run is None else explain_run(moment, run, index),
        "placement": None,
    }
    if run is not None and index is not None:
        launched_at = _intended_at(moment, run, index)
        if launched_at not in (None, moment.now):
            found = standstill(shelf, launched_at, functions)
        reply["placement"] = _placement(found, run_id, index, functions)
    return {**reply, "exact": not found.strange, "differences": found.strange}


def _intended_at(moment: Moment, run: Run, index: int) -> float | None:
    """When the launch of the task's live attempt was decided."""
    row = moment.state.attempts.row_of_task.get((run.number, index))
    return None if row is None else float(moment.state.attempts["intended_at"][row])


def _placement(found: TickBeforeDecision, run_id: str, index: int, functions: OwnFunctions) -> dict[str, Any] | None:
    scene = Scene.of(found.moment, functions.ready)
    launches = [action for action in found.decide() if isinstance(action, Launch)]
    mine = next((each for each in launches if (each.key.run_id, each.key.index) == (run_id, index)), None)
    return None if mine is None else scene.reason_for(mine, launches)
