"""When does a world of ticks reach its desired state, once nothing happens in it any more?"""

from __future__ import annotations

from typing import Protocol


class SettlingWorld(Protocol):
    """One in which everything happens, and which reports the broken rule."""

    now: int
    broken: list[str]

    def tick(self) -> None:
        """Something happens, and then we act."""

    def grow_calm(self) -> None:
        """From now on nothing happens by itself."""

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to do."""


def ticks_to_settle(world: SettlingWorld, seed: int, *, faulty: int, most: int) -> int:
    """After that many ticks with faults; fails the test if a rule is broken, or if it takes more than `most`."""
    for _ in range(faulty):
        world.tick()
    world.grow_calm()
    took = 0
    while not world.is_settled and took <= most and not world.broken:
        world.tick()
        took += 1
    assert not world.broken, (seed, world.now, world.broken)
    assert took <= most, (seed, world.now)
    return took
