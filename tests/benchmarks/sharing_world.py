"""The same users' runs in a full cluster, under one rule or another.

A cluster of fixed size, like every elastic one at its limits: a fixed amount of CPU, GPUs and launches per tick. Runs
arrive; a rule says whose task is next. Nothing else differs between the rules: time passes in ticks of two seconds, a
task takes as long as its run says, and no rule stops a task that runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

TICK_S = 2
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Job:
    """An array of like tasks."""

    queue: int
    at_s: int
    tasks: int
    need: tuple[int, int]  # cpu units and GPUs of a task
    task_s: int
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Mix:
    """The demand of each queue, and the cluster."""

    capacity: tuple[int, int]  # cpu units, GPUs
    launches: int  # in a tick
    jobs: tuple[Job, ...]
    weights: tuple[int, ...]
    until_s: int


class Rule(Protocol):
    """The next run. Called repeatedly until none is left or the launches of the tick are used up."""

    def starts(self, world: World) -> Iterable[int]:
        """The job of each task that starts in this tick, one after the other; the world follows between them."""


@dataclass(slots=True)
class World:
    """What a rule sees."""

    mix: Mix
    now_s: int = 0
    free: IntArray = field(init=False)
    used: IntArray = field(init=False)  # (queues, 2)
    cpu_seconds: NDArray[np.float64] = field(init=False)  # (queues,) so far
    left: IntArray = field(init=False)  # (jobs,) tasks that have not begun
    first_start_s: NDArray[np.float64] = field(init=False)  # (jobs,) nan = none has begun
    waiting: list[int] = field(default_factory=list)  # jobs with tasks left, oldest first
    running: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))  # end -> jobs
    held: list[IntArray] = field(default_factory=list)  # of every tick: (queues, 2)

    def __post_init__(self) -> None:
        self.free = np.array(self.mix.capacity, dtype=np.int64)
        self.used = np.zeros((len(self.mix.weights), 2), dtype=np.int64)
        self.cpu_seconds = np.zeros(len(self.mix.weights))
        self.left = np.array([job.tasks for job in self.mix.jobs], dtype=np.int64)
        self.first_start_s = np.full(len(self.mix.jobs), np.nan)

    def fits(self, job: int) -> bool:
        """Whether there is room for one more task of it."""
        return bool((self.free >= self.mix.jobs[job].need).all())

    def run(self, rule: Rule) -> World:
        """Until the end of the mix."""
        arrivals = sorted(range(len(self.mix.jobs)), key=lambda each: self.mix.jobs[each].at_s)
        while self.now_s < self.mix.until_s:
            while arrivals and self.mix.jobs[arrivals[0]].at_s <= self.now_s:
                self.waiting.append(arrivals.pop(0))
            self._end_tasks()
            for _, job in zip(range(self.mix.launches), rule.starts(self), strict=False):
                self._start(job)
            self.waiting = [each for each in self.waiting if self.left[each]]
            self.held.append(self.used.copy())
            self.cpu_seconds += self.used[:, 0] * TICK_S
            self.now_s += TICK_S
        return self

    def _start(self, job: int) -> None:
        what = self.mix.jobs[job]
        need = np.array(what.need)
        assert self.left[job], "a rule starts what is not there"
        assert (self.free >= need).all(), "a rule starts what does not fit"
        self.free -= need
        self.used[what.queue] += need
        self.left[job] -= 1
        if np.isnan(self.first_start_s[job]):
            self.first_start_s[job] = self.now_s
        self.running[self.now_s + what.task_s].append(job)

    def _end_tasks(self) -> None:
        for end in [each for each in self.running if each <= self.now_s]:
            for job in self.running.pop(end):
                self.free += self.mix.jobs[job].need
                self.used[self.mix.jobs[job].queue] -= self.mix.jobs[job].need

    def waits_s(self, jobs: Sequence[int]) -> NDArray[np.float64]:
        """From arrival to the first start; of those that have not begun, to the end."""
        begun = np.where(np.isnan(self.first_start_s), self.mix.until_s, self.first_start_s)
        waits: NDArray[np.float64] = np.array([begun[each] - self.mix.jobs[each].at_s for each in jobs])
        return waits

    def mean_held(self, from_s: int) -> NDArray[np.float64]:
        """(queues, 2) parts of the cluster, from then on."""
        return np.mean(self.held[from_s // TICK_S :], axis=0) / np.maximum(self.mix.capacity, 1)
