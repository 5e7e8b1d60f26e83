"""The adapter of the spot market against the simulated EC2, in strict mode: requests and replies have AWS's shape."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.aws.call_rates import CallRates
from argosy.aws.cell import Cell, HomeClients
from argosy.aws.executor import AwsExecutor
from argosy.catalogue.lookup import load_catalogue
from argosy.emulator.ec2.market import walking_prices
from argosy.emulator.ec2.service import Ec2Setup
from argosy.model.events import FleetSeen, Observed
from argosy.model.state import State
from tests.builders import CELL
from tests.fakes.aws import DEPLOYMENT, ScriptedClient
from tests.harness.simulation.world.world import World

TYPES = ("c5.large", "c5.xlarge", "c5.2xlarge")
ZONES = ("us-east-1a", "us-east-1b")


def observed(world: World, placement_scores: bool) -> dict[str, FleetSeen]:
    cell = Cell(
        CELL, world.cluster, world.ecs_client(), world.ec2_client(), CallRates.of_aws(world.clock, world.run_for)
    )
    executor = AwsExecutor(
        replace(DEPLOYMENT, placement_scores=placement_scores),
        [cell],
        HomeClients(None, ScriptedClient("events")),
        world.clock,
    )
    sweep: Any = executor.observe(world.now, State())
    assert isinstance(sweep, Observed)
    return {f"{seen.instance_type}/{seen.zone}": seen for seen in sweep.fleets}


@pytest.fixture
def world() -> World:
    catalogue = load_catalogue()
    world = World(Ec2Setup(catalogue, prices=walking_prices(catalogue)))
    world.ec2.add_launch_template("argosy", image_id="ami-1", tags={"argosy:stage": "main"})
    for name in TYPES:
        for zone in ZONES:
            world.add_fleet(name, zone, **{"argosy:stage": "main", "argosy:pool": f"{name}/{zone}"})
    return world


def test_a_sweep_shows_the_price_in_force_of_every_pool_and_when_it_was_asked_for(world: World) -> None:
    price = walking_prices(load_catalogue())
    seen = observed(world, placement_scores=False)
    assert len(seen) == len(TYPES) * len(ZONES)
    for each in seen.values():
        assert each.spot_usd_per_hour == pytest.approx(price(each.instance_type, each.zone, world.now), abs=1e-6)
        assert each.priced_at == world.now
        assert each.placement_score is None


def test_with_the_setting_a_sweep_shows_placement_scores(world: World) -> None:
    for name in TYPES:
        world.ec2.set_shortage(f"{name}/us-east-1b", 0)
    seen = observed(world, placement_scores=True)
    assert {pool.rpartition("/")[2]: each.placement_score for pool, each in seen.items()} == {
        "us-east-1a": 10,
        "us-east-1b": 1,
    }
