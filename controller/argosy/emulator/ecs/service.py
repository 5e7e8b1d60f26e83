"""The whole model of Amazon ECS: the operations by group, and the agents' side."""

from __future__ import annotations

from collections.abc import Callable

from argosy.emulator.ecs.agent_connection import AgentConnection, AgentWork
from argosy.emulator.ecs.attributes import AttributeOperations
from argosy.emulator.ecs.clusters import ClusterOperations
from argosy.emulator.ecs.definitions import TaskDefinitionOperations
from argosy.emulator.ecs.instances import ContainerInstanceOperations
from argosy.emulator.ecs.launches import LaunchOperations
from argosy.emulator.ecs.ledger import EcsLedger
from argosy.emulator.ecs.tags import TagOperations
from argosy.emulator.ecs.tasks import TaskOperations
from argosy.emulator.region import AwsRegion

__all__ = ["AgentWork", "EcsModel"]


class EcsModel(
    ClusterOperations,
    TaskDefinitionOperations,
    ContainerInstanceOperations,
    AttributeOperations,
    LaunchOperations,
    TaskOperations,
    TagOperations,
    AgentConnection,
):
    """One account's ECS in one region. Operations take keyword arguments, answer dicts as boto3 does (times as aware
    datetimes) and raise botocore's ClientError with AWS's code. Replies and events share parts with the model: do not
    change them.

    Functions in `on_work` are called under the model's lock with a container instance's ARN when `agent_work` has
    something new for it. They must not wait for another thread that calls the model.
    """

    def __init__(self, region: AwsRegion) -> None:
        super().__init__(EcsLedger(region))

    @property
    def on_work(self) -> list[Callable[[str], None]]:
        """See the class."""
        return self.ledger.on_work
