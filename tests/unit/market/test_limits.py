"""The limits on purchases by the settings, the account and the budgets, and their display to users."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from argosy.catalogue.lookup import load_catalogue
from argosy.catalogue.quotas import quota_family, quota_key
from argosy.market.limits import TRIAL, BatchLimits, Choice, Headroom, OrderLimits
from argosy.market.offers import offers_of
from argosy.market.order import Backlog, buy
from argosy.messages.fleet_faults import shortage
from argosy.model.actions import Launch, NoteOrder, Remark, SetTarget, Terminate
from argosy.model.events import InterruptionWarned, TargetAccepted
from argosy.model.instances import Purchase
from argosy.model.policy import Policy, VcpuQuota
from argosy.model.pools import Offer, Pool
from argosy.placement.demand import Batch
from argosy.scheduler.buying.orders import away_usd_per_task_hour
from argosy.scheduler.decide import decide
from argosy.settings.settings import SettingsError, load_settings
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    begun,
    fleet,
    host,
    instance_id,
    moment_of,
    prepared,
    state_with,
    state_with_instance,
    submitted,
    told,
)

CATALOGUE = load_catalogue()
BATCH = Batch(1024, 1024, 0, 40, group="a")
BACKLOG = Backlog(BATCH, BatchLimits(100))


def market(*cells: str, types: tuple[str, ...] = ("c5.xlarge", "m5.xlarge")) -> list[Offer]:
    pools = [Pool(cell, kind, f"{cell}a", "fleet") for cell in cells or ("us-east-1",) for kind in types]
    return offers_of(pools, CATALOGUE, NOW)


@pytest.mark.parametrize(("left", "said"), [(8, ""), (4, ""), (3, "the vCPU quota of spot Standard in us-east-1")])
def test_a_quota_holds_back_an_instance_that_does_not_fit_in_it_and_none_that_just_does(left: int, said: str) -> None:
    (offer,) = (each for each in market(types=("c5.xlarge",)) if each.purchase is Purchase.SPOT)
    headroom = Headroom(OrderLimits(10, vcpus_left={(CELL, "spot", "standard"): left}))
    assert headroom.why_none(offer, Choice.of([offer], 0)) == said


@pytest.mark.parametrize(
    ("name", "purchase", "key"),
    [
        ("c5.xlarge", "spot", "standard"), ("g4dn.xlarge", "spot", "g"), ("p3.2xlarge", "on-demand", "p"),
        ("p5.4xlarge", "spot", "p5"), ("p5.4xlarge", "on-demand", "p"), ("inf2.xlarge", "spot", "inf"),
        ("x2idn.16xlarge", "spot", "x"), ("vt1.3xlarge", "spot", "g"), ("dl1.24xlarge", "spot", "dl"),
    ],
)  # fmt: skip
def test_a_type_draws_on_the_quota_of_its_family(name: str, purchase: str, key: str) -> None:
    assert quota_key(name, purchase) == key
    assert quota_family(name).spot_code.startswith("L-")


def test_the_price_is_what_a_budget_counts_and_what_risk_adds_is_what_decides() -> None:
    cheap, dear = market(types=("c5.xlarge", "m5.xlarge"))[:2]
    risky = replace(cheap, effective_usd_per_hour=dear.price_usd_per_hour * 2)
    order = buy([BACKLOG], [risky, dear], OrderLimits(100))
    assert set(order.instances) == {(dear.pool, dear.purchase)}
    budget = BatchLimits(100, usd_per_hour=3.5 * dear.price_usd_per_hour)
    order = buy([Backlog(BATCH, budget)], [risky, dear], OrderLimits(100))
    assert order.instances[dear.pool, dear.purchase] == 3
    assert order.shortfalls[0].reason.startswith("the run's budget: 0.0")


def test_a_budget_smaller_than_any_instance_buys_nothing_and_says_so() -> None:
    offers = market()
    order = buy([Backlog(BATCH, BatchLimits(100, usd_per_hour=0.001))], offers, OrderLimits(100))
    assert not order.instances
    least = min(offer.price_usd_per_hour for offer in offers)
    assert order.shortfalls[0].reason == (
        f"the run's budget: 0.0010 USD an hour may still be bought, an instance costs {least:.4f}"
    )


@pytest.mark.parametrize(
    ("limits", "of_all", "reason"),
    [
        (BatchLimits(2), OrderLimits(100), "capacity.maxInstances of the run"),
        (BatchLimits(100), OrderLimits(2), "maxInstances of the deployment"),
        (BatchLimits(2), OrderLimits(2), "maxInstances of the deployment"),  # as a run without a limit has it
        (
            BatchLimits(100),
            OrderLimits(100, vcpus_left={(CELL, how, "standard"): 8 for how in ("spot", "on-demand")}),
            "the vCPU quota of spot Standard in us-east-1",
        ),
        (BatchLimits(100), OrderLimits(100, vcpus_left={(CELL, "spot", "g"): 0}), ""),
        (BatchLimits(100), OrderLimits(100, trials={CELL: 1}), TRIAL.format(CELL)),
        (BatchLimits(100), OrderLimits(100, trials={"another cell": 0}), ""),
    ],
)
def test_what_holds_an_order_back_is_named(limits: BatchLimits, of_all: OrderLimits, reason: str) -> None:
    (shortfall,) = buy([Backlog(BATCH, limits)], market(), of_all).shortfalls
    assert shortfall.reason == reason
    assert bool(shortfall.tasks) == bool(reason)


def test_where_instances_never_joined_one_is_bought_and_the_rest_elsewhere() -> None:
    alone = buy([BACKLOG], market(), OrderLimits(100, trials={CELL: 1}))
    assert alone.instances.total() == 1
    offers = market()
    shy = {offers[0].pool: 0}
    order = buy([BACKLOG], offers, OrderLimits(100, trials=shy))
    assert offers[0].pool not in {pool for pool, _ in order.instances}


def test_an_exhausted_spot_quota_turns_to_on_demand_where_the_run_allows_it() -> None:
    order = buy([BACKLOG], market(), OrderLimits(100, vcpus_left={(CELL, "spot", "standard"): 8}))
    bought = Counter[Purchase]()
    for (_, purchase), count in order.instances.items():
        bought[purchase] += count
    assert bought == {Purchase.SPOT: 2, Purchase.ON_DEMAND: 8}


def test_a_cell_has_no_more_than_its_share() -> None:
    offers = market("us-east-1", "eu-west-1")
    limits = OrderLimits(100, max_cell_share=0.6, held_cpu_units={("cell", "us-east-1"): 40 * 1024})
    order = buy([Backlog(replace(BATCH, count=60), BatchLimits(100))], offers, limits)
    cells = Counter[str]()
    for (pool, _), count in order.instances.items():
        cells[pool.split("/")[0]] += 4 * count
    assert not order.uncovered
    assert cells["us-east-1"] + 40 <= 0.6 * 100 + 4
    assert cells["eu-west-1"] >= 36


def test_tasks_with_much_traffic_stay_where_their_data_lie() -> None:
    here, there = market("us-east-1", types=("c5.xlarge",))[0], market("eu-west-1", types=("c5.xlarge",))[0]
    cheaper = replace(there, price_usd_per_hour=here.price_usd_per_hour * 0.9, effective_usd_per_hour=0.0)
    here = replace(here, effective_usd_per_hour=0.0)

    def cell(usd: float) -> set[str]:
        order = buy(
            [Backlog(BATCH, BatchLimits(100, data_cell="us-east-1", away_usd_per_task_hour=usd))],
            [cheaper, here],
            OrderLimits(100),
        )
        return {pool.split("/")[0] for pool, _ in order.instances}

    assert cell(0.0) == {"eu-west-1"}
    assert cell(0.01) == {"us-east-1"}


def test_traffic_is_priced_by_the_gigabytes_of_a_task_spread_over_its_time() -> None:
    state = state_with(submitted(capacity={"transferGbPerTask": 5}, array={"size": 10, "expectedSeconds": 1800}))
    (run,) = state.runs.values()
    policy = Policy(data_cell=CELL)
    assert away_usd_per_task_hour(run, policy) == pytest.approx(5 * 0.02 * 2)
    run.note_duration(3600.0)  # what tasks really took counts from then on
    assert away_usd_per_task_hour(run, policy) == pytest.approx(5 * 0.02)
    assert away_usd_per_task_hour(run, Policy()) == 0.0


def decided(state: Any, *kinds: type, **policy: Any) -> list[Any]:
    return [a for a in decide(moment_of(state, NOW, replace(POLICY, **policy))) if isinstance(a, kinds)]


def test_a_quota_counts_what_lives_and_what_is_ordered() -> None:
    state = state_with(submitted(tasks=40), prepared(), fleet(spot_target=2), host(1))
    quota = (VcpuQuota(CELL, "spot", "standard", 16),)
    (target,) = decided(state, SetTarget, vcpu_quotas=quota)
    assert target.spot_target == 4
    begun(state, [target])
    told(state, TargetAccepted(target.pool, 4))
    assert not decided(state, SetTarget, vcpu_quotas=quota)
    (remark,) = decided(state, Remark, vcpu_quotas=quota)
    assert remark.sentence == "held back by the vCPU quota of spot Standard in us-east-1 (16)"


@pytest.mark.parametrize(
    ("reason", "purchase"),
    [
        ("spotInstanceCountLimitExceeded", Purchase.SPOT),
        ("MaxSpotInstanceCountExceeded", Purchase.SPOT),
        ("VcpuLimitExceeded", Purchase.ON_DEMAND),
    ],
)
def test_a_full_quota_of_the_account_is_a_shortage_of_all_that_draw_on_it(reason: str, purchase: Purchase) -> None:
    types = ("c5.xlarge", "m5.xlarge", "g4dn.xlarge")
    state = state_with(*(fleet(kind) for kind in types))
    state.pools[f"{CELL}/c5.xlarge/us-east-1a"].on_demand_target = 1  # owed: the requested option ran short
    told(state, shortage(f"{CELL}/c5.xlarge/us-east-1a", reason))
    offered = {(o.instance_type, o.purchase) for o in offers_of(state.pools.values(), CATALOGUE, NOW + 1)}
    missing = {(kind, how) for kind in types for how in (Purchase.SPOT, Purchase.ON_DEMAND)} - offered
    assert missing == {("c5.xlarge", purchase), ("m5.xlarge", purchase)}


def test_growth_that_continues_with_the_next_tick_is_not_reported() -> None:
    state = state_with(submitted(tasks=400), prepared(), fleet())
    assert [r.sentence for r in decided(state, Remark)] == ["waiting for ordered instances to join the cluster"]


def test_what_is_bought_is_noted_with_its_gap_to_the_bound() -> None:
    state = state_with(submitted(tasks=10), prepared(), fleet())
    (action,) = decided(state, NoteOrder)
    assert (action.note.instances, action.note.method) == (3, "run by run")
    assert action.note.gap == pytest.approx(0.2)  # 10 tasks on 12 places
    begun(state, [action])
    assert state.last_order.to_json()["gapPct"] == pytest.approx(20.0)
    idle = state_with(fleet())
    assert not decided(idle, NoteOrder)


def test_a_gap_is_only_reported_for_an_order_for_all_the_work() -> None:
    (action,) = decided(state_with(submitted(tasks=40), prepared(), fleet()), NoteOrder, max_instances=2)
    assert action.note.gap is None
    assert action.note.lower_bound_usd_per_hour is not None


def test_patterns_of_one_order_begin_the_next() -> None:
    def resources(vcpus: float, memory: int) -> dict[str, Any]:
        return {"vcpus": vcpus, "memory": memory}

    events: list[Any] = []
    for name, its in {"wide": resources(3, 2048), "deep": resources(0.5, 13_000)}.items():
        run_id = f"{name}-261121-062733-aaaa"
        events += [submitted(run_id, tasks=40, name=name, resources=its), prepared(run_id, resources=its)]
    state = state_with(*events, *(fleet(kind) for kind in ("c5.xlarge", "c5.4xlarge", "m5.2xlarge", "r5.2xlarge")))
    (first,) = decided(state, NoteOrder)
    assert first.note.patterns
    begun(state, [first])
    (second,) = decided(state, NoteOrder)
    assert second.note.usd_per_hour <= first.note.usd_per_hour * (1 + 1e-9)


def test_settings_reach_the_policy() -> None:
    settings = load_settings(
        {
            "cells": "us-east-1,eu-west-1", "minIdle": 1, "minInstances": 2, "maxTypeShare": 0.5, "maxCellShare": 0.6,
            "lingerByType": {"p*": 60, "g4dn.*": 120}, "coolDownSeconds": 30,
            "vcpuQuotas": {"us-east-1": {"spot": {"standard": 64, "p5": 8}, "onDemand": {"p": 0}}},
        }
    )  # fmt: skip
    policy = settings.policy()
    assert (policy.min_idle, policy.min_instances, policy.max_type_share, policy.max_cell_share) == (1, 2, 0.5, 0.6)
    assert [policy.linger_of(name) for name in ("p3.2xlarge", "g4dn.xlarge", "c5.large")] == [60, 120, 300]
    assert policy.cool_down_s == 30
    assert policy.vcpu_quotas == (
        VcpuQuota("us-east-1", "spot", "standard", 64),
        VcpuQuota("us-east-1", "spot", "p5", 8),
        VcpuQuota("us-east-1", "on-demand", "p", 0),
    )
    assert policy.data_cell == "us-east-1"


def test_every_fault_of_the_limits_is_reported_at_once_with_its_path() -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(
            {
                "maxTypeShare": 0, "maxCellShare": 1.5, "minIdle": -1, "lingerByType": {"p*": -1, "Ä": 3},
                "vcpuQuotas": {"us-east-1": {"spot": {"standard": -4, "q": 1}, "onDemand": {"p5": 8}}},
            }
        )  # fmt: skip
    paths = [path for path, _ in caught.value.faults]
    assert {path.split(".")[0] for path in paths} == {
        "maxTypeShare", "maxCellShare", "minIdle", "lingerByType", "vcpuQuotas",
    }  # fmt: skip
    said = str(caught.value)
    assert "'q' is not a quota family; known: g, p5, p, inf, trn, dl, f, x, standard" in said
    assert "on-demand P5 instances draw on the quota of p" in said


def test_limits_that_contradict_others_are_faults_too() -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(
            {"maxInstances": 3, "minInstances": 4, "minIdle": 9, "vcpuQuotas": {"eu-west-1": {"spot": {"g": 1}}}}
        )
    assert sorted(path for path, _ in caught.value.faults) == ["minIdle", "minInstances", "vcpuQuotas.eu-west-1"]


def test_the_least_size_of_a_cluster_keeps_within_quotas_and_counts_in_what_the_work_takes() -> None:
    state = state_with(submitted(tasks=8), prepared(), fleet())
    quotas = tuple(VcpuQuota(CELL, how, "standard", 12) for how in ("spot", "on-demand"))
    actions = decided(state, SetTarget, NoteOrder, vcpu_quotas=quotas, min_instances=9)
    (target,) = (each for each in actions if isinstance(each, SetTarget))
    (note,) = (each for each in actions if isinstance(each, NoteOrder))
    bought = {offer.purchase: offer.effective for offer in offers_of(state.pools.values(), CATALOGUE, NOW, POLICY)}
    assert target.spot_target == 3
    assert note.note.instances == target.spot_target + target.on_demand_target
    usd = target.spot_target * bought[Purchase.SPOT] + target.on_demand_target * bought[Purchase.ON_DEMAND]
    assert note.note.usd_per_hour == pytest.approx(usd)
    assert note.note.gap is None


@pytest.mark.parametrize("going", [InterruptionWarned(instance_id(1), NOW), None], ids=["warned", "released"])
def test_an_instance_that_is_about_to_go_takes_its_quota_until_it_is_gone(going: InterruptionWarned | None) -> None:
    """EC2 counts it: an order that overlooks it is refused, and its pool cools off."""
    state = state_with(submitted(tasks=40), prepared(), fleet(spot_target=1), host(1))
    if going is not None:
        told(state, going)
    else:
        begun(state, [Terminate(CELL, (instance_id(1),))])
    for vcpus, ordered in ((4, 0), (8, 1), (12, 2)):
        (note,) = decided(state, NoteOrder, vcpu_quotas=(VcpuQuota(CELL, "spot", "standard", vcpus),)) or (None,)
        assert (note.note.instances if note else 0) <= ordered


def test_a_cap_on_money_an_hour_holds_back_tasks_on_instances_that_others_have_bought() -> None:
    """An idle instance costs as much an hour as one that is bought."""
    for usd, starts in ((0.2, 4), (0.05, 0)):
        state = state_with_instance(tasks=4, capacity={"maxHourlyCost": usd})
        for instance in state.instances.values():
            instance.price_usd_per_hour = 0.07
        assert len(decided(state, Launch)) == starts
