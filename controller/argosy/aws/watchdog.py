"""The watchdog, which terminates all instances when the controller is dead (DESIGN D8).

It wakes the controller when a request waits unnoticed or the tick was disabled. Home's watchdog covers every cell that
the table records, whatever the current settings say. Each further cell has its own watchdog, in case home is gone or no
longer records the cell. They have their own schedules and rights, and share no code with the tick. They trust only two
things: EC2, and home's table with the heartbeat that the controller writes after each complete tick. The lease proves
nothing: it is taken before any tick and deleted when the controller goes to rest.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError

from argosy.aws import cell_records
from argosy.aws.cell_records import Records
from argosy.aws.shutdown import ShutdownPass, ec2_client, first_launch, free

DEAD_AFTER_S = 3600.0
SILENT_S = 180.0  # an active controller ticks every minute; its heartbeat is at most half a minute late
DEAD = "the controller's heartbeat is older than an hour"
Say = Callable[[dict[str, Any]], None]


class HomeTick(NamedTuple):
    """Home's table, and the rule that ticks the controller."""

    dynamodb: Any
    table: str
    events: Any
    rule: str

    def means_to_go_on(self, records: Records) -> bool:
        return cell_records.means_to_go_on(self.dynamodb, self.table, records)

    def is_asked_for_more(self) -> bool:
        return cell_records.is_asked_for_more(self.dynamodb, self.table)

    def enable(self) -> None:
        self.events.enable_rule(Name=self.rule)


class WatchTurn(NamedTuple):
    """One turn of a watchdog over a stage's instances."""

    now: float
    stage: str
    say: Say


class WatchdogFailed(RuntimeError):
    """Some instances could not be terminated; the next turn tries again. Raised so that the alarm goes off."""


def handler(_event: Any, _context: Any) -> dict[str, Any]:
    """The entry point of home's function."""
    import boto3

    dynamodb, table = boto3.client("dynamodb"), os.environ["ARGOSY_TABLE"]
    records = cell_records.read(dynamodb, table) or Records()
    regions = {*os.environ["ARGOSY_CELLS"].split(","), *records.cells}
    try:
        clients = {region: ec2_client(region) for region in sorted(regions)}
        answer = look(_turn(), records.heartbeat, clients)
    finally:
        home = HomeTick(dynamodb, table, boto3.client("events"), os.environ["ARGOSY_TICK_RULE"])
        woken = wake(home, records, now=time.time())
    return {**answer, "woken": woken}


def cell_handler(_event: Any, _context: Any) -> dict[str, Any]:
    """The entry point of a further cell's function, in the Region of the cell."""
    import boto3

    region, home = os.environ["AWS_REGION"], os.environ["ARGOSY_HOME_REGION"]
    records = cell_records.read(boto3.client("dynamodb", region_name=home), os.environ["ARGOSY_TABLE"])
    return look_at_cell(_turn(), region, records, ec2_client(region))


def _turn() -> WatchTurn:
    return WatchTurn(time.time(), os.environ["ARGOSY_STAGE"], _print)


def wake(home: HomeTick, records: Records, *, now: float) -> bool:
    """Enable the tick where a request waits: a controller going to rest may have died after it disabled the tick and
    before it read the inbox once more (DESIGN D12a). Also if the controller should continue and does not: it ends while
    there is nothing to do, and an update of the stack then disables the tick. A controller that failed in its very
    first tick stored a state and no heartbeat. If the tick is already enabled, or another controller is about to take
    the request, this costs one invocation at most. Returns whether there is a reason."""
    if records.is_torn_down:
        return False
    is_silent = now - (records.heartbeat or 0.0) > SILENT_S and home.means_to_go_on(records)
    if not is_silent and not home.is_asked_for_more():
        return False
    home.enable()
    return True


def look_at_cell(turn: WatchTurn, region: str, records: Records | None, ec2: Any) -> dict[str, Any]:
    """One turn over one further cell: besides a dead controller, it checks that a controller still manages the cell.

    records: the contents of home's table; None when there is no such table. Raises WatchdogFailed.
    """
    if why := _nobodys(region, records):
        return _free_all(turn, {region: ec2}, why)
    assert records is not None  # else no controller could steer the cell
    return look(turn, records.heartbeat, {region: ec2})


def _nobodys(region: str, records: Records | None) -> str:
    """Why no controller may use the cell; "" when one may."""
    if records is None:
        return "the home Region's table is gone"
    if region not in records.cells:
        return "the home Region does not have this cell"
    closed = records.cells[region]
    return f"the cell is closed: {closed}" if closed is not None else ""


def look(turn: WatchTurn, alive_at: float | None, ec2: Mapping[str, Any]) -> dict[str, Any]:
    """One turn over cells; `ec2` holds a client per Region. Raises WatchdogFailed once everything has been tried.

    alive_at: the controller's last heartbeat, epoch seconds; None: no tick was ever completed, so the silence
    counts from the launch of the oldest instance.
    """
    if alive_at is None:
        alive_at = _oldest(ec2, turn.stage, turn.now)
    if turn.now - alive_at <= DEAD_AFTER_S:
        return {"acted": False, "silentSeconds": round(turn.now - alive_at)}
    return _free_all(turn, ec2, DEAD)


def _free_all(turn: WatchTurn, ec2: Mapping[str, Any], why: str) -> dict[str, Any]:
    """Raises WatchdogFailed once everything has been tried."""
    freed, problems = 0, []
    for region, client in ec2.items():
        try:
            result = free(client, turn.stage)
        except (ClientError, BotoCoreError) as error:
            problems.append(f"{region}: {error}")
            continue
        freed += len(result.terminated)
        problems += result.problems
        if result.acted or result.foreign:
            turn.say(_record(region, why, result))
    if problems:
        raise WatchdogFailed("; ".join(problems))
    return {"acted": freed > 0, "freed": freed}


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


def _record(region: str, why: str, result: ShutdownPass) -> dict[str, Any]:
    return {
        "message": why,
        "region": region,
        "lowered": result.lowered,
        "terminated": result.terminated,
        "foreign": result.foreign,
        "InstancesFreedByWatchdog": len(result.terminated),
    }


def _print(record: Mapping[str, Any]) -> None:
    print(json.dumps({**record, **_metric(record, os.environ["ARGOSY_CLUSTER"])}))


def _metric(record: Mapping[str, Any], cluster: str) -> dict[str, Any]:
    """CloudWatch's embedded metric format: the log line is the metric."""
    names = [{"Name": "InstancesFreedByWatchdog", "Unit": "Count"}]
    directive = {"Namespace": "Argosy", "Dimensions": [["Cluster"]], "Metrics": names}
    return {"Cluster": cluster, "_aws": {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [directive]}}
