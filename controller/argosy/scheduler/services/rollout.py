"""Rollouts: which slots of an environment start next, and which are stopped?

The problem: deployments, roll-backs, scaling and hand-over before a spot interruption must replace tasks while enough
of them serve. The idea: all are the same question, which slots stay and which go. A slot stays if it is of the target
revision, on an instance that stays, and among the first `desired`. Everything else goes, but a healthy task is stopped
only while `minHealthyPercent` of the others are healthy, and a new one starts only below `maxOverPercent`.

Example: two tasks are desired, at least 100 % healthy and at most 50 % over. Two healthy tasks of the old revision run.
The first step starts one new task (three are allowed). Once that one is healthy, one of the old ones is stopped.

>>> terms = ServiceTerms(2, 100, 50, 0.0, 0.0, rolls_back=False, target_group="", drain_s=0.0, content="")
>>> old = [Slot("web-1", index, SlotStatus.HEALTHY, is_target=False) for index in (0, 1)]
>>> step(old, 2, terms).starts, step(old, 2, terms).stops
(1, ())
>>> now = step([*old, Slot("web-2", 0, SlotStatus.HEALTHY, is_target=True)], 2, terms)
>>> now.starts, [(slot.run_id, slot.index) for slot in now.stops]
(1, [('web-1', 0)])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from argosy.model.run_terms import ServiceTerms


class SlotStatus(IntEnum):
    """How far a wanted task has come; in this order surplus ones are let go."""

    PENDING = 0  # waits for a place, or for its back-off to end
    STARTING = 1
    YOUNG = 2  # runs, and not for long enough to count as healthy
    HEALTHY = 3


class Slot(NamedTuple):
    """A wanted task of one of the environment's runs."""

    run_id: str
    index: int  # type: ignore[assignment]  # hides tuple.index, which no slot needs
    status: SlotStatus
    is_target: bool  # of the revision that is to run
    leaves: bool = False  # its instance is about to go
    is_spot: bool = True
    fails: bool = False  # it has been unhealthy for too long: another one is to take its place
    is_sent: bool = True  # ECS has it, so that it can be stopped; of what is pending this says nothing

    @property
    def is_failing(self) -> bool:
        """Whether it runs on an instance that stays, and is to be replaced all the same."""
        return self.fails and self.status is SlotStatus.YOUNG and self.is_sent and not self.leaves


@dataclass(frozen=True, slots=True)
class Step:
    """What is done now."""

    starts: int = 0  # further slots of the target revision
    parks: tuple[Slot, ...] = ()  # pending ones that are not wanted any more
    stops: tuple[Slot, ...] = ()  # live ones to be stopped
    failed: tuple[Slot, ...] = ()  # and those to be stopped because they are unhealthy


def least_healthy(terms: ServiceTerms, desired: int) -> int:
    """How many healthy tasks our own acts leave. Where rounding would allow neither one less nor one more (95 % of ten
    with none over), one less is allowed: nothing could ever be replaced otherwise."""
    least = math.ceil(desired * terms.min_healthy_percent / 100)
    return least if most_active(terms, desired) > desired else max(0, min(least, desired - 1))


def most_active(terms: ServiceTerms, desired: int) -> int:
    """How many tasks our own acts lead to."""
    return desired + math.ceil(desired * terms.max_over_percent / 100)


def step(slots: Sequence[Slot], desired: int, terms: ServiceTerms, *, is_frozen: bool = False, base: int = 0) -> Step:
    """The next step towards `desired` healthy tasks of the target revision, `base` of them where spot cannot take them.

    slots: those that are wanted so far, without those that were told to stop. is_frozen: nothing is started, replaced
    or scaled.
    """
    if is_frozen:
        return Step(parks=tuple(slot for slot in slots if slot.status is SlotStatus.PENDING))
    staying = _staying(slots, desired, min(base, desired))
    failing = [slot for slot in slots if slot.is_target and slot.is_failing]
    all_stay = len(staying) == len(slots)  # as in most ticks: slots are many, and comparing them takes its time
    going = [] if all_stay else [slot for slot in slots if slot not in staying and slot not in failing]
    parks = tuple(slot for slot in going if slot.status is SlotStatus.PENDING)
    healthy = sum(slot.status is SlotStatus.HEALTHY for slot in slots)
    lent = _staying(slots, desired, 0) - staying if base else set()
    stops = _stops([slot for slot in going if slot not in lent], healthy - least_healthy(terms, desired))
    stops += _stops_of_lent(lent, healthy - sum(slot.status is SlotStatus.HEALTHY for slot in stops), desired, terms)
    active = len(slots) - len(parks) - len(stops)
    wanted, most = desired - len(staying), most_active(terms, desired)
    serving = sum(slot.status is SlotStatus.HEALTHY for slot in staying | lent)
    failed = _given_up(failing, desired - serving, desired - len(staying) - max(0, most - active))
    starts = max(0, min(wanted, most - active + len(failed)))
    return Step(starts, parks, stops, failed)


def _given_up(failing: Sequence[Slot], missing: int, without_room: int) -> tuple[Slot, ...]:
    """Of those that have been unhealthy for too long: as many as others are healthy in their place, and as many as
    leave no room for a successor. The others may serve a little meanwhile. missing: how many of the desired ones are
    not healthy; without_room: how many successors have none."""
    count = min(len(failing), max(len(failing) - missing, without_room))
    return tuple(sorted(failing, key=lambda slot: (not slot.is_spot, slot.index))[: max(0, count)])


def _staying(slots: Sequence[Slot], desired: int, base: int) -> set[Slot]:
    """Slots of the target revision on instances that stay, at most as many as are desired: those that have come
    furthest, and of these first those that spot cannot take. Before them as many as the base takes: those that spot
    cannot take, and what waits for a place, which is asked for there."""
    fit = [slot for slot in slots if slot.is_target and not (slot.leaves or slot.is_failing)]
    if not base and len(fit) <= desired:
        return set(fit)
    fit.sort(key=lambda slot: (-slot.status, slot.is_spot, slot.index))
    able = [slot for slot in fit if slot.status is not SlotStatus.PENDING and not slot.is_spot]
    able += [slot for slot in fit if slot.status is SlotStatus.PENDING]
    kept = set(able[:base])
    return kept | set([slot for slot in fit if slot not in kept][: desired - base])


def _stops_of_lent(lent: set[Slot], healthy: int, desired: int, terms: ServiceTerms) -> tuple[Slot, ...]:
    """Of tasks on spot that stand in for those of the base. healthy: how many there are, these among them. They serve
    until others are healthy in their place, unless the update policy has no room for both."""
    has_room = most_active(terms, desired) > desired
    return _stops(sorted(lent), healthy - (desired if has_room else least_healthy(terms, desired)))


def _stops(going: Sequence[Slot], spare: int) -> tuple[Slot, ...]:
    """spare: how many healthy tasks can be done without. What is not healthy yet serves nobody."""
    live = sorted(
        (slot for slot in going if slot.status is not SlotStatus.PENDING and slot.is_sent),
        key=lambda slot: (not slot.leaves, slot.status, not slot.is_spot, slot.run_id, slot.index),
    )
    healthy = [slot for slot in live if slot.status is SlotStatus.HEALTHY]
    return tuple(slot for slot in live if slot.status is not SlotStatus.HEALTHY) + tuple(healthy[: max(0, spare)])
