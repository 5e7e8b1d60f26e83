"""The order of runs where not all can be served at once.

The sharers of the cluster are its queues, and the owners within a queue that is shared by owners. Within a sharer, a
run of higher priority comes first, then one that can still make its deadline, then the older one. Between sharers
`argosy.sharing` decides.

Of runs that can still make their deadlines, the one with least slack comes first. Slack is the time until the run has
to begin at the latest: its deadline less the time that the rest of it takes with the whole cluster, at its largest, to
itself. These times are fixed and rounded to minutes, so the order does not change from tick to tick. A late run is
placed as if it had no deadline: no capacity can save the deadline, and an impossible deadline must not give priority.
While the duration of its tasks is unknown, a run is late when its deadline has passed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from argosy.model.moment import Moment
from argosy.model.resources import Resources
from argosy.model.runs import Run
from argosy.model.sharers import live_by_number, sharer_of, taken_by_sharer
from argosy.model.shares.recent_use import Sharer
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.sharing.bounds import NO_CAP, Guarantees, QueueBounds
from argosy.sharing.columns import ONE_FACTOR, Columns, IntArray, Limits, Sharers
from argosy.sharing.fill import TaskCounts, fill, turns
from argosy.sharing.history import Weight, factors

MINUTE_S = 60.0
NOT_URGENT = 1 << 60  # after every minute
NONE_URGENT: Mapping[str, int] = MappingProxyType({})
_LEFT = [TaskStatus.PENDING, TaskStatus.STARTING, TaskStatus.RUNNING]


def latest_starts(moment: Moment, runs: Sequence[Run]) -> Mapping[str, int]:
    """By id, of those that can still make their deadlines: the minute in which each has to begin at the latest."""
    with_deadline = [(run, at) for run in runs if (at := run.deadline_at) is not None]
    if not with_deadline:
        return NONE_URGENT
    whole = _largest_cluster(moment)
    found: dict[str, int] = {}
    for run, deadline_at in with_deadline:
        begin_at = deadline_at - rest_s(run, moment, whole)
        is_known = run.mean_seconds(run.terms.expected_seconds) is not None
        if (begin_at if is_known else deadline_at) >= moment.now:
            found[run.id] = int(begin_at // MINUTE_S)
    return found


def _largest_cluster(moment: Moment) -> Resources | None:
    """The cluster at its largest, with instances like the present ones. None: nothing is known of it."""
    sizes = [each.size for each in moment.state.instances.values() if each.alive]
    if not sizes:
        return None
    times = max(1.0, moment.policy.max_instances / len(sizes))
    return Resources(*(int(sum(axis) * times) for axis in zip(*sizes, strict=True)))


def rest_s(run: Run, moment: Moment, whole: Resources | None) -> float:
    """Seconds that the rest of it takes at most, in any order of tasks, with that cluster to itself: Graham's bound
    for tasks on equal workers. Tasks under way count as not begun."""
    seconds = run.expected_seconds(moment.policy.attempt_s)
    longest_s = max(seconds, run.longest_s)
    at_once = max(1, min(_places(run, whole), run.terms.max_concurrent or run.task_count))
    if run.task_count <= at_once:
        return longest_s
    tasks = int(run.tasks.counts()[_LEFT].sum())
    return longest_s if tasks <= at_once else longest_s + (tasks * seconds - longest_s) / at_once


def _places(run: Run, whole: Resources | None) -> int:
    most = math.inf
    if whole is not None:
        # A resource not present yet is unknown: a run that waits for its first GPU is not late for that.
        most = min((of // need for need, of in zip(run.needs, whole, strict=True) if need and of), default=math.inf)
    terms = run.terms
    if terms.max_instances and terms.max_tasks_per_instance:
        most = min(most, terms.max_instances * terms.max_tasks_per_instance)
    return int(min(most, run.task_count))


class QueueCapColumns(NamedTuple):
    """Caps of queues, in units of theirs."""

    queues: Sequence[str]
    takes: IntArray  # (runs, units)
    left: IntArray  # (queues, units)
    unit: IntArray  # (queues,) the unit of each guarantee
    amount: IntArray  # (queues,) the guaranteed amount; 0 = nothing
    used: IntArray  # (queues,) the guaranteed use
    kept_from: IntArray  # (queues,) the limit that withholds the missing part from the others; LENT = it is lent
    whole: IntArray  # (queues, units) the caps themselves

    def after(self, queue: IntArray, given: IntArray) -> QueueCapColumns:
        """After each run, of the queue in that place, has been given that number of tasks."""
        taken = np.zeros_like(self.left)
        np.add.at(taken, queue, given[:, None] * self.takes)
        left = np.where(self.left >= NO_CAP, self.left, np.maximum(self.left - taken, 0))
        return self._replace(left=left, used=self.used + taken[np.arange(len(taken)), self.unit])

    def without_guarantees(self) -> QueueCapColumns:
        return self._replace(amount=np.zeros_like(self.amount))


@dataclass(frozen=True, slots=True)
class FairOrder:
    """Some open runs and all sharers of the cluster. The sharers are in the order that breaks ties: the least use of
    the cluster first, then the fewest attempts, so that a sharer just served follows one that was not."""

    runs: tuple[Run, ...] = ()  # by sharer, priority, deadline (`urgency`), age
    sharers: tuple[Sharer, ...] = ()
    weight: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    parts: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    factor: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """(sharers,) the factor of the weight for past use."""
    tasks: IntArray = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))
    """(sharers, 3) cpu units, MiB and GPUs that its live attempts take."""
    live: Mapping[str, int] = field(default_factory=dict)  # live attempts, by run id
    row: Mapping[str, int] = field(default_factory=dict)  # of the sharer, by run id

    @classmethod
    def of(cls, state: State, runs: Sequence[Run], urgent: Mapping[str, int] = NONE_URGENT) -> FairOrder:
        """The order of those runs, which are in order of submission. urgent: from `latest_starts`."""
        found = _Holdings(state)
        known = sorted({found.sharer[run.id] for run in runs}, key=found.rank)
        rows = {sharer: number for number, sharer in enumerate(known)}

        def turn(run: Run) -> tuple[int, int, int]:
            return rows[found.sharer[run.id]], -run.terms.priority, urgent.get(run.id, NOT_URGENT)

        weights = [found.weights[sharer] for sharer in known]
        return cls(
            runs=tuple(sorted(runs, key=turn)),
            sharers=tuple(known),
            weight=np.array([each.weight for each in weights], dtype=np.int64),
            parts=np.array([each.parts for each in weights], dtype=np.int64),
            factor=np.array([found.factor[sharer] for sharer in known], dtype=np.int64),
            tasks=np.array([found.taken[sharer] for sharer in known], dtype=np.int64).reshape(-1, 3),
            live=found.live,
            row={run.id: rows[found.sharer[run.id]] for run in runs},
        )

    @property
    def is_shared(self) -> bool:
        """Whether there is more than one sharer."""
        return len(self.sharers) > 1

    def dealt(
        self,
        run_ids: Sequence[str],
        wants: IntArray,
        takes: IntArray,
        limits: Limits,
        used: IntArray,
        within: QueueCapColumns | None = None,
    ) -> TaskCounts:
        """How many of its tasks each of the runs gets. They are in this order, and may appear more than once.

        takes: (runs, limits) for a task. used: (sharers, limits).
        """
        columns = Columns.of([self.row[run_id] for run_id in run_ids], wants, takes)
        if within is None:
            return fill(columns, self._sharers(used), limits)
        of_caps = QueueBounds.of(columns, self.groups(within.queues), within.takes, within.left)
        bounds = of_caps.less_never(columns, within.whole)
        return fill(columns, self._sharers(used), limits, bounds, self._guarantees(within, bounds.of_runs(columns)))

    def _guarantees(self, within: QueueCapColumns, of_runs: IntArray) -> Guarantees:
        # A queue's use is divided equally among its sharers, which only decides between its owners.
        group = self.groups(within.queues)
        members = np.bincount(group, minlength=len(within.amount))
        used = within.used[group] // members[group]
        first = np.unique(group, return_index=True)[1]
        used[first] += (within.used % np.maximum(members, 1))[group[first]]
        amount = np.where(members > 0, within.amount, np.maximum(within.amount - within.used, 0))
        takes = within.takes[np.arange(len(of_runs)), within.unit[of_runs]]
        return Guarantees.of(amount, used, takes, within.kept_from)

    def groups(self, queues: Sequence[str]) -> IntArray:
        """(sharers,) the place of each one's queue among these."""
        place = {name: number for number, name in enumerate(queues)}
        return np.array([place[queue] for queue, _ in self.sharers], dtype=np.int64)

    def in_turn(self, run_ids: Sequence[str], counts: IntArray, limits: Limits, quantum: int = 1) -> IntArray:
        """The place in `run_ids` of each of that many tasks, in the order of their turns; each takes 1 of every
        limit."""
        takes = np.ones((len(run_ids), len(limits)), dtype=np.int64)
        columns = Columns.of([self.row[run_id] for run_id in run_ids], counts, takes)
        used = np.zeros((len(self.sharers), len(limits)), dtype=np.int64)
        return turns(columns, self._sharers(used), limits, counts, quantum)

    def _sharers(self, used: IntArray) -> Sharers:
        return Sharers.of(self.weight, used, self.parts, self.factor)


class _Holdings:
    """The use of the sharers of a state."""

    def __init__(self, state: State) -> None:
        by_number, queues = live_by_number(state), state.sharing.queues()
        self.live = {run.id: by_number.get(run.number, 0) for run in state.runs.values()}
        self.sharer: dict[str, Sharer] = {}
        self.members: dict[Sharer, int] = {}  # all that have an open run -> their earliest submission
        self.taken = taken_by_sharer(state, by_number)
        self._served: Counter[Sharer] = Counter()
        for run in state.runs.values():
            sharer = self.sharer[run.id] = sharer_of(run, queues)
            self.members.setdefault(sharer, len(self.members))
            self._served[sharer] += 0 if run.is_daemon else run.attempts + self.live[run.id]
        sharing = {self.sharer[run.id] for run in state.runs.values() if not run.is_daemon}
        owners = Counter(queue for queue, _ in sharing)
        self.weights = {each: Weight(queues[each[0]].weight, max(1, owners[each[0]])) for each in self.members}
        self.factor = dict.fromkeys(self.members, ONE_FACTOR)
        if state.sharing.recent.at:
            present = {each: weight for each, weight in self.weights.items() if each in sharing}
            self.factor |= factors(state.sharing.recent, present)
        self._whole = np.maximum(1, np.array([*self.taken.values()] or [[1, 1, 1]]).sum(axis=0)).tolist()

    def rank(self, sharer: Sharer) -> tuple[Fraction, Fraction, int]:
        """The lowest comes first. Fractions make equal values exactly equal."""
        weight = max(1, self.weights[sharer].weight) * self.factor[sharer]
        level = max(Fraction(taken, whole) for taken, whole in zip(self.taken[sharer], self._whole, strict=True))
        return level / weight, Fraction(self._served[sharer], weight), self.members[sharer]


def one_each(state: State, runs: Sequence[Run]) -> list[Run]:
    """The runs in the order of their turns, where each needs the same small amount."""
    order = FairOrder.of(state, runs) if len(runs) > 1 else FairOrder()
    if not order.is_shared:
        return list(runs)
    ids, each = [run.id for run in order.runs], np.ones(len(runs), dtype=np.int64)
    turn = order.in_turn(ids, each, Limits.of([len(ids)], [len(ids)]))
    return [order.runs[number] for number in turn.tolist()]


def shares(state: State, wants: Mapping[str, int], room: int) -> dict[str, int]:
    """By run id, the shares of some open runs in a resource that a tick has too little of."""
    if len(wants) < 2:
        return {run_id: min(room, count) for run_id, count in wants.items()}
    order = FairOrder.of(state, [state.runs[run_id] for run_id in wants])
    ids = [run.id for run in order.runs]
    counts, limits = np.array([wants[run_id] for run_id in ids], dtype=np.int64), Limits.of([max(1, room)], [room])
    takes, none = np.ones((len(ids), 1), dtype=np.int64), np.zeros((len(order.sharers), 1), dtype=np.int64)
    return dict(zip(ids, order.dealt(ids, counts, takes, limits, none).counts.tolist(), strict=True))
