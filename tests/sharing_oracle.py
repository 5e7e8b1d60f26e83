"""Fair order, one task at a time, in plain Python: what `argosy.sharing` has to equal task by task."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

ONE = 1 << 40
MOST = 2**33 - 1  # of a limit


@dataclass(frozen=True)
class Case:
    """Sharers: weight, parts, used of each limit. Runs: sharer, tasks, taken of each limit. Limits: capacity, free."""

    sharers: tuple[tuple[int, int, tuple[int, ...]], ...]
    runs: tuple[tuple[int, int, tuple[int, ...]], ...]
    limits: tuple[tuple[int, int], ...]


def level_of(used: int, capacity: int, weight: int, parts: int) -> int:
    """As a whole number, rounded up."""
    return -(-used * parts * ONE // (max(1, capacity) * max(1, weight)))


def dealt(case: Case) -> tuple[list[int], list[int], list[bool]]:
    """The run of each task in order, how many each run got, and which limits were closed."""
    free = [left for _, left in case.limits]
    closed = [False] * len(free)
    levels = [
        [level_of(u, capacity, weight, parts) for u, (capacity, _) in zip(used, case.limits, strict=True)]
        for weight, parts, used in case.sharers
    ]
    order: list[int] = []
    counts = [0] * len(case.runs)
    while True:
        heads: dict[int, int] = {}
        for number, (sharer, tasks, takes) in enumerate(case.runs):
            waits = any(shut and each for shut, each in zip(closed, takes, strict=True))
            if counts[number] < tasks and not waits:
                heads.setdefault(sharer, number)
        if not heads:
            return order, counts, closed
        next_sharer = min(heads, key=lambda each: (case.sharers[each][0] == 0, max(levels[each], default=0), each))
        run = heads[next_sharer]
        weight, parts, _ = case.sharers[next_sharer]
        takes = case.runs[run][2]
        short = [each > left for each, left in zip(takes, free, strict=True)]
        if any(short):
            closed = [shut or now for shut, now in zip(closed, short, strict=True)]
            continue
        free = [left - each for left, each in zip(free, takes, strict=True)]
        levels[next_sharer] = [
            level + level_of(each, capacity, weight, parts)
            for level, each, (capacity, _) in zip(levels[next_sharer], takes, case.limits, strict=True)
        ]
        counts[run] += 1
        order.append(run)


def drawn(random: Random) -> Case:
    """A small case, with ties, empty runs, full limits and tasks that take nothing more often than life has them."""
    limits = random.randint(1, 4)
    capacities = [random.choice((1, 2, 3, 7, 10, 12, 1_000, 999_983, MOST)) for _ in range(limits)]
    units = [max(1, capacity // random.choice((1, 3, 12, 40))) for capacity in capacities]

    def some(most: int) -> tuple[int, ...]:
        return tuple(random.choice((0, 0, 1, random.randint(0, most))) * unit for unit in units)

    sharers = tuple(
        (random.choice((0, 1, 1, 1, 2, 3, 1_000)), random.choice((1, 1, 1, 2, 3)), tuple(min(MOST, n) for n in some(4)))
        for _ in range(random.randint(1, 5))
    )
    owners = sorted(random.randrange(len(sharers)) for _ in range(random.randint(0, 7)))
    runs = tuple((owner, random.choice((0, 1, 2, random.randint(0, 30))), some(3)) for owner in owners)
    free = (random.choice((0, capacity, random.randint(0, capacity))) for capacity in capacities)
    bounded = tuple((capacity, left) for capacity, left in zip(capacities, free, strict=True))
    return Case(sharers, runs, bounded)
