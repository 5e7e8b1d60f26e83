"""On which instances does a daemon's next task start, and which of its tasks are stopped?

A pure function. A task is on an instance. A pending slot is on no instance: it is meant for the instance of its last
attempt, or for any instance without a task. Our own acts leave a healthy task on as many matching instances as the
update policy says, or on all but one if that would make every step impossible.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from argosy.scheduler.services.rollout import SlotStatus


class DaemonHost(NamedTuple):
    """A matching instance that stays."""

    id: str
    is_open: bool = True  # whether tasks can be started there now, room aside
    takes: bool = True  # whether it has room for one more task of the target revision,
    takes_after: bool = True  # once the daemon's other tasks there have ended


class DaemonTask(NamedTuple):
    """A live task. Its instance stays, but need not match."""

    run_id: str
    index: int  # type: ignore[assignment]  # hides tuple.index, which no task needs
    host: str
    status: SlotStatus
    is_target: bool  # of the revision to run
    is_sent: bool = True  # ECS has it, so that it can be stopped
    ends: bool = False  # it has been asked to stop


class PendingSlot(NamedTuple):
    """A pending slot of the target's run."""

    index: int  # type: ignore[assignment]
    last_host: str = ""  # of its last attempt
    is_due: bool = True  # False: it pauses


@dataclass(frozen=True, slots=True)
class DaemonStep:
    """The actions to take now."""

    starts: int = 0  # further slots of the target revision
    parks: tuple[int, ...] = ()  # pending slots that are no longer needed
    launches: tuple[tuple[int, str], ...] = ()  # slot and instance
    stops: tuple[DaemonTask, ...] = ()
    starved: tuple[str, ...] = ()  # instances without room
    healthy: int = 0  # instances with a healthy task of the target revision
    outdated: int = 0  # other tasks that are alive


@dataclass(frozen=True, slots=True)
class _HostTasks:
    """The tasks on one instance."""

    host: DaemonHost
    mine: Sequence[DaemonTask]  # of the target revision, the most advanced first; without those asked to stop
    old: Sequence[DaemonTask]  # the same of other revisions
    live: int  # all tasks there, including those asked to stop

    @property
    def is_healthy(self) -> bool:
        """Whether any task there is healthy."""
        return any(each.status is SlotStatus.HEALTHY for each in (*self.mine, *self.old))

    @property
    def is_done(self) -> bool:
        return bool(self.mine) and self.mine[0].status is SlotStatus.HEALTHY

    @property
    def can_change(self) -> bool:
        """Whether a new task could start there once the others are gone; otherwise the old one stays."""
        return bool(self.mine) or (self.host.is_open and self.host.takes_after)


def least_on(hosts: int, min_healthy_percent: int) -> int:
    """The number of instances on which our own acts leave a healthy task."""
    return max(0, min(math.ceil(hosts * min_healthy_percent / 100), hosts - 1))


def daemon_step(
    hosts: Sequence[DaemonHost],
    tasks: Sequence[DaemonTask],
    pending: Sequence[PendingSlot],
    min_healthy_percent: int,
    *,
    starts_first: bool,
    is_frozen: bool = False,
) -> DaemonStep:
    """The next step towards one healthy task of the target revision on each of `hosts`, and no other task anywhere.

    tasks: also those on instances outside `hosts`. is_frozen: nothing is started or replaced.
    """
    by_host: defaultdict[str, list[DaemonTask]] = defaultdict(list)
    for task in tasks:
        by_host[task.host].append(task)
    here = [_at(host, by_host.pop(host.id, [])) for host in hosts]
    strays = [task for found in by_host.values() for task in found]
    spare = max(0, len(hosts) - least_on(len(hosts), min_healthy_percent))
    outdated = sum(task.ends or not task.is_target for task in tasks)
    healthy = sum(each.is_done for each in here)
    if is_frozen:
        return DaemonStep(parks=tuple(slot.index for slot in pending), healthy=healthy, outdated=outdated)
    vacant = _vacant(here, pending, spare, starts_first)
    able = {each.id: each for each in vacant}
    meant = _meant(able, [each.host.id for each in here if not each.mine and each.host.id not in able], pending)
    due = [(slot.index, name) for slot in pending if slot.is_due and (name := meant.get(slot.index)) in able]
    return DaemonStep(
        starts=len(able.keys() - {*meant.values()}),
        parks=tuple(slot.index for slot in pending if slot.index not in meant),
        launches=tuple((index, name) for index, name in due if able[name].takes),
        stops=tuple(task for task in (*strays, *_stops(here, spare, starts_first)) if task.is_sent and not task.ends),
        starved=tuple(name for _, name in due if not able[name].takes) + _stuck(here),
        healthy=healthy,
        outdated=outdated,
    )


def _at(host: DaemonHost, tasks: Sequence[DaemonTask]) -> _HostTasks:
    stay = sorted((task for task in tasks if not task.ends), key=lambda task: (-task.status, task.run_id, task.index))
    mine, old = ([task for task in stay if task.is_target is is_target] for is_target in (True, False))
    return _HostTasks(host, mine, old, len(tasks))


def _vacant(
    here: Sequence[_HostTasks], pending: Sequence[PendingSlot], spare: int, starts_first: bool
) -> list[DaemonHost]:
    """Instances that get a task now. If the new task starts next to the old one, only a few start at a time, because
    the revision may be broken."""
    empty = [each.host for each in here if each.host.is_open and not each.live]
    if not starts_first:
        return empty
    changing = sum(bool(each.mine and each.old) and not each.is_done for each in here)
    beside = [each.host for each in here if each.host.is_open and each.live == 1 and not each.mine and each.old]
    tried = {slot.last_host for slot in pending}
    beside.sort(key=lambda host: (host.id not in tried, not host.takes))
    return empty + beside[: max(0, spare - changing)]


def _meant(vacant: Iterable[str], later: Iterable[str], pending: Sequence[PendingSlot]) -> Mapping[int, str]:
    """By slot, its intended instance. A pause after a failure on one instance does not delay another, and
    continues while no task can start there. later: instances without a task of the target that get none now."""
    free, found = dict.fromkeys(vacant), dict[int, str]()
    back = free | dict.fromkeys(later)
    for slot in sorted(pending, key=lambda slot: slot.is_due):  # of two that were last there, the pausing one counts
        if slot.last_host in back:
            found[slot.index] = slot.last_host
            del back[slot.last_host]
            free.pop(slot.last_host, None)
    others = iter([slot.index for slot in pending if slot.index not in found and slot.is_due])
    return found | {index: name for name, index in zip(free, others, strict=False)}


def _stops(here: Sequence[_HostTasks], spare: int, starts_first: bool) -> list[DaemonTask]:
    """Second tasks on an instance; old ones that are replaced already or not healthy; and, if the old task stops
    first, as many healthy ones as may be missing at a time."""
    found = [task for each in here for task in each.mine[1:]]
    may_miss = spare - sum(not each.is_healthy for each in here)
    for each in here:
        serving = [task for task in each.old if task.status is SlotStatus.HEALTHY]
        if each.is_done:
            found += each.old
        elif each.can_change:
            found += [task for task in each.old if task.status is not SlotStatus.HEALTHY]
            found += serving[1:]
            if serving and not starts_first and may_miss > 0:
                may_miss -= 1
                found += serving[:1]
    return found


def _stuck(here: Sequence[_HostTasks]) -> tuple[str, ...]:
    """Instances where the new task does not fit even in place of the old one, which therefore stays."""
    return tuple(each.host.id for each in here if each.old and each.host.is_open and not each.can_change)
