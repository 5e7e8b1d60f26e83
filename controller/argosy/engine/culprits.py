"""At which run, fact, instance or pool does the controller's own code fail?

What a tick does before its commit is a function of what is stored and of the facts taken in. So a tick that failed can
be rehearsed: without half of the runs, without a quarter, until the one is found without which it works. While nothing
fails, none of this costs anything.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

from argosy.engine.bounds import begin_all
from argosy.lifecycle.apply import apply, pass_time
from argosy.lifecycle.closed_cells import close_cells
from argosy.lifecycle.hosts import measure
from argosy.lifecycle.marks import has_room
from argosy.lifecycle.suspension import bare_record, suspend
from argosy.model import documents
from argosy.model.events import ControllerStarted, Event
from argosy.model.moment import Moment
from argosy.model.state import State
from argosy.placement.custom import OwnFunctions
from argosy.ports import Switches
from argosy.scheduler.decide import decide

SEARCH_S = 20.0  # of one tick: the next one goes on with the search; part of loop.RESERVE_S


class Stumbled(Exception):
    """Our own code failed before a tick's commit. `error`: what it raised."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class TimeIsUp(Exception):
    """The search is not over. found: the culprits that are known by now; probes: where to try first the next time."""

    def __init__(self, found: Sequence[Suspect], probes: Sequence[Suspect]) -> None:
        super().__init__("a search for what the controller fails at goes on in the next tick")
        self.found, self.probes = found, probes


@contextmanager
def ours() -> Iterator[None]:
    """What is raised in here is a fault of our own, not AWS's and not another controller's: it becomes Stumbled."""
    try:
        yield
    except Exception as error:
        raise Stumbled(error) from error


class Suspect(NamedTuple):
    """kind: run, fact, instance or pool; name: its id, or a fact's number in the order of the tick."""

    kind: str
    name: str


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
    facts: Sequence[tuple[Event, float]]
    moment: Moment  # but for its state
    switches: Switches
    functions: OwnFunctions

    def suspects(self) -> list[Suspect]:
        """Runs first: what fails for two of them, such as a run and a message about it, is set apart with its run."""
        state = self.read()
        facts = [str(number) for number in range(len(self.facts))]
        kinds: Mapping[str, Sequence[str]] = {
            "run": list(state.runs), "fact": facts, "instance": list(state.instances), "pool": list(state.pools)
        }  # fmt: skip
        return [Suspect(kind, name) for kind, names in kinds.items() for name in names]

    def fails(self, without: Set[Suspect]) -> bool:
        """Whether it fails without these."""
        state = self.read()
        try:
            now, policy = self.moment.now, self.moment.policy
            apply(state, ControllerStarted(), now, policy)
            for suspect in without:
                leave_out(state, suspect)
            for number, (fact, at) in enumerate(self.facts):
                if Suspect("fact", str(number)) not in without:
                    apply(state, copy.deepcopy(fact), at, policy)
            pass_time(state, now, policy)
            close_cells(state, self.switches.cells)
            moment = replace(self.moment, state=state)
            begin_all(moment, decide(moment, self.switches.deployment is None, self.functions), 0)
            measure(state)
            has_room(state, policy)
            documents.changed(state)
        except Exception:  # noqa: BLE001 - whatever it is: this is what is looked for
            return True
        return False


def leave_out(state: State, suspect: Suspect) -> None:
    """As though the state did not hold it. A run is suspended, so that its tasks go on."""
    if suspect.kind == "run":
        suspend(state, bare_record(state.runs[suspect.name]), "", 0.0)
    elif suspect.kind == "instance":
        state.instances.pop(suspect.name, None)
        state.changed_instances.add(suspect.name)
    elif suspect.kind == "pool":
        state.pools.pop(suspect.name, None)
        state.changed_pools = True


def culprits(
    suspects: Sequence[Suspect],
    fails: Callable[[Set[Suspect]], bool],
    is_late: Callable[[], bool] = lambda: False,
    probes: Sequence[Suspect] = (),
) -> list[Suspect] | None:
    """The suspects without whom it works, none of whom can be left in; none when it works as it is, None when it fails
    without all of them.

    is_late: whether there is no time to go on. Then it raises TimeIsUp, for nobody else is known to be one. probes: of
    the search before, which came so far; they save tries and change no finding.
    """
    if not fails(frozenset()):
        return []
    if fails(frozenset(suspects)):
        return None
    tried_first = [number for number, each in enumerate(suspects) if each in probes]
    found: list[Suspect] = []
    while fails(frozenset(found)):
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
