"""When would equal tasks on given instances end, and what would those instances cost until then?

List scheduling of equal tasks has a closed form: by time T an instance that is ready at r has ended floor((T - r) / d)
rounds of tasks of d seconds in each of its places. The end is the smallest T by which all places together have done the
work (Graham's list scheduling with equal lengths, where it is optimal).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_HALVINGS = 80  # of the search for the end: far below a microsecond for any run that ends within a century
_SLACK = 1e-9  # rounds that end exactly at T count


@dataclass(frozen=True, slots=True)
class Crew:
    """Equal instances: `places` tasks at a time on each; seconds from now."""

    instances: int
    places: int
    price_usd_per_hour: float
    ready_s: float = 0.0  # when its first tasks start
    paid_from_s: float = 0.0  # since when it costs money on the run's account
    least_paid_s: float = 0.0  # what is charged however short its life

    def rounds(self, at_s: float, task_s: float) -> int:
        """How many rounds of tasks have ended on each of its places by `at_s`."""
        return max(0, math.floor((at_s - self.ready_s) / task_s + _SLACK))


@dataclass(frozen=True, slots=True)
class Course:
    """How it would go. `seconds`: until the last task ends; infinite when nothing could run it."""

    seconds: float
    cost_usd: float
    instance_hours: float


def course(tasks: int, task_s: float, crews: Sequence[Crew], linger_s: float, launches_per_s: float) -> Course:
    """`tasks` equal tasks of `task_s` seconds. An instance is paid until its work is over and it has idled `linger_s`,
    at most until the end; starting tasks is paced by `launches_per_s`."""
    useful = [crew for crew in crews if crew.instances * crew.places > 0]
    if not tasks:
        return Course(0.0, 0.0, 0.0)
    if not useful:
        return Course(math.inf, math.inf, math.inf)
    end_s = max(_end(tasks, task_s, useful), tasks / launches_per_s + task_s)
    hours = [crew.instances * _paid_s(crew, end_s, task_s, linger_s) / 3600 for crew in useful]
    pairs = list(zip(hours, useful, strict=True))
    return Course(
        seconds=end_s,
        cost_usd=sum(spent * crew.price_usd_per_hour for spent, crew in pairs),
        instance_hours=sum(hours),
    )


def _end(tasks: int, task_s: float, crews: Sequence[Crew]) -> float:
    """The smallest time by which the crews have ended `tasks` tasks."""

    def ended(at_s: float) -> int:
        return sum(crew.instances * crew.places * crew.rounds(at_s, task_s) for crew in crews)

    places = sum(crew.instances * crew.places for crew in crews)
    early = 0.0
    late = max(crew.ready_s for crew in crews) + task_s * (tasks // places + 2)
    for _ in range(_HALVINGS):
        middle = (early + late) / 2
        early, late = (early, middle) if ended(middle) >= tasks else (middle, late)
    return late


def _paid_s(crew: Crew, end_s: float, task_s: float, linger_s: float) -> float:
    over_s = crew.ready_s + crew.rounds(end_s, task_s) * task_s
    return max(crew.least_paid_s, min(end_s, over_s + linger_s) - crew.paid_from_s)
