"""The further cell of a trial: it is left out of the settings, or destroyed, and put back later.

As in a deployment, the guard of home's stack refuses to leave out a cell at work, and the teardown of the cell's stack
frees it. Controllers get new settings when their processes end: some continue for a while with the old ones.
"""

from __future__ import annotations

from typing import Any

from argosy.aws import cell_guard, teardown
from tests.harness.simulation.audit.auditor import Auditor
from tests.harness.simulation.controllers.deployment import TABLE, SimulatedDeployment
from tests.harness.simulation.faults import Faults
from tests.harness.simulation.upkeep.teardown import deployed_cell
from tests.harness.simulation.world.deployed_fleets import STAGE, add_fleets, fleet_is_ours
from tests.harness.simulation.world.world import World

PASS_EVERY_S = 20.0
ASKED_AGAIN_S = 240.0  # an owner whose deployment was refused tries again
AWAY_S = (120.0, 2400.0)  # for how long the cell is not deployed


class FurtherCell:
    """A cell other than home, in its own world. `standing`: whether its stack is there."""

    def __init__(self, deployment: SimulatedDeployment, world: World, types: tuple[str, ...], faults: Faults) -> None:
        self._deployment, self._world, self._types, self._faults = deployment, world, types, faults
        self._here = deployed_cell(deployment, world.region)
        self._event: dict[str, Any] = {}
        self.standing = False

    def begin(self, auditor: Auditor, faulty_s: float) -> None:
        """It is deployed, and its changes are planned."""
        self._auditor = auditor
        self._put_back()
        at_s = faulty_s * self._world.share("cell goes")
        if self._faults.strikes("cell-destroyed"):
            self._world.later(at_s, self._destroy)
        elif self._faults.strikes("cell-left-out"):
            self._world.later(at_s, self._leave_out)

    @property
    def region(self) -> str:
        return self._world.region

    @property
    def is_settled(self) -> bool:
        """Whether nothing has to be ended there any more, and no change is planned."""
        return self._deployment.is_torn_down or not (self._event or self._world.region in self._auditor.facts.closed)

    def _leave_out(self) -> None:
        """By a deployment, which fails while the cell is at work."""
        if not self._faults.active or self._deployment.is_torn_down:
            return
        if self._take_over(self._home_only):
            self._auditor.cell_closed(self._world.region)
            self._put_back_later()
        else:
            self._world.later(ASKED_AGAIN_S, self._leave_out)

    def _destroy(self) -> None:
        """Destroy its stack while the settings still name it."""
        if self._faults.active and not self._deployment.is_torn_down:
            self._event = {"RequestType": "Delete"}
            self._event |= teardown.begin(self._event, self._here, self._world.now)
            self._auditor.cell_closed(self._world.region)
            self._world.later(PASS_EVERY_S, self._free)

    def _free(self) -> None:
        now = self._world.now
        if not teardown.complete(self._event, self._here, now, deadline=now, clock=self._world.clock):
            self._world.later(PASS_EVERY_S, self._free)
            return
        self._event, self.standing = {}, False
        for fleet in self._world.ec2.ledger.fleets.values():
            if fleet.is_live and fleet_is_ours(fleet):
                self._world.ec2.delete_fleets(FleetIds=[fleet.fleet_id], TerminateInstances=True)
        self._take_over(self._home_only)
        self._put_back_later()

    def _put_back_later(self) -> None:
        least, most = AWAY_S
        self._world.later(least + (most - least) * self._world.share("cell comes"), self._put_back)

    def _put_back(self) -> None:
        """Deploy its stack before home's settings name it."""
        if self._deployment.is_torn_down:
            return
        if not self.standing:
            zones = sorted(self._world.ec2.ledger.zones)
            add_fleets(self._world, self._types, zones)
            teardown.begin({"RequestType": "Create"}, self._here, self._world.now)
            self.standing = True
        self._take_over((*self._home_only, self._world.region))
        self._auditor.cell_opened(self._world.region)

    @property
    def _home_only(self) -> tuple[str, ...]:
        return (self._deployment.world.region,)

    def _take_over(self, named: tuple[str, ...]) -> bool:
        """Deploy home with these cells. False = the guard refused."""
        home = cell_guard.Home(STAGE, TABLE, self._here.dynamodb, self._here.ec2)
        try:
            cell_guard.take_over(home, named, self._deployment.named)
        except cell_guard.CellInUse:
            return False
        self._deployment.name_cells(named)
        return True
