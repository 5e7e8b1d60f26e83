"""Room for tasks that do not wait yet: the setting `headroom`, and tasks on impaired instances.

It is placed after all tasks, in the room that they leave, and starts nothing. So it takes no place from a task.
Example: AWS calls an instance with four tasks impaired. Room for four tasks is ordered in the same tick. If the tasks
have not ended ten minutes later, the instance is terminated, and they start there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from argosy.market.fallback import purchases
from argosy.model.attempts import StopCause
from argosy.model.instance_types import GPU_PART_ATTRIBUTE, SHARES_GPUS
from argosy.model.instances import Purchase
from argosy.model.moment import Moment
from argosy.model.policy import SparePlaces
from argosy.model.run_terms import ARM64
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.placement.demand import Batch, Queue
from argosy.placement.pass_state import PassState
from argosy.placement.place import place_further
from argosy.placement.supply import Supply
from argosy.scheduler.turns.asks import ON_DEMAND_ONLY, SPOT_ONLY, Ask, batch_of, shunned_by

HEADROOM = "headroom:"  # begins the groups of its batches
ON_X86 = f"not(attribute:ecs.cpu-architecture == {ARM64})"
OnRows = tuple[Supply, Mapping[tuple[int, int], int]]
"""Instances, and the tasks placed there in this tick, by (ask, row)."""


@dataclass(frozen=True, slots=True)
class SpareRoom:
    """Where the headroom is, and how much of it is missing.

    Example: 4 places of 1 vCPU are to be kept. A task leaves 3 vCPUs of i-1, and i-2 is idle. Then `instances` is
    {"i-2"}, which holds the fourth place and is therefore kept, and `lacking` is empty.
    """

    instances: frozenset[str] = frozenset()  # ids of those that hold some of it and got no task in this tick
    lacking: tuple[Batch, ...] = ()  # places for which instances have to be bought

    @property
    def lacks_headroom(self) -> bool:
        return any(each.group.startswith(HEADROOM) for each in self.lacking)


NO_SPARE_ROOM = SpareRoom()


def spare_batches(moment: Moment) -> list[Batch]:
    """The headroom as tasks, while a run that may pay for it is open. Daemons do not pay, and neither do runs with a
    budget or an hourly cap: the headroom could use up the cap, and the run itself would not start."""
    sizes, pay = moment.policy.headroom, (_pays(run) for run in moment.state.runs.values())
    return [_batch(number, each) for number, each in enumerate(sizes)] if sizes and any(pay) else []


def replacements(moment: Moment) -> list[Batch]:
    """The tasks that will be lost with impaired instances unless they end before. Services move their tasks themselves
    (`services`), and runs with a budget, an hourly cap, gangs or a group that stays together buy
    once the tasks are lost."""
    state = moment.state
    at_risk = Counter(_at_risk(state)) if any(each.impaired for each in state.instances.values()) else Counter[int]()
    shunned, found = shunned_by(state) if at_risk else {}, []
    for run in state.runs.values():
        count = min(at_risk[run.number], _instances_left(run, state))
        if (
            count > 0
            and _pays(run)
            and not (run.halted or run.terms.serves or run.terms.gang or run.group in run.terms.affinity)
        ):
            may_buy = purchases(run, moment) if run.terms.purchase.mixes else None
            found.append(replace(batch_of(moment, run, moment.now, shunned, may_buy), count=count))
    return found


def _at_risk(state: State) -> Iterator[int]:
    """Run.number of each task on an impaired instance that is not being stopped."""
    table = state.attempts
    for instance in state.instances.values():
        if instance.impaired and instance.alive and not instance.interrupted_at:
            rows = table.on_instance(instance.id)
            yield from table["run"][[row for row in rows if table["stop_cause"][row] == StopCause.NONE.value]].tolist()


def _instances_left(run: Run, state: State) -> int:
    """How many more instances the run may use. A task needs one at most."""
    if run.terms.max_instances is None:
        return run.task_count
    names = state.attempts["instance"][state.attempts.here_of_run(run.number)]
    return run.terms.max_instances - len(np.unique(names))


def _pays(run: Run) -> bool:
    return not (run.done or run.is_daemon or run.terms.has_caps)


def _batch(number: int, size: SparePlaces) -> Batch:
    needs = size.needs
    only = SPOT_ONLY if size.purchase is Purchase.SPOT else ON_DEMAND_ONLY
    whole = (f"not(attribute:{GPU_PART_ATTRIBUTE} exists)",) if needs.gpus else ()
    shares = (SHARES_GPUS,) if needs.gpu_share_mib else ()
    return Batch(
        needs.cpu_units,
        needs.memory_mib,
        needs.gpus,
        size.places,
        group=f"{HEADROOM}{number}",
        gpu_share_mib=needs.gpu_share_mib,
        constraints=(only, ON_X86, *whole, *shares),
    )


def spare_room(batches: Sequence[Batch], asks: Sequence[Ask], placed: Sequence[OnRows]) -> SpareRoom:
    """The headroom on the room that tasks leave: first on the instances listed first."""
    if not batches:
        return NO_SPARE_ROOM
    left, names = Queue.of(batches), set[str]()
    for supply, tasks in placed:
        found = place_further(left, _after(supply, asks, tasks))
        used = {row for _, row in tasks}
        names |= {supply.row(row).id for row in found.row.tolist() if row not in used}
        left = left.counting(found.unplaced.tolist())
    rest = zip(batches, left.count.tolist(), strict=True)
    return SpareRoom(frozenset(names), tuple(replace(batch, count=count) for batch, count in rest if count))


def _after(supply: Supply, asks: Sequence[Ask], tasks: Mapping[tuple[int, int], int]) -> PassState:
    """The room on the instances once these tasks are there."""
    state = PassState(supply)
    for number, its in groupby(sorted(tasks.items()), key=lambda each: each[0][0]):
        rows, counts = zip(*((row, count) for (_, row), count in its), strict=True)
        state.take(asks[number].batch, np.array(rows, dtype=np.int64), np.array(counts, dtype=np.int64))
    return state
