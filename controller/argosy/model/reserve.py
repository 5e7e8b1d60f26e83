"""What are the live attempts of a run still expected to cost, and which instances does it pay for now?

An instance is paid for until its last attempt ends, so the longest attempt of the run on it counts, and the run's part
of it is its part of what all live attempts take there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from argosy.model.instances import Instance, InstanceStatus
from argosy.model.resources import Resources
from argosy.model.state import State

LEAST_LEFT = 0.1  # of the expected duration, of an attempt that has already taken longer


@dataclass(slots=True)
class Holding:
    """An instance on which a run has live attempts."""

    instance: Instance
    share: float  # of the instance, by the run's attempts
    share_of_all: float  # by all attempts
    longest_s: float  # until the last of the run's attempts is expected to end

    @property
    def usd_per_hour(self) -> float:
        """The run's part of the price."""
        return self.instance.price_usd_per_hour * self.share / self.share_of_all if self.share_of_all else 0.0

    @property
    def reserved_usd(self) -> float:
        return self.usd_per_hour * self.longest_s / 3600

    def more(self, share: float, seconds: float) -> float:
        """Take one attempt more in: what that adds to the reserve."""
        before = self.reserved_usd
        self.share += share
        self.share_of_all += share
        self.longest_s = max(self.longest_s, seconds)
        return self.reserved_usd - before


def holding_of(state: State, needs: Mapping[int, Resources], instance: Instance, number: int) -> Holding:
    """As many attempts as the run has there, none of which is expected to take any time yet."""
    here: Mapping[int, int] = state.attempts.runs_on_instance.get(instance.id.encode()) or {}
    shares = {each: count * needs[each].share_of(instance.total) for each, count in here.items() if each in needs}
    return Holding(instance, shares.get(number, 0.0), sum(shares.values()), 0.0)


def holdings(
    state: State, needs: Mapping[int, Resources], number: int, expected_s: float, now: float
) -> dict[str, Holding]:
    """By instance. needs: of a task of each open run."""
    table = state.attempts
    rows = table.here_of_run(number)
    if not rows.size:
        return {}
    names, place = np.unique(table["instance"][rows], return_inverse=True)
    started_at = table["started_at"][rows]
    taken_s = np.where(started_at > 0, now - started_at, 0.0)
    longest_s = np.zeros(len(names))
    np.maximum.at(longest_s, place, np.maximum(expected_s - taken_s, LEAST_LEFT * expected_s))
    found = {}
    for name, seconds in zip(names.tolist(), longest_s.tolist(), strict=True):
        instance = state.instances.get(name.decode())
        if instance is not None and instance.alive:
            found[instance.id] = holding_of(state, needs, instance, number)
            found[instance.id].longest_s = seconds
    return found


def longest_so_far(state: State, number: int, now: float) -> float:
    """Since when, in seconds, the run's oldest live attempt has been running; 0 without any."""
    table = state.attempts
    started_at = table["started_at"][table.here_of_run(number)]
    started_at = started_at[started_at > 0]
    return float(now - started_at.min()) if started_at.size else 0.0


def kept_idle(state: State, number: int) -> Iterator[Instance]:
    """Instances without a live attempt that the run pays for: it worked there, or they were bought for it."""
    busy = state.attempts.runs_on_instance
    for instance in state.instances.values():
        pays = number in instance.work or (not instance.work and instance.bought_for == number)
        if pays and instance.alive and instance.id.encode() not in busy:
            yield instance


def to_come_usd(instance: Instance, boot_s: float, expected_s: float, now: float) -> float:
    """What an instance that still boots will cost until the end of its first attempt."""
    if instance.status is not InstanceStatus.BOOTING:
        return 0.0
    left_s = max(0.0, boot_s - (now - instance.launched_at)) + expected_s
    return instance.price_usd_per_hour * left_s / 3600
