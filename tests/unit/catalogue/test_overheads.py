"""The costs of an instance in addition to its price in EC2: the figures, against AWS's own examples and prices."""

from __future__ import annotations

import pytest

from argosy.catalogue.files import document
from argosy.catalogue.lookup import (
    image_gb,
    is_listed,
    log_gb_per_attempt,
    logs_usd_per_gb,
    offered,
    overheads_of,
    transfer_usd_per_gb,
)

REGIONS = tuple(document("offered.json")["regions"])


def test_a_c5_large_at_35_cents_for_ten_hours_costs_a_third_more() -> None:
    """60 GiB x $0.08 / 730 h + $0.005."""
    more = overheads_of("us-east-1", 60, True)
    assert more.disk_usd_per_hour == pytest.approx(0.006575, abs=1e-6)
    assert more.address_usd_per_hour == 0.005
    assert more.usd_per_hour / 0.035 == pytest.approx(1 / 3, abs=0.01)


def test_a_volume_costs_what_aws_says_in_its_example() -> None:
    """2,000 GB for 12 h of a 30-day month at $0.08: $2.67 (https://aws.amazon.com/ebs/pricing/, example 1). A mean
    month is 1.4 % longer."""
    hours_of_30_days = 30 * 24
    example = 0.08 * 2000 * 12 / hours_of_30_days
    assert example == pytest.approx(2.67, abs=0.01)
    assert overheads_of("us-east-1", 2000, False).usd_per_hour * 12 == pytest.approx(example * hours_of_30_days / 730)


def test_without_public_subnets_no_address_is_paid() -> None:
    private = overheads_of("us-east-1", 60, False)
    assert private.address_usd_per_hour == 0
    assert private.usd_per_hour == private.disk_usd_per_hour == overheads_of("us-east-1", 60, True).disk_usd_per_hour


@pytest.mark.parametrize("region", REGIONS)
def test_every_region_has_plausible_prices_and_unknown_ones_are_assumed_high(region: str) -> None:
    assert offered(region)
    per_gb_month = overheads_of(region, 730, False).usd_per_hour
    assert 0.08 <= per_gb_month <= 0.16
    assert is_listed(region) or per_gb_month == pytest.approx(0.1056)
    assert 0.5 <= logs_usd_per_gb(region) <= 1
    assert 0.01 <= transfer_usd_per_gb(region) <= 0.15


def test_traffic_is_priced_by_the_region_that_it_leaves_and_free_within_one() -> None:
    assert transfer_usd_per_gb("us-east-1", "us-east-1") == 0
    assert transfer_usd_per_gb("us-east-1", "eu-west-1") == transfer_usd_per_gb("us-east-1") == 0.02
    assert transfer_usd_per_gb("sa-east-1", "us-east-1") > transfer_usd_per_gb("us-east-1", "sa-east-1")
    assert transfer_usd_per_gb("us-east-1", "us-east-2") == transfer_usd_per_gb("us-east-2", "us-east-1") == 0.01


def test_assumed_figures_are_marked_as_such() -> None:
    assert {"imageGb", "imageGbWithGpus", "logKbPerAttempt"} == document("overheads.json")["assumed"].keys()
    assert image_gb(has_gpus=True) > image_gb(has_gpus=False) > 0
    assert 0 < log_gb_per_attempt() < 1e-3
