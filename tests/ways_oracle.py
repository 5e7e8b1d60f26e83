"""Fair order where runs have several ways, one task at a time, in plain Python."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.sharing_oracle import Case, drawn, level_of


@dataclass(frozen=True)
class WaysCase:
    """For the runs of `case`, which take of the unavoidable limits: by run, its ways: which of the further limits, and
    how much of it."""

    case: Case
    further: tuple[tuple[int, int], ...]  # capacity, free
    used: tuple[tuple[int, ...], ...]  # by sharer, of the further limits
    ways: tuple[tuple[tuple[int | None, int], ...], ...]

    def takes(self, run: int, way: int) -> list[int]:
        limit, amount = self.ways[run][way]
        return [*self.case.runs[run][2], *(amount * (limit == each) for each in range(len(self.further)))]


class Dealing:
    """What is given, task by task."""

    def __init__(self, given: WaysCase) -> None:
        self.given, self.runs, self.sharers = given, given.case.runs, given.case.sharers
        self.limits = [*given.case.limits, *given.further]
        self.free, self.shut = [left for _, left in self.limits], [False] * len(self.limits)
        self.used = [[*its, *more] for (_, _, its), more in zip(self.sharers, given.used, strict=True)]
        self.counts = [[0] * len(its) for its in given.ways]
        self.at = [0] * len(self.runs)
        self.levels: list[list[int]] = []

    def level(self) -> None:
        """All stand where their use says."""
        self.levels = [
            [level_of(u, c, weight, parts) for u, (c, _) in zip(its, self.limits, strict=True)]
            for its, (weight, parts, _) in zip(self.used, self.sharers, strict=True)
        ]

    def is_done(self, run: int) -> bool:
        return self.at[run] >= len(self.counts[run]) or sum(self.counts[run]) >= self.runs[run][1]

    def head(self) -> int | None:
        """The run whose turn it is."""
        heads: dict[int, int] = {}
        for run, (sharer, _, _) in enumerate(self.runs):
            takes = () if self.is_done(run) else self.given.takes(run, self.at[run])
            if takes and not any(shut and each for shut, each in zip(self.shut, takes, strict=True)):
                heads.setdefault(sharer, run)
        key = {each: (self.sharers[each][0] == 0, max(self.levels[each]), each) for each in heads}
        return heads[min(heads, key=lambda each: key[each])] if heads else None

    def give(self, run: int) -> None:
        """A task, or what it does not fit is closed."""
        takes, (sharer, _, _) = self.given.takes(run, self.at[run]), self.runs[run]
        short = [each > left for each, left in zip(takes, self.free, strict=True)]
        if any(short):
            self.shut = [a or b for a, b in zip(self.shut, short, strict=True)]
            return
        self.counts[run][self.at[run]] += 1
        self.free = [left - each for left, each in zip(self.free, takes, strict=True)]
        self.used[sharer] = [has + each for has, each in zip(self.used[sharer], takes, strict=True)]
        weight, parts, _ = self.sharers[sharer]
        rises = [level_of(each, c, weight, parts) for each, (c, _) in zip(takes, self.limits, strict=True)]
        self.levels[sharer] = [level + rise for level, rise in zip(self.levels[sharer], rises, strict=True)]

    def moves_on(self, run: int) -> bool:
        """Whether the run leaves its way, which is closed."""
        if self.is_done(run):
            return False
        limit = self.given.ways[run][self.at[run]][0]
        if limit is None or not self.shut[len(self.given.case.limits) + limit]:
            return False
        self.at[run] += 1
        self.moves_on(run)
        return True


def dealt(given: WaysCase) -> list[list[int]]:
    """By run, the tasks that go each of its ways."""
    dealing, moved = Dealing(given), True
    while moved:
        dealing.level()
        while (run := dealing.head()) is not None:
            dealing.give(run)
        moved = sum(dealing.moves_on(run) for run in range(len(dealing.runs))) > 0  # all of them move
    return dealing.counts


def drawn_ways(random: Random) -> WaysCase:
    case, limits = drawn(random), random.randint(1, 4)
    further = [(size, random.randint(0, size)) for size in (random.choice((1, 4, 16, 64)) for _ in range(limits))]
    ways = []
    for _ in case.runs:
        names = random.sample(range(limits), random.randint(0, limits))
        its: list[tuple[int | None, int]] = [(name, random.choice((1, 1, 2, 8, 100))) for name in names]
        ways.append((*its, *([(None, 0)] if random.random() < 0.3 else [])))
    used = tuple(tuple(random.choice((0, 0, 1, 3, 9)) for _ in range(limits)) for _ in case.sharers)
    return WaysCase(case, tuple(further), used, tuple(ways))
