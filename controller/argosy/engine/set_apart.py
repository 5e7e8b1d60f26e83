"""What does a controller leave out, because its own code failed at it, and for how long?

Runs are suspended, which is stored with them (`lifecycle.suspension`). Facts are left out when they come again: a
message stays in the queue, which moves it to the dead letters. Instances and pools are forgotten, and learned anew from
the next sweep once their pause is over. What is not stored is known again by the next failure.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from argosy.engine.culprits import Trouble
from argosy.engine.leaving_out import Suspect, capacity_of, leave_out, pool_of, trim
from argosy.lifecycle.forgetting import charge_rest
from argosy.lifecycle.hosts import forget_unmet
from argosy.lifecycle.suspension import bare_record, suspend
from argosy.model.actions import Terminate
from argosy.model.damage import FAULTS
from argosy.model.events import ContainerInstanceSeen, Event, FleetSeen, HostSeen
from argosy.model.moment import Moment
from argosy.model.run_record import RunRecord
from argosy.model.state import State
from argosy.model.suspensions import LONGEST_PAUSE_S, MOST_UNWATCHED, SURVIVED_S, Suspension, pause_s, reason_of

KEPT_S = 3600.0  # a queue shows a message again for ten minutes, and ECS a stopped task for an hour
UNWATCHED = "the code keeps failing at it, and nobody watches over what runs there: it is ended"


@dataclass(slots=True)
class SetApart:
    """Of one controller process."""

    runs: dict[str, str] = field(default_factory=dict)  # id -> reason: to be suspended, not stored as such yet
    facts: dict[Event, float] = field(default_factory=dict)  # since when
    capacity: dict[Suspect, tuple[int, float]] = field(default_factory=dict)  # how often in a row, and until when
    earlier: dict[str, Suspension] = field(default_factory=dict)  # of runs that are tried again
    tried_at: dict[str, float] = field(default_factory=dict)  # by run id: since when
    running: dict[str, HostSeen] = field(default_factory=dict)  # by id: instances that are forgotten and not gone
    troubles: list[Trouble] = field(default_factory=list)  # not reported yet
    probes: Sequence[Suspect] = ()  # where a search that ran out of time goes on

    def add(self, suspect: Suspect, facts: Sequence[tuple[Event, float]], reason: str, now: float) -> None:
        """The controller's code fails at this one."""
        if suspect.kind == "fact":
            self._add_fact(facts[int(suspect.name)][0], now)
        elif suspect.kind == "run":
            self.runs[suspect.name] = reason
        else:
            self._pause(suspect, now)

    def _add_fact(self, fact: Event, now: float) -> None:
        """What shows an instance or a pool stands for it, or that would cost money unseen, or unused."""
        if isinstance(fact, HostSeen | ContainerInstanceSeen) and fact.instance_id:
            self._pause(Suspect("instance", fact.instance_id), now)
        elif isinstance(fact, FleetSeen):
            self._pause(Suspect("pool", pool_of(fact)), now)
        else:
            self._keep(fact, now)

    @property
    def is_in_use(self) -> bool:
        """Whether it may change what a tick takes in, or what was loaded."""
        return bool(self.runs or self.facts or self.capacity)

    def acquits(self, reason: str) -> bool:
        """Whether a run has failed for it so often in a row that its tasks were stopped, and failed again when it was
        tried: then an instance or a pool may be to blame. That is assumed once; after it the run is suspended again."""
        found = [each for each in self.earlier.values() if each.times == MOST_UNWATCHED and each.reason == reason]
        for each in found:
            each.times += 1
        return bool(found)

    def _keep(self, fact: Event, now: float) -> None:
        """All that one search has found, however many they are, and none for ever."""
        self.facts = {each: since for each, since in self.facts.items() if now - since < KEPT_S}
        self.facts[fact] = now

    def _pause(self, suspect: Suspect, now: float) -> None:
        times, until = self.capacity.get(suspect, (0, 0.0))
        if now < until:
            return  # a fact about it and the instance itself are one failure
        times = 1 if now > until + LONGEST_PAUSE_S else times + 1
        self.capacity[suspect] = times, now + pause_s(times)

    def leave_out(self, state: State, now: float, record_of: Callable[[str], RunRecord]) -> None:
        """From a state that was just loaded. record_of: a run's, as it is stored."""
        for run_id, reason in self.runs.items():
            if run_id in state.suspended:  # it was tried again in vain
                found = state.suspended[run_id]
                suspend(state, found.record, reason, now, found)
            elif run_id in state.runs:
                worked_s = now - self.tried_at.get(run_id, now)
                recent = self.earlier.get(run_id) if worked_s < SURVIVED_S else None
                try:
                    record = record_of(run_id)
                except FAULTS:
                    record = bare_record(state.runs[run_id])
                suspend(state, record, reason, now, recent)
        for suspect, (_, until) in self.capacity.items():
            if now < until:
                leave_out(state, suspect, now)

    def note(self, what: str, error: Exception) -> None:
        """A fault of our own, for the next report."""
        self.troubles.append(Trouble(what, reason_of(error), "".join(traceback.format_exception(error))))

    def note_left_out(self, state: State) -> None:
        """What a tick went on without."""
        for what, error in state.left_out:
            self.note(what, error)
        state.left_out.clear()

    @contextmanager
    def tolerating(self, what: str) -> Iterator[None]:
        """What is done in here is left out when it fails, and noted: no tick may fail at it."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever it is
            self.note(what, error)

    def hopeless(self, moment: Moment) -> list[Terminate]:
        """Instances to end that nobody watches over, because the code has failed at them too often in a row. What runs
        there is lost: it cannot be stopped, and nobody is charged with it. Each is named again when it is shown again.
        One that was never stored, because the code fails whenever it is shown, is stored as forgotten now.
        """
        state, now = moment.state, moment.now
        shown, self.running = self.running, {}
        ends = [host for name, host in shown.items() if self._failures_at(name) >= MOST_UNWATCHED]
        for host in ends:
            with self.tolerating(f"the money of instance {host.instance_id}"):
                if host.instance_id not in state.forgotten:
                    forget_unmet(state, host, moment.policy)
                charge_rest(state, host.instance_id, host.launched_at, now)
            self.troubles.append(Trouble(f"instance {host.instance_id}", UNWATCHED))
        return [Terminate(host.cell, (host.instance_id,)) for host in ends]

    def _failures_at(self, instance_id: str) -> int:
        return self.capacity.get(Suspect("instance", instance_id), (0, 0.0))[0]

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
        return trim(event, lambda each: self._counts(each, now))

    def _counts(self, event: Event, now: float) -> bool:
        if event in self.facts:
            return False
        is_apart = any(now < self.capacity[suspect][1] for suspect in capacity_of(event) & self.capacity.keys())
        if is_apart and isinstance(event, HostSeen) and event.state == "running":
            self.running[event.instance_id] = event
        return not is_apart
