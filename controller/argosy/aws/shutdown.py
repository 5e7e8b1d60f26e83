"""The end of all instances of a deployment in one Region, when only EC2 itself is trusted.

For the watchdog and the teardown only: it does not use the controller's state, and needs only the runtime's boto3. An
instance is ours when it carries our tag *and* AWS's own, unforgeable tags name one of our fleets or launch templates. A
foreign instance with our tag is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

STAGE_TAG = "argosy:stage"
FLEET_TAG, TEMPLATE_TAG = "aws:ec2:fleet-id", "aws:ec2launchtemplate:id"
TERMINATE_AT_ONCE = 100
# boto3 by itself waits 60 s for a connection, five times: one Region that is out would use up the time of all others.
CONNECT_S, READ_S, ATTEMPTS = 5, 20, 3
_ALIVE = ["pending", "running", "stopping", "stopped", "shutting-down"]
_STEERABLE = ("submitted", "active", "modifying")  # fleets in other states refuse ModifyFleet and launch nothing


def ec2_client(region: str) -> Any:
    """The client of a Region that may be down: a call without an answer fails within about a minute."""
    import boto3
    from botocore.config import Config

    retries: Any = {"mode": "standard", "total_max_attempts": ATTEMPTS}
    config = Config(connect_timeout=CONNECT_S, read_timeout=READ_S, retries=retries)
    return boto3.client("ec2", region_name=region, config=config)


@dataclass
class ShutdownPass:
    """The actions and sightings of one pass, as ids. `alive` also holds instances that are shutting down."""

    lowered: list[str] = field(default_factory=list)
    settling: list[str] = field(default_factory=list)  # fleets whose earlier change is awaited
    terminated: list[str] = field(default_factory=list)
    alive: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)  # they have our tag but were not launched by us: left alone
    problems: list[str] = field(default_factory=list)

    @property
    def acted(self) -> bool:
        return bool(self.lowered or self.terminated)

    @property
    def clean(self) -> bool:
        """Nothing is alive, nothing would launch again, and nothing failed."""
        return not (self.alive or self.lowered or self.settling or self.problems)


def free(ec2: Any, stage: str, *, settle: bool = False) -> ShutdownPass:
    """One pass: set fleets to 0 first (a maintain fleet refills), then terminate. Repeat until `clean`.

    settle: leave a fleet that is `modifying` as it is. It may show the target that it had before, and another change
    may prolong that, so passes in quick succession need pauses.
    A single fleet or instance that refuses is a problem in the result; a listing that fails raises ClientError.
    """
    result = ShutdownPass()
    fleets = _fleets(ec2, stage)
    for fleet in fleets:
        if fleet["FleetState"] not in _STEERABLE or _target(fleet) == 0:
            continue
        if settle and fleet["FleetState"] == "modifying":
            result.settling.append(fleet["FleetId"])
        else:
            _lower(ec2, fleet["FleetId"], result)
    mine = _launchers(ec2, stage, fleets)
    doomed = []
    for instance in _instances(ec2, stage):
        if not _is_ours(instance, mine):
            result.foreign.append(instance["InstanceId"])
            continue
        result.alive.append(instance["InstanceId"])
        if instance["State"]["Name"] != "shutting-down":
            doomed.append(instance["InstanceId"])
    for start in range(0, len(doomed), TERMINATE_AT_ONCE):
        _terminate(ec2, doomed[start : start + TERMINATE_AT_ONCE], result)
    return result


@dataclass(frozen=True)
class BillableCapacity:
    """The ids of instances that still cost money, or would."""

    instances: tuple[str, ...]
    fleets: tuple[str, ...]  # with a target above 0


def billable_capacity(ec2: Any, stage: str) -> BillableCapacity:
    """The work that `free` would have to do. Changes nothing. Raises ClientError."""
    fleets = _fleets(ec2, stage)
    mine = _launchers(ec2, stage, fleets)
    return BillableCapacity(
        instances=tuple(each["InstanceId"] for each in _instances(ec2, stage) if _is_ours(each, mine)),
        fleets=tuple(each["FleetId"] for each in fleets if each["FleetState"] in _STEERABLE and _target(each) > 0),
    )


def first_launch(ec2: Any, stage: str) -> float | None:
    """When the oldest of our instances was launched, epoch seconds; None without one. Raises ClientError."""
    mine = _launchers(ec2, stage, _fleets(ec2, stage))
    ours = (instance for instance in _instances(ec2, stage) if _is_ours(instance, mine))
    return min((instance["LaunchTime"].timestamp() for instance in ours), default=None)


def _fleets(ec2: Any, stage: str) -> list[dict[str, Any]]:
    """Our fleets in any state; DescribeFleets cannot filter by tags."""
    return [fleet for fleet in _pages(ec2.describe_fleets, "Fleets") if _tags(fleet).get(STAGE_TAG) == stage]


def _launchers(ec2: Any, stage: str, fleets: list[dict[str, Any]]) -> set[str]:
    """Ids of the fleets and launch templates whose instances are ours."""
    return {fleet["FleetId"] for fleet in fleets} | _templates(ec2, stage)


def _is_ours(instance: dict[str, Any], launchers: set[str]) -> bool:
    tags = _tags(instance)
    return bool({tags.get(FLEET_TAG), tags.get(TEMPLATE_TAG)} & launchers)


def _target(fleet: dict[str, Any]) -> int:
    return int(fleet["TargetCapacitySpecification"]["TotalTargetCapacity"])


def _lower(ec2: Any, fleet_id: str, result: ShutdownPass) -> None:
    try:
        ec2.modify_fleet(
            FleetId=fleet_id,
            ExcessCapacityTerminationPolicy="no-termination",
            TargetCapacitySpecification={"TotalTargetCapacity": 0},
        )
        result.lowered.append(fleet_id)
    except ClientError as error:
        result.problems.append(f"{fleet_id}: {error}")


def _terminate(ec2: Any, ids: list[str], result: ShutdownPass) -> None:
    """One id that EC2 refuses fails the whole call: then they are terminated one by one."""
    try:
        ec2.terminate_instances(InstanceIds=ids)
        result.terminated += ids
    except ClientError as error:
        if len(ids) == 1:
            result.problems.append(f"{ids[0]}: {error}")
        else:
            for instance_id in ids:
                _terminate(ec2, [instance_id], result)


def _templates(ec2: Any, stage: str) -> set[str]:
    tagged = [{"Name": f"tag:{STAGE_TAG}", "Values": [stage]}]
    found = _pages(ec2.describe_launch_templates, "LaunchTemplates", Filters=tagged)
    return {template["LaunchTemplateId"] for template in found}


def _instances(ec2: Any, stage: str) -> Iterator[dict[str, Any]]:
    filters = [
        {"Name": f"tag:{STAGE_TAG}", "Values": [stage]},
        {"Name": "instance-state-name", "Values": _ALIVE},
    ]
    for reservation in _pages(ec2.describe_instances, "Reservations", Filters=filters):
        yield from reservation["Instances"]


def _tags(thing: dict[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in thing.get("Tags", [])}


def _pages(call: Any, key: str, **request: Any) -> Iterator[dict[str, Any]]:
    while True:
        page = call(**request)
        yield from page[key]
        if not page.get("NextToken"):
            return
        request["NextToken"] = page["NextToken"]
