"""What would Amazon ECS do? The whole model: the operations by group, and the agents' side."""

from __future__ import annotations

from collections.abc import Callable

from argosy.emulator.ecs.account import Emit, Ledger
from argosy.emulator.ecs.agent_side import AgentSide, AgentWork
from argosy.emulator.ecs.attributes import Attributes
from argosy.emulator.ecs.clusters import Clusters
from argosy.emulator.ecs.definitions import Definitions
from argosy.emulator.ecs.instances import Instances
from argosy.emulator.ecs.launching import Launching
from argosy.emulator.ecs.tags import Tags
from argosy.emulator.ecs.tasks import Tasks

__all__ = ["AgentWork", "EcsModel", "Emit"]


class EcsModel(Clusters, Definitions, Instances, Attributes, Launching, Tasks, Tags, AgentSide):
    """One account's ECS in one region. Operations take keyword arguments, answer dicts as boto3 does (times as aware
    datetimes) and raise botocore's ClientError with AWS's code. Replies and events share parts with the model: do not
    change them.

    `now` gives epoch seconds and never goes back. `emit` gets every EventBridge message in order, called under the
    model's lock: it must not wait for another thread that calls the model. Functions in `on_work` are called likewise,
    with a container instance's ARN, when `agent_work` has something new for it.
    """

    def __init__(
        self,
        *,
        now: Callable[[], float],
        region: str = "us-east-1",
        account: str = "123456789012",
        emit: Emit | None = None,
        new_id: Callable[[], str] | None = None,
    ) -> None:
        super().__init__(Ledger(now=now, region=region, account=account, emit=emit, new_id=new_id))

    @property
    def on_work(self) -> list[Callable[[str], None]]:
        """See the class."""
        return self.ledger.on_work
