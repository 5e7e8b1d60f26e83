"""What is the answer to PlanRun? The forecast of a run that nobody has submitted, and what would change it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from argosy.lifecycle.apply import apply
from argosy.model import events
from argosy.model.inbox import SubmitRequest
from argosy.model.instance_types import InstanceType
from argosy.model.instances import Purchase
from argosy.model.policy import Policy
from argosy.model.pools import Pool
from argosy.model.purchases import PurchaseMode
from argosy.model.resources import Resources
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.planning.durations import Seconds
from argosy.planning.forecast import Forecast, forecast
from argosy.planning.rejected import rejected_pools
from argosy.planning.relaxations import relaxations

PLANNED = "plan-000000-000000-plan"  # the id of the run that is never stored


@dataclass(frozen=True, slots=True)
class Market:
    """Where could be bought: what the state has seen of fleets, and those that are set up and never were seen."""

    fleets: Sequence[tuple[str, str, str]]  # cell, instance type, zone
    home: str


@dataclass(frozen=True, slots=True)
class Planned:
    """One question: this run, on that state, at that time.

    form: the validated JSON form of its spec. warnings: what its submitter would be warned of.
    """

    form: Mapping[str, Any]
    task_count: int
    warnings: Sequence[str]
    needs: Resources
    seconds: Seconds
    catalogue: Mapping[str, InstanceType]
    policy: Policy
    now: float
    market: Market

    def on(self, state: State, form: Mapping[str, Any], needs: Resources | None = None) -> tuple[State, Run]:
        """A state of its own in which the run is prepared and waits for places. `state` itself is never changed."""
        copy = _copy(state, self.market)
        request = SubmitRequest(PLANNED, self.now, form, self.task_count, "", "s3://none/", False)
        apply(copy, events.RunSubmitted(request), self.now, self.policy)
        run = copy.runs[PLANNED]
        run.task_definition, run.needs = "planned", needs or self.needs
        return copy, run

    def forecast(
        self, state: State, form: Mapping[str, Any], needs: Resources | None = None, offers_at: float | None = None
    ) -> Forecast:
        copy, run = self.on(state, form, needs)
        return forecast(copy, run, self.catalogue, self.now, self.policy, self.seconds, offers_at)


def plan_run(question: Planned, state: State) -> dict[str, Any]:
    """The reply of PlanRun. Money in US dollars, unrounded; what is not to be had is null."""
    question = replace(question, policy=_measured(question.policy, state))
    form = question.form
    found = question.forecast(state, form)
    is_short = not found.possible
    if is_short:
        found = question.forecast(state, form, offers_at=math.inf)
    return {
        "name": form["name"],
        "tasks": found.tasks,
        "possible": found.possible,
        "placesHere": found.here,
        "places": found.places,
        "instances": [
            {
                "pool": each.offer.pool,
                "cell": each.offer.cell,
                "zone": each.offer.zone,
                "instanceType": each.offer.instance_type,
                "purchase": each.offer.purchase.value,
                "count": each.instances,
                "tasksAtATime": each.places,
                "priceUsdPerHour": each.offer.price_usd_per_hour,
            }
            for each in found.bought
        ],
        "costUsd": _range(found, "cost_usd"),
        "seconds": _range(found, "seconds"),
        "instanceHours": _finite(found.expected.instance_hours),
        "taskSeconds": {
            "low": question.seconds.low,
            "expected": question.seconds.expected,
            "high": question.seconds.high,
        },
        "onDemand": _on_demand(question, state, form),
        "rejected": rejected_pools(question, state),
        "relaxations": relaxations(question, state, found),
        "assumptions": _assumptions(question, found, state),
        "warnings": _warnings(question, state, found, is_short),
    }


def _copy(state: State, market: Market) -> State:
    """Enough of a copy: what planning changes is in dictionaries of its own."""
    pools = {key: replace(pool) for key, pool in state.pools.items()}
    for cell, kind, zone in market.fleets:
        pool = Pool(cell, kind, zone, "not seen yet", confirmed_spot=0, confirmed_on_demand=0)
        pools.setdefault(pool.key, pool)
    return replace(
        state,
        runs=dict(state.runs),
        pools=pools,
        setbacks={},
        new_runs=set(),
        changed_runs=set(),
        changed_instances=set(),
    )


def _measured(policy: Policy, state: State) -> Policy:
    """Boot seconds as the instances that are known took them."""
    known = [i.registered_at - i.launched_at for i in state.instances.values() if i.registered_at > i.launched_at > 0]
    return replace(policy, boot_s=sum(known) / len(known)) if known else policy


def _range(found: Forecast, name: str) -> dict[str, float | None]:
    return {each: _finite(getattr(getattr(found, each), name)) for each in ("low", "expected", "high")}


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _on_demand(question: Planned, state: State, form: Mapping[str, Any]) -> dict[str, Any] | None:
    """The same run bought on demand in the home Region alone; None where that cannot run it."""
    capacity = {**form.get("capacity", {}), "purchase": PurchaseMode.ON_DEMAND.value, "cells": [question.market.home]}
    empty = replace(state, runs={}, instances={})
    found = question.forecast(empty, {**form, "capacity": capacity})
    if not found.possible:
        return None
    return {
        "region": question.market.home,
        "costUsd": found.expected.cost_usd,
        "seconds": found.expected.seconds,
        "instanceTypes": sorted({each.offer.instance_type for each in found.bought}),
    }


def _assumptions(question: Planned, found: Forecast, state: State) -> list[str]:
    spot = {each.offer.pool for each in found.bought if each.offer.purchase is Purchase.SPOT}
    unseen = sum(pool not in state.pools or not state.pools[pool].spot_usd_per_hour for pool in spot)
    boot_s, start_s = question.policy.boot_s, question.policy.start_s
    said = [
        f"seconds of a task: {question.seconds.source}",
        f"an instance takes {boot_s:,.0f} s to join and a task {start_s:,.0f} s to start",
        "low: quick tasks, no interruption, instances that other runs go on with; high: slow tasks, slow boots, "
        "twice the usual interruptions and "
        "three spot instances taken away at the very end",
    ]
    if found.here:
        said.append(f"{found.here:,} places on instances that are here stay free for it")
    if unseen:
        said.append(f"no spot price was seen yet in {unseen} of the pools to be bought from: typical ones are used")
    return said


def _warnings(question: Planned, state: State, found: Forecast, is_short: bool) -> list[str]:
    """What shortages and the run's own limits would do to it."""
    form = question.form
    capacity = form.get("capacity", {})
    if not found.possible:
        return ["nothing of this deployment could run its tasks: see the rejected pools", *question.warnings]
    said = list(question.warnings)
    if is_short:
        said.append("every pool that could run it is short of capacity now: the forecast counts from when one is not")
    budget = capacity.get("budgetUsd")
    if budget is not None and found.high.cost_usd > budget:
        sure = "will" if found.low.cost_usd > budget else "may"
        said.append(f"the run {sure} reach its budget of ${budget:,.2f} before its end")
    run = question.on(state, form)[1]
    if run.deadline_at and question.now + found.high.seconds > run.deadline_at:
        sure = "will" if question.now + found.low.seconds > run.deadline_at else "may"
        said.append(f"the run {sure} miss its deadline")
    return said
