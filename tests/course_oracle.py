"""When does a waiting run start, one step and one task at a time, in plain Python: what `sharing.course` has to equal.

Only the order in which tasks come to their turn is taken from `tests.sharing_oracle`, which is plain Python as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

from tests.sharing_oracle import Case, dealt


@dataclass(frozen=True)
class TimedCase:
    """Sharers: weight, parts. Runs: sharer, tasks, taken of each limit, seconds of a task, most at once. Live: run,
    seconds left. Comes: in how many seconds, how much of each limit. starts: tasks that may start in a second."""

    sharers: tuple[tuple[int, int], ...]
    runs: tuple[tuple[int, int, tuple[int, ...], float, int], ...]
    live: tuple[tuple[int, float], ...]
    capacity: tuple[int, ...]
    comes: tuple[tuple[float, tuple[int, ...]], ...]
    starts: float
    row: int


@dataclass
class _OneTask:
    run: int
    ends: float
    takes: tuple[int, ...]


def plain_course(case: TimedCase, horizon_s: float) -> tuple[float | None, list[int], int]:
    """When the run in `row` starts, how many tasks of each other run start before, and how many end before."""
    left = [tasks for _, tasks, *_ in case.runs]
    for number, (sharer, *_) in enumerate(case.runs):
        if number > case.row and sharer == case.runs[case.row][0]:
            left[number] = 0
    running = [_OneTask(run, seconds, _part(case, run, 1.0)) for run, seconds in case.live]
    started, ended, now = [0] * len(left), 0, 0.0
    while now <= horizon_s:
        step = max(30.0, now * 0.02)
        middle = now + step / 2
        ended += sum(each.ends <= middle for each in running)
        running = [each for each in running if each.ends > middle]
        given = _given(case, left, running, middle, step)
        later = [each.ends for each in running] + [at for at, _ in case.comes]
        if not given and not any(middle < at < math.inf for at in later):
            break  # nothing changes any more
        for run in given:
            if run == case.row:
                return now, started, ended
            started[run] += 1
            left[run] -= 1
            seconds = case.runs[run][3]
            lasts = math.inf if math.isinf(seconds) else math.ceil(seconds / step) * step
            running.append(_OneTask(run, now + lasts, _part(case, run, _share(seconds, step))))
        now += step
    return None, started, ended


def plain_end(case: TimedCase, horizon_s: float) -> float | None:
    """When the last task of the run in `row` ends, by the same course."""
    last, now, mine = 0.0, 0.0, case.runs[case.row]
    before = [number <= case.row or sharer != mine[0] for number, (sharer, *_) in enumerate(case.runs)]
    left = [tasks if first else 0 for first, (_, tasks, *_) in zip(before, case.runs, strict=True)]
    running = [_OneTask(run, seconds, _part(case, run, 1.0)) for run, seconds in case.live]
    while left[case.row] and now <= horizon_s:
        step = max(30.0, now * 0.02)
        middle = now + step / 2
        running = [each for each in running if each.ends > middle]
        given = _given(case, left, running, middle, step)
        later = [each.ends for each in running] + [at for at, _ in case.comes]
        if not given and not any(middle < at < math.inf for at in later):
            break
        for run in given:
            left[run] -= 1
            seconds = case.runs[run][3]
            last = now + seconds if run == case.row else last
            lasts = math.inf if math.isinf(seconds) else math.ceil(seconds / step) * step
            running.append(_OneTask(run, now + lasts, _part(case, run, _share(seconds, step))))
        now += step
    never = left[case.row] or math.isinf(mine[3])
    return None if never else max([last, *(seconds for run, seconds in case.live if run == case.row)])


def _given(case: TimedCase, left: list[int], running: list[_OneTask], middle: float, step: float) -> list[int]:
    """The run of each task that starts in a step, in the order of their turns."""
    units = _units(case)
    there = [each + sum(more[i] for at, more in case.comes if at <= middle) for i, each in enumerate(case.capacity)]
    capacity = [each * unit for each, unit in zip(there, units, strict=True)]
    used = [[0] * len(capacity) for _ in case.sharers]
    for each in running:
        for axis, taken in enumerate(each.takes):
            used[case.runs[each.run][0]][axis] += taken
    free = [max(0, each - sum(its[axis] for its in used)) for axis, each in enumerate(capacity)]
    starts = 2**33 - 1 if math.isinf(case.starts) else max(1, int(case.starts * step))
    rows = []
    for number, (sharer, _, _, seconds, most) in enumerate(case.runs):
        room = max(0, most - sum(each.run == number for each in running)) / _share(seconds, step)
        rows.append((sharer, min(left[number], int(room)), (*_part(case, number, _share(seconds, step)), 1)))
    limits = (*zip(capacity, free, strict=True), (starts, starts))
    sharers = tuple((*who, (*its, 0)) for who, its in zip(case.sharers, used, strict=True))
    return dealt(Case(sharers, tuple(rows), limits))[0]


def _units(case: TimedCase) -> list[int]:
    """Into how many parts one of each limit is divided."""
    most = [max(1, each + sum(more[i] for _, more in case.comes)) for i, each in enumerate(case.capacity)]
    return [min(1_024, max(1, (2**33 - 1) // each)) for each in most]


def _share(seconds: float, step: float) -> float:
    """Of its place, that a task takes which lasts a whole number of steps instead of `seconds`."""
    return 1.0 if math.isinf(seconds) else seconds / (math.ceil(seconds / step) * step)


def _part(case: TimedCase, run: int, share: float) -> tuple[int, ...]:
    takes = (each * unit for each, unit in zip(case.runs[run][2], _units(case), strict=True))
    return tuple(max(round(each * share), int(each > 0)) for each in takes)


def drawn_in_time(random: Random) -> TimedCase:
    """A few runs on a small cluster, with short tasks, tasks that never end, and room that comes later."""
    limits = random.randint(1, 3)
    capacity = tuple(random.choice((0, 4, 10, 16)) for _ in range(limits))
    sharers = tuple((random.choice((0, 1, 1, 2, 3)), random.choice((1, 1, 2))) for _ in range(random.randint(1, 4)))
    owners = sorted(random.randrange(len(sharers)) for _ in range(random.randint(1, 6)))
    runs = tuple(
        (
            owner,
            random.choice((0, 1, 3, random.randint(0, 40))),
            tuple(random.choice((0, 1, 1, 2, 5)) for _ in range(limits)),
            random.choice((6.0, 30.0, 45.0, 300.0, random.uniform(1, 900), math.inf)),
            random.choice((1, 3, 10**6, 10**6)),
        )
        for owner in owners
    )
    row = random.randrange(len(runs))
    runs = tuple((*run[:1], max(1, run[1]), *run[2:]) if number == row else run for number, run in enumerate(runs))
    live = tuple((random.randrange(len(runs)), random.choice((0.0, 20.0, 400.0, math.inf))) for _ in range(4))
    comes = tuple((random.uniform(0, 500), tuple(random.randint(0, 6) for _ in capacity)) for _ in range(2))
    return TimedCase(sharers, runs, live, capacity, comes, random.choice((math.inf, math.inf, 0.01, 0.1)), row)
