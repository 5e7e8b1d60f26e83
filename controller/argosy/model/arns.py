"""What does the ARN of a task or a container instance say by itself?"""

from __future__ import annotations


def task_id_of(arn: str) -> str:
    """Its last part."""
    return arn.rsplit("/", 1)[-1]


def cell_of(arn: str) -> str:
    """The Region in it."""
    return arn.split(":")[3]


def cluster_of(arn: str) -> tuple[str, ...]:
    """Partition, Region, account and name of the cluster."""
    head, _, resource = arn.rpartition(":")
    return head, *resource.split("/")[1:-1]
