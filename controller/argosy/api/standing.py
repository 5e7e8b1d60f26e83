"""Where does a run that waits stand: who comes before it, at which limit, and when does its next task start?

Worked out when somebody asks, from the state as it is, and stored nowhere. It assumes that nothing else is submitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from argosy.api.crowd import Crowd, Market, crowd_of
from argosy.api.lateness import Lateness, lateness_of
from argosy.market.cover import RUN_LIMIT
from argosy.model.moment import Moment
from argosy.model.runs import Run
from argosy.placement.demand import Batch
from argosy.scheduler.affordable import instances_left
from argosy.scheduler.capacity import DEPLOYMENT
from argosy.scheduler.queue_views import QuotaUse, quotas_by_queue
from argosy.scheduler.reasons import HELD_BY, why_all_back_off
from argosy.sharing.columns import ONE_FACTOR, Columns, IntArray, Limits, Sharers
from argosy.sharing.course import StartCourse, course
from argosy.sharing.fill import OPEN, fill

AXES = ("cpu", "memory", "GPUs")
MEASURED, SAID = (0.55, 2.2), (0.35, 3.0)  # the range around an estimate: from tasks that ended, or the spec's word
LEAST_RANGE_S = 60.0
SHOWN = 5  # queues, of those that use a limit
MOST_MORE = 1 << 12  # instances, in search of how many would help
WORTH = 0.7  # a change is named that makes the wait as much shorter
TOP_PRIORITY = 100


@dataclass(frozen=True, slots=True)
class Help:
    """A change that would let the run start earlier. what: maxInstances or priority."""

    what: str
    value: int
    now: int
    starts_in_s: float


@dataclass(frozen=True, slots=True)
class PlaceInLine:
    """What is said of a run that waits. Shares are 0..1, of the part of the cluster that could take its tasks."""

    queue: str
    owner: str
    queue_place: int  # of its sharer, among those with tasks that wait; 1 = the next one
    queues: int
    run_place: int  # within its queue, or its owner's part of it
    runs: int
    use: float  # of the limit that holds it back; of the largest, where none does
    share: float  # what is due to its queue by weight, and by what was used lately where that counts
    factor: float  # by which its weight counts more or less for that
    limit: str  # one of AXES; "" = none is reached
    most_instances: int  # maxInstances of the deployment, where that is reached; else 0
    used_by: Sequence[tuple[str, float]]  # queue, and its part of that limit
    ahead: int  # tasks that start before
    runs_ahead: int
    ends_per_minute: float | None
    starts_in_s: float | None
    low_s: float = 0.0
    high_s: float = 0.0
    needs_other_type: bool = False  # whether no instance that is here or ordered could take its tasks
    why_unknown: str = ""  # where `starts_in_s` is None
    helps: Sequence[Help] = ()
    quotas: Sequence[QuotaUse] = ()  # those that are reached, where no other is left for it
    lateness: Lateness | None = None  # None: it has no deadline, makes it, or nobody knows


def place_in_line(moment: Moment, run: Run, batch: Batch, short: str) -> PlaceInLine:
    """batch: one task of the run, which has some that may start. short: why no instance can be bought for it, where
    that is so."""
    market = Market.of(moment, batch)
    if run.waiting.startswith(HELD_BY) and DEPLOYMENT not in run.waiting:
        market = replace(market, instances=0)  # a limit of its own, or a quota
    crowd = crowd_of(moment, run, batch, market)
    homeless = not crowd.room.capacity.any() and not crowd.room.comes.any()
    shown = crowd_of(moment, run, batch, market, everywhere=True) if homeless else crowd
    limit = _limit(shown)
    told = _told(shown, run, limit)
    is_full = market.offer is not None and instances_left(moment) <= 0 and bool(limit or homeless)
    told = replace(
        told,
        most_instances=moment.policy.max_instances if is_full else 0,
        needs_other_type=homeless,
        quotas=quotas_by_queue(moment, market.full),
    )
    if homeless and market.offer is None:
        return replace(told, why_unknown=short)
    wait_s = moment.policy.linger_s + moment.policy.boot_s if homeless else 0.0
    told = _with_start(told, _of_an_instance(shown) if homeless else shown, wait_s)
    if told.starts_in_s is None:
        return told
    lateness = None if homeless else lateness_of(moment, run, crowd)
    return replace(told, helps=tuple(_helps(moment, crowd, market, told)), lateness=lateness)


def _told(crowd: Crowd, run: Run, limit: str) -> PlaceInLine:
    order, wants = crowd.order, crowd.runs.columns.wants
    sharer = crowd.runs.columns.sharer
    mine = int(sharer[crowd.row])
    capacity = np.maximum(crowd.room.capacity, 1)
    uses = crowd.used / capacity
    axis = AXES.index(limit) if limit else int(uses[mine].argmax())
    due = order.weight * order.factor / np.maximum(order.parts, 1)
    waits = sorted({*sharer[wants > 0].tolist(), mine}, key=lambda row: _turn(crowd, uses, row))
    in_line = [row for row in range(len(wants)) if sharer[row] == mine and (wants[row] > 0 or row == crowd.row)]
    queue, owner = order.sharers[mine]
    by_queue = Counter[str]()
    for (name, _), use in zip(order.sharers, uses[:, axis].tolist(), strict=True):
        by_queue[name] += use
    return PlaceInLine(
        queue=queue,
        owner=owner,
        queue_place=waits.index(mine) + 1,
        queues=len(waits),
        run_place=in_line.index(crowd.row) + 1,
        runs=len(in_line),
        use=float(uses[mine, axis]),
        share=float(due[mine] / due.sum()) if due.sum() else 0.0,
        factor=int(order.factor[mine]) / ONE_FACTOR,
        limit=limit,
        most_instances=0,
        used_by=[(name, use) for name, use in by_queue.most_common(SHOWN) if use],
        ahead=0,
        runs_ahead=0,
        ends_per_minute=None,
        starts_in_s=None,
    )


def _turn(crowd: Crowd, uses: Any, row: int) -> tuple[bool, float, int]:
    """The sharer with the lowest has its turn first."""
    weight = int(crowd.order.weight[row]) * int(crowd.order.factor[row])
    return weight == 0, float(uses[row].max()) * int(crowd.order.parts[row]) / max(1, weight), row


def _limit(crowd: Crowd) -> str:
    """Which of the cluster's resources holds the run back."""
    held = int(fill(crowd.runs.columns, replace(crowd.sharers, used=crowd.used), _limits(crowd)).held_by[crowd.row])
    return "" if held == OPEN else AXES[held]


def _limits(crowd: Crowd, more: IntArray | int = 0) -> Limits:
    capacity = crowd.room.capacity + more
    return Limits.of(capacity, capacity - crowd.used.sum(axis=0))


def _with_start(told: PlaceInLine, crowd: Crowd, wait_s: float) -> PlaceInLine:
    """wait_s: from when its turn has come until its first task starts."""
    found = course(crowd.runs, crowd.sharers, crowd.room, crowd.row)
    counts = found.ahead + crowd.live
    counts[crowd.row] = crowd.live[crowd.row]
    unknown = int(counts[~crowd.known].sum())
    runs_ahead = int(np.count_nonzero(found.ahead))
    told = replace(told, ahead=int(found.ahead.sum()), runs_ahead=runs_ahead)
    if unknown and 2 * unknown > int(counts.sum()):
        return replace(told, why_unknown=nobody_knows(crowd, counts))
    if found.starts_in_s is None:
        return replace(told, ahead=0, runs_ahead=0, why_unknown=_no_end(told))
    return _in_range(told, crowd, found, counts, wait_s)


def _in_range(told: PlaceInLine, crowd: Crowd, found: StartCourse, counts: IntArray, wait_s: float) -> PlaceInLine:
    assert found.starts_in_s is not None
    seen = int(counts[crowd.seen].sum())
    low, high = MEASURED if 2 * seen >= int(counts.sum()) else SAID
    starts_in_s = found.starts_in_s + wait_s
    return replace(
        told,
        ends_per_minute=60 * found.ended / found.starts_in_s if found.starts_in_s else None,
        starts_in_s=starts_in_s,
        low_s=min(low * starts_in_s, max(0.0, starts_in_s - LEAST_RANGE_S)),
        high_s=max(high * starts_in_s, starts_in_s + LEAST_RANGE_S),
    )


def nobody_knows(crowd: Crowd, counts: IntArray) -> str:
    """The runs of which nothing is known that come first, or have the places, the largest first."""
    rows = [int(row) for row in np.argsort(-counts, kind="stable") if counts[row] and not crowd.known[row]]
    names = ", ".join(crowd.order.runs[row].id for row in rows[:2]) + (" and others" if len(rows) > 2 else "")
    return f"none of the tasks of {names} has ended yet, and no array.expectedSeconds says how long they take"


def _no_end(told: PlaceInLine) -> str:
    """What has the places does not go."""
    what = f"the cluster's {told.limit}" if told.limit else "the cluster"
    return f"no end of what uses {what} is in sight that leaves enough for a task of it"


def _of_an_instance(crowd: Crowd) -> Crowd:
    """The same for who waits until one whole instance has no work, so that another one may be bought in its place: it
    takes as much as an instance has, and comes last."""
    columns, row, last = crowd.runs.columns, crowd.row, len(crowd.sharers.weight)
    behind = (columns.sharer == columns.sharer[row]) & (np.arange(len(columns.wants)) >= row)
    size = (crowd.room.capacity + crowd.room.comes.sum(axis=0)) // max(1, crowd.instances)
    runs = replace(
        crowd.runs,
        columns=Columns(
            np.append(columns.sharer, last),
            np.append(np.where(behind, 0, columns.wants), 1),
            np.append(columns.takes, [size], axis=0),
        ),
        seconds=np.append(crowd.runs.seconds, np.inf),
        most=np.append(crowd.runs.most, 1),
        pieces=None,
    )
    return replace(
        crowd,
        runs=runs,
        sharers=Sharers.of(
            np.append(crowd.sharers.weight, 0),
            np.append(crowd.sharers.used, np.zeros((1, len(size)), dtype=np.int64), axis=0),
            np.append(crowd.sharers.parts, 1),
            np.append(crowd.sharers.factor, ONE_FACTOR),
        ),
        row=len(columns.wants),
        known=np.append(crowd.known, True),
        seen=np.append(crowd.seen, False),
    )


def _helps(moment: Moment, crowd: Crowd, market: Market, told: PlaceInLine) -> list[Help]:
    assert told.starts_in_s is not None
    policy, found = moment.policy, list[Help]()
    if told.needs_other_type:
        return []  # what would be bought first depends on what the others could use as well
    if told.most_instances and policy.boot_s < WORTH * told.starts_in_s and (more := _instances_more(crowd, market)):
        found.append(Help("maxInstances", policy.max_instances + more, policy.max_instances, policy.boot_s))
    first = _first_in_line(crowd)
    if told.run_place > 1 and first is not None:
        priority, alone = first
        starts_in_s = course(alone.runs, alone.sharers, alone.room, alone.row).starts_in_s
        if starts_in_s is not None and starts_in_s < WORTH * told.starts_in_s:
            now = crowd.order.runs[crowd.row].terms.priority
            found.append(Help("priority", priority, now, starts_in_s))
    return found


def _instances_more(crowd: Crowd, market: Market) -> int:
    """How many instances more would give the run one, those among them that come first; 0 = as many as are looked at do
    not."""
    assert market.offer is not None
    size, used = np.array(market.offer.resources, dtype=np.int64), replace(crowd.sharers, used=crowd.used)

    def enough(more: int) -> bool:
        return bool(fill(crowd.runs.columns, used, _limits(crowd, more * size)).counts[crowd.row])

    high = 1
    while high < MOST_MORE and not enough(high):
        high *= 2
    low = high // 2  # does not do
    while enough(high) and high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high if enough(high) else 0


def _first_in_line(crowd: Crowd) -> tuple[int, Crowd] | None:
    """The priority that would make it the first of its sharer, and how it would be then; None = there is none."""
    columns = crowd.runs.columns
    ahead = np.flatnonzero((columns.sharer == columns.sharer[crowd.row]) & (columns.wants > 0))
    before = [crowd.order.runs[row].terms.priority for row in ahead.tolist() if row < crowd.row]
    if not before or max(before) >= TOP_PRIORITY:
        return None
    wants = columns.wants.copy()
    wants[[row for row in ahead.tolist() if row < crowd.row]] = 0
    alone = replace(crowd.runs, columns=Columns(columns.sharer, wants, columns.takes))
    return max(before) + 1, replace(crowd, runs=alone)


def why_not_in_line(run: Run, moment: Moment) -> str:
    """Why a run has no turn to wait for: something else has to happen first. "" = it has one."""
    if run.held:
        return run.waiting or "it waits for other runs, or for its time"
    if not run.ready:
        return run.waiting or "the run is being prepared"
    if RUN_LIMIT in run.waiting:
        return f"it is {run.waiting}, so it waits for its own tasks to end"
    if not run.tasks.startable_count(moment.now + moment.policy.linger_s):
        return why_all_back_off(run, moment.now) or run.waiting or "none of its tasks may start yet"
    return ""
