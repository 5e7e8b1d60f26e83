"""Which slots of an environment start next, and which are stopped?

The problem: deployments, roll-backs, scaling and hand-over before a spot interruption must replace tasks while enough
of them serve. The idea: each is one question, which slots stay and which go. A slot stays if it is of the target
revision, on an instance that stays, and among the first `desired`. All other slots go, but a healthy task is stopped
only while `minHealthyPercent` remain healthy without it, and a new one starts only below `maxOverPercent`.

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
    """The progress of a wanted task; surplus tasks are stopped in this order."""

    PENDING = 0  # waits for a place, or for its back-off to end
    STARTING = 1
    YOUNG = 2  # runs, but not long enough to count as healthy
    HEALTHY = 3


class Slot(NamedTuple):
    """A wanted task of one of the environment's runs."""

    run_id: str
    index: int  # type: ignore[assignment]  # hides tuple.index, which no slot needs
    status: SlotStatus
    is_target: bool  # of the revision to run
    leaves: bool = False  # its instance is about to go
    is_spot: bool = True
    fails: bool = False  # it has been unhealthy for too long and needs a successor
    is_sent: bool = True  # ECS has it, so that it can be stopped; undefined for pending slots

    @property
    def is_failing(self) -> bool:
        """Whether it runs on an instance that stays, but is to be replaced."""
        return self.fails and self.status is SlotStatus.YOUNG and self.is_sent and not self.leaves


@dataclass(frozen=True, slots=True)
class Step:
    """The actions to take now."""

    starts: int = 0  # further slots of the target revision
    parks: tuple[Slot, ...] = ()  # pending slots that are no longer needed
    stops: tuple[Slot, ...] = ()  # live tasks to be stopped
    failed: tuple[Slot, ...] = ()  # tasks to be stopped because they are unhealthy


def least_healthy(terms: ServiceTerms, desired: int) -> int:
    """The number of healthy tasks that our own acts leave. If rounding would allow neither one less nor one more (95
    % of ten with none over), one less is allowed, because otherwise no replacement could start."""
    least = math.ceil(desired * terms.min_healthy_percent / 100)
    return least if most_active(terms, desired) > desired else max(0, min(least, desired - 1))


def most_active(terms: ServiceTerms, desired: int) -> int:
    """The most tasks that our own acts lead to."""
    return desired + math.ceil(desired * terms.max_over_percent / 100)


def step(slots: Sequence[Slot], desired: int, terms: ServiceTerms, *, is_frozen: bool = False, base: int = 0) -> Step:
    """The next step towards `desired` healthy tasks of the target revision, `base` of them off spot.

    slots: those wanted so far, without those asked to stop. is_frozen: nothing is started, replaced or scaled.
    """
    if is_frozen:
        return Step(parks=tuple(slot for slot in slots if slot.status is SlotStatus.PENDING))
    staying = _staying(slots, desired, min(base, desired))
    failing = [slot for slot in slots if slot.is_target and slot.is_failing]
    all_stay = len(staying) == len(slots)  # as in most ticks: comparing many slots takes time
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
    """Of the tasks that have been unhealthy for too long: as many as have healthy successors, and as many as leave
    no room for a successor. The others may still serve partly. missing: how many desired tasks are not healthy;
    without_room: how many successors have no room."""
    count = min(len(failing), max(len(failing) - missing, without_room))
    return tuple(sorted(failing, key=lambda slot: (not slot.is_spot, slot.index))[: max(0, count)])


def _staying(slots: Sequence[Slot], desired: int, base: int) -> set[Slot]:
    """Slots of the target revision on instances that stay, at most the desired number: the most advanced first, and
    among these those off spot. Base tasks come before them: slots off spot, and pending slots that request a place
    there."""
    fit = [slot for slot in slots if slot.is_target and not (slot.leaves or slot.is_failing)]
    if not base and len(fit) <= desired:
        return set(fit)
    fit.sort(key=lambda slot: (-slot.status, slot.is_spot, slot.index))
    able = [slot for slot in fit if slot.status is not SlotStatus.PENDING and not slot.is_spot]
    able += [slot for slot in fit if slot.status is SlotStatus.PENDING]
    kept = set(able[:base])
    return kept | set([slot for slot in fit if slot not in kept][: desired - base])


def _stops_of_lent(lent: set[Slot], healthy: int, desired: int, terms: ServiceTerms) -> tuple[Slot, ...]:
    """Tasks on spot that replace base tasks for now. healthy: the number of healthy tasks, including these. They serve
    until successors are healthy, unless the update policy has no room for both."""
    has_room = most_active(terms, desired) > desired
    return _stops(sorted(lent), healthy - (desired if has_room else least_healthy(terms, desired)))


def _stops(going: Sequence[Slot], spare: int) -> tuple[Slot, ...]:
    """spare: how many healthy tasks can be spared. Tasks that are not healthy yet serve no requests."""
    live = sorted(
        (slot for slot in going if slot.status is not SlotStatus.PENDING and slot.is_sent),
        key=lambda slot: (not slot.leaves, slot.status, not slot.is_spot, slot.run_id, slot.index),
    )
    healthy = [slot for slot in live if slot.status is SlotStatus.HEALTHY]
    return tuple(slot for slot in live if slot.status is not SlotStatus.HEALTHY) + tuple(healthy[: max(0, spare)])
