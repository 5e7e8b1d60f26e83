"""The cost of an interruption, and the market's offers and refusals because of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from argosy.catalogue.lookup import load_catalogue
from argosy.market import risk
from argosy.market.offers import SIMILAR_PRICE, is_stale, offers_of, rate_of, rate_source, rejected
from argosy.model.instance_types import InstanceType
from argosy.model.instances import Purchase
from argosy.model.policy import Policy
from argosy.model.pools import Offer, Pool, as_registered
from tests.builders import CELL, NOW, whole

CATALOGUE = load_catalogue()
POLICY = Policy()


def pool(instance_type: str = "c5.xlarge", zone: str = "us-east-1a", **values: Any) -> Pool:
    given = {"fleet_id": "fleet-1", "spot_usd_per_hour": 0.05, "priced_at": NOW, **values}
    return Pool(CELL, instance_type, zone, **given)


def spot(
    one: Pool, policy: Policy = POLICY, catalogue: Mapping[str, InstanceType] = CATALOGUE, **options: Any
) -> Offer | None:
    offers = offers_of([one], catalogue, NOW, policy, **options)
    return next((offer for offer in offers if offer.purchase is Purchase.SPOT), None)


def why_not(one: Pool, policy: Policy = POLICY, purchase: Purchase = Purchase.SPOT) -> str:
    return dict(rejected([one], CATALOGUE, NOW, policy, purchase)).get(one.key, "")


def test_rare_interruptions_redo_half_an_attempt_each() -> None:
    assert risk.redo_share(0.01, 600.0) == pytest.approx(0.01 * 300 / 3600, rel=1e-3)


def test_the_redo_share_is_that_of_attempts_that_start_over() -> None:
    """Against a drawn Poisson process: an attempt of one hour, a mean life of two."""
    lives = np.random.default_rng(1).exponential(7200.0, 400_000)
    tries_lost = lives[lives < 3600.0]
    paid = 3600.0 * (len(lives) - len(tries_lost)) + tries_lost.sum()
    share = paid / (3600.0 * (len(lives) - len(tries_lost))) - 1
    assert risk.redo_share(0.5, 3600.0) == pytest.approx(share, rel=0.02)


def test_boot_time_is_shared_by_the_expected_life() -> None:
    assert risk.boot_share(0.0, 180.0, 3600.0) == pytest.approx(0.05)
    assert risk.boot_share(1.0, 180.0, 3600.0) == pytest.approx(0.10)


def test_the_formula_takes_arrays() -> None:
    prices = risk.effective_price(np.array([1.0, 2.0]), risk.redo_share(np.array([0.0, 0.1]), 600.0))
    assert prices[0] == pytest.approx(1.0)
    assert prices[1] == pytest.approx(2 * (1 + 0.1 / 12), rel=1e-3)


def test_without_own_counts_the_band_speaks_and_with_many_we_do() -> None:
    assert risk.interruption_rate(risk.rate_of_band(0), 0, 0) == pytest.approx(risk.RATE_OF_BAND[0])
    assert risk.interruption_rate(risk.rate_of_band(None), 0, 0) == pytest.approx(risk.UNKNOWN_RATE)
    assert risk.interruption_rate(risk.rate_of_band(0), 50, 100) == pytest.approx(0.5, rel=0.05)
    assert risk.interruption_rate(risk.rate_of_band(4), 0, 1000) < risk.RATE_OF_BAND[4] / 100


def test_bands_are_in_order() -> None:
    assert list(risk.RATE_OF_BAND) == sorted(risk.RATE_OF_BAND)


def test_own_counts_fade_until_the_band_is_all_that_is_left() -> None:
    hot = pool(interruptions=3.0, instance_hours=3.0, rate_at=NOW)
    rates = [rate_of(hot, NOW + hours * 3600, POLICY) for hours in (0, 6, 24, 240)]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == pytest.approx(3 / 7, rel=0.01)
    assert rates[-1] == pytest.approx(risk.RATE_OF_BAND[0], rel=0.01)


def test_what_is_optimised_is_dearer_than_what_is_paid() -> None:
    calm, hot = spot(pool()), spot(pool(interruptions=2.0, instance_hours=2.0, rate_at=NOW))
    assert calm is not None
    assert hot is not None
    assert calm.price_usd_per_hour == hot.price_usd_per_hour == whole(0.05)
    assert whole(0.05) < calm.effective < hot.effective


def test_longer_attempts_make_a_risky_pool_dearer() -> None:
    hot = pool(interruptions=2.0, instance_hours=2.0, rate_at=NOW)
    short, long = spot(hot, attempt_s=60.0), spot(hot, attempt_s=7200.0)
    assert short is not None
    assert long is not None
    assert long.effective > 1.3 * short.effective


def test_a_pool_is_unsettled_by_more_than_zones_may_differ_in_price() -> None:
    calm, unsettled = spot(pool()), spot(pool(unsettled_until=NOW + 1))
    assert calm is not None
    assert unsettled is not None
    assert unsettled.effective == pytest.approx(calm.effective * risk.UNSETTLED)
    assert risk.UNSETTLED > SIMILAR_PRICE


def test_a_placement_score_moves_the_price_by_a_tenth_at_most() -> None:
    assert risk.score_factor(0) == risk.score_factor(10) == 1.0
    assert risk.score_factor(1) == pytest.approx(1.1)
    assert [risk.score_factor(score) for score in range(1, 11)] == sorted(
        (risk.score_factor(score) for score in range(1, 11)), reverse=True
    )


def test_the_accounts_record_stands_between_the_advisors_band_and_the_deployments_own_count() -> None:
    quiet, hit = pool(), pool(account_interruptions=20.0, account_hours=100.0)
    own = pool(account_interruptions=20.0, account_hours=100.0, interruptions=0.0, instance_hours=400.0, rate_at=NOW)
    assert rate_of(hit, NOW, POLICY) == pytest.approx(0.2, rel=0.05)
    assert rate_of(quiet, NOW, POLICY) < rate_of(own, NOW, POLICY) < 0.01
    assert [rate_source(each, NOW, POLICY) for each in (quiet, hit, own)] == ["advisor", "account", "own"]


def test_on_demand_is_never_interrupted() -> None:
    hot = pool(interruptions=9.0, instance_hours=1.0, rate_at=NOW, unsettled_until=NOW + 60, placement_score=1)
    (offer,) = (o for o in offers_of([hot], CATALOGUE, NOW) if o.purchase is Purchase.ON_DEMAND)
    assert offer.effective == pytest.approx(whole(0.17) * (1 + POLICY.boot_s / POLICY.planned_life_s))


@pytest.mark.parametrize("price", [0.0, -1.0, math.nan, math.inf])
def test_a_price_that_is_none_is_replaced_by_the_typical_one(price: float) -> None:
    offer = spot(pool(spot_usd_per_hour=price))
    assert offer is not None
    assert offer.price_usd_per_hour == whole(CATALOGUE["c5.xlarge"].typical_spot_usd_per_hour)


def test_a_type_without_any_price_makes_no_offer_and_says_so() -> None:
    bare = replace(CATALOGUE["c5.xlarge"], on_demand_usd_per_hour=0.0, typical_spot_usd_per_hour=0.0)
    unpriced, catalogue = pool(spot_usd_per_hour=0.0), {"c5.xlarge": bare}
    assert offers_of([unpriced], catalogue, NOW) == []
    assert rejected([unpriced], catalogue, NOW) == [(unpriced.key, "its price is unknown")]


def test_an_old_price_is_believed_up_to_the_limit_and_then_replaced_by_on_demands() -> None:
    old = pool(priced_at=NOW - POLICY.price_limit_s)
    assert not is_stale(old, NOW, POLICY)
    assert is_stale(old, NOW + 1, POLICY)
    older = replace(old, priced_at=old.priced_at - 1)
    offer = spot(older)
    assert offer is not None
    assert offer.price_usd_per_hour == whole(CATALOGUE["c5.xlarge"].on_demand_usd_per_hour)


def test_a_price_from_a_version_that_did_not_note_its_time_is_believed() -> None:
    offer = spot(pool(priced_at=0.0))
    assert offer is not None
    assert offer.price_usd_per_hour == whole(0.05)


def test_every_pool_without_an_offer_has_its_reason() -> None:
    assert why_not(pool()) == ""
    assert "unknown type: z9.large" in why_not(pool("z9.large"))
    assert why_not(pool(fleet_id="")) == "there is no fleet for it"
    cooling = pool(short_until=NOW + 60, short_reason="no capacity")
    assert why_not(cooling) == "cooling off until 08:01:00 UTC after no capacity"
    assert why_not(cooling, purchase=Purchase.ON_DEMAND) == ""
    assert "cooling off" in why_not(pool(on_demand_short_until=NOW + 60), purchase=Purchase.ON_DEMAND)


@pytest.mark.parametrize(
    ("instance_type", "cap", "sentence"),
    [
        ("c5.xlarge", {"max_usd_per_hour": 0.04}, "$0.05 an hour is above priceCaps.perInstanceHour ($0.04)"),
        (
            "c5.xlarge",
            {"max_usd_per_vcpu_hour": 0.01},
            "$0.0125 an hour for each vCPU is above priceCaps.perVcpuHour ($0.01)",
        ),
        (
            "p3.8xlarge",
            {"max_usd_per_gpu_hour": 0.01},
            "$0.0125 an hour for each GPU is above priceCaps.perGpuHour ($0.01)",
        ),
    ],
)
def test_what_is_above_a_cap_is_refused_with_the_cap(instance_type: str, cap: dict[str, float], sentence: str) -> None:
    policy = replace(POLICY, **cap)
    assert why_not(pool(instance_type), policy) == sentence
    assert offers_of([pool(instance_type)], CATALOGUE, NOW, policy) == []


def test_the_cap_for_vcpus_does_not_concern_types_with_gpus_nor_the_other_way_round() -> None:
    assert spot(pool("p3.8xlarge"), replace(POLICY, max_usd_per_vcpu_hour=0.0001)) is not None
    assert spot(pool("c5.xlarge"), replace(POLICY, max_usd_per_gpu_hour=0.0001)) is not None


def test_no_pools_make_no_offers_and_no_complaints() -> None:
    assert offers_of([], CATALOGUE, NOW) == rejected([], CATALOGUE, NOW) == []


def test_a_pool_of_another_region_has_its_own_on_demand_price() -> None:
    tokyo = Pool("ap-northeast-1", "c5.xlarge", "ap-northeast-1a", "fleet-2")
    (offer,) = (o for o in offers_of([tokyo], CATALOGUE, NOW) if o.purchase is Purchase.ON_DEMAND)
    there = load_catalogue("ap-northeast-1")["c5.xlarge"].on_demand_usd_per_hour
    assert offer.price_usd_per_hour == whole(there, cell="ap-northeast-1") > there > 0.17


def test_what_really_registered_replaces_the_estimate_for_all_pools_of_the_type() -> None:
    seen, other = pool(registered_memory_mib=7300), pool(zone="us-east-1b")
    known = as_registered(CATALOGUE, [seen, pool(registered_memory_mib=7400), pool("z9.large")])
    assert {offer.resources.memory_mib for offer in offers_of([seen, other], known, NOW)} == {7300}
    assert as_registered(CATALOGUE, [other]) is CATALOGUE
