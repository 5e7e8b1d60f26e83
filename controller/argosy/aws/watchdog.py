"""Is the controller dead while its instances still cost money? Then all of them are terminated (DESIGN D8).

It has its own schedule and its own rights, and shares no code with the tick. It trusts only two things: EC2, and the
heartbeat that the controller writes to the table after each complete tick. The lease proves nothing: it is taken before
any tick and deleted when the controller goes to rest.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from argosy.aws.shutdown import Freed, first_launch, free

DEAD_AFTER_S = 3600.0
HEARTBEAT = {"pk": {"S": "CONTROL"}, "sk": {"S": "HEARTBEAT"}}  # number attribute `at`: epoch seconds


class WatchdogFailed(RuntimeError):
    """Some instances could not be terminated; the next turn tries again. Raised so that the alarm goes off."""


def handler(_event: Any, _context: Any) -> dict[str, Any]:
    """The function's entry point."""
    import boto3

    regions = os.environ["ARGOSY_CELLS"].split(",")
    return look(
        now=time.time(),
        alive_at=heartbeat(boto3.client("dynamodb"), os.environ["ARGOSY_TABLE"]),
        ec2={region: boto3.client("ec2", region_name=region) for region in regions},
        stage=os.environ["ARGOSY_STAGE"],
        say=lambda record: print(json.dumps({**record, **_metric(record, os.environ["ARGOSY_CLUSTER"])})),
    )


def look(
    *,
    now: float,
    alive_at: float | None,
    ec2: Mapping[str, Any],
    stage: str,
    say: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    """One turn over all cells; `ec2` holds a client per Region. Raises WatchdogFailed once everything has been tried.

    alive_at: the controller's last heartbeat, epoch seconds; None: no tick was ever completed, so the silence
    counts from the launch of the oldest instance.
    """
    if alive_at is None:
        alive_at = _oldest(ec2, stage, now)
    if now - alive_at <= DEAD_AFTER_S:
        return {"acted": False, "silentSeconds": round(now - alive_at)}
    freed, problems = 0, []
    for region, client in ec2.items():
        try:
            result = free(client, stage)
        except (ClientError, BotoCoreError) as error:
            problems.append(f"{region}: {error}")
            continue
        freed += len(result.terminated)
        problems += result.problems
        if result.acted or result.foreign:
            say(_record(region, result))
    if problems:
        raise WatchdogFailed("; ".join(problems))
    return {"acted": freed > 0, "freed": freed}


def heartbeat(dynamodb: Any, table: str) -> float | None:
    """Epoch seconds of the last tick that the controller completed; None when there has never been one."""
    item = dynamodb.get_item(TableName=table, Key=HEARTBEAT, ConsistentRead=True).get("Item", {})
    return float(item["at"]["N"]) if "at" in item else None


def _oldest(ec2: Mapping[str, Any], stage: str, now: float) -> float:
    """When the oldest of our instances in any cell was launched; now when there is none.

    Raises WatchdogFailed when a cell cannot be read and the instances of the others are too young to prove anything.
    """
    launches, problems = [now], []
    for region, client in ec2.items():
        try:
            launches.append(first_launch(client, stage) or now)
        except (ClientError, BotoCoreError) as error:
            problems.append(f"{region}: {error}")
    if problems and now - min(launches) <= DEAD_AFTER_S:
        raise WatchdogFailed("; ".join(problems))
    return min(launches)


def _record(region: str, result: Freed) -> dict[str, Any]:
    return {
        "message": "the controller's heartbeat is older than an hour",
        "region": region,
        "lowered": result.lowered,
        "terminated": result.terminated,
        "foreign": result.foreign,
        "InstancesFreedByWatchdog": len(result.terminated),
    }


def _metric(record: Mapping[str, Any], cluster: str) -> dict[str, Any]:
    """CloudWatch's embedded metric format: the log line is the metric."""
    names = [{"Name": "InstancesFreedByWatchdog", "Unit": "Count"}]
    directive = {"Namespace": "Argosy", "Dimensions": [["Cluster"]], "Metrics": names}
    return {"Cluster": cluster, "_aws": {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [directive]}}
