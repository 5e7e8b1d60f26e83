"""The runs that may start tasks in one tick, and the instances that could take them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from argosy.model.moment import Moment
from argosy.model.runs import Run
from argosy.model.setbacks import Act
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.placement.candidates import Shape, make_mix
from argosy.placement.fitness import GPU, Fitness, Mix
from argosy.placement.strategy import own_functions
from argosy.placement.supply import Supply
from argosy.scheduler.supply.roster import PlacementRows, Roster
from argosy.scheduler.supply.rows import Expectations

_MOST_KEYS = 2_000_000  # one per run, instance with room and distinct share: a pass takes 0.25 s


@dataclass(frozen=True, slots=True)
class PresentSupply:
    """The result of `what_is_there`, the first phase of a tick.

    Example: run r1 is open and prepared, r2 is backing off from a refused launch; i-1 is active, i-2 boots and a fleet
    owes one instance. Then `runs` is (r1,), `lineup.supply` has three rows, and `lineup.ready` is 1.
    """

    moment: Moment
    fitness: Mapping[str, Fitness]  # users' own functions that work
    runs: tuple[Run, ...]  # that may start tasks, in order of submission; no daemons
    lineup: PlacementRows  # with the data that the strategies of `runs` read of each instance


def what_is_there(moment: Moment, roster: Roster, fitness: Mapping[str, Fitness]) -> PresentSupply:
    """roster: a cache from earlier ticks; it changes no answer. A run that names a function outside `fitness` is
    left out."""
    state = moment.state
    ready = [run for run in state.runs.values() if run.ready and not run.is_daemon]
    ready = [run for run in ready if state.may_try(Act.LAUNCH, run.id, moment.now)]
    ready = [run for run in ready if all(name in fitness for name in own_functions(run.terms.strategy))]
    lineup = roster.at(moment)
    owed, instances = lineup.owed, state.instances
    seen = Expectations.of(moment, ready).on(
        lineup.supply, lambda name: owed[name][0] if name in owed else instances[name].pool
    )
    if mix := typical_mix(state, ready, seen):
        seen = replace(seen, mix=mix)
    return PresentSupply(moment, fitness, tuple(ready), replace(lineup, supply=seen))


def typical_mix(state: State, ready: Sequence[Run], supply: Supply) -> Mix | None:
    """The unfinished tasks with GPUs of all open runs. None if no run shares a GPU, or if computing what the `ready`
    runs strand on each instance that has room for them would take too long."""
    runs = [run for run in state.runs.values() if run.needs.gpus + run.needs.gpu_share_mib and not run.is_daemon]
    if not any(run.needs.gpu_share_mib for run in runs):
        return None
    shapes = Counter[Shape]()
    for run in runs:
        needs = run.needs
        shapes[needs.cpu_units, needs.memory_mib, needs.gpus, needs.gpu_share_mib] += run.unfinished
    waiting = [run.needs for run in ready if run.tasks.counts()[TaskStatus.PENDING]]
    need = np.array([(each.cpu_units, each.memory_mib, each.gpus) for each in waiting], np.int64).reshape(-1, 3, 1)
    fits = (supply.free >= need).all(axis=1) & (supply.total[GPU] > 0)
    mix = make_mix(+shapes)
    return mix if 0 < np.count_nonzero(fits) * len(np.unique(mix.shares_mib)) <= _MOST_KEYS else None
