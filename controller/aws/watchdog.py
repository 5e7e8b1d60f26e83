"""Is the controller dead while instances of ours still cost money? Then all of them are given back (DESIGN D8).

Runs on a schedule of its own, with rights of its own, and shares no code with the tick. It believes the heartbeat that
the controller leaves in the table (the lease's `until`) and EC2, nothing else.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from controller.aws.freeing import Freed, free

DEAD_AFTER_S = 3600.0
HEARTBEAT = {"pk": {"S": "CONTROL"}, "sk": {"S": "LEASE"}}  # number attribute `until`: epoch seconds


class WatchdogFailed(RuntimeError):
    """Some instances could not be given back; the next turn tries again. Raised so that the alarm hears of it."""


def handler(_event: Any, _context: Any) -> dict[str, Any]:
    """The function's entry point."""
    import boto3

    regions = os.environ["ARGOSY_CELLS"].split(",")
    return look(
        now=time.time(),
        dynamodb=boto3.client("dynamodb"),
        table=os.environ["ARGOSY_TABLE"],
        ec2={region: boto3.client("ec2", region_name=region) for region in regions},
        stage=os.environ["ARGOSY_STAGE"],
        say=lambda record: print(json.dumps({**record, **_metric(record, os.environ["ARGOSY_CLUSTER"])})),
    )


def look(
    *,
    now: float,
    dynamodb: Any,
    table: str,
    ec2: Mapping[str, Any],
    stage: str,
    say: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    """One turn over all cells; `ec2` holds a client per Region. Raises WatchdogFailed after having tried everything."""
    age_s = now - heartbeat(dynamodb, table)
    if age_s <= DEAD_AFTER_S:
        return {"acted": False, "heartbeatAgeSeconds": round(age_s)}
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


def heartbeat(dynamodb: Any, table: str) -> float:
    """Epoch seconds until which the controller's last lease was good; 0 when there has never been one."""
    item = dynamodb.get_item(TableName=table, Key=HEARTBEAT, ConsistentRead=True).get("Item", {})
    return float(item.get("until", {}).get("N", 0))


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
