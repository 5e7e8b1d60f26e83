"""The deletion of the stacks: what the custom resource does, until nothing is left.

Then home's fleets go with the rest of its stack: a process that wakes up later has nothing to raise there.
"""

from __future__ import annotations

from typing import Any

from argosy.aws import teardown
from argosy.aws.teardown import DeployedCell
from argosy.emulator.botocore_check import SimulatedClient
from tests.harness.simulation.audit.auditor import Auditor
from tests.harness.simulation.controllers.deployment import TABLE, SimulatedDeployment
from tests.harness.simulation.world.deployed_fleets import STAGE, fleet_is_ours

PASS_EVERY_S = 20.0
FLEETS_GO_S = 60.0  # from the end of the custom resource to theirs


class SimulatedTeardown:
    """Sets the kill switch, and frees everything until the deployment has been clean for a while."""

    def __init__(self, deployment: SimulatedDeployment, auditor: Auditor) -> None:
        self._auditor, self._world = auditor, deployment.world
        self._deployment = deployment
        self._cell = deployed_cell(deployment, deployment.world.region)
        self._event: dict[str, Any] = {"RequestType": "Delete"}
        self.begun = self.complete = False

    def begin(self) -> None:
        self.begun = self._deployment.is_torn_down = True
        self._auditor.teardown_begun()
        self._event |= teardown.begin(self._event, self._cell, self._world.now)
        self._world.later(PASS_EVERY_S, self._free)

    def _free(self) -> None:
        now = self._world.now
        if teardown.complete(self._event, self._cell, now, deadline=now, clock=self._world.clock) and not self.complete:
            self.complete = True
            self._auditor.torn_down()
            self._world.later(FLEETS_GO_S, self._delete_fleets)
        self._world.later(PASS_EVERY_S, self._free)

    def _delete_fleets(self) -> None:
        """Like CloudFormation, after the custom resource."""
        for fleet in self._world.ec2.ledger.fleets.values():
            if fleet.is_live and fleet_is_ours(fleet):
                self._world.ec2.delete_fleets(FleetIds=[fleet.fleet_id], TerminateInstances=True)


def deployed_cell(deployment: SimulatedDeployment, region: str) -> DeployedCell:
    """One of its cells as CloudFormation's functions see it. Their calls do not fail here."""
    services, world = deployment.services, deployment.regions.of(region)

    def ec2(where: str) -> Any:
        return SimulatedClient(deployment.regions.of(where).ec2, "ec2", strict=False, region=where)

    return DeployedCell(
        stage=STAGE,
        region=region,
        home=deployment.world.region,
        cluster=world.cluster,
        table=TABLE,
        tick_rule="argosy-tick",
        empty_bucket=None,
        ec2=ec2,
        ecs=SimulatedClient(world.ecs, "ecs", strict=False, region=region),
        dynamodb=SimulatedClient(services.dynamodb, "dynamodb", strict=False),
        events=SimulatedClient(services.bus, "events", strict=False),
        s3=None,
    )
