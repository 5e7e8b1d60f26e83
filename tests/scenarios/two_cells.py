"""A controlled cluster of two cells, of one pool each, on one clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from argosy.aws.call_rates import CallRates
from argosy.aws.cell import Cell
from argosy.catalogue.lookup import load_catalogue
from argosy.emulator.ec2.service import Ec2Setup
from tests.builders import CELL
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.harness.simulation.world.world import Behaviour, World
from tests.scenarios.controlled import Controlled

AWAY = "eu-west-1"


POOLS = {CELL: "c5.xlarge/us-east-1a", AWAY: "c5.xlarge/eu-west-1a"}


class TwoCells(Controlled):
    """Home and one Region more, of one pool each, on one clock. `prices`: USD an hour on spot, by cell."""

    def __init__(self, prices: Mapping[str, float], work_s: float = 60.0) -> None:
        self.away: World | None = None
        super().__init__(zones=("us-east-1a",), work_s=work_s, prices=lambda *where: prices[CELL])
        self.away = World(
            Ec2Setup(load_catalogue(AWAY), ("eu-west-1a",), prices=lambda *where: prices[AWAY]),
            Behaviour(lambda task, instance: TaskBehaviour(duration_s=work_s)),
            region=AWAY,
            timeline=self.world.timeline,
        )
        self.away.record_events()
        self.away.sinks.append(self.events)
        self.away.ec2.add_launch_template("argosy", image_id="ami-1", tags={"argosy:stage": "main"})
        tags: dict[str, Any] = {"argosy:stage": "main", "argosy:pool": POOLS[AWAY]}
        self.away.add_fleet("c5.xlarge", "eu-west-1a", **tags)
        self.controllers = [self.controller()]

    def cells(self, ecs: Any = None) -> list[Cell]:
        cells = super().cells(ecs)
        if self.away is None:
            return cells
        rates = CallRates.of_aws(self.world.clock, self.pass_time)
        return [*cells, Cell(AWAY, self.away.cluster, self.away.ecs_client(), self.away.ec2_client(), rates)]

    def dry_up(self, cell: str) -> None:
        """No more spot capacity is available there, and the existing instances are taken away."""
        world = self.world_of(cell)
        world.ec2.set_shortage(POOLS[cell], 0)
        for instance in list(world.ec2.ledger.instances.values()):
            if instance.alive:
                world.interrupt(instance.instance_id, notice_s=1.0)

    def world_of(self, cell: str) -> World:
        assert self.away is not None
        return self.world if cell == CELL else self.away

    def ran_in(self, run_id: str) -> Counter[str]:
        """How many of the run's tasks succeeded in each cell."""
        found: Counter[str] = Counter()
        for cell in POOLS:
            ended: dict[str, bool] = {}
            for message in self.world_of(cell).events:
                if message["detail-type"] == "ECS Task State Change" and message["detail"]["lastStatus"] == "STOPPED":
                    environment = message["detail"]["overrides"]["containerOverrides"][0]["environment"]
                    mine = {"name": "ARGOSY_RUN_ID", "value": run_id} in environment
                    well = mine and message["detail"]["containers"][0].get("exitCode") == 0
                    ended[message["detail"]["taskArn"]] = well
            found[cell] = sum(ended.values())
        return +found
