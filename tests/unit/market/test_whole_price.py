"""An hour of an instance is bought, capped and forecast with its disk and its address; EC2's price is not all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from argosy.catalogue.lookup import image_gb, load_catalogue, overheads_of, transfer_usd_per_gb
from argosy.market.limits import BatchLimits, OrderLimits
from argosy.market.offers import offers_of, rejected
from argosy.market.order import Backlog, buy
from argosy.model.instances import Purchase
from argosy.model.policy import Policy
from argosy.model.pools import Offer, Pool
from argosy.placement.demand import Batch
from tests.builders import CELL, NOW

CATALOGUE, POLICY = load_catalogue(), Policy()
SMALL, LARGE = "c5.large", "c5.4xlarge"  # 2 and 16 vCPUs
OF_VCPU = 0.017  # USD an hour on spot


def pools(**prices: float) -> list[Pool]:
    """prices: USD an hour on spot in EC2, by type with _ for its dot."""
    return [
        Pool(CELL, kind, f"{CELL}a", "fleet", spot_usd_per_hour=usd, priced_at=NOW)
        for kind, usd in ((name.replace("_", "."), usd) for name, usd in prices.items())
    ]


def spot(offers: list[Offer]) -> dict[str, Offer]:
    return {each.instance_type: each for each in offers if each.purchase is Purchase.SPOT}


def test_an_offer_costs_its_instance_with_disk_and_address_on_spot_and_on_demand() -> None:
    by_purchase = {each.purchase: each for each in offers_of(pools(c5_large=0.034), CATALOGUE, NOW)}
    more = overheads_of(CELL, 60, True).usd_per_hour
    assert by_purchase[Purchase.SPOT].price_usd_per_hour == pytest.approx(0.034 + more)
    assert by_purchase[Purchase.ON_DEMAND].price_usd_per_hour == pytest.approx(0.085 + more)
    assert all(each.effective > each.price_usd_per_hour for each in by_purchase.values())


def test_a_gpu_instance_pays_for_its_larger_disk_and_a_private_one_for_no_address() -> None:
    private = replace(POLICY, public_addresses=False, disk_gib_by_type=(("c5.*", 100),))
    found = spot(offers_of(pools(c5_large=0.03, g5_xlarge=0.4), CATALOGUE, NOW, private))
    assert found["g5.xlarge"].price_usd_per_hour == pytest.approx(0.4 + (150 * 0.08 + 125 * 0.04) / 730)
    assert found["c5.large"].price_usd_per_hour == pytest.approx(0.03 + 100 * 0.08 / 730)


@pytest.mark.parametrize(("more_for_large", "bought"), [(1.05, LARGE), (1.6, SMALL)])
def test_small_instances_are_bought_only_where_they_are_cheaper_with_a_disk_and_an_address_each(
    more_for_large: float, bought: str
) -> None:
    """By EC2's price alone, eight small ones would be bought in both cases."""
    market = pools(c5_large=2 * OF_VCPU, c5_4xlarge=16 * OF_VCPU * more_for_large)
    offers = [each for each in offers_of(market, CATALOGUE, NOW) if each.purchase is Purchase.SPOT]
    backlog = Backlog(Batch(1024, 1024, 0, 16, group="a"), BatchLimits(100))
    assert {pool.split("/")[1] for pool, _ in buy([backlog], offers, OrderLimits(100)).instances} == {bought}
    in_ec2 = {pool.key: pool.spot_usd_per_hour for pool in market}
    bare = [
        replace(each, price_usd_per_hour=in_ec2[each.pool], effective_usd_per_hour=in_ec2[each.pool])
        for each in sorted(offers, key=lambda each: in_ec2[each.pool])
    ]
    assert {pool.split("/")[1] for pool, _ in buy([backlog], bare, OrderLimits(100)).instances} == {SMALL}


def test_price_caps_are_for_the_price_in_ec2() -> None:
    capped = replace(POLICY, max_usd_per_hour=0.035)
    assert not rejected(pools(c5_large=0.034), CATALOGUE, NOW, capped)
    assert rejected(pools(c5_large=0.036), CATALOGUE, NOW, capped)


def test_images_from_another_region_make_an_instance_there_less_attractive_and_not_dearer() -> None:
    away = Pool("eu-west-1", "c5.large", "eu-west-1a", "fleet", spot_usd_per_hour=0.034, priced_at=NOW)
    [alone, told] = [
        spot(offers_of([away], CATALOGUE, NOW, replace(POLICY, data_cell=home)))["c5.large"]
        for home in ("eu-west-1", "us-east-1")
    ]
    assert told.price_usd_per_hour == alone.price_usd_per_hour
    pulls = 3600 / POLICY.planned_life_s + told.interruption_rate
    pull_usd = image_gb(has_gpus=False) * transfer_usd_per_gb("us-east-1", "eu-west-1")
    assert told.effective == pytest.approx(alone.effective + pulls * pull_usd)
