"""Which tasks of a service are to run on on-demand instances?

The base is about tasks, never about instances: it says what is asked for, and which tasks stay. An instance of the base
that has nothing to do goes like any other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from argosy.market.on_demand import is_ever_available
from argosy.model.attempts import StopCause
from argosy.model.instances import Instance, Purchase
from argosy.model.moment import Moment
from argosy.model.runs import Run


def base_of(run: Run, moment: Moment) -> int:
    """As many as the spec says; 0 where on-demand can never be bought: they stay on spot then."""
    base = run.terms.on_demand_base
    return base if base and is_ever_available(run, moment.state, moment.policy) else 0


def lacking(run: Run, moment: Moment, base: int) -> int:
    """How many more of the run's tasks are to be on on-demand instances than are, or are about to start there."""
    table, instances = moment.state.attempts, moment.state.instances
    rows = [row for row in table.of_run(run.number) if table["stop_cause"][row] == StopCause.NONE]
    names = (bytes(table["instance"][row]).decode() for row in rows)
    found = (instances.get(name) for name in names)
    return max(0, base - sum(each is not None and _stays_on_demand(each) for each in found))


def _stays_on_demand(instance: Instance) -> bool:
    return instance.purchase is Purchase.ON_DEMAND and not instance.leaves


def tasks_of_base(run: Run, moment: Moment, until: float) -> NDArray[np.bool_] | None:
    """(tasks of the run,) those that are asked for on on-demand instances alone; None = no such."""
    base = base_of(run, moment)
    wanted = lacking(run, moment, base) if base else 0
    if not wanted:
        return None
    chosen = np.zeros(run.task_count, dtype=np.bool_)
    chosen[run.tasks.startable(until, wanted)] = True
    return chosen
