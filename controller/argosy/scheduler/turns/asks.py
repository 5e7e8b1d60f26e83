"""The batches of tasks that each run asks for."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from argosy.lifecycle.run_stops import awaits_logs
from argosy.market.fallback import purchases
from argosy.market.limits import ROUNDING
from argosy.market.on_demand import is_ever_available
from argosy.model.attempts import StopCause
from argosy.model.instance_types import (
    CELL_ATTRIBUTE,
    GPU_MEMORY_ATTRIBUTE,
    GPU_MODEL_ATTRIBUTE,
    GPU_PART_ATTRIBUTE,
    PURCHASE_ATTRIBUTE,
    RESERVED_UNTIL_ATTRIBUTE,
    SHARES_GPUS,
)
from argosy.model.instances import Instance, Purchase
from argosy.model.moment import Moment
from argosy.model.purchases import PurchaseStance, with_reserved
from argosy.model.run_terms import ARM64, RUNNER_ATTRIBUTE, RUNNER_PROTOCOL, RunTerms
from argosy.model.runs import Run
from argosy.model.start_ups import image_key
from argosy.model.state import State
from argosy.placement.demand import Batch, WeightedConstraint
from argosy.scheduler.supply.kept_instances import kept_for_runs, needed_from, off_limits, open_to
from argosy.scheduler.supply.rows import expected_end, gpu_owner_of

ON_DEMAND_ONLY = f"attribute:{PURCHASE_ATTRIBUTE} in [{', '.join(with_reserved(Purchase.ON_DEMAND))}]"
SPOT_ONLY = f"attribute:{PURCHASE_ATTRIBUTE} in [{', '.join(with_reserved(Purchase.SPOT))}]"
STEP_S = 60  # steps in which the time advances that a reserved instance must outlast
_ONLY = {Purchase.SPOT: SPOT_ONLY, Purchase.ON_DEMAND: ON_DEMAND_ONLY}


@dataclass(frozen=True, slots=True)
class Bound:
    """How many tasks a run may ask for, and the USD an hour of further instances that it can pay for. paid: ids of
    instances that it pays for already."""

    tasks: int
    usd_per_hour: float = math.inf
    paid: Collection[str] = ()


NO_BOUND: Mapping[str, Bound] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Ask:
    """One batch of a run, and its tasks."""

    run: Run
    batch: Batch
    among: NDArray[np.bool_] | None = None  # (tasks of the run,); None = all pending tasks
    moves: bool = False  # for tasks that go to on-demand: spot lost them too often, or a service's base lacks them


def asks_of(moment: Moment, runs: Sequence[Run], at_most: Mapping[str, Bound] = NO_BOUND) -> list[Ask]:
    """In queue order. A run's last ask is for its ordinary tasks; the one before it, if any, for those that move to
    on-demand. at_most: by run id."""
    shunned, until = shunned_by(moment.state), moment.now + moment.policy.linger_s
    kept = kept_for_runs(moment.state, moment.now) if moment.state.keeps_instances else {}
    needed = needed_from(moment, kept) if kept else {}
    ends = any(pool.empty_by for pool in moment.state.pools.values())
    by_price, asks = _by_price(moment.state, runs), list[Ask]()
    for run in runs:
        may_buy = purchases(run, moment) if run.terms.purchase.mixes else None
        batch = batch_of(moment, run, until, shunned, may_buy)
        bound = at_most.get(run.id) or Bound(batch.count)
        count = 0 if awaits_logs(run, moment.policy) else min(batch.count, bound.tasks)
        batch = replace(batch, count=count, finish_at=expected_end(run, moment.now))
        if ends and not run.terms.service:
            batch = replace(batch, constraints=(*batch.constraints, done_in_time(run, moment)))
        if kept:
            batch = replace(batch, constraints=batch.constraints + off_limits(run, kept, open_to(run, moment, needed)))
        if run.terms.has_caps:
            batch = replace(batch, constraints=(*batch.constraints, *within_caps(run, by_price, bound)))
        asks += _split(run, batch, moment)
    return asks


def _by_price(state: State, runs: Sequence[Run]) -> tuple[list[Instance], list[Instance]]:
    """The live instances, and the idle ones among them, the most expensive first, if a run has a cap."""
    if not any(run.terms.has_caps for run in runs):
        return [], []
    alive = (each for each in state.instances.values() if each.alive)
    busy, by_price = state.working_instances(), sorted(alive, key=lambda each: -each.price_usd_per_hour)
    return by_price, [each for each in by_price if each.id.encode() not in busy]


def within_caps(run: Run, by_price: tuple[Sequence[Instance], Sequence[Instance]], bound: Bound) -> tuple[str, ...]:
    """Keeps its tasks off instances that alone cost more than the run's hourly cap, and off idle ones, such as the
    headroom, that cost more than the rest of its caps. It could not start there, but as long as its tasks seem to fit,
    it would buy no cheaper instance, and the headroom would seem to be used. by_price: all and the idle, the most
    expensive first."""
    (every, idle), left = by_price, bound.usd_per_hour + ROUNDING
    cap = math.inf if run.terms.max_hourly_usd is None else run.terms.max_hourly_usd
    priced = takewhile(lambda each: each.price_usd_per_hour > cap, every)
    unpaid = takewhile(lambda each: each.price_usd_per_hour > left, idle)
    ids = {each.id for each in priced if run.number not in each.work}
    above = sorted(ids.union(each.id for each in unpaid if each.id not in bound.paid))
    return (f"not(ec2InstanceId in [{', '.join(above)}])",) if above else ()


def done_in_time(run: Run, moment: Moment) -> str:
    """Keeps its tasks off reserved instances that have to be empty before a task that starts now is expected to
    end."""
    ends_at = moment.now + run.expected_seconds(moment.policy.attempt_s)
    return f"not(attribute:{RESERVED_UNTIL_ATTRIBUTE} < {math.ceil(ends_at / STEP_S) * STEP_S})"


def _split(run: Run, batch: Batch, moment: Moment) -> Iterator[Ask]:
    """Separates tasks that spot lost too often, or that a service's base lacks, from the others. If on-demand can
    never be bought, they stay on spot."""
    until = moment.now + moment.policy.linger_s
    apart = _apart(run, moment, until) if SPOT_ONLY in batch.constraints else None
    count = 0 if apart is None else min(batch.count, run.tasks.startable_count(until, apart))
    if apart is None or not count or not is_ever_available(run, moment.state, moment.policy):
        yield Ask(run, batch)
        return
    yield Ask(run, replace(on_demand(batch), count=count), apart, moves=True)
    yield Ask(run, replace(batch, count=batch.count - count), ~apart)


def _apart(run: Run, moment: Moment, until: float) -> NDArray[np.bool_] | None:
    """(tasks of the run,) those that must not run on spot; None = no such task."""
    if run.terms.on_demand_base:
        return tasks_of_base(run, moment, until)
    lost: NDArray[np.bool_] = run.tasks["losses"] >= run.terms.fallback_losses
    return lost if run.terms.purchase.mixes else None


def on_demand(batch: Batch) -> Batch:
    """The same constraints, on instances that spot cannot take."""
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
    moment: Moment,
    run: Run,
    until: float,
    shunned: Mapping[str, frozenset[str]],
    may_buy: frozenset[Purchase] | None = None,
) -> Batch:
    """The batch of a run: its tasks that may start before `until` (epoch seconds), within its cap on concurrent ones.
    shunned: from `shunned_by`. may_buy: None = the run's one option, or the last decision between them.

    Tasks in back-off get a place as well, which keeps their instances from being released, but are not launched.
    """
    count = run.tasks.startable_count(until)
    if run.terms.max_concurrent is not None:
        count = max(0, min(count, run.terms.max_concurrent - len(moment.state.attempts.here_of_run(run.number))))
    return Batch(
        cpu_units=run.needs.cpu_units,
        memory_mib=run.needs.memory_mib,
        gpus=run.needs.gpus,
        gpu_share_mib=run.needs.gpu_share_mib,
        gpu_owner=0 if moment.policy.gpu_share_across_owners else gpu_owner_of(run),
        count=count,
        group=run.group,
        image=image_key(run.image, run.task_definition),
        disk_gib=run.terms.disk_gib,
        constraints=_where(run.terms)
        + _whole_gpus(run, moment)
        + _architecture(run)
        + _purchase(may_buy or _last_decided(run)),
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
    bought = {each for each in may_buy if not each.is_reserved}
    return tuple(only for purchase, only in _ONLY.items() if bought == {purchase})


def _last_decided(run: Run) -> frozenset[Purchase]:
    if run.terms.purchase.mixes:
        return frozenset({Purchase.SPOT if run.steering.stance is PurchaseStance.SPOT else Purchase.ON_DEMAND})
    return frozenset({Purchase(run.terms.purchase)})


def standing_constraints(terms: RunTerms) -> tuple[str, ...]:
    """All permanent constraints of a run on its instances."""
    always = () if terms.purchase.mixes else _purchase(frozenset({Purchase(terms.purchase)}))
    return _where(terms) + always


def _whole_gpus(run: Run, moment: Moment) -> tuple[str, ...]:
    """Keeps tasks with whole GPUs off instances with a part of one. There is no constraint if no such instance can be
    bought, because tasks that differ in constraints are bought for separately."""
    has_whole = run.needs.gpus and not run.terms.gpu_part
    return (f"not(attribute:{GPU_PART_ATTRIBUTE} exists)",) if has_whole and moment.has_gpu_parts else ()


def _architecture(run: Run) -> tuple[str, ...]:
    """An instance that does not state its architecture is x86."""
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
    if terms.gpu_part:
        found += (f"attribute:{GPU_PART_ATTRIBUTE} == {terms.gpu_part}",)
    if terms.gpu_share_mib:
        found += (SHARES_GPUS,)
    if terms.needs_runner:
        found += (f"attribute:{RUNNER_ATTRIBUTE} == {RUNNER_PROTOCOL}",)
    if terms.cells:
        found += (f"attribute:{CELL_ATTRIBUTE} in [{', '.join(terms.cells)}]",)
    return found


def base_of(run: Run, moment: Moment) -> int:
    """As many as the spec says; 0 if on-demand can never be bought: then they stay on spot."""
    base = run.terms.on_demand_base
    return base if base and is_ever_available(run, moment.state, moment.policy) else 0


def lacking(run: Run, moment: Moment, base: int) -> int:
    """How many more of the run's tasks need on-demand instances than are there or about to start there."""
    table, instances = moment.state.attempts, moment.state.instances
    rows = [row for row in table.of_run(run.number) if table["stop_cause"][row] == StopCause.NONE.value]
    names = (bytes(table["instance"][row]).decode() for row in rows)
    found = (instances.get(name) for name in names)
    return max(0, base - sum(each is not None and _stays_on_demand(each) for each in found))


def _stays_on_demand(instance: Instance) -> bool:
    return not (instance.purchase.may_be_taken_back or instance.leaves)


def tasks_of_base(run: Run, moment: Moment, until: float) -> NDArray[np.bool_] | None:
    """(tasks of the run,) those that ask for on-demand instances only; None = no such task."""
    base = base_of(run, moment)
    wanted = lacking(run, moment, base) if base else 0
    if not wanted:
        return None
    chosen = np.zeros(run.task_count, dtype=np.bool_)
    chosen[run.tasks.startable(until, wanted)] = True
    return chosen
