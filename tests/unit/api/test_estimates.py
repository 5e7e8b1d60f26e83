"""The estimated cost of a run beyond its ledger: logs, and image pulls from the home Region."""

from __future__ import annotations

from dataclasses import replace

import pytest

from argosy.api.runs.costs import estimates
from argosy.catalogue.lookup import image_gb, log_gb_per_attempt
from argosy.model.costs import Costs
from argosy.model.resources import Resources
from argosy.model.run_record import RunRecord
from tests.builders import RUN_ID

HOME, AWAY = "us-east-1", "eu-west-1"
LEDGER = {
    f"{HOME}/c5.large/{HOME}a|spot": Costs(useful=1.0, instance_seconds=3600.0),
    f"{AWAY}/c5.large/{AWAY}a|spot": Costs(useful=1.0, instance_seconds=3 * 3600.0),
    "(other pools)": Costs(useful=9.0, instance_seconds=9e9),  # its place is no longer known
}
RECORD = replace(
    RunRecord.of_unreadable(RUN_ID),
    image="argosy/digits",
    attempts=100_000,
    instances=tuple(f"i-{n}" for n in range(40)),
    costs=LEDGER,
)


def test_logs_are_priced_where_the_time_was_spent() -> None:
    """100,000 attempts of 10 KB are 1 GB; a quarter of it at $0.50 in Virginia, the rest at $0.57 in Ireland."""
    assert 100_000 * log_gb_per_attempt() == pytest.approx(1.0)
    assert estimates(RECORD, HOME)["logsUsd"] == pytest.approx(0.25 * 0.50 + 0.75 * 0.57)


def test_images_are_pulled_by_the_instances_outside_the_home_region() -> None:
    """Thirty of forty instances, at $0.02 a GB from Virginia."""
    assert estimates(RECORD, HOME)["imageTransferUsd"] == pytest.approx(30 * image_gb(has_gpus=False) * 0.02)
    on_gpus = replace(RECORD, needs=Resources(1024, 1024, 1))
    assert estimates(on_gpus, HOME)["imageTransferUsd"] == pytest.approx(30 * image_gb(has_gpus=True) * 0.02)
    assert estimates(on_gpus, HOME)["assumed"]["imageGb"] == image_gb(has_gpus=True)


@pytest.mark.parametrize(
    ("image", "found"),
    [
        ("123456789012.dkr.ecr.us-east-1.amazonaws.com/mine:1", True),
        ("123456789012.dkr.ecr.eu-west-1.amazonaws.com/mine:1", False),
        ("public.ecr.aws/docker/library/python:3.13", False),
        (None, False),
    ],
)
def test_only_images_of_the_home_regions_registry_are_billed_for_their_way(image: str | None, found: bool) -> None:
    assert (estimates(replace(RECORD, image=image), HOME)["imageTransferUsd"] > 0) is found


def test_without_a_home_region_no_traffic_is_priced_and_without_time_nothing_is() -> None:
    assert estimates(RECORD, "")["imageTransferUsd"] == 0
    idle = estimates(replace(RECORD, costs={}), HOME)
    assert (idle["logsUsd"], idle["imageTransferUsd"]) == (0, 0)
