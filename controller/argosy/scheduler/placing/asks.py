"""What does each run in the queue ask for, and which of its tasks start on the instances that are here?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from argosy.market.fallback import purchases
from argosy.market.offers import CELL_ATTRIBUTE, GPU_MEMORY_ATTRIBUTE, GPU_MODEL_ATTRIBUTE, PURCHASE_ATTRIBUTE
from argosy.market.on_demand import is_ever_available
from argosy.model.instances import Purchase
from argosy.model.moment import Moment
from argosy.model.purchases import Stance
from argosy.model.run_terms import ARM64, RUNNER_ATTRIBUTE, RUNNER_PROTOCOL, RunTerms
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.placement.demand import Batch, Queue, WeightedConstraint
from argosy.placement.fitness import Fitness
from argosy.placement.pass_state import PassState
from argosy.placement.place import place, place_further
from argosy.placement.strategy import spread_attribute
from argosy.scheduler.placing.kept_instances import kept_for_runs, needed_from, off_limits, open_to
from argosy.scheduler.placing.on_demand_base import tasks_of_base
from argosy.scheduler.supply.outlook import expected_end
from argosy.scheduler.supply.roster import Lineup
from argosy.scheduler.turns.slices import Placed, counted, placed_in_slices

ON_DEMAND_ONLY = f"attribute:{PURCHASE_ATTRIBUTE} == {Purchase.ON_DEMAND}"
SPOT_ONLY = f"attribute:{PURCHASE_ATTRIBUTE} == {Purchase.SPOT}"
EMPTYING = ("least-waste", "busy-first", "best-fit")  # the default, for instances that can be let go
NO_BOUND: Mapping[str, int] = MappingProxyType({})
_ONLY = {Purchase.SPOT: SPOT_ONLY, Purchase.ON_DEMAND: ON_DEMAND_ONLY}


class Dealing(Protocol):
    """Who gets how much where room does not suffice (`scheduler.turns.fair_share`)."""

    def meant_for(
        self, batches: Sequence[Batch], lineup: Lineup, fitness: Mapping[str, Fitness]
    ) -> tuple[list[int], list[int]] | None:
        """As `_meant_for`; None where there is room for all."""

    def within_caps(
        self, batches: Sequence[Batch], counts: Sequence[int], placed: Mapping[tuple[int, int], int]
    ) -> list[int]:
        """As many of these counts as the caps of queues allow beside what is placed."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One batch of a run, and the tasks it is made of."""

    run: Run
    batch: Batch
    among: NDArray[np.bool_] | None = None  # (tasks of the run,); None = all that are pending
    moves: bool = False  # for the tasks that go to on-demand: spot lost them too often, or a service's base lacks them


def asks_of(moment: Moment, runs: Sequence[Run], at_most: Mapping[str, int] = NO_BOUND) -> list[Ask]:
    """In queue order. A run's last ask is for its ordinary tasks; the one before it, if any, for those that move to
    on-demand. at_most: by run id, the number of tasks that it may ask for."""
    shunned, until = shunned_by(moment.state), moment.now + moment.policy.linger_s
    kept = kept_for_runs(moment.state, moment.now)
    needed = needed_from(moment, kept)
    asks: list[Ask] = []
    for run in runs:
        batch = batch_of(moment.state, run, until, shunned, purchases(run, moment))
        count = min(batch.count, at_most.get(run.id, batch.count))
        batch = replace(batch, count=count, finish_at=expected_end(run, moment.now))
        batch = replace(batch, constraints=batch.constraints + off_limits(run, kept, open_to(run, moment, needed)))
        asks += _split(run, batch, moment)
    return asks


def _split(run: Run, batch: Batch, moment: Moment) -> Iterator[Ask]:
    """Tasks that spot lost too often, or that a service's base lacks, apart from the others. Where on-demand can never
    be bought, they stay on spot."""
    until = moment.now + moment.policy.linger_s
    apart = _apart(run, moment, until) if SPOT_ONLY in batch.constraints else None
    count = 0 if apart is None else min(batch.count, run.tasks.startable_count(until, apart))
    if apart is None or not count or not is_ever_available(run, moment.state, moment.policy):
        yield Ask(run, batch)
        return
    yield Ask(run, replace(on_demand(batch), count=count), apart, moves=True)
    yield Ask(run, replace(batch, count=batch.count - count), ~apart)


def _apart(run: Run, moment: Moment, until: float) -> NDArray[np.bool_] | None:
    """(tasks of the run,) those for which spot will not do; None = no such."""
    if run.terms.on_demand_base:
        return tasks_of_base(run, moment, until)
    lost: NDArray[np.bool_] = run.tasks["losses"] >= run.terms.fallback_losses
    return lost if run.terms.purchase.mixes else None


def on_demand(batch: Batch) -> Batch:
    """The same where spot cannot take it."""
    return replace(
        batch, constraints=tuple(ON_DEMAND_ONLY if each == SPOT_ONLY else each for each in batch.constraints)
    )


def shunned_by(state: State) -> Mapping[str, frozenset[str]]:
    """Group -> the other groups that keep its tasks off their instances: anti-affinity works both ways."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for run in state.runs.values():
        for group in run.terms.anti_affinity:
            if group != run.group:
                found[group].add(run.group)
    return {group: frozenset(others) for group, others in found.items()}


def batch_of(
    state: State,
    run: Run,
    until: float,
    shunned: Mapping[str, frozenset[str]],
    may_buy: frozenset[Purchase] | None = None,
) -> Batch:
    """What a run asks for: its tasks that may start before `until` (epoch seconds), within its cap on concurrent ones.
    shunned: from `shunned_by`. may_buy: None = as it was last decided.

    Tasks in back-off get a place as well, which keeps their instances from being released, but are not launched.
    """
    count = run.tasks.startable_count(until)
    if run.terms.max_concurrent is not None:
        count = max(0, min(count, run.terms.max_concurrent - len(state.attempts.here_of_run(run.number))))
    return Batch(
        cpu_units=run.needs.cpu_units,
        memory_mib=run.needs.memory_mib,
        gpus=run.needs.gpus,
        count=count,
        group=run.group,
        disk_gib=run.terms.disk_gib,
        constraints=_where(run.terms) + _architecture(run) + _purchase(may_buy or _last_decided(run)),
        strategy=run.terms.strategy,
        host_ports=run.host_ports,
        max_per_instance=run.terms.max_tasks_per_instance,
        # The kernel counts the instances of the group, which are the run's own unless runs share the group.
        max_instances=run.terms.max_instances if run.group == f"run:{run.id}" else None,
        soft=tuple(WeightedConstraint(expression, weight) for expression, weight in run.terms.soft_constraints),
        affinity=run.terms.affinity,
        anti_affinity=run.terms.anti_affinity + tuple(sorted(shunned.get(run.group, ()))),
    )


def _purchase(may_buy: frozenset[Purchase]) -> tuple[str, ...]:
    return tuple(only for purchase, only in _ONLY.items() if may_buy == {purchase})


def _last_decided(run: Run) -> frozenset[Purchase]:
    if run.terms.purchase.mixes:
        return frozenset({Purchase.SPOT if run.steering.stance is Stance.SPOT else Purchase.ON_DEMAND})
    return frozenset({Purchase(run.terms.purchase)})


def standing_constraints(terms: RunTerms) -> tuple[str, ...]:
    """All that a run asks of its instances, whatever is decided later."""
    always = () if terms.purchase.mixes else _purchase(frozenset({Purchase(terms.purchase)}))
    return _where(terms) + always


def _architecture(run: Run) -> tuple[str, ...]:
    """An instance that has not said what it is, is x86."""
    if run.architecture == "any":
        return ()
    is_arm = f"attribute:ecs.cpu-architecture == {ARM64}"
    return (is_arm if run.architecture == ARM64 else f"not({is_arm})",)


def _where(terms: RunTerms) -> tuple[str, ...]:
    found = terms.constraints
    if terms.gpu_model:
        found += (f"attribute:{GPU_MODEL_ATTRIBUTE} == {terms.gpu_model}",)
    if terms.gpu_memory_mib:
        found += (f"attribute:{GPU_MEMORY_ATTRIBUTE} >= {terms.gpu_memory_mib}",)
    if terms.needs_runner:
        found += (f"attribute:{RUNNER_ATTRIBUTE} == {RUNNER_PROTOCOL}",)
    if terms.cells:
        found += (f"attribute:{CELL_ATTRIBUTE} in [{', '.join(terms.cells)}]",)
    return found


def place_now(
    batches: Sequence[Batch], lineup: Lineup, fitness: Mapping[str, Fitness], dealing: Dealing | None = None
) -> tuple[Counter[tuple[int, int]], list[int]]:
    """(batch, row) -> tasks on instances that are here; and how many tasks of each batch found no place there.

    Instances join in any order. If the first run in the queue filled each one that joins, it would take what was bought
    for the last run, and more would be bought tick after tick. So everything that is here or on its way is filled in
    one pass first: what falls on instances that are here starts. The room that is left there then goes to tasks that
    would have to wait, first come first served; but tasks that are to be spread over an attribute wait for what is
    bought to spread them.

    dealing: where several share the cluster, who gets how much of what is here or on its way if it does not suffice.
    """
    ours = [emptying(batch) for batch in batches]
    meant = None if dealing is None else dealing.meant_for(batches, lineup, fitness)
    meant = meant or _meant_for(batches, lineup, fitness)
    if meant is None:
        found = place(ours, lineup.here, fitness=fitness)
        return counted(found), found.unplaced.tolist()
    now, waits = meant
    queue = Queue.of(ours)
    free = PassState(lineup.here, queue)
    first, unplaced = _first(queue, now, free, fitness, dealing is not None)
    left = [batch.count - n + rest for batch, n, rest in zip(batches, now, unplaced, strict=True)]
    asked = [n - wait for n, wait in zip(left, waits, strict=True)]
    if dealing is not None:
        asked = dealing.within_caps(batches, asked, first)
    second = place_further(queue.counting(asked), free, fitness=fitness)
    return first + counted(second), [
        n - count + rest for n, count, rest in zip(left, asked, second.unplaced.tolist(), strict=True)
    ]


def _first(
    queue: Queue, counts: Sequence[int], free: PassState, fitness: Mapping[str, Fitness], are_shared: bool
) -> tuple[Placed, list[int]]:
    """What starts here, and how many tasks of each batch found no place after all."""
    if are_shared:
        placed, unplaced = placed_in_slices(queue, np.array(counts, dtype=np.int64), free, fitness)
        return placed, unplaced.tolist()
    found = place_further(queue.counting(counts), free, fitness=fitness)
    return counted(found), found.unplaced.tolist()


def _meant_for(
    batches: Sequence[Batch], lineup: Lineup, fitness: Mapping[str, Fitness]
) -> tuple[list[int], list[int]] | None:
    """How many tasks of each batch would fall on instances that are here if all were, and how many of those that are to
    be spread over an attribute would fall on the others; None where it makes no difference."""
    spread = [spread_attribute(batch.strategy) is not None for batch in batches]
    alike = len({batch.need for batch in batches if batch.count}) < 2
    if not 0 < lineup.ready < len(lineup.supply) or (alike and not any(spread)):
        return None
    together = place(batches, lineup.supply, fitness=fitness)
    here = together.row < lineup.ready
    now, later = (
        np.bincount(together.batch[chosen], weights=together.count[chosen], minlength=len(batches)).astype(int)
        for chosen in (here, ~here)
    )
    return now.tolist(), np.where(spread, later, 0).tolist()


def emptying(batch: Batch) -> Batch:
    """Unless its run says otherwise, idle instances come last, so that they can be released."""
    return batch if batch.strategy else replace(batch, strategy=EMPTYING)
