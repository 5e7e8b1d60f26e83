"""Which task makes room for which, by hand and in random worlds: exchanges always end, and the loss is least."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from random import Random

import numpy as np
import pytest

from argosy.sharing import victims
from argosy.sharing.columns import MOST_FACTOR, ONE_FACTOR, Limits, Sharers
from argosy.sharing.history import LEAST_FACTOR
from argosy.sharing.victims import Holders, Standings, WaitingTask, exchange

MOST_EXCHANGES = 400  # of the worlds below, that end after 16 at most


def everywhere(where: int, rows: object) -> bool:
    return True


class World:
    """Instances that are full of tasks, and tasks that wait. A task: instance, sharer, its size, its cost."""

    def __init__(self, random: Random, equal: bool = False) -> None:
        self.size = (random.randint(2, 8), random.randint(2, 8))
        self.instances = random.randint(1, 4)
        sharers = random.randint(2, 4)
        self.weights = [random.choice((0, 1, 1, 2, 3)) for _ in range(sharers)]
        self.parts = [random.choice((1, 1, 2)) for _ in range(sharers)]
        self.factors = [ONE_FACTOR] * sharers
        shapes = [self._shape(random) for _ in range(sharers)]
        self.shapes = shapes[:1] * sharers if equal else shapes
        self.waiting = [random.randint(0, 6) for _ in range(sharers)]
        self.live: list[tuple[int, int, tuple[int, int], float]] = []
        for place in range(self.instances):
            for _ in range(8):
                sharer = random.randrange(sharers)
                if self.fits(place, self.shapes[sharer]):
                    self.live.append((place, sharer, self.shapes[sharer], random.randint(0, 30) / 8))

    def _shape(self, random: Random) -> tuple[int, int]:
        return random.randint(1, self.size[0]), random.randint(1, self.size[1])

    def free(self, place: int, without: tuple[int, ...] = ()) -> tuple[int, int]:
        here = [each[2] for number, each in enumerate(self.live) if each[0] == place and number not in without]
        return self.size[0] - sum(each[0] for each in here), self.size[1] - sum(each[1] for each in here)

    def fits(self, place: int, shape: tuple[int, int], without: tuple[int, ...] = ()) -> bool:
        return all(left >= need for left, need in zip(self.free(place, without), shape, strict=True))

    def level(
        self,
        sharer: int,
        without: tuple[int, ...] = (),
        more: tuple[int, int] = (0, 0),
        by_weight: bool = True,
    ) -> tuple[bool, Fraction]:
        """A sharer without weight is above all others."""
        mine = [each[2] for number, each in enumerate(self.live) if each[1] == sharer and number not in without]
        sums = [sum(each[axis] for each in mine) + more[axis] for axis in (0, 1)]
        part = max(Fraction(used, whole * self.instances) for used, whole in zip(sums, self.size, strict=True))
        times = Fraction(ONE_FACTOR if by_weight else self.factors[sharer], ONE_FACTOR)
        return self.weights[sharer] == 0, part * self.parts[sharer] / max(1, self.weights[sharer]) / times

    def is_just(self, sharer: int, gone: tuple[int, ...]) -> bool:
        losers = {self.live[each][1] for each in gone}
        after = [self.level(sharer, more=self.shapes[sharer], by_weight=each) for each in (True, False)]
        just = all(self.level(each, gone) >= after[0] for each in losers)
        just = just and all(self.level(each, gone, by_weight=False) >= after[1] for each in losers)
        return just and sharer not in losers and after[0] > self.level(sharer) and self.weights[sharer] > 0

    def least_loss(self, sharer: int) -> float | None:
        """One subset of the tasks of an instance after the other."""
        found = []
        for place in range(self.instances):
            here = [number for number, each in enumerate(self.live) if each[0] == place]
            for size in range(1, len(here) + 1):
                found += [
                    sum(self.live[each][3] for each in gone)
                    for gone in combinations(here, size)
                    if self.fits(place, self.shapes[sharer], gone) and self.is_just(sharer, gone)
                ]
        return min(found, default=None)

    def standing(self) -> Standings:
        used = np.zeros((len(self.weights), 2), dtype=np.int64)
        for _, sharer, shape, _ in self.live:
            used[sharer] += shape
        capacity = [each * self.instances for each in self.size]
        return Standings(Sharers.of(self.weights, used, self.parts, self.factors), Limits.of(capacity, capacity))

    def exchange(self, sharer: int) -> victims.Exchange | None:
        place, sharers, takes, loss = zip(*self.live, strict=True) if self.live else ((), (), (), ())
        free = [self.free(each) for each in range(self.instances)]
        holders = Holders(*map(np.array, (place, sharers, takes, loss, free)))
        wish = WaitingTask(sharer, np.array(self.shapes[sharer], dtype=np.int64))
        return exchange(wish, holders, self.standing(), everywhere) if self.live else None

    def start(self) -> None:
        """The lowest sharer has the available room."""
        while True:
            able = [
                (self.level(sharer), sharer, place)
                for sharer, count in enumerate(self.waiting)
                for place in range(self.instances)
                if count and self.fits(place, self.shapes[sharer])
            ]
            if not able:
                return
            _, sharer, place = min(able)
            self._put(sharer, place)

    def _put(self, sharer: int, place: int) -> None:
        self.waiting[sharer] -= 1
        self.live.append((place, sharer, self.shapes[sharer], 0.0))

    def take_room(self) -> bool:
        """One exchange for the lowest sharer that finds any."""
        for sharer in sorted(range(len(self.weights)), key=self.level):
            made = self.exchange(sharer) if self.waiting[sharer] else None
            if made is not None:
                assert self.is_just(sharer, made.victims)
                for row in made.victims:
                    self.waiting[self.live[row][1]] += 1
                self.live = [each for row, each in enumerate(self.live) if row not in made.victims]
                assert self.fits(made.place, self.shapes[sharer])
                self._put(sharer, made.place)
                return True
        return False


def two_queues(weights: tuple[int, int], live: tuple[int, int], waiting: int = 1) -> World:
    """One instance with this many tasks of each; one of the first waits."""
    world = World(Random(0), equal=True)
    world.size, world.instances, world.weights, world.parts = (sum(live), sum(live)), 1, [*weights], [1, 1]
    world.shapes, world.waiting = [(1, 1)] * 2, [waiting, 0]
    world.factors = [ONE_FACTOR] * 2
    world.live = [(0, sharer, (1, 1), 1.0 + number) for sharer in (0, 1) for number in range(live[sharer])]
    return world


def test_the_task_whose_work_is_worth_least_makes_room() -> None:
    found = two_queues((1, 1), (0, 4)).exchange(0)
    assert found is not None
    assert (found.victims, found.loss) == ((0,), 1.0)


def test_no_task_is_stopped_whose_queue_would_then_be_lower() -> None:
    assert two_queues((1, 1), (2, 2)).exchange(0) is None
    assert two_queues((1, 1), (1, 2)).exchange(0) is None


def test_weights_count() -> None:
    assert two_queues((3, 1), (2, 2)).exchange(0) is not None
    assert two_queues((1, 3), (1, 3)).exchange(0) is None


def test_a_queue_without_weight_takes_nothing_and_gives_everything() -> None:
    assert two_queues((0, 1), (0, 4)).exchange(0) is None
    assert two_queues((1, 0), (3, 1)).exchange(0) is not None


def test_a_task_that_is_not_needed_stays() -> None:
    world = two_queues((1, 1), (0, 2))
    world.size, world.live = (10, 10), [(0, 1, (2, 2), 0.1), (0, 1, (6, 6), 0.5), (0, 1, (2, 2), 9.0)]
    world.shapes = [(4, 4), (6, 6)]
    found = world.exchange(0)
    assert found is not None
    assert found.victims == (1,)


def test_a_queue_as_high_as_the_taker_will_be_gives_what_leaves_it_as_high() -> None:
    """Sharer 1 has three quarters of the second resource, and keeps them."""
    world = two_queues((1, 1), (0, 2))
    world.size, world.live = (8, 4), [(0, 1, (1, 3), 0.1), (0, 1, (4, 0), 5.0)]
    world.shapes = [(6, 0), (4, 0)]
    found = world.exchange(0)
    assert found is not None
    assert found.victims == (1,)


def test_a_place_where_the_task_does_not_fit_after_all_is_left_alone() -> None:
    world = two_queues((1, 1), (0, 4))
    full = np.zeros((1, 2), dtype=np.int64)
    rows = Holders(*(np.array(column) for column in zip(*world.live, strict=True)), full)
    assert exchange(WaitingTask(0, np.array([1, 1])), rows, world.standing(), lambda where, gone: False) is None


def test_what_was_used_lately_takes_no_room_from_others() -> None:
    world = two_queues((1, 1), (2, 2))
    world.factors = [MOST_FACTOR, LEAST_FACTOR]
    assert world.exchange(0) is None


def test_room_given_to_a_queue_that_used_less_is_not_taken_back() -> None:
    world = two_queues((1, 1), (0, 4))
    assert world.exchange(0) is not None
    world.factors = [LEAST_FACTOR, MOST_FACTOR]
    assert world.exchange(0) is None


def ends(seed: int, remembers: bool = False) -> None:
    """remembers: recent use differs at each reading."""
    random = Random(seed)
    world, made = World(random), 0
    world.start()
    while True:
        if remembers:
            world.factors = [random.randint(LEAST_FACTOR, MOST_FACTOR) for _ in world.weights]
        if not world.take_room():
            return
        world.start()
        made += 1
        assert made < MOST_EXCHANGES, f"world {seed} exchanges without end"


def test_taking_room_always_ends() -> None:
    for seed in range(100):
        ends(seed)


def test_so_it_does_whatever_was_used_lately() -> None:
    for seed in range(100):
        ends(seed, remembers=True)


@pytest.mark.deep
@pytest.mark.parametrize("ten_thousand", range(10))
def test_taking_room_always_ends_in_a_hundred_thousand_worlds(ten_thousand: int) -> None:
    for seed in range(10_000 * ten_thousand, 10_000 * (ten_thousand + 1)):
        ends(seed)


def loses_least(seeds: range, remembers: bool = False) -> None:
    found = 0
    for seed in seeds:
        random = Random(seed)
        world = World(random, equal=True)
        if remembers:
            world.factors = [random.choice((LEAST_FACTOR, 40, ONE_FACTOR, MOST_FACTOR)) for _ in world.weights]
        for sharer in range(len(world.weights)):
            made = world.exchange(sharer)
            least = world.least_loss(sharer)
            assert (None if made is None else made.loss) == least, f"world {seed}, sharer {sharer}"
            found += made is not None
    assert found


def test_of_tasks_of_one_size_the_least_work_is_lost() -> None:
    loses_least(range(40))


def test_so_it_is_whatever_was_used_lately() -> None:
    loses_least(range(60), remembers=True)


@pytest.mark.deep
def test_of_tasks_of_one_size_the_least_work_is_lost_in_thousands_of_worlds() -> None:
    loses_least(range(40, 1_540))
