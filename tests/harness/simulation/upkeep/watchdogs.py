"""The watchdogs of a trial's deployment. They run every quarter of an hour, like their schedules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from argosy.aws import cell_records, watchdog
from tests.harness.simulation.controllers.deployment import TABLE, SimulatedDeployment
from tests.harness.simulation.controllers.invocations import TICK_RULE
from tests.harness.simulation.upkeep.cells import FurtherCell
from tests.harness.simulation.upkeep.teardown import deployed_cell
from tests.harness.simulation.world.deployed_fleets import STAGE

EVERY_S = 900.0
Say = Callable[[str, dict[str, Any]], None]


class Watchdogs:
    """Home's, and that of the further cell while its stack exists. `say` receives whatever they end."""

    def __init__(self, deployment: SimulatedDeployment, cell: FurtherCell | None, say: Say) -> None:
        self._deployment, self._cell, self._say = deployment, cell, say
        self._home = deployed_cell(deployment, deployment.world.region)

    def begin(self) -> None:
        self._deployment.world.later(EVERY_S, self._look)

    def _look(self) -> None:
        self.begin()
        now, ec2 = self._deployment.world.now, self._home.ec2
        records = cell_records.read(self._home.dynamodb, TABLE)
        assert records is not None  # the table outlives a trial
        if not self._deployment.is_torn_down:
            clients = {each: ec2(each) for each in sorted({*self._deployment.named, *records.cells})}
            say = partial(self._say, "home's watchdog")
            watchdog.look(watchdog.WatchTurn(now, STAGE, say), records.heartbeat, clients)
            home = watchdog.HomeTick(self._home.dynamodb, TABLE, self._home.events, TICK_RULE)
            watchdog.wake(home, records, now=now)
        if self._cell is not None and self._cell.standing:
            region, say = self._cell.region, partial(self._say, "the cell's watchdog")
            watchdog.look_at_cell(watchdog.WatchTurn(now, STAGE, say), region, records, ec2(region))
