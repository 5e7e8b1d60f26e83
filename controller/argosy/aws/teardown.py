"""The custom resource by which `cdk destroy` ends everything that costs money.

`on_event` stops the controller: the end of home sets the kill switch and turns the tick off, the end of a further cell
closes that cell only. `is_complete` is then called repeatedly. It sets fleets to 0, ends instances and empties the
cluster, until nothing remains and the controller has had time to notice. The end of home frees every cell that was ever
deployed with it and is recorded, because no controller steers their fleets any more. A Region that does not answer
delays the end, but the others are freed. Every step may be repeated, also when a table or rule is already gone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from argosy.aws import cell_records
from argosy.aws.shutdown import ec2_client, free

KILL = {"pk": {"S": "CONTROL"}, "sk": {"S": "KILL"}}
# The controller reads the switch once a turn, and a turn takes less than a minute (D12a). A turn that was under way may
# still raise a fleet: up to a minute later for its commit and another for its call, if both hang until boto3 gives up.
# So a cell counts as empty only when it has been empty for this long.
QUIET_S = 180.0
LOWER_S, SETTLE_S = 60.0, 240.0  # in turn: fleets are set to 0, and those that are still `modifying` are left to settle
DEADLINE_MARGIN_S = 60.0  # of the function's own time limit, for the last batch of deletions
_GONE = {"ResourceNotFoundException", "ClusterNotFoundException", "NoSuchBucket"}


@dataclass(frozen=True)
class DeployedCell:
    """One cell and the means to end it: boto3 clients of its Region, those of the home Region, and names.

    ec2: makes the client of a Region.
    """

    stage: str
    region: str
    home: str
    cluster: str
    table: str
    tick_rule: str
    empty_bucket: str | None
    ec2: Callable[[str], Any]
    ecs: Any
    dynamodb: Any  # home
    events: Any  # home
    s3: Any

    @property
    def reason(self) -> str:
        return f"{self.region} of stage {self.stage} is being destroyed"

    @property
    def is_home(self) -> bool:
        return self.region == self.home


def on_event(event: Mapping[str, Any], _context: Any) -> dict[str, Any]:
    """CloudFormation creates, updates or deletes the resource."""
    return begin(event, this_cell(), time.time())


def is_complete(event: Mapping[str, Any], context: Any) -> dict[str, bool]:
    """Asked every few seconds after `on_event`."""
    left_s = context.get_remaining_time_in_millis() / 1000 - DEADLINE_MARGIN_S
    return answer(event, this_cell(), time.time(), deadline=time.time() + left_s, clock=time.time)


def answer(
    event: Mapping[str, Any], cell: DeployedCell, now: float, *, deadline: float, clock: Callable[[], float]
) -> dict[str, bool]:
    """The answer to the provider framework. An exception would end the teardown, so a failure of AWS is a "not yet"."""
    try:
        return {"IsComplete": complete(event, cell, now, deadline=deadline, clock=clock)}
    except (ClientError, BotoCoreError) as error:
        print(f"not yet: {error}")
        return {"IsComplete": False}


def this_cell() -> DeployedCell:
    """From the function's environment."""
    import boto3

    region, home = os.environ["AWS_REGION"], os.environ["ARGOSY_HOME_REGION"]
    return DeployedCell(
        stage=os.environ["ARGOSY_STAGE"],
        region=region,
        home=home,
        cluster=os.environ["ARGOSY_CLUSTER"],
        table=os.environ["ARGOSY_TABLE"],
        tick_rule=os.environ["ARGOSY_TICK_RULE"],
        empty_bucket=os.environ.get("ARGOSY_EMPTY_BUCKET"),
        ec2=ec2_client,
        ecs=boto3.client("ecs"),
        dynamodb=boto3.client("dynamodb", region_name=home),
        events=boto3.client("events", region_name=home),
        s3=boto3.client("s3"),
    )


def begin(event: Mapping[str, Any], cell: DeployedCell, now: float) -> dict[str, Any]:
    """Delete stops all launches, or those of a further cell; Create opens a cell that was destroyed before; an Update
    has no effect. The id never changes: with a new one CloudFormation would delete the old resource.

    The work of the other cells continues while a further cell is deleted, and if its deletion fails.
    """
    name = event.get("PhysicalResourceId") or f"teardown-{cell.stage}-{cell.region}"
    identity: dict[str, Any] = {"PhysicalResourceId": name}
    if event["RequestType"] == "Create" and not cell.is_home:
        _record(cell, closed=None)
    if event["RequestType"] != "Delete":
        return identity
    if cell.is_home:
        item = {**KILL, "reason": {"S": cell.reason}}
        _unless_gone(cell.dynamodb.put_item, TableName=cell.table, Item=item)
        _unless_gone(cell.events.disable_rule, Name=cell.tick_rule)
    else:
        _record(cell, closed=cell.reason)
    return {**identity, "Data": {"KilledAt": str(now)}}


def complete(
    event: Mapping[str, Any], cell: DeployedCell, now: float, *, deadline: float, clock: Callable[[], float]
) -> bool:
    """Do one more pass; True when nothing remains. Raises ClientError when the cells or the cluster cannot be read."""
    if event["RequestType"] != "Delete":
        return True
    since_s = now - float(event.get("Data", {}).get("KilledAt", now))
    settle = since_s % (LOWER_S + SETTLE_S) >= LOWER_S
    clean = [_is_free(cell, region, closed, settle) for region, closed in _regions(cell).items()]  # in every pass
    registered = _clear_cluster(cell)
    if not (all(clean) and not registered and since_s >= QUIET_S):
        return False
    if cell.empty_bucket and not _empty(cell.s3, cell.empty_bucket, deadline, clock):
        return False
    if not cell.is_home:
        _record(cell, closed=cell_records.DESTROYED)
    return True


def _regions(cell: DeployedCell) -> dict[str, str | None]:
    """The Regions where this teardown ends instances, and why a cell is closed already. Raises ClientError."""
    records = cell_records.read(cell.dynamodb, cell.table) if cell.is_home else None
    return {cell.region: None, **(records.cells if records else {})}


def _is_free(cell: DeployedCell, region: str, closed: str | None, settle: bool) -> bool:
    """A destroyed cell was empty when its stack was deleted, so its Region need not answer any more."""
    try:
        result = free(cell.ec2(region), cell.stage, settle=settle)
    except (ClientError, BotoCoreError) as error:
        print(f"{region} cannot be checked: {error}")
        return closed == cell_records.DESTROYED
    for problem in result.problems:
        print(f"{region}: {problem}")
    return result.clean


def _record(cell: DeployedCell, closed: str | None) -> None:
    """Set in home's table, unless that is gone: then no controller launches anything."""
    _unless_gone(cell_records.write, cell.dynamodb, cell.table, cell.region, closed)


def _clear_cluster(cell: DeployedCell) -> int:
    """Deregister the remaining instances (a cluster with members cannot be deleted); returns their number."""
    found = _unless_gone(cell.ecs.list_container_instances, cluster=cell.cluster)
    arns: list[str] = found["containerInstanceArns"] if found else []
    for arn in arns:
        _unless_gone(cell.ecs.deregister_container_instance, cluster=cell.cluster, containerInstance=arn, force=True)
    return len(arns)


def _empty(s3: Any, bucket: str, deadline: float, clock: Callable[[], float]) -> bool:
    """Delete objects and versions page by page until none remains (True) or the time is up (False)."""
    while clock() < deadline:
        page = _unless_gone(s3.list_object_versions, Bucket=bucket, MaxKeys=1000)
        found = [*page.get("Versions", []), *page.get("DeleteMarkers", [])] if page else []
        if not found:
            return True
        objects = [{"Key": entry["Key"], "VersionId": entry["VersionId"]} for entry in found]
        s3.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True})
    return False


def _unless_gone(call: Any, *arguments: Any, **request: Any) -> Any:
    """The answer, or None when the resource no longer exists."""
    try:
        return call(*arguments, **request)
    except ClientError as error:
        if error.response["Error"]["Code"] in _GONE:
            return None
        raise
