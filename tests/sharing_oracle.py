"""Fair order, one task at a time, in plain Python: what `argosy.sharing` has to equal task by task."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from random import Random

ONE = 1 << 40
MOST = 2**33 - 1  # of a limit


@dataclass(frozen=True)
class Queues:
    """Queues: the rest of its caps (None = no cap), and of its guarantee: amount (0 = nothing), and the limit from
    which the missing part is withheld (None = it lends). Sharers: queue, used part of the guarantee. Runs: use of the
    capped and of the guaranteed amounts. Whole: the caps themselves."""

    caps: tuple[tuple[int | None, ...], ...]
    guarantees: tuple[tuple[int, int | None], ...]
    sharers: tuple[tuple[int, int], ...]
    runs: tuple[tuple[tuple[int, ...], int], ...]
    whole: tuple[tuple[int | None, ...], ...] = ()  # () = as large as any task


@dataclass(frozen=True)
class Case:
    """Sharers: weight, parts, used of each limit. Runs: sharer, tasks, taken of each limit. Limits: capacity, free."""

    sharers: tuple[tuple[int, int, tuple[int, ...]], ...]
    runs: tuple[tuple[int, int, tuple[int, ...]], ...]
    limits: tuple[tuple[int, int], ...]
    queues: Queues | None = None


def level_of(used: int, capacity: int, weight: int, parts: int) -> int:
    """As a whole number, rounded up."""
    return -(-used * parts * ONE // (max(1, capacity) * max(1, weight)))


class Dealing:
    """What is given, task by task."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.free = [left for _, left in case.limits]
        self.closed = [False] * len(self.free)
        self.levels = [
            [level_of(u, capacity, weight, parts) for u, (capacity, _) in zip(used, case.limits, strict=True)]
            for weight, parts, used in case.sharers
        ]
        self.order: list[int] = []
        self.counts = [0] * len(case.runs)
        queues = case.queues or Queues((), (), (), ())
        self.left = [[*caps] for caps in queues.caps]
        self.capped = [[False] * len(caps) for caps in queues.caps]
        self.has = [used for _, used in queues.sharers]
        self.promised = [level_of(used, self.amount(each), 1, case.sharers[each][1]) for each, used in self.own()]

    def own(self) -> list[tuple[int, int]]:
        """Sharer, its use of its queue's guarantee."""
        return [*zip(count(), self.has, strict=False)] if self.case.queues else []

    def queue(self, sharer: int) -> int:
        return self.case.queues.sharers[sharer][0] if self.case.queues else 0

    def amount(self, sharer: int) -> int:
        return self.case.queues.guarantees[self.queue(sharer)][0] if self.case.queues else 0

    def lacks(self, queue: int) -> int:
        assert self.case.queues
        has = sum(has for each, has in self.own() if self.queue(each) == queue)
        return max(0, self.case.queues.guarantees[queue][0] - has)

    def never(self, run: int) -> bool:
        """Whether its tasks are larger than a whole cap of their queue."""
        queues = self.case.queues
        if not queues or not queues.whole:
            return False
        caps = zip(queues.whole[self.queue(self.case.runs[run][0])], queues.runs[run][0], strict=True)
        return any(cap is not None and each > cap for cap, each in caps)

    def heads(self) -> dict[int, int]:
        """The first run of each sharer that needs no closed limit."""
        found: dict[int, int] = {}
        for number, (sharer, tasks, takes) in enumerate(self.case.runs):
            waits = self.never(number)
            waits |= any(shut and each for shut, each in zip(self.closed, takes, strict=True))
            if self.case.queues:
                queue = self.queue(sharer)
                caps = zip(self.capped[queue], self.left[queue], self.case.queues.runs[number][0], strict=True)
                waits |= any(shut and left is not None and each for shut, left, each in caps)
            if self.counts[number] < tasks and not waits:
                found.setdefault(sharer, number)
        return found

    def give(self, run: int) -> None:
        """Give a task to this run, or close the limits that it does not fit."""
        sharer, _, takes = self.case.runs[run]
        weight, parts, _ = self.case.sharers[sharer]
        if self.case.queues:
            left, its = self.left[self.queue(sharer)], self.case.queues.runs[run][0]
            beyond = [has is not None and each > max(0, has) for each, has in zip(its, left, strict=True)]
            if any(beyond):
                shut = self.capped[self.queue(sharer)]
                self.capped[self.queue(sharer)] = [a or b for a, b in zip(shut, beyond, strict=True)]
                return
        short = [each > left for each, left in zip(takes, self.free, strict=True)]
        if any(short):
            self.closed = [shut or now for shut, now in zip(self.closed, short, strict=True)]
            return
        self.free = [left - each for left, each in zip(self.free, takes, strict=True)]
        self.levels[sharer] = [
            level + level_of(each, capacity, weight, parts)
            for level, each, (capacity, _) in zip(self.levels[sharer], takes, self.case.limits, strict=True)
        ]
        if self.case.queues:
            its, of_own = self.case.queues.runs[run]
            self.has[sharer] += of_own
            self.promised[sharer] += level_of(of_own, self.amount(sharer), 1, parts)
            queue = self.queue(sharer)
            self.left[queue] = [
                None if has is None else has - each for has, each in zip(self.left[queue], its, strict=True)
            ]
        self.counts[run] += 1
        self.order.append(run)

    def serve_guarantees(self, keeps: bool) -> None:
        queues = self.case.queues
        assert queues
        while True:
            heads: dict[int, int] = {}
            for number, (sharer, _, _) in enumerate(self.case.runs):
                queue = self.queue(sharer)
                mine = queues.guarantees[queue][0] and (queues.guarantees[queue][1] is not None) == keeps
                if mine and self.lacks(queue) and queues.runs[number][1] and self.is_open(number):
                    heads.setdefault(sharer, number)
            if not heads:
                return
            self.give(heads[min(heads, key=lambda each: (self.promised[each], each))])

    def is_open(self, run: int) -> bool:
        """Whether it needs another task and none of its limits is closed."""
        sharer, tasks, takes = self.case.runs[run]
        queue = self.queue(sharer)
        assert self.case.queues
        caps = zip(self.capped[queue], self.left[queue], self.case.queues.runs[run][0], strict=True)
        waits = self.never(run)
        waits |= any(shut and each for shut, each in zip(self.closed, takes, strict=True))
        return self.counts[run] < tasks and not waits and not any(s and c is not None and t for s, c, t in caps)

    def keep(self) -> None:
        """The missing part of a guarantee that is not lent is not free for others."""
        assert self.case.queues
        for queue, (_, limit) in enumerate(self.case.queues.guarantees):
            if limit is not None:
                self.free[limit] -= self.lacks(queue)
        self.free = [max(0, left) for left in self.free]


def dealt(case: Case) -> tuple[list[int], list[int], list[bool]]:
    """The run of each task in order, how many each run got, and which limits were closed."""
    dealing = done(case)
    return dealing.order, dealing.counts, dealing.closed


def done(case: Case) -> Dealing:
    """All of it."""
    dealing = Dealing(case)
    if case.queues and any(amount for amount, _ in case.queues.guarantees):
        dealing.serve_guarantees(keeps=True)
        dealing.keep()
        dealing.serve_guarantees(keeps=False)
    while heads := dealing.heads():
        levels = dealing.levels
        first = min(heads, key=lambda each: (case.sharers[each][0] == 0, max(levels[each], default=0), each))
        dealing.give(heads[first])
    return dealing


def drawn(random: Random) -> Case:
    """A small case, with ties, empty runs, full limits and tasks that take nothing more often than in practice."""
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


def plain(random: Random) -> Case:
    """Two or three sharers of the same free limits, each with several runs of small tasks."""
    limits = random.randint(1, 2)
    sharers = tuple((1, 1, (random.randint(0, 5),) * limits) for _ in range(random.randint(2, 3)))
    runs = tuple(
        (owner, random.randint(1, 20), tuple(random.randint(0, 2) for _ in range(limits)))
        for owner in range(len(sharers))
        for _ in range(random.randint(1, 3))
    )
    return Case(sharers, runs, ((60, random.randint(20, 60)),) * limits)


def drawn_queues(random: Random) -> Case:
    """The same with queues of one or several sharers, caps and guarantees. In half the cases, tasks are small and no
    queue has a cap, so that more is given than a guarantee."""
    is_plain = random.random() < 0.5
    case = plain(random) if is_plain else drawn(random)
    queues = random.randint(1, max(1, len(case.sharers)))
    units = random.randint(1, 3)
    sharers = tuple((random.randrange(queues), random.choice((0, 0, 1, 5))) for _ in case.sharers)
    weights = [random.choice((0, 1, 2, 3)) for _ in range(queues)]
    caps = tuple(
        tuple(None if is_plain else random.choice((None, 0, 1, 5, random.randint(0, 40))) for _ in range(units))
        for _ in range(queues)
    )
    used = tuple(tuple(random.choice((0, 2, 9)) for _ in range(units)) for _ in range(queues))
    both = zip(caps, used, strict=True)
    whole = tuple(tuple(None if cap is None else cap + more for cap, more in zip(*each, strict=True)) for each in both)
    limits = len(case.limits)
    guarantees = tuple(
        (random.choice((0, 0, 1, 4, 20)), random.choice((None, random.randrange(limits)))) for _ in range(queues)
    )
    runs = tuple(
        (tuple(random.choice((0, 1, 1, 3, 7)) for _ in range(units)), random.choice((0, 1, 2, 5))) for _ in case.runs
    )
    owners = zip(sharers, case.sharers, strict=True)
    alike = tuple((weights[queue], parts, used) for (queue, _), (_, parts, used) in owners)
    return Case(alike, case.runs, case.limits, Queues(caps, guarantees, sharers, runs, whole))
