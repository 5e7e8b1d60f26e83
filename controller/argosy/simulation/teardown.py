"""What does the deletion of the stacks do to a trial? The custom resource's passes, until nothing is left."""

from __future__ import annotations

from typing import Any

from argosy.aws.shutdown import free
from argosy.aws.teardown import QUIET_S
from argosy.simulation.audit.auditor import Auditor
from argosy.simulation.deployed_fleets import STAGE
from argosy.simulation.deployment import SimulatedDeployment
from argosy.simulation.world import World

PASS_EVERY_S = 20.0


class SimulatedTeardown:
    """Sets the kill switch, and frees everything until the deployment has been clean for a while."""

    def __init__(self, deployment: SimulatedDeployment, auditor: Auditor) -> None:
        self._deployment, self._auditor, self._world = deployment, auditor, deployment.world
        self.begun = self.complete = False
        self._quiet_at = 0.0

    def begin(self) -> None:
        self.begun = True
        self._deployment.kill()
        self._quiet_at = self._world.now + QUIET_S
        self._world.later(PASS_EVERY_S, self._free)

    def _free(self) -> None:
        if free(_TeardownClient(self._world), STAGE).clean and self._world.now >= self._quiet_at and not self.complete:
            self.complete = True
            self._auditor.torn_down()
        self._world.later(PASS_EVERY_S, self._free)


class _TeardownClient:
    """The EC2 client of the teardown function, whose calls do not fail here. It asks for launch templates too."""

    def __init__(self, world: World) -> None:
        self._ec2 = world.ec2

    def describe_launch_templates(self, **request: Any) -> dict[str, Any]:
        return {"LaunchTemplates": [{"LaunchTemplateId": "argosy"}]}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ec2, name)
