"""Contracts of AWS that can be read in two ways, each with a switch for its less usual reading.

AWS's documents contradict each other here, are silent, or differ from what was seen. Without a switch the models take
the more usual reading. The page docs/maintainers/notes/readings.md holds the evidence and what Argosy does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from argosy.model.readings import (
    DELETED_OVER_LIMIT,
    DOCKER_BLOCKS,
    OLD_TARGET,
    ONLY_ACTIVE,
    PULL_SURVIVES,
    PULL_TOLD,
    ROOM_BACK_EARLY,
)


class Reading(NamedTuple):
    meaning: str
    source: str


TOTAL_ONLY = "modify-fleet-total-only"
HYPHENS = "fleet-state-hyphens"
QUEUE_STUCK = "agent-queue-stuck"

READINGS: Mapping[str, Reading] = MappingProxyType(
    {
        TOTAL_ONLY: Reading(
            "ModifyFleet refuses targets by purchase beside the total.", "Terraform's aws_ec2_fleet, NixOps"
        ),
        HYPHENS: Reading(
            "The filter of fleets by state takes deleted-running, and not deleted_running.", "botocore, DescribeFleets"
        ),
        ONLY_ACTIVE: Reading(
            "ModifyFleet refuses a fleet that is still being modified.", "EC2 user guide, Modify an EC2 Fleet"
        ),
        OLD_TARGET: Reading(
            "DescribeFleets shows the old target while the fleet is being modified.", "jenkinsci/ec2-fleet-plugin#159"
        ),
        DELETED_OVER_LIMIT: Reading(
            "A fleet that would exceed a limit is deleted at once; its instances run on.",
            "EC2 user guide, fleet states",
        ),
        ROOM_BACK_EARLY: Reading(
            "ECS gives a task's room back when its desired status is STOPPED. The agent queues successors first in,"
            " first out, and starts none behind one that does not fit.",
            "aws/containers-roadmap#575, aws/amazon-ecs-agent#2267",
        ),
        QUEUE_STUCK: Reading(
            "The same, and the end of the task in front does not wake the agent's queue: another task's start or end"
            " does, or 15 to 20 minutes.",
            "aws/amazon-ecs-agent#5138",
        ),
        PULL_SURVIVES: Reading(
            "The pull of a stopped task continues, and its image stays on the instance.",
            "amazon-ecs-agent, docker_task_engine.go",
        ),
        DOCKER_BLOCKS: Reading(
            "Restarting Docker in user data takes 180 s, and the instance joins without the runner's attribute.",
            "aws/amazon-ecs-agent#1707",
        ),
        PULL_TOLD: Reading(
            "ECS shows pullStartedAt while the pull runs, and not only once the task is RUNNING or STOPPED.",
            "ECS API reference, Task",
        ),
    }
)


def known(names: Iterable[str]) -> set[str]:
    """The names as a set; `all` means each of them. Raises ValueError for an unknown one."""
    found = set(names)
    if "all" in found:
        return set(READINGS)
    if unknown := sorted(found - READINGS.keys()):
        raise ValueError(f"{unknown[0]!r} is no reading. There are: all, {', '.join(READINGS)}")
    return found
