"""Planted bugs: the minimum number of instances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from argosy.engine import steps
from argosy.engine import tick as tick_module
from argosy.market import floors, release
from argosy.market.floors import LeastSize
from argosy.model.instances import Instance
from argosy.model.moment import Moment
from argosy.model.pools import NO_FLOOR
from argosy.model.state import State
from argosy.scheduler.buying import orders
from argosy.scheduler.placing import places
from argosy.scheduler.turns import asks
from tests.harness.simulation.campaign import run_trial
from tests.harness.simulation.plan import TrialPlan
from tests.mutations.catalogue import SEEDS, Check, Found, Patch, planted, scenario

KEPT = "tests.scenarios.test_kept_size"
HEADROOM = "tests.scenarios.test_headroom"
LEAVES_NOTHING = "test_an_instance_goes_when_a_limit_holds_tasks_back_that_do_not_fit_there"
ONCE = "test_further_tasks_start_at_once_and_nothing_is_kept_after_the_last_run"
AT_ITS_CAP = "test_what_is_kept_stays_beside_a_run_that_is_at_its_cap"
NO_REST = "test_the_reason_is_stored_and_the_controller_does_not_rest"


def kept(*kinds: str) -> Check:
    """Trials in which a user nearly always requests a minimum size, with all of these faults."""

    def check() -> Found | None:
        for seed in range(SEEDS):
            plan = TrialPlan(seed, frozenset({"cluster-scaled", *kinds}), every_kind=True, limit_s=7200.0)
            verdict = run_trial(plan)
            if not verdict.ok:
                return Found(f"simulation: {verdict.violations[0].invariant}", seed + 1)
        return None

    return check


@planted("idle instances are let go although a user wants them kept", check=kept())
def floor_is_let_go(patch: Patch) -> None:
    def beyond(moment: Moment, spare: list[Instance]) -> Iterator[Instance]:
        yield from floors.beyond(replace(moment, state=replace(moment.state, floor=NO_FLOOR)), spare)

    patch.setattr(release, "beyond", beyond)


@planted("instances that are about to go count among those that are kept", check=kept("rebalance", "interruption"))
def what_leaves_counts_as_kept(patch: Patch) -> None:
    def beyond(moment: Moment, spare: Any) -> Iterator[Instance]:
        size = sum(each.alive for each in moment.state.instances.values())
        most = min((size - least.instances for least in floors.least_sizes(moment)), default=size)
        yield from list(spare)[: max(0, most)]

    patch.setattr(release, "beyond", beyond)


@planted("the controller goes to rest before it has what a user wants kept", check=scenario(KEPT, NO_REST))
def rests_below_the_floor(patch: Patch) -> None:
    real = steps.is_idle

    def is_idle(state: State) -> bool:
        return real(replace(state, floor=NO_FLOOR))

    patch.setattr(tick_module, "is_idle", is_idle)


@planted("what is kept without work is bought only for runs", check=kept())
def floor_needs_runs(patch: Patch) -> None:
    real = orders.least_sizes

    def least_sizes(moment: Moment) -> list[LeastSize]:
        return real(moment) if moment.state.runs else []

    patch.setattr(orders, "least_sizes", least_sizes)


@planted("a temporary number of instances is kept forever", check=kept())
def floor_never_ends(patch: Patch) -> None:
    patch.setattr(floors, "least_sizes", _of_the_largest_ever(floors.least_sizes))


def _of_the_largest_ever(real: Any) -> Any:
    largest: dict[str, LeastSize] = {}

    def least_sizes(moment: Moment) -> list[LeastSize]:
        for least in real(moment):
            before = largest.setdefault(moment.state.epoch, least)
            largest[moment.state.epoch] = max(before, least)
        return [largest[moment.state.epoch]] if moment.state.epoch in largest else []

    return least_sizes


@planted("room for further tasks is kept while a limit holds tasks back", check=scenario(HEADROOM, LEAVES_NOTHING))
def headroom_is_in_the_way(patch: Patch) -> None:
    real = orders._is_shared
    patch.setattr(orders, "_is_shared", lambda each, limits: real(each, limits) and each.tasks > 1)


@planted("room for further tasks is bought again although it is ordered", check=scenario(HEADROOM, ONCE))
def headroom_is_bought_again(patch: Patch) -> None:
    real = places.spare_room
    patch.setattr(places, "spare_room", lambda batches, asks, placed: real(batches, asks, placed[:1]))


@planted(
    "room for further tasks goes and comes again beside a run at its cap",
    check=scenario(HEADROOM, AT_ITS_CAP, {"maxHourlyCost": 0.25}),
)
def headroom_goes_beside_a_cap(patch: Patch) -> None:
    real = asks.within_caps
    patch.setattr(asks, "within_caps", lambda run, by_price, bound: real(run, (by_price[0], ()), bound))
