"""What does the deletion of the stacks do to a trial? What the custom resource does, until nothing is left."""

from __future__ import annotations

from typing import Any

from argosy.aws import teardown
from argosy.aws.teardown import DeployedCell
from argosy.emulator.botocore_check import SimulatedClient
from argosy.simulation.audit.auditor import Auditor
from argosy.simulation.deployed_fleets import STAGE
from argosy.simulation.deployment import TABLE, SimulatedDeployment

PASS_EVERY_S = 20.0


class SimulatedTeardown:
    """Sets the kill switch, and frees everything until the deployment has been clean for a while."""

    def __init__(self, deployment: SimulatedDeployment, auditor: Auditor) -> None:
        self._auditor, self._world = auditor, deployment.world
        self._cell = _home(deployment)
        self._event: dict[str, Any] = {"RequestType": "Delete"}
        self.begun = self.complete = False

    def begin(self) -> None:
        self.begun = True
        self._event |= teardown.begin(self._event, self._cell, self._world.now)
        self._world.later(PASS_EVERY_S, self._free)

    def _free(self) -> None:
        now = self._world.now
        if teardown.complete(self._event, self._cell, now, deadline=now, clock=self._world.clock) and not self.complete:
            self.complete = True
            self._auditor.torn_down()
        self._world.later(PASS_EVERY_S, self._free)


def _home(deployment: SimulatedDeployment) -> DeployedCell:
    """The only cell. The clients' calls do not fail here."""
    world, services = deployment.world, deployment.services
    models = {"ec2": world.ec2, "ecs": world.ecs, "dynamodb": services.dynamodb, "events": services.bus}
    clients = {name: SimulatedClient(model, name, strict=False, region=world.region) for name, model in models.items()}
    return DeployedCell(
        stage=STAGE,
        region=world.region,
        home=world.region,
        cluster=world.cluster,
        table=TABLE,
        tick_rule="argosy-tick",
        empty_bucket=None,
        ec2=lambda region: clients["ec2"],
        ecs=clients["ecs"],
        dynamodb=clients["dynamodb"],
        events=clients["events"],
        s3=None,
    )
