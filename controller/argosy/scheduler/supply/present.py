"""The runs that may start tasks in one tick, and the instances that could take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from argosy.model.moment import Moment
from argosy.model.runs import Run
from argosy.model.setbacks import What
from argosy.placement.fitness import Fitness
from argosy.placement.strategy import own_functions
from argosy.scheduler.supply.roster import Lineup, Roster
from argosy.scheduler.supply.rows import Outlook


@dataclass(frozen=True, slots=True)
class Present:
    """The result of `what_is_there`, the first phase of a tick.

    Example: run r1 is open and prepared, r2 is backing off from a refused launch; i-1 is active, i-2 boots and a fleet
    owes one instance. Then `runs` is (r1,), `lineup.supply` has three rows, and `lineup.ready` is 1.
    """

    moment: Moment
    fitness: Mapping[str, Fitness]  # users' own functions that work
    runs: tuple[Run, ...]  # that may start tasks, in order of submission; no daemons
    lineup: Lineup  # with what the strategies of `runs` read of each instance


def what_is_there(moment: Moment, roster: Roster, fitness: Mapping[str, Fitness]) -> Present:
    """roster: a cache from earlier ticks; it changes no answer. A run that names a function outside `fitness` is
    left out."""
    state = moment.state
    ready = [run for run in state.runs.values() if run.ready and not run.is_daemon]
    ready = [run for run in ready if state.may_try(What.LAUNCH, run.id, moment.now)]
    ready = [run for run in ready if all(name in fitness for name in own_functions(run.terms.strategy))]
    lineup = roster.at(moment)
    owed, instances = lineup.owed, state.instances
    seen = Outlook.of(moment, ready).on(
        lineup.supply, lambda name: owed[name][0] if name in owed else instances[name].pool
    )
    return Present(moment, fitness, tuple(ready), replace(lineup, supply=seen))
