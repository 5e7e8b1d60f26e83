"""How is an ARN read or made? `arn:<partition>:<service>:<region>:<account>:<resource>`

ECS: `task/<cluster>/<task id>`, `container-instance/<cluster>/<id>`, `task-definition/<family>:<revision>`. Only this
module takes ARNs apart.
"""

from __future__ import annotations


def arn_of(service: str, region: str, account: str, resource: str) -> str:
    """An ARN in the partition `aws`, as local mode makes them. Global services, such as IAM, have region ""."""
    return f"arn:aws:{service}:{region}:{account}:{resource}"


def cell_of(arn: str) -> str:
    """The Region in the ARN, which is the name of the cell; "" for text that is not an ARN."""
    parts = arn.split(":")
    return parts[3] if len(parts) > 3 else ""


def name_of(arn: str) -> str:
    """The last part of the ARN: the id of a task, a container instance or a fleet."""
    return arn.rsplit("/", 1)[-1]


def family_of(arn: str) -> str:
    """The family of a task definition's revision; "" for text that is not an ARN."""
    return name_of(arn).partition(":")[0] if cell_of(arn) else ""


def cluster_of(arn: str) -> tuple[str, ...]:
    """Partition, service, Region and account in one, and the cluster's name if the resource has one."""
    head, _, resource = arn.rpartition(":")
    return head, *resource.split("/")[1:-1]


def task_arn(container_instance_arn: str, task_id: str) -> str | None:
    """The ARN of a task on that container instance: same partition, Region, account and cluster. None while either is
    unknown ("")."""
    if not (container_instance_arn and task_id):
        return None
    head, *cluster = cluster_of(container_instance_arn)
    return "/".join([f"{head}:task", *cluster, task_id])
