"""At which run, fact, instance or pool does the controller's own code fail?

What a tick does before its commit is a function of what is stored and of the facts taken in. So a tick that failed can
be rehearsed: without half of the runs, without a quarter, until the one is found without which it works. While nothing
fails, none of this costs anything.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from argosy.engine.leaving_out import Suspect, capacity_of, leave_out, trim
from argosy.engine.steps import Fact, conclude, start, take
from argosy.lifecycle.apply import pass_time
from argosy.lifecycle.marks import has_room
from argosy.model.events import Event, RunResumed
from argosy.model.journal.commit import documents_of_commit
from argosy.model.moment import Moment
from argosy.model.state import State
from argosy.placement.custom import OwnFunctions
from argosy.ports import Switches

FEW = 3  # runs that may be to blame together
SEARCH_S = 20.0  # of one tick: the next one goes on with the search; part of loop.RESERVE_S


class TimeIsUp(Exception):
    """The search is not over. found: the culprits that are known by now; probes: where to try first the next time."""

    def __init__(self, found: Sequence[Suspect], probes: Sequence[Suspect]) -> None:
        super().__init__("a search for what the controller fails at goes on in the next tick")
        self.found, self.probes = found, probes


@dataclass(frozen=True, slots=True)
class Trouble:
    """What the controller's own code failed at, in words, and where; for the log."""

    what: str
    reason: str
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """One tick up to its commit, as often as wanted. facts: with the time that each counts from."""

    read: Callable[[], State]  # what is stored, anew each time
    facts: Sequence[Fact]
    moment: Moment  # of its state only the open ends are wanted, which are not stored
    switches: Switches
    functions: OwnFunctions
    counts: Callable[[Event], Event | None]  # what is left of a fact without what is set apart

    def suspects(self) -> list[Suspect]:
        """Runs first: what fails for two of them, such as a run and a message about it, is set apart with its run."""
        state = self.read()
        facts = [str(number) for number, (fact, _) in enumerate(self.facts) if not isinstance(fact, RunResumed)]
        kinds: Mapping[str, Sequence[str]] = {
            "run": [*state.runs, *self._resumed()], "fact": facts,
            "instance": list(state.instances), "pool": list(state.pools),
        }  # fmt: skip
        return [Suspect(kind, name) for kind, names in kinds.items() for name in names]

    def capacity_first(self) -> list[Suspect]:
        """The same in another order: instances and pools, facts about them, other facts, runs."""
        return sorted(self.suspects(), key=self._rank)

    def reasons(self) -> set[str]:
        """For which runs have been suspended, that are not tried again now."""
        suspended = self.read().suspended
        return {found.reason for run_id, found in suspended.items() if run_id not in self._resumed()}

    def _rank(self, suspect: Suspect) -> int:
        if suspect.kind == "fact":
            names = {about.name for about in capacity_of(self.facts[int(suspect.name)][0])}
            return 1 if names != {""} else 2
        return 3 if suspect.kind == "run" else 0

    def _resumed(self) -> list[str]:
        return [fact.run_id for fact, _ in self.facts if isinstance(fact, RunResumed)]

    def fails(self, without: Set[Suspect]) -> bool:
        """Whether it fails without these."""
        state = self.read()
        now, policy = self.moment.now, self.moment.policy
        left = {
            fact
            for number, (fact, _) in enumerate(self.facts)
            if Suspect("fact", str(number)) in without
            or (isinstance(fact, RunResumed) and Suspect("run", fact.run_id) in without)
        }
        state.open_ends = self.moment.state.open_ends.copy()
        try:
            for suspect in without:
                leave_out(state, suspect, now)
            start(state, now, policy)
            for fact in self.facts:
                take(state, fact, policy, lambda event: self._left_of(event, left, without))
            has_room(state, policy)
            pass_time(state, now, policy)
            conclude(replace(self.moment, state=state), self.switches, self.functions, 0)
            documents_of_commit(state, now)
        except Exception:  # noqa: BLE001 - whatever it is: this is what is looked for
            return True
        return False

    def _left_of(self, event: Event, left: Set[Event], without: Set[Suspect]) -> Event | None:
        """Without what is set apart, and without what is left out, which a sweep may show as well."""
        trimmed = trim(event, lambda each: each not in left and capacity_of(each).isdisjoint(without))
        return None if trimmed is None else self.counts(trimmed)


def fewest(
    rehearsal: Rehearsal,
    fails: Callable[[Set[Suspect]], bool],
    is_late: Callable[[], bool],
    probes: Sequence[Suspect],
    is_doubted: Callable[[], bool],
) -> list[Suspect] | None:
    """Who is to blame, as `culprits` finds it: runs, unless fewer instances, pools or facts are enough. For what fails
    for every run that wants a fleet is the fleet's fault. Where one run and one of the others are, it is the run,
    unless that `is_doubted`. When the time is up, those that are known: a search that began anew in every tick would
    never end."""
    first = culprits(rehearsal.suspects(), fails, is_late, probes, most=FEW)
    if not first:
        return first
    most = len(first) if is_doubted() else len(first) - 1
    try:
        second = culprits(rehearsal.capacity_first(), fails, is_late, most=most) if most else None
        if second and len(second) <= most and all(suspect.kind != "run" for suspect in second):
            return second
        return first if len(first) <= FEW else culprits(rehearsal.suspects(), fails, is_late, probes)
    except TimeIsUp:
        return first


def culprits(
    suspects: Sequence[Suspect],
    fails: Callable[[Set[Suspect]], bool],
    is_late: Callable[[], bool] = lambda: False,
    probes: Sequence[Suspect] = (),
    most: int = sys.maxsize,
) -> list[Suspect] | None:
    """The suspects without whom it works, none of whom can be left in; none when it works as it is, None when it fails
    without all of them. Of more than `most` only so many, and one.

    is_late: whether there is no time to go on. Then it raises TimeIsUp, for nobody else is known to be one. probes: of
    the search before, which came so far; they save tries and change no finding.
    """
    if not fails(frozenset()):
        return []
    if fails(frozenset(suspects)):
        return None
    tried_first = [number for number, each in enumerate(suspects) if each in probes]
    found: list[Suspect] = []
    while len(found) <= most and fails(frozenset(found)):
        fewer, enough = 0, len(suspects)  # without so many of the first it fails, and works
        while enough - fewer > 1:
            if is_late():
                raise TimeIsUp(found, [*suspects[fewer : fewer + 1], *suspects[enough : enough + 1]])
            halfway = (fewer + enough) // 2
            middle = next((number for number in tried_first if fewer < number < enough), halfway)
            if fails(frozenset([*found, *suspects[:middle]])):
                fewer = middle
            else:
                enough = middle
        found.append(suspects[enough - 1])
    return found
