"""What does a controller leave out, because its own code failed at it, and for how long?

Runs are suspended, which is stored with them (`lifecycle.suspension`). Facts are left out when they come again: a
message stays in the queue, which moves it to the dead letters. Instances and pools are forgotten, and learned anew from
the next sweep once their pause is over. What is not stored is known again by the next failure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from argosy.engine.culprits import Suspect, Trouble, leave_out
from argosy.lifecycle.suspension import bare_record, suspend
from argosy.model.damage import FAULTS
from argosy.model.events import Event, FleetSeen, HostSeen, Observed, RunResumed
from argosy.model.instances import pool_key
from argosy.model.run_record import RunRecord
from argosy.model.state import State
from argosy.model.suspensions import LONGEST_PAUSE_S, Suspension, pause_s

MOST_FACTS = 100


@dataclass(slots=True)
class SetApart:
    """Of one controller process."""

    runs: dict[str, str] = field(default_factory=dict)  # id -> reason: to be suspended, not stored as such yet
    facts: deque[Event] = field(default_factory=lambda: deque(maxlen=MOST_FACTS))
    capacity: dict[Suspect, tuple[int, float]] = field(default_factory=dict)  # how often in a row, and until when
    earlier: dict[str, Suspension] = field(default_factory=dict)  # of runs that are tried again
    troubles: list[Trouble] = field(default_factory=list)  # not reported yet
    probes: Sequence[Suspect] = ()  # where a search that ran out of time goes on

    def add(self, suspect: Suspect, facts: Sequence[tuple[Event, float]], reason: str, now: float) -> None:
        """The controller's code fails at this one."""
        if suspect.kind == "fact":
            fact = facts[int(suspect.name)][0]
            if isinstance(fact, RunResumed):
                self.runs[fact.run_id] = reason
            elif isinstance(fact, HostSeen):  # or it would cost money unseen
                self._pause(Suspect("instance", fact.instance_id), now)
            elif isinstance(fact, FleetSeen):
                self._pause(Suspect("pool", _pool_of(fact)), now)
            else:
                self.facts.append(fact)
        elif suspect.kind == "run":
            self.runs[suspect.name] = reason
        else:
            self._pause(suspect, now)

    def _pause(self, suspect: Suspect, now: float) -> None:
        times, until = self.capacity.get(suspect, (0, 0.0))
        times = 1 if now > until + LONGEST_PAUSE_S else times + 1
        self.capacity[suspect] = times, now + pause_s(times)

    def leave_out(self, state: State, now: float, record_of: Callable[[str], RunRecord]) -> None:
        """From a state that was just loaded. record_of: a run's, as it is stored."""
        for run_id, reason in self.runs.items():
            if run_id in state.suspended:  # it was tried again in vain
                found = state.suspended[run_id]
                suspend(state, found.record, reason, now, found)
            elif run_id in state.runs:
                earlier = self.earlier.get(run_id)
                recent = earlier if earlier and now < earlier.again_at + 2 * LONGEST_PAUSE_S else None
                try:
                    record = record_of(run_id)
                except FAULTS:
                    record = bare_record(state.runs[run_id])
                suspend(state, record, reason, now, recent)
        for suspect, (_, until) in self.capacity.items():
            if now < until:
                leave_out(state, suspect)

    def capacity_until(self) -> float:
        """Until then an instance may live that is not known."""
        return max((until for _, until in self.capacity.values()), default=0.0)

    def reported(self) -> tuple[Trouble, ...]:
        """Since the last report."""
        troubles = tuple(self.troubles)
        self.troubles.clear()
        return troubles

    def taken(self, event: Event, now: float) -> Event | None:
        """The event without what is left out; None when nothing is left of it."""
        if not self.facts and not self.capacity:
            return event
        if isinstance(event, Observed):
            shown: dict[str, Any] = {
                name: tuple(each for each in getattr(event, name) if self._counts(each, now))
                for name in ("fleets", "hosts", "container_instances", "tasks")
            }
            event = replace(event, **shown)
        return event if self._counts(event, now) else None

    def _counts(self, event: Event, now: float) -> bool:
        if event in self.facts:
            return False
        about = {Suspect("instance", str(getattr(event, "instance_id", ""))), Suspect("pool", str(_pool_of(event)))}
        return not any(now < self.capacity[suspect][1] for suspect in about & self.capacity.keys())


def _pool_of(event: Event) -> str:
    if isinstance(event, FleetSeen):
        return pool_key(event.cell, event.instance_type, event.zone)
    return str(getattr(event, "pool", ""))
