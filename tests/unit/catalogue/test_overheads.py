"""The costs of an instance in addition to its price in EC2: the figures, against AWS's own examples and prices."""

from __future__ import annotations

import pytest

from argosy.catalogue.files import document
from argosy.catalogue.lookup import (
    image_gb,
    is_listed,
    load_catalogue,
    log_gb_per_attempt,
    logs_usd_per_gb,
    offered,
    overheads_of,
    transfer_usd_per_gb,
)
from argosy.model.policy import Policy

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


@pytest.mark.parametrize(
    ("name", "mibps", "usd_a_month"),
    [
        ("c5.large", 125, 60 * 0.08),
        ("c5.9xlarge", 250, 60 * 0.08 + 125 * 0.04),
        ("p3.2xlarge", 250, 150 * 0.08 + 125 * 0.04),
        ("p3.8xlarge", 500, 150 * 0.08 + 375 * 0.04),
    ],
)
def test_the_throughput_of_a_volume_fits_the_type_and_is_paid(name: str, mibps: int, usd_a_month: float) -> None:
    """40.96 USD a GiB/s and month above 125 MiB/s, us-east-1's price list."""
    policy, kind = Policy(), load_catalogue()[name]
    assert policy.disk_mibps_of(kind) == mibps
    billed = overheads_of("us-east-1", policy.billed_disk_gib_of(kind), False)
    assert billed.disk_usd_per_hour * 730 == pytest.approx(usd_a_month)


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
