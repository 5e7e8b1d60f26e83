"""The run that makes a tick fail, where no fact names it.

Problem: an exception in a step that works for all runs together, such as buying, names no run. Idea: a tick up to its
commit is a function of the store and of the facts that it takes in, so it can be rehearsed without some of the runs. If
the tick works without any of them, halving finds one to leave out: among n runs in log2(n) rehearsals. Example: eight
runs, and the tick fails on the sixth.

>>> tries = []
>>> def fails(without):
...     tries.append(len(without))
...     return "f" not in without
>>> culprit("abcdefgh", fails), tries
('f', [0, 8, 4, 6, 5])

With several culprits it finds one of them, and the next round of the tick searches for the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace

from argosy.engine.own_faults import run_of
from argosy.engine.steps import Fact, conclude, start, take
from argosy.lifecycle.apply import pass_time
from argosy.lifecycle.suspension import bare_record, suspend
from argosy.model.events import RunResumed
from argosy.model.journal.commit import documents_of_commit
from argosy.model.moment import Moment
from argosy.model.state import State
from argosy.placement.custom import OwnFunctions
from argosy.ports import Switches


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """One tick up to its commit, repeatable. Each rehearsal reads the state from the store."""

    read: Callable[[], State]
    facts: Sequence[Fact]
    moment: Moment  # only the open ends of its state are used, and these are not stored
    switches: Switches
    functions: OwnFunctions

    def runs(self) -> list[str]:
        """The open runs, and the runs that a fact would open."""
        named = [run_of(self.moment.state, fact) for fact, _ in self.facts]
        return list(dict.fromkeys([*self.read().runs, *filter(None, named)]))

    def fails(self, without: Set[str]) -> bool:
        """Whether the tick fails without these runs. They are suspended, and no fact opens them."""
        state, policy = self.read(), self.moment.policy
        state.open_ends = self.moment.state.open_ends.copy()
        try:
            for run_id in without & state.runs.keys():
                suspend(state, bare_record(state.runs[run_id]), "", self.moment.now)
            start(state, self.moment.now, policy)
            for fact in self.facts:
                run_id = run_of(state, fact[0])
                opens = isinstance(fact[0], RunResumed) or not (run_id in state.runs or run_id in state.suspended)
                if run_id not in without or not opens:
                    take(state, fact, policy)
            state.has_room(policy)
            pass_time(state, self.moment.now, policy)
            conclude(replace(self.moment, state=state), self.switches, self.functions, 0)
            documents_of_commit(state, self.moment.now)
        except Exception:  # noqa: BLE001 - whatever it is: this is what is looked for
            return True
        return False


def culprit(
    runs: Sequence[str], fails: Callable[[Set[str]], bool], is_late: Callable[[], bool] = lambda: False
) -> str | None:
    """A run to leave out. None when a rehearsal does not fail, when it fails without all of them, or when time is
    up."""
    if not runs or not fails(frozenset()) or fails(frozenset(runs)):
        return None
    fewer, enough = 0, len(runs)  # it fails without the first `fewer` runs and works without the first `enough`
    while enough - fewer > 1:
        if is_late():
            return None
        middle = (fewer + enough) // 2
        if fails(frozenset(runs[:middle])):
            fewer = middle
        else:
            enough = middle
    return runs[enough - 1]
