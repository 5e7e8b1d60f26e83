"""The simulated spot market: placement scores, and prices with a history."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from argosy.catalogue.lookup import load_catalogue
from argosy.emulator.ec2.market import WALK_STEP_S, walking_prices
from argosy.emulator.ec2.service import Ec2Setup
from tests.harness.simulation.world.world import START, World

TYPES = ["c5.large", "c5.xlarge", "c5.2xlarge"]


def scores(world: World, **request: object) -> dict[str, int]:
    asked = {"InstanceTypes": TYPES, "TargetCapacity": 5, "SingleAvailabilityZone": True, **request}
    rows = world.ec2_client().get_spot_placement_scores(**asked)["SpotPlacementScores"]
    return {row.get("AvailabilityZoneId", row["Region"]): row["Score"] for row in rows}


def test_a_zone_that_lacks_capacity_has_a_lower_score() -> None:
    world = World(Ec2Setup(load_catalogue()))
    for name in TYPES[:2]:
        world.ec2.set_shortage(f"{name}/us-east-1b", 0)
    assert scores(world) == {"us-east-1-az1": 10, "us-east-1-az2": 4, "us-east-1-az3": 10}
    assert scores(world, SingleAvailabilityZone=False) == {"us-east-1": 10}


def test_fewer_than_three_types_always_score_low() -> None:
    assert set(scores(World(Ec2Setup(load_catalogue())), InstanceTypes=TYPES[:2]).values()) == {1}


def test_another_region_has_no_scores_and_an_unknown_type_is_refused() -> None:
    world = World(Ec2Setup(load_catalogue()))
    assert scores(world, RegionNames=["eu-west-1"]) == {}
    with pytest.raises(ClientError, match=r"z9\.large"):
        scores(world, InstanceTypes=["z9.large"])


def test_walking_prices_are_the_same_whenever_asked_and_near_the_typical_one() -> None:
    catalogue = load_catalogue()
    price, again = walking_prices(catalogue), walking_prices(catalogue)
    for name in ("c5.large", "p3.2xlarge"):
        typical = catalogue[name].typical_spot_usd_per_hour
        week = [price(name, "us-east-1a", START + step * WALK_STEP_S) for step in range(28)]
        assert week == [again(name, "us-east-1a", START + step * WALK_STEP_S) for step in range(28)]
        assert all(0.83 * typical <= each <= 1.17 * typical for each in week)
        assert len(set(week)) > 20
        assert price(name, "us-east-1b", START) != week[0]


def test_a_week_of_prices_is_a_change_log() -> None:
    catalogue = load_catalogue()
    world = World(Ec2Setup(catalogue, prices=walking_prices(catalogue)))
    asked = {"InstanceTypes": ["c5.large"], "AvailabilityZone": "us-east-1a", "StartTime": START - 7 * 86_400}
    rows = world.ec2_client().describe_spot_price_history(**asked)["SpotPriceHistory"]
    assert 28 <= len(rows) <= 30
    assert [row["Timestamp"] for row in rows] == sorted((row["Timestamp"] for row in rows), reverse=True)
