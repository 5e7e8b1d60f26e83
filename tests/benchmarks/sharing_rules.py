"""The rules of other systems for choosing the next task.

Each follows its project's own description of which queue is next without preemption; where the description leaves
something open, the choice favours the rule. `test_sharing_rules.py` compares each of them with its project's
publications.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from argosy.sharing.columns import MOST, Columns, Limits, Sharers
from argosy.sharing.fill import fill, turns
from tests.benchmarks.sharing_world import TICK_S, World

SCALE = 1 << 16  # of launches
Key = tuple[float, ...]


def oldest_of_each(world: World) -> list[int]:
    """The first waiting job of each queue, by priority and age."""
    heads: dict[int, int] = {}
    for job in sorted(world.waiting, key=lambda each: -world.mix.jobs[each].priority):
        if world.left[job]:
            heads.setdefault(world.mix.jobs[job].queue, job)
    return list(heads.values())


class Fifo:
    """The oldest job of any owner is first, and a job that does not fit holds up all jobs behind it."""

    def starts(self, world: World) -> Iterator[int]:
        """See `Rule`."""
        for job in world.waiting:
            while world.left[job]:
                if not world.fits(job):
                    return
                yield job


@dataclass
class BatchFairShare:
    """AWS Batch: next is the share identifier of the lowest usage times weight factor; usage is the mean vCPUs of the
    decay time, and those in use now. One queue of jobs in that order, whose head holds up all others.

    Sources: the user guide, "Fair-share scheduling policies" (a weight factor of 1/8 gets eight times the compute
    resources) and "Jobs stuck in RUNNABLE" (the head of the queue). A weight factor is one over our weight."""

    decay_s: float = 600.0
    usage: NDArray[np.float64] | None = None

    def starts(self, world: World) -> Iterator[int]:
        """See `Rule`."""
        before = np.zeros(len(world.mix.weights)) if self.usage is None else self.usage
        decay = math.exp(-TICK_S / self.decay_s)
        self.usage = before * decay + world.used[:, 0] * (1 - decay)
        while heads := oldest_of_each(world):
            now = self.usage + world.used[:, 0]
            job = min(heads, key=lambda each: now[world.mix.jobs[each].queue] / weight_of(world, each))
            if not world.fits(job):
                return
            yield job


@dataclass
class Kueue:
    """Kueue with fair sharing: each queue's nominal quota is its part by weight; next is the queue with the lowest
    dominant share of its borrowed amount, over its weight; ties go by age. StrictFIFO: a head that does not fit holds
    up its queue. BestEffortFIFO: the queue goes on with its next job.

    Sources: the concepts pages "ClusterQueue" (queueing strategies) and "Fair Sharing"."""

    strict: bool

    def starts(self, world: World) -> Iterator[int]:
        """See `Rule`."""
        capacity = np.array(world.mix.capacity)
        weights = np.array(world.mix.weights)
        nominal = capacity * weights[:, None] / weights.sum()
        blocked: set[int] = set()
        while candidates := [job for job in self._candidates(world) if job not in blocked]:
            job = min(candidates, key=lambda each: borrowed(world, each, nominal, capacity))
            if world.fits(job):
                yield job
            elif self.strict:
                blocked |= {each for each in world.waiting if queue_of(world, each) == queue_of(world, job)}
            else:
                blocked.add(job)

    def _candidates(self, world: World) -> list[int]:
        if self.strict:
            return oldest_of_each(world)
        alike: dict[tuple[int, tuple[int, int]], int] = {}  # of those that are alike the oldest is first
        for job in world.waiting:
            if world.left[job]:
                alike.setdefault((queue_of(world, job), world.mix.jobs[job].need), job)
        return list(alike.values())


def borrowed(world: World, job: int, nominal: NDArray[np.float64], capacity: NDArray[np.int64]) -> Key:
    """Kueue's share value of the job's queue with one more task of it, then the job's age."""
    queue = queue_of(world, job)
    over = np.maximum(world.used[queue] + world.mix.jobs[job].need - nominal[queue], 0)
    value = float((over / np.maximum(capacity, 1)).max()) / world.mix.weights[queue]
    return value, world.mix.jobs[job].at_s, job


class Volcano:
    """Volcano's `proportion`: a queue deserves its part by weight, plus a part of the others' rest; a queue that has
    all it deserves is skipped; next is the queue with the smallest part of its deserved share. Within a queue, the job
    with the smallest dominant share (`drf`), which among like jobs is the oldest.

    Source: the plugins' pages, and the queue's page (weight / total weight of the cluster's resources)."""

    def starts(self, world: World) -> Iterator[int]:
        """See `Rule`."""
        deserved = deserved_by_weight(world)
        blocked: set[int] = set()
        while candidates := [job for job in oldest_of_each(world) if queue_of(world, job) not in blocked]:
            job = min(candidates, key=lambda each: self._share(world, each, deserved))
            queue = queue_of(world, job)
            overused = bool((world.used[queue] > deserved[queue] + 1e-6).any())
            if overused or not world.fits(job):
                blocked.add(queue)
            else:
                yield job

    def _share(self, world: World, job: int, deserved: NDArray[np.float64]) -> Key:
        queue = queue_of(world, job)
        return float((world.used[queue] / np.maximum(deserved[queue], 1e-9)).max()), world.mix.jobs[job].at_s


def deserved_by_weight(world: World) -> NDArray[np.float64]:
    """(queues, 2): by weight, no queue more than it requests; the rest of one goes to the others."""
    asked = world.used.astype(float)
    for job in world.waiting:
        asked[queue_of(world, job)] += world.left[job] * np.array(world.mix.jobs[job].need)
    found = np.zeros_like(asked)
    for axis, capacity in enumerate(world.mix.capacity):
        hungry, rest = asked[:, axis] > 0, float(capacity)
        while rest > 1e-6 and hungry.any():
            part = rest * np.where(hungry, world.mix.weights, 0) / np.array(world.mix.weights)[hungry].sum()
            more = np.minimum(part, asked[:, axis] - found[:, axis])
            found[:, axis] += more
            rest -= more.sum()
            hungry = asked[:, axis] - found[:, axis] > 1e-6
            if not more.sum():
                break
    return found


@dataclass
class Slurm:
    """Slurm: priority is a weighted sum of age and fair share, worked out every five minutes; jobs start in that order;
    behind one that does not fit, only jobs that will have ended before it can start (EASY backfill). Its users know how
    long a task takes: real time limits are longer, and backfill worse.

    Sources: "Multifactor Priority Plugin", "Classic Fairshare" (2^(-usage/shares)) and the backfill scheduler's page.
    """

    age_weight: float = 1_000.0
    share_weight: float = 10_000.0
    most_age_s: float = 7 * 86_400.0
    half_life_s: float = 7 * 86_400.0
    every_s: float = 300.0
    usage: NDArray[np.float64] | None = None
    order: dict[int, float] = field(default_factory=dict)
    ordered_at_s: float = -math.inf

    def starts(self, world: World) -> Iterator[int]:
        """See `Rule`."""
        before = np.zeros(len(world.mix.weights)) if self.usage is None else self.usage
        self.usage = before * 0.5 ** (TICK_S / self.half_life_s) + world.used[:, 0] * TICK_S
        if world.now_s - self.ordered_at_s >= self.every_s:
            self.order, self.ordered_at_s = {}, world.now_s
        for job in world.waiting:
            self.order.setdefault(job, self._priority(world, job))
        holder_at_s = math.inf
        for job in sorted(world.waiting, key=lambda each: (-self.order[each], world.mix.jobs[each].at_s)):
            while world.left[job] and world.fits(job):
                if world.now_s + world.mix.jobs[job].task_s > holder_at_s:
                    break
                yield job
            if world.left[job] and math.isinf(holder_at_s):
                holder_at_s = room_at(world, job)

    def _priority(self, world: World, job: int) -> float:
        assert self.usage is not None
        queue, weights = queue_of(world, job), world.mix.weights
        part = self.usage[queue] / max(self.usage.sum(), 1e-9)
        age = min(1.0, (world.now_s - world.mix.jobs[job].at_s) / self.most_age_s)
        return self.age_weight * age + self.share_weight * fair_share_factor(part, weights[queue] / sum(weights))


def fair_share_factor(usage: float, shares: float) -> float:
    """Slurm's classic one; both are parts of the whole."""
    return float(2 ** (-usage / shares))


def room_at(world: World, job: int) -> float:
    """The time when enough will have ended for one task of it, epoch seconds of the world."""
    free = world.free.copy()
    for end in sorted(world.running):
        free += np.array([world.mix.jobs[each].need for each in world.running[end]]).sum(axis=0)
        if (free >= world.mix.jobs[job].need).all():
            return end
    return math.inf


class Argosy:
    """`argosy.sharing`: fair over limits, strict within a limit, never across limits. As in a tick of the scheduler,
    the places are shared out first, and then the launches."""

    def starts(self, world: World) -> Iterator[int]:
        """See `Rule`."""
        jobs = [job for job in world.waiting if world.left[job]]
        if not jobs:
            return
        queues = sorted({queue_of(world, job) for job in jobs}, key=lambda each: self._level(world, each))
        row = {queue: number for number, queue in enumerate(queues)}
        jobs.sort(key=lambda each: (row[queue_of(world, each)], -world.mix.jobs[each].priority))
        tick = [SCALE * TICK_S // world.mix.jobs[job].task_s for job in jobs]  # launches of a tick that a place costs
        needs = np.array([(*world.mix.jobs[job].need, each) for job, each in zip(jobs, tick, strict=True)])
        columns = Columns.of([row[queue_of(world, job)] for job in jobs], world.left[jobs], needs)
        launching = launches_in_use(world)
        used = np.hstack([world.used, launching[:, None]])[queues]
        sharers = Sharers.of([world.mix.weights[queue] for queue in queues], used)
        cpu, gpus = world.mix.capacity
        several = len({queue_of(world, job) for job in jobs if world.mix.jobs[job].need[1]}) > 1
        capacity = (cpu, gpus if several else MOST, SCALE * world.mix.launches)
        free = (*world.free, MOST)  # it lifts levels, and closes nothing: what is left of launches is dealt out below
        counts = fill(columns, sharers, Limits.of(capacity, free)).counts
        once = Limits.of([world.mix.launches], [world.mix.launches])
        nothing = Sharers.of([world.mix.weights[queue] for queue in queues], np.zeros((len(queues), 1), dtype=np.int64))
        each = Columns.of(columns.sharer, counts, np.ones((len(jobs), 1), dtype=np.int64))
        launched = fill(each, nothing, once).counts
        yield from (jobs[number] for number in turns(each, nothing, once, launched).tolist())

    def _level(self, world: World, queue: int) -> Key:
        level = float((world.used[queue] / np.maximum(world.mix.capacity, 1)).max())
        return level / world.mix.weights[queue], queue


def launches_in_use(world: World) -> NDArray[np.int64]:
    """(queues,) parts of a launch in a tick that keep up the tasks that run."""
    found = np.zeros(len(world.mix.weights), dtype=np.int64)
    for jobs in world.running.values():
        for job in jobs:
            found[queue_of(world, job)] += SCALE * TICK_S // world.mix.jobs[job].task_s
    return found


def queue_of(world: World, job: int) -> int:
    """Its row."""
    return world.mix.jobs[job].queue


def weight_of(world: World, job: int) -> int:
    """Of its queue."""
    return world.mix.weights[queue_of(world, job)]


RULES: dict[str, Callable[[], Fifo | BatchFairShare | Kueue | Volcano | Slurm | Argosy]] = {
    "first come, first served": Fifo,
    "AWS Batch, fair share": BatchFairShare,
    "Kueue, StrictFIFO": lambda: Kueue(strict=True),
    "Kueue, BestEffortFIFO": lambda: Kueue(strict=False),
    "Volcano, proportion and drf": Volcano,
    "Slurm, multifactor and backfill": Slurm,
    "Argosy": Argosy,
}
