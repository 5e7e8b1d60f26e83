"""The end and the cost of equal tasks on given instances.

List scheduling of equal tasks has a closed form: by time T an instance that is ready at r has ended floor((T - r) / d)
rounds of tasks of d seconds in each of its places. The end is the smallest T by which all places together have done the
work (Graham's list scheduling with equal lengths, where it is optimal).

Two places are ready at once and four more after 50 s. Ten tasks of 100 s end after 250 s: by then the first two places
have done two rounds (4 tasks) and the others two as well (8), while at 249 s only 4 + 4 = 8 tasks were done:

>>> now, later = InstanceGroup(1, 2, 0.10), InstanceGroup(2, 2, 0.10, ready_s=50.0)
>>> round(completion(EqualTasks(10, 100.0), [now, later], linger_s=0.0, launches_per_s=1e9).seconds)
250
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_HALVINGS = 80  # of the search for the end: far below a microsecond for any run that ends within a century
_SLACK = 1e-9  # rounds that end exactly at T count


@dataclass(frozen=True, slots=True)
class EqualTasks:
    """The number of tasks, the duration of each, and how many may run at a time."""

    count: int
    seconds: float
    at_once: int | None = None  # None = as many as there are places


@dataclass(frozen=True, slots=True)
class InstanceGroup:
    """Equal instances: `places` tasks at a time on each; seconds from now."""

    instances: int
    places: int
    price_usd_per_hour: float
    ready_s: float = 0.0  # when its first tasks start
    paid_from_s: float = 0.0  # from when the run pays for it
    least_paid_s: float = 0.0  # what is charged however short the instance lives

    def rounds(self, at_s: float, task_s: float) -> int:
        """How many rounds of tasks have ended on each of its places by `at_s`."""
        return max(0, math.floor((at_s - self.ready_s) / task_s + _SLACK))


@dataclass(frozen=True, slots=True)
class Completion:
    """When the work would be done, and at what cost. All infinite when nothing could run it."""

    seconds: float  # until the last task ends
    cost_usd: float
    instance_hours: float


def completion(
    tasks: EqualTasks, groups: Sequence[InstanceGroup], linger_s: float, launches_per_s: float
) -> Completion:
    """An instance is paid until its work is over and it has been idle for `linger_s`, at most until the end. At most
    `launches_per_s` tasks start in a second."""
    task_s = tasks.seconds
    useful = [group for group in groups if group.instances * group.places > 0]
    if not tasks.count:
        return Completion(0.0, 0.0, 0.0)
    if not useful:
        return Completion(math.inf, math.inf, math.inf)
    end_s = max(_end(tasks, useful), tasks.count / launches_per_s + task_s)
    if tasks.at_once is not None:
        end_s = max(end_s, math.ceil(tasks.count / tasks.at_once) * task_s)
    hours = [group.instances * _paid_s(group, end_s, task_s, linger_s) / 3600 for group in useful]
    pairs = list(zip(hours, useful, strict=True))
    return Completion(
        seconds=end_s,
        cost_usd=sum(spent * group.price_usd_per_hour for spent, group in pairs),
        instance_hours=sum(hours),
    )


def _end(tasks: EqualTasks, groups: Sequence[InstanceGroup]) -> float:
    """The smallest time by which the groups have ended all tasks."""
    task_s = tasks.seconds

    def ended(at_s: float) -> int:
        return sum(group.instances * group.places * group.rounds(at_s, task_s) for group in groups)

    places = sum(group.instances * group.places for group in groups)
    early = 0.0
    late = max(group.ready_s for group in groups) + task_s * (tasks.count // places + 2)
    for _ in range(_HALVINGS):
        middle = (early + late) / 2
        early, late = (early, middle) if ended(middle) >= tasks.count else (middle, late)
    return late


def _paid_s(group: InstanceGroup, end_s: float, task_s: float, linger_s: float) -> float:
    over_s = group.ready_s + group.rounds(end_s, task_s) * task_s
    return max(group.least_paid_s, min(end_s, over_s + linger_s) - group.paid_from_s)
