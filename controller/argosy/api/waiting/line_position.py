"""The position of a waiting run in line: what comes first, and which limit is reached.

It is derived from the state when a user asks, and stored nowhere.

The example of the queues a and b, of the same weight, on instances with 8 vCPUs that are all in use, 6 by a and 2 by
b: b uses less for its weight, so it is the first of two queues. A new run of b comes after the tasks of b's earlier
runs, and after the tasks that queue a may start before both queues use equally many vCPUs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argosy.api.waiting.waiting_runs import Purchasable, WaitingRuns, waiting_runs
from argosy.market.cover import RUN_LIMIT
from argosy.model.moment import Moment
from argosy.model.pools import Offer
from argosy.model.runs import Run
from argosy.placement.demand import Batch
from argosy.scheduler.buying.reasons import DEPLOYMENT, HELD_BY, why_all_back_off
from argosy.scheduler.turns.queue_views import QuotaUse, quotas_by_queue
from argosy.sharing.columns import ONE_FACTOR
from argosy.sharing.fill import OPEN, fill, tasks_ahead

AXES = ("cpu", "memory", "GPUs")
SHOWN = 5  # queues, of those that use a limit
MOST_MORE = 1 << 12  # instances that are tried in search of how many more would help
TOP_PRIORITY = 100


@dataclass(frozen=True, slots=True)
class Help:
    """A change that would let the run start earlier. what: maxInstances or priority."""

    what: str
    value: int
    now: int


@dataclass(frozen=True, slots=True)
class LinePosition:
    """The position of one run. Shares are 0..1, of the part of the cluster that could take its tasks."""

    queue: str
    owner: str
    queue_place: int  # of its sharer, among those with waiting tasks; 1 = the next one
    queues: int
    run_place: int  # within its queue, or its owner's part of it
    runs: int
    use: float  # of the limit that holds it back; of the largest, where none does
    share: float  # what its queue is due by weight, and by recent use where that counts
    factor: float  # what its weight is multiplied by for recent use
    limit: str  # one of AXES; "" = none is reached
    used_by: Sequence[tuple[str, float]]  # queue, and its part of that limit
    ahead: int  # waiting tasks of other runs that are placed before this run
    runs_ahead: int
    most_instances: int = 0  # maxInstances of the deployment, where that is reached
    needs_other_type: bool = False  # whether no instance that is here or ordered could take its tasks
    helps: Sequence[Help] = ()
    quotas: Sequence[QuotaUse] = ()  # those that are reached, where no other one is left for it


def line_position(moment: Moment, run: Run, batch: Batch) -> LinePosition:
    """batch: one task of the run, which has some that may start."""
    buying = Purchasable.of(moment, batch)
    if run.waiting.startswith(HELD_BY) and DEPLOYMENT not in run.waiting:
        buying = replace(buying, is_open=False)  # its own limit, or a quota
    found = waiting_runs(moment, run, batch, buying.offer)
    lacks_instance = not found.has_instance and not buying.is_open
    if lacks_instance:
        found = waiting_runs(moment, run, batch, buying.offer, everywhere=True)
    position = _position(found)
    is_full = moment.instances_left() <= 0 and bool(position.limit or lacks_instance)
    most_instances = moment.policy.max_instances if is_full and buying.offer is not None else 0
    return replace(
        position,
        most_instances=most_instances,
        needs_other_type=lacks_instance,
        quotas=quotas_by_queue(moment, buying.full),
        # Which instance would be bought first depends on what the others could use as well.
        helps=() if lacks_instance else _helps(found, position, most_instances, buying.offer),
    )


def _position(found: WaitingRuns) -> LinePosition:
    order, wants, sharer = found.order, found.columns.wants, found.columns.sharer
    mine, limit = int(sharer[found.row]), _limit(found)
    uses = found.used / np.maximum(found.capacity, 1)
    axis = AXES.index(limit) if limit else int(uses[mine].argmax())
    due = order.weight * order.factor / np.maximum(order.parts, 1)
    waits = sorted({*sharer[wants > 0].tolist(), mine}, key=lambda row: _turn(found, uses, row))
    in_line = [row for row in range(len(wants)) if sharer[row] == mine and (wants[row] > 0 or row == found.row)]
    ahead = tasks_ahead(found.columns, found.sharers, found.limits(), found.row)
    queue, owner = order.sharers[mine]
    by_queue = Counter[str]()
    for (name, _), use in zip(order.sharers, uses[:, axis].tolist(), strict=True):
        by_queue[name] += use
    return LinePosition(
        queue=queue,
        owner=owner,
        queue_place=waits.index(mine) + 1,
        queues=len(waits),
        run_place=in_line.index(found.row) + 1,
        runs=len(in_line),
        use=float(uses[mine, axis]),
        share=float(due[mine] / due.sum()) if due.sum() else 0.0,
        factor=int(order.factor[mine]) / ONE_FACTOR,
        limit=limit,
        used_by=[(name, use) for name, use in by_queue.most_common(SHOWN) if use],
        ahead=int(ahead.sum()),
        runs_ahead=int(np.count_nonzero(ahead)),
    )


def _turn(found: WaitingRuns, uses: NDArray[np.float64], row: int) -> tuple[bool, float, int]:
    """The sharer with the lowest has its turn first."""
    weight = int(found.order.weight[row]) * int(found.order.factor[row])
    return weight == 0, float(uses[row].max()) * int(found.order.parts[row]) / max(1, weight), row


def _limit(found: WaitingRuns) -> str:
    """Which of the cluster's resources holds the run back."""
    held = int(fill(found.columns, found.sharers, found.limits()).held_by[found.row])
    return "" if held == OPEN else AXES[held]


def _helps(found: WaitingRuns, position: LinePosition, most_instances: int, offer: Offer | None) -> tuple[Help, ...]:
    helps = list[Help]()
    if most_instances and offer is not None and (more := _instances_more(found, offer)):
        helps.append(Help("maxInstances", most_instances + more, most_instances))
    priority = _first_priority(found) if position.run_place > 1 else None
    if priority is not None:
        helps.append(Help("priority", priority, found.order.runs[found.row].terms.priority))
    return tuple(helps)


def _instances_more(found: WaitingRuns, offer: Offer) -> int:
    """How many more instances would give the run one, including those for the tasks ahead; 0 = more than MOST_MORE."""
    size = np.array(offer.resources.cpu_memory_gpus, dtype=np.int64)

    def enough(more: int) -> bool:
        return bool(fill(found.columns, found.sharers, found.limits(more * size)).counts[found.row])

    high = 1
    while high < MOST_MORE and not enough(high):
        high *= 2
    low = high // 2  # is not enough
    while enough(high) and high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high if enough(high) else 0


def _first_priority(found: WaitingRuns) -> int | None:
    """The priority that would make the run the first of its sharer; None = there is none that high."""
    columns, row = found.columns, found.row
    earlier = np.flatnonzero((columns.sharer[:row] == columns.sharer[row]) & (columns.wants[:row] > 0)).tolist()
    highest = max((found.order.runs[each].terms.priority for each in earlier), default=TOP_PRIORITY)
    return highest + 1 if highest < TOP_PRIORITY else None


def why_not_in_line(run: Run, moment: Moment) -> str:
    """Why a run has no turn to wait for: something else has to happen first. "" = it has one."""
    if run.is_daemon:
        return run.waiting or "a daemon runs one task on each matching instance"
    if run.held:
        return run.waiting or "it waits for other runs, or for its start time"
    if not run.ready:
        return run.waiting or "the run is being prepared"
    if RUN_LIMIT in run.waiting:
        return f"it is {run.waiting}, so it waits for its own tasks to end"
    if not run.tasks.startable_count(moment.now + moment.policy.linger_s):
        return why_all_back_off(run, moment.now) or run.waiting or "none of its tasks may start yet"
    return ""


def not_in_line(why: str) -> dict[str, Any]:
    """Of a run that has no turn to wait for."""
    return {"inLine": False, "reason": why, "sentences": [f"It has no place in line: {why}."]}


def position_view(position: LinePosition) -> dict[str, Any]:
    """Shares are 0..1; values that do not apply are null."""
    return {
        "inLine": True,
        "queue": position.queue,
        "owner": position.owner or None,
        "queuePlace": position.queue_place,
        "queues": position.queues,
        "runPlace": position.run_place,
        "runs": position.runs,
        "use": round(position.use, 4),
        "share": round(position.share, 4),
        "weightFactor": round(position.factor, 4),
        "limit": position.limit or None,
        "maxInstancesReached": position.most_instances or None,
        "quotasReached": [_quota_view(each) for each in position.quotas],
        "usedBy": [{"queue": name, "use": round(use, 4)} for name, use in position.used_by],
        "tasksAhead": position.ahead,
        "runsAhead": position.runs_ahead,
        "wouldHelp": [{"what": each.what, "value": each.value, "now": each.now} for each in position.helps],
        "sentences": list(sentences(position)),
    }


def _quota_view(quota: QuotaUse) -> Mapping[str, Any]:
    used_by = [{"queue": name, "use": round(use, 4)} for name, use in _parts(quota)]
    return {
        **dict(zip(("region", "purchase", "family"), quota.key, strict=True)),
        "vcpus": quota.vcpus,
        "usedBy": used_by,
    }


def _parts(quota: QuotaUse) -> list[tuple[str, float]]:
    """Which part of it each queue uses."""
    return [(name, vcpus / max(1, quota.vcpus)) for name, vcpus in quota.used.items()]


def sentences(position: LinePosition) -> Iterator[str]:
    """The place among queues and runs, the exhausted limits and the queues that use them, the tasks that come first,
    and the changes that would help."""
    yield from _place_in_words(position)
    yield from _limit_in_words(position)
    yield _ahead_in_words(position)
    for each in position.helps:
        yield _help_in_words(each)


def _place_in_words(position: LinePosition) -> Iterator[str]:
    whose = position.queue + (f"/{position.owner}" if position.owner else "")
    what = position.limit or "largest resource"
    if position.queues > 1:
        use, share = _percent(position.use), _percent(position.share)
        place = f"{_ordinal(position.queue_place)} of {position.queues} queues"
        yield f"{place}: {whose} uses {use} of the cluster's {what}; its weight entitles it to {share}."
        if position.factor != 1:
            than = "more" if position.factor < 1 else "less"
            yield f"{whose} recently used {than} than its share, so its weight is multiplied by {position.factor:.3g}."
    if position.runs > 1:
        yield f"{_ordinal(position.run_place)} of {position.runs} runs waiting in {whose}."


def _limit_in_words(position: LinePosition) -> Iterator[str]:
    for quota in position.quotas:
        users = ", ".join(f"{name} has {_percent(use)}" for name, use in _parts(quota)[:SHOWN])
        yield f"{quota.name[0].upper()}{quota.name[1:]} is reached{': ' + users if users else ''}."
    most = position.most_instances
    reached = f" and maxInstances of the deployment ({most:,}) is reached" if most else ""
    if position.needs_other_type:
        yield (
            f"No current instance could take its tasks{',' + reached if reached else ''}:"
            " another instance has to become idle and end first."
        )
    elif position.limit:
        users = ", ".join(f"{name} has {_percent(use)}" for name, use in position.used_by)
        yield f"The cluster's {position.limit} is used up{reached}{': ' + users if users else ''}."


def _ahead_in_words(position: LinePosition) -> str:
    if not position.ahead:
        return "No waiting task of another run is ahead of it."
    tasks, runs = _counted(position.ahead, "waiting task"), _counted(position.runs_ahead, "run")
    return f"{tasks} of {runs} {'is' if position.ahead == 1 else 'are'} ahead of it."


def _help_in_words(each: Help) -> str:
    if each.what == "maxInstances":
        return f"With maxInstances {each.value:,} (now {each.now:,}) an instance would be bought for it immediately."
    return f"With priority {each.value} (now {each.now}) it would be first in its queue."


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _ordinal(number: int) -> str:
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"
