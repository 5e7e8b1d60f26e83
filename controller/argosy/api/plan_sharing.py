"""What does it do to the end of a planned run that others share the cluster?

The course of places in line (`standing`) for a run that is not there yet: once without all others, once with them. It
assumes that nothing else is submitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from argosy.api.crowd import Crowd, Market, crowd_of
from argosy.api.standing import LEAST_RANGE_S, MEASURED, SAID, SHOWN, nobody_knows
from argosy.catalogue.lookup import load_catalogue
from argosy.market.offers import as_registered
from argosy.model.moment import Moment
from argosy.model.runs import Run
from argosy.model.wording import duration
from argosy.planning.question import PlanQuestion
from argosy.scheduler.queue import batch_of, shunned_by
from argosy.sharing.course import HORIZON_S, BusyRuns, ends_in_s

SLOWER = 1.05  # less is not worth a word
NO_END = "no end of what uses the cluster is in sight that leaves enough for all of its tasks"
NO_ROOM = "no instance that is here or may be ordered could take its tasks: one that has no more work has to go first"


@dataclass(frozen=True, slots=True)
class SharedEnd:
    """When the run ends, by itself and beside the others, in seconds from now."""

    queue: str
    others: Sequence[tuple[str, int, float | None]]  # queue, tasks that wait or run, how long it has work; None = ?
    alone_s: float | None = None
    with_others_s: float | None = None
    low_s: float = 0.0
    high_s: float = 0.0
    why_unknown: str = ""


def shared_end(question: PlanQuestion) -> SharedEnd | None:
    """None where nobody else has work in the part of the cluster that could take its tasks."""
    moment, run = question.on_copy(question.form)
    moment = replace(moment, catalogue=as_registered(load_catalogue(), moment.state.pools.values()))
    run.terms = replace(run.terms, expected_seconds=question.seconds.expected)
    batch = replace(batch_of(moment.state, run, moment.now, shunned_by(moment.state)), count=1)
    crowd = crowd_of(moment, run, batch, Market.of(moment, batch))
    if not crowd.room.capacity.any() and not crowd.room.comes.any():
        everywhere = crowd_of(moment, run, batch, Market.of(moment, batch), everywhere=True)
        others = _others(everywhere, known=False)
        return SharedEnd(_queue_of(everywhere), others, why_unknown=NO_ROOM) if others else None
    return _end_beside(crowd, moment, run)


def _end_beside(crowd: Crowd, moment: Moment, run: Run) -> SharedEnd | None:
    counts = _work(crowd)
    counts[crowd.row] = 0
    if not counts.any():
        return None
    found = SharedEnd(_queue_of(crowd), _others(crowd, known=True))
    alone = _alone(crowd)
    found = replace(found, alone_s=_ends(alone, crowd.row))
    if 2 * int(counts[~crowd.known].sum()) > int(counts.sum()):
        return replace(found, why_unknown=nobody_knows(crowd, counts))
    seconds = _ends(crowd, crowd.row)
    if seconds is None:
        return replace(found, why_unknown=NO_END)
    low, high = MEASURED if 2 * int(counts[crowd.seen].sum()) >= int(counts.sum()) else SAID
    least = found.alone_s or 0.0
    return replace(
        found,
        with_others_s=max(seconds, least),
        low_s=max(min(low * seconds, seconds - LEAST_RANGE_S), min(least, seconds)),
        high_s=max(high * seconds, seconds + LEAST_RANGE_S),
    )


def _ends(crowd: Crowd, row: int) -> float | None:
    return ends_in_s(crowd.runs, crowd.sharers, crowd.room, row, HORIZON_S)


def _work(crowd: Crowd) -> Any:
    """(runs,) how many tasks of each wait for a place in that part of the cluster, or have one."""
    return crowd.runs.columns.wants + crowd.live


def _alone(crowd: Crowd) -> Crowd:
    """As if nobody else were there."""
    runs = crowd.runs
    columns = replace(runs.columns, wants=np.where(np.arange(len(runs.seconds)) == crowd.row, runs.columns.wants, 0))
    return replace(crowd, runs=BusyRuns.of(columns, runs.seconds, runs.most))


def _queue_of(crowd: Crowd) -> str:
    return crowd.order.sharers[int(crowd.runs.columns.sharer[crowd.row])][0]


def _others(crowd: Crowd, known: bool) -> list[tuple[str, int, float | None]]:
    """By queue, those with most tasks first: how many there are, and how long the last of its runs has work, where that
    is known. known: False = it is not to be looked at."""
    tasks, last, unknown = Counter[str](), dict[str, int](), set[str]()
    for row, count in enumerate(_work(crowd).tolist()):
        if count and row != crowd.row:
            queue = crowd.order.sharers[int(crowd.runs.columns.sharer[row])][0]
            tasks[queue] += count
            last[queue] = row
            unknown |= set() if known and crowd.known[row] else {queue}
    return [
        (name, count, None if name in unknown else _ends(crowd, last[name])) for name, count in tasks.most_common(SHOWN)
    ]


def sharing_view(found: SharedEnd | None) -> dict[str, Any] | None:
    """Part of the reply of PlanRun."""
    if found is None:
        return None
    seconds = None
    if found.with_others_s is not None:
        seconds = {"low": round(found.low_s), "expected": round(found.with_others_s), "high": round(found.high_s)}
    return {
        "queue": found.queue,
        "aloneSeconds": None if found.alone_s is None else round(found.alone_s),
        "seconds": seconds,
        "others": [
            {"queue": name, "tasks": tasks, "seconds": None if lasts is None else round(lasts)}
            for name, tasks, lasts in found.others
        ],
        "whyUnknown": found.why_unknown or None,
        "sentence": _sentence(found),
    }


def _sentence(found: SharedEnd) -> str:
    *names, last = [name for name, _, _ in found.others]
    whom = f"{', '.join(names)} and {last}" if names else last
    lasts = [each for _, _, each in found.others]
    work = f", which {'has' if len(lasts) == 1 else 'have'} work for {duration(max(each or 0.0 for each in lasts))}"
    others = whom + (f"{work}," if all(each is not None for each in lasts) else "")
    alone = "" if found.alone_s is None else f"alone it would end in {duration(found.alone_s)}; "
    if found.with_others_s is None:
        return f"{alone}when it ends beside {others} is not known: {found.why_unknown}"
    if found.alone_s is not None and found.with_others_s <= SLOWER * found.alone_s:
        return f"{alone}{others} {'does' if len(lasts) == 1 else 'do'} not keep it from that"
    about = f"about {duration(found.with_others_s)} ({duration(found.low_s)} to {duration(found.high_s)})"
    return f"{alone}sharing with {others.removesuffix(',')}, in {about}, if nothing else is submitted"


def late_warnings(question: PlanQuestion, found: SharedEnd | None) -> list[str]:
    """That the others make it miss its deadline."""
    _, run = question.on_copy(question.form)
    if found is None or found.with_others_s is None or not run.deadline_at:
        return []
    late = question.moment.now + found.with_others_s > run.deadline_at
    return ["sharing with others, the run is expected to miss its deadline"] if late else []
