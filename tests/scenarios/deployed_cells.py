"""Two deployed cells with all that is deployed besides the controller: home's table, the guard, watchdogs and
teardowns."""

from __future__ import annotations

from typing import Any

from argosy.aws import cell_guard, cell_records, teardown, watchdog
from argosy.aws.cell import Cell
from argosy.aws.dynamodb import DynamoStore
from argosy.aws.teardown import DeployedCell
from argosy.emulator.botocore_check import SimulatedClient
from argosy.emulator.dynamodb import DynamoModel
from tests.builders import CELL
from tests.fakes.ending import FakeTable
from tests.harness.simulation.world.bus import BusModel
from tests.scenarios.two_cells import AWAY, TwoCells

TABLE, STAGE, TICK_RULE = "argosy-state", "main", "argosy-tick"
WATCHDOG_S, PASS_S = 15 * 60.0, 20.0
BOTH = (CELL, AWAY)


class DeployedCells(TwoCells):
    """`deploy` is what `cdk deploy` does with the settings' cells; time passes for the watchdogs of both stacks too."""

    def __init__(self, prices: dict[str, float], work_s: float = 60.0) -> None:
        self.named: tuple[str, ...] = BOTH
        super().__init__(prices, work_s)
        self.tables, self.bus = DynamoModel(), BusModel()
        self.dynamodb: Any = SimulatedClient(self.tables, "dynamodb")
        self.store: Any = DynamoStore(self.dynamodb, TABLE)
        self.freed: list[dict[str, Any]] = []  # what the watchdogs said
        self.watched_at = self.world.now
        self.deploy(*BOTH)

    def deploy(self, *cells: str) -> None:
        """Raises CellInUse, and then nothing has changed."""
        before, home = self.named, cell_guard.Home(STAGE, TABLE, self.dynamodb, self.ec2_of)
        cell_guard.take_over(home, cells, before)
        self.named = cells
        self.controllers = [self.controller()]

    def cells(self, ecs: Any = None) -> list[Cell]:
        return [cell for cell in super().cells(ecs) if cell.name in self.named]

    def ec2_of(self, cell: str) -> Any:
        return self.world_of(cell).ec2_client()

    def lose_home(self) -> None:
        """Its stack is gone, with controller, watchdog and table, and its teardown did nothing."""
        self.controllers, self.dynamodb = [], FakeTable(gone=True)

    def tick(self) -> bool:
        at_rest = super().tick()
        if self.controllers:
            self.store.beat(self.world.now)
        if self.world.now - self.watched_at >= WATCHDOG_S:
            self.watched_at = self.world.now
            self.watch()
        return at_rest

    def watch(self) -> None:
        """Home's function, while there is a home, and that of the further cell's stack."""
        turn = watchdog.WatchTurn(self.world.now, STAGE, self.freed.append)
        records = cell_records.read(self.dynamodb, TABLE)
        if records:
            regions = sorted({*self.named, *records.cells})
            ec2 = {region: self.ec2_of(region) for region in regions}
            watchdog.look(turn, records.heartbeat, ec2)
        watchdog.look_at_cell(turn, AWAY, records, self.ec2_of(AWAY))

    def destroy(self, cell: str, limit_s: float = 3300.0) -> float:
        """The teardown of a cell's stack while everything else goes on; how long it took."""
        there, began = self._deployed(cell), self.world.now
        event: dict[str, Any] = {"RequestType": "Delete"}
        event |= teardown.begin(event, there, began)
        while not teardown.complete(event, there, self.world.now, deadline=0.0, clock=self.world.clock):
            self.run_for(PASS_S)
            assert self.world.now - began < limit_s, "the teardown does not end"
        return self.world.now - began

    def alive_in(self, cell: str) -> int:
        records = self.world_of(cell).ec2.ledger.instances.values()
        return sum(each.alive for each in records)

    def targets_in(self, cell: str) -> int:
        return sum(
            fleet["TargetCapacitySpecification"]["TotalTargetCapacity"]
            for fleet in self.ec2_of(cell).describe_fleets()["Fleets"]
        )

    def _deployed(self, cell: str) -> DeployedCell:
        world = self.world_of(cell)
        return DeployedCell(
            stage=STAGE,
            region=cell,
            home=CELL,
            cluster=world.cluster,
            table=TABLE,
            tick_rule=TICK_RULE,
            empty_bucket=None,
            ec2=self.ec2_of,
            ecs=world.ecs_client(),
            dynamodb=self.dynamodb,
            events=SimulatedClient(self.bus, "events"),
            s3=None,
        )
