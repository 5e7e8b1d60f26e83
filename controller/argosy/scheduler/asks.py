"""What does a run ask the market and the cluster for: its pending tasks as batches, and what may be bought for them?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from argosy.market.fallback import purchases
from argosy.market.offers import CELL_ATTRIBUTE, PURCHASE_ATTRIBUTE
from argosy.market.on_demand import is_ever_to_be_had
from argosy.model.instances import Purchase
from argosy.model.policy import Policy
from argosy.model.purchases import Stance
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.placement.demand import Batch, WeightedConstraint
from argosy.scheduler.outlook import expected_end

ON_DEMAND_ONLY = f"attribute:{PURCHASE_ATTRIBUTE} == {Purchase.ON_DEMAND}"
SPOT_ONLY = f"attribute:{PURCHASE_ATTRIBUTE} == {Purchase.SPOT}"
NO_BOUND: Mapping[str, int] = MappingProxyType({})
_ONLY = {Purchase.SPOT: SPOT_ONLY, Purchase.ON_DEMAND: ON_DEMAND_ONLY}


@dataclass(frozen=True, slots=True)
class Ask:
    """One batch of a run, and which of its tasks it is made of."""

    run: int  # row in the sequence of runs
    batch: Batch
    among: NDArray[np.bool_] | None = None  # by task; None = all that are pending


def asks_of(
    state: State, runs: Sequence[Run], now: float, policy: Policy, at_most: Mapping[str, int] = NO_BOUND
) -> list[Ask]:
    """In queue order. A run's last ask is for its ordinary tasks; one before it is for those that go to on-demand
    because they were lost too often on spot. `at_most`: by run id, for how many tasks it may ask."""
    shunned = shunned_by(state)
    asks: list[Ask] = []
    for number, run in enumerate(runs):
        batch = batch_of(state, run, now + policy.linger_s, shunned, purchases(run, state, now, policy))
        count = min(batch.count, at_most.get(run.id, batch.count))
        batch = replace(batch, count=count, finish_at=expected_end(run, now))
        asks += _split(run, number, batch, now + policy.linger_s, state, policy)
    return asks


def _split(run: Run, number: int, batch: Batch, until: float, state: State, policy: Policy) -> Iterator[Ask]:
    """Those that were lost too often apart, unless on-demand can never be had: they stay on spot then."""
    mixes = run.terms.purchase.mixes
    lost = run.tasks["losses"] >= run.terms.fallback_losses if mixes and SPOT_ONLY in batch.constraints else None
    count = 0 if lost is None else min(batch.count, run.tasks.startable_count(until, lost))
    if lost is None or not count or not is_ever_to_be_had(run, state, policy):
        yield Ask(number, batch)
        return
    constraints = tuple(ON_DEMAND_ONLY if each == SPOT_ONLY else each for each in batch.constraints)
    yield Ask(number, replace(batch, count=count, constraints=constraints), lost)
    yield Ask(number, replace(batch, count=batch.count - count), ~lost)


def shunned_by(state: State) -> Mapping[str, frozenset[str]]:
    """Group -> the other groups that want none of its tasks on their instances: keeping apart works both ways."""
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
    """What a run asks for: its tasks that may start before `until`, within its cap on concurrent ones. `shunned` as of
    `shunned_by`; `may_buy` None: as it was last decided.

    Tasks in back-off get a place in mind, so that nobody lets their instances go meanwhile, but are not launched.
    """
    count = run.tasks.startable_count(until)
    if run.terms.max_concurrent is not None:
        count = max(0, min(count, run.terms.max_concurrent - len(state.attempts.of_run(run.number))))
    return Batch(
        cpu_units=run.needs.cpu_units,
        memory_mib=run.needs.memory_mib,
        gpus=run.needs.gpus,
        count=count,
        group=run.group,
        constraints=run.terms.constraints + _cells(run) + _purchase(may_buy or _last_decided(run)),
        strategy=run.terms.strategy,
        host_ports=run.host_ports,
        max_per_instance=run.terms.max_tasks_per_instance,
        # The kernel counts the instances of the group: a run's own, unless runs share it.
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


def _cells(run: Run) -> tuple[str, ...]:
    return (f"attribute:{CELL_ATTRIBUTE} in [{', '.join(run.terms.cells)}]",) if run.terms.cells else ()


def pending(run: Run) -> int:
    """Tasks without an attempt, in back-off or not."""
    return int(run.tasks.counts()[TaskStatus.PENDING])
