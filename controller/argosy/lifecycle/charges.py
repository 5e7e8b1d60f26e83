"""Which run is charged for the time of instances, and when?

When an instance ends, every run that worked there is charged. When a run ends, it is charged for its part of every live
instance. A run never pays for idle time before it came. Charged time is noted on the instance, so that it is charged
once: the ledgers of all runs and the unattributed time add up to what instances cost (decision 12).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace

from argosy.model.costs import NO_RUN, Costs, TimeSpent, Work, costs_of, market_of, split
from argosy.model.instances import Instance
from argosy.model.money.ledger import running_on, running_work
from argosy.model.run_record import RunRecord
from argosy.model.runs import Run
from argosy.model.state import State

MOST_MARKETS = 300  # rows of a run's ledger: its record is one item of at most 400 KB
OTHER_MARKETS = "(other pools)"


def book(state: State, run: Run | RunRecord, instance: Instance, seconds: float, work: Work) -> None:
    """Book an attempt that ended on the instance. An ended instance is already charged, with the data of that time.
    run: a suspended run's record."""
    if seconds > 0 and not instance.is_settled:
        done = instance.work.setdefault(run.number, [0.0] * len(Work))
        done[work] += seconds * run.needs.share_of(instance.size)
        state.changed_instances.add(instance.id)


def book_for(state: State, payer: Run, instance: Instance, share_s: float, work: Work) -> None:
    """Book share-seconds of another run's attempt that this run pays for."""
    if share_s > 0 and not instance.is_settled:
        instance.work.setdefault(payer.number, [0.0] * len(Work))[work] += share_s
        state.changed_instances.add(instance.id)


def unbook(state: State, run: Run, index: int, work: Work) -> None:
    """The task's last attempt, booked as useful, turns out to have written nothing. work: its new kind."""
    instance = state.instances.get(bytes(run.tasks["instance"][index]).decode())
    if instance is None:
        return
    share_s = float(run.tasks["seconds"][index]) * run.needs.share_of(instance.size)
    done = instance.work.get(run.number)
    if done is not None and not instance.is_settled:
        moved = min(share_s, done[Work.USEFUL])
        done[Work.USEFUL] -= moved
        done[work] += moved
        state.changed_instances.add(instance.id)
    elif (charged := run.costs.get(market_of(instance))) is not None:
        usd = min(share_s * instance.price_usd_per_hour / 3600, charged.useful)
        charged.useful -= usd
        setattr(charged, work.name.lower(), getattr(charged, work.name.lower()) + usd)
        state.changed_runs.add(run.id)


def count_on(state: State, run: Run, instance: Instance, now: float) -> None:
    """The run counts on the instance from now on, or starts work there. The cost of waiting until now belongs to the
    others: to runs that worked there, to the run it was bought for, or to no run. It is noted now, because later it
    could not be separated from the waiting that the newcomer shares."""
    if not _counts_on(state, run, instance):
        _note_waiting(state, instance, now, booting=instance.launched_at < run.opened_at)
    instance.bought_for = instance.bought_for or (NO_RUN if run.is_daemon else run.number)  # never bought for a daemon
    state.changed_instances.add(instance.id)


def _counts_on(state: State, run: Run, instance: Instance) -> bool:
    here: Mapping[int, int] = state.attempts.runs_on_instance.get(instance.id.encode(), {})
    return run.number in instance.work or instance.bought_for == run.number or bool(here.get(run.number))


def _note_waiting(state: State, instance: Instance, now: float, booting: bool) -> None:
    """Note idle time until now, without the rest of the first minute; with the boot, if that was not for the newcomer.

    Runs are charged only when they or the instance end: otherwise one launch would write the records of all runs that
    worked there.
    """
    before = split(instance, now, running_on(state, instance, now))
    idle_s = sum(spent.idle for spent in before.values())
    ahead_s = max(0.0, instance.billed_s(now) - max(instance.charged_s, now - instance.launched_at))
    passed = max(0.0, idle_s - ahead_s) / idle_s if idle_s else 0.0
    for number, spent in before.items():
        boot = spent.boot if booting else instance.waiting.get(number, (0.0,))[0]
        waited = TimeSpent(boot=boot, idle=spent.idle * passed)
        if number == NO_RUN:
            _charge(state, NO_RUN, instance, waited)
        elif waited.seconds > 0:
            instance.work.setdefault(number, [0.0] * len(Work))
            instance.waiting[number] = [waited.boot, waited.idle]


def charge_next(state: State, instance: Instance) -> None:
    """The instance has ended and has many payers: one of them pays its part. Idle time is shared in proportion to work,
    so the others' parts stay the same as if all paid at once."""
    number = next(iter(instance.work))
    spent = split(instance, instance.stopped_at).get(number)
    if spent is not None:
        _charge(state, number, instance, spent)
    del instance.work[number]
    instance.waiting.pop(number, None)
    state.changed_instances.add(instance.id)


def close_instance(state: State, instance: Instance) -> None:
    """The instance has ended: charge all of its remaining time."""
    for number, spent in split(instance, instance.stopped_at).items():
        _charge(state, number, instance, spent)
    instance.charged_s = instance.billed_s(instance.stopped_at)  # without the rounding
    instance.work, instance.waiting = {}, {}
    instance.bought_for = NO_RUN


def close_run(state: State, run: Run | RunRecord, at: float) -> None:
    """The run is over: it pays its part of every live instance. run: a suspended run's record."""
    running = running_work(state, state.needs_by_number(), at)
    for instance in state.instances.values():
        if instance.owes and (run.number in instance.work or instance.bought_for == run.number):
            spent = split(instance, at, running.get(instance.id)).get(run.number)
            if spent is not None:
                _charge(state, run.number, instance, spent)
            instance.work.pop(run.number, None)
            instance.waiting.pop(run.number, None)
            if instance.bought_for == run.number:
                instance.bought_for = NO_RUN
            state.changed_instances.add(instance.id)


def _charge(state: State, number: int, instance: Instance, spent: TimeSpent) -> None:
    costs = costs_of(spent, instance)
    instance.charged_s += spent.seconds
    instance.charged_boot_s += spent.boot
    run, market = state.run_by_number(number), market_of(instance)
    if run is not None:
        _enter(run.costs, market, costs)
        run.cost_usd += costs.total
        run.on_demand_cost_usd += costs.on_demand
        state.changed_runs.add(run.id)
    elif not _charge_suspended(state, number, market, costs):
        state.unattributed.add(costs)


def _charge_suspended(state: State, number: int, market: str, costs: Costs) -> bool:
    """Charge a suspended run's record, with which it is resumed or closed. False: no such run is suspended."""
    for run_id, found in state.suspended.items():
        if found.record.number == number:
            ledger = copy.deepcopy(dict(found.record.costs))
            _enter(ledger, market, costs)
            found.record = replace(
                found.record,
                costs=ledger,
                cost_usd=found.record.cost_usd + costs.total,
                on_demand_cost_usd=found.record.on_demand_cost_usd + costs.on_demand,
            )
            state.quarantined[run_id] = found.stored_record()
            return True
    return False


def _enter(ledger: dict[str, Costs], market: str, costs: Costs) -> None:
    row = market if market in ledger or len(ledger) < MOST_MARKETS else OTHER_MARKETS
    ledger.setdefault(row, Costs()).add(costs)
