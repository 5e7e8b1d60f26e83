"""Small fakes of EC2, ECS, EventBridge, S3 and home's table, for the functions that end a deployment."""

# ruff: noqa: N803 - the fakes take boto3's own argument names

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import EndpointConnectionError

from argosy.aws import teardown
from argosy.aws.shutdown import FLEET_TAG, TEMPLATE_TAG
from tests.fakes.aws import refusal

NOW = 1_800_000_000.0


def tags(**pairs: str) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in pairs.items()]


@dataclass
class FakeEc2:
    """Fleets with their targets and instances with their states; pages of one, so that paging is always exercised."""

    fleets: dict[str, dict[str, Any]] = field(default_factory=dict)
    instances: dict[str, dict[str, Any]] = field(default_factory=dict)
    templates: dict[str, str] = field(default_factory=dict)  # id -> stage
    refuses: set[str] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)

    def add_fleet(self, fleet_id: str, *, stage: str = "main", target: int = 0, state: str = "active") -> None:
        self.fleets[fleet_id] = {
            "FleetId": fleet_id,
            "FleetState": state,
            "Tags": tags(**{"argosy:stage": stage, "argosy:pool": "c5.large/us-east-1a"}),
            "TargetCapacitySpecification": {"TotalTargetCapacity": target},
        }

    def add_instance(self, instance_id: str, state: str = "running", age_s: float = 7200.0, **marks: str) -> None:
        self.instances[instance_id] = {
            "InstanceId": instance_id,
            "State": {"Name": state},
            "Tags": tags(**marks),
            "LaunchTime": datetime.fromtimestamp(NOW - age_s, UTC),
        }

    def _page(self, key: str, things: list[Any], token: str | None) -> dict[str, Any]:
        at = int(token or 0)
        more = {"NextToken": str(at + 1)} if at + 1 < len(things) else {}
        return {key: things[at : at + 1], **more}

    def describe_fleets(self, NextToken: str | None = None) -> dict[str, Any]:
        return self._page("Fleets", list(self.fleets.values()), NextToken)

    def describe_launch_templates(self, Filters: Any, NextToken: str | None = None) -> dict[str, Any]:
        stage = Filters[0]["Values"][0]
        found = [{"LaunchTemplateId": id} for id, owner in self.templates.items() if owner == stage]
        return self._page("LaunchTemplates", found, NextToken)

    def describe_instances(self, Filters: Any, NextToken: str | None = None) -> dict[str, Any]:
        wanted = {"Key": Filters[0]["Name"].removeprefix("tag:"), "Value": Filters[0]["Values"][0]}
        states = Filters[1]["Values"]
        found = [
            {"Instances": [i]} for i in self.instances.values() if wanted in i["Tags"] and i["State"]["Name"] in states
        ]
        return self._page("Reservations", found, NextToken)

    def modify_fleet(self, FleetId: str, TargetCapacitySpecification: dict[str, int], **_: Any) -> None:
        self.calls.append(f"modify {FleetId}")
        if FleetId in self.refuses:
            raise refusal("FleetNotInModifiableState")
        if len(TargetCapacitySpecification) != 1:
            raise refusal("InvalidTargetCapacitySpecification")
        self.fleets[FleetId]["TargetCapacitySpecification"] = TargetCapacitySpecification

    def terminate_instances(self, InstanceIds: list[str]) -> None:
        self.calls.append(f"terminate {' '.join(InstanceIds)}")
        if self.refuses & set(InstanceIds):
            raise refusal("InvalidInstanceID.NotFound")
        for instance_id in InstanceIds:
            self.instances[instance_id]["State"] = {"Name": "shutting-down"}

    def settle(self) -> None:
        """Instances that are shutting down are gone."""
        self.instances = {id: i for id, i in self.instances.items() if i["State"]["Name"] != "shutting-down"}


def busy_ec2() -> FakeEc2:
    ec2 = FakeEc2(templates={"lt-ours": "main", "lt-theirs": "dev"})
    ec2.add_fleet("fleet-1", target=2)
    ec2.add_fleet("fleet-2")
    ec2.add_fleet("fleet-dev", stage="dev", target=5)
    ours = {"argosy:stage": "main"}
    ec2.add_instance("i-1", **ours, **{FLEET_TAG: "fleet-1"})
    ec2.add_instance("i-2", "pending", **ours, **{FLEET_TAG: "fleet-2"})
    ec2.add_instance("i-orphan", **ours, **{FLEET_TAG: "fleet-deleted", TEMPLATE_TAG: "lt-ours"})
    ec2.add_instance("i-foreign", **ours)
    ec2.add_instance("i-dev", **{"argosy:stage": "dev", FLEET_TAG: "fleet-dev"})
    return ec2


def target(ec2: FakeEc2, fleet_id: str) -> int:
    return int(ec2.fleets[fleet_id]["TargetCapacitySpecification"]["TotalTargetCapacity"])


class Unreachable:
    def describe_fleets(self) -> Any:
        raise EndpointConnectionError(endpoint_url="https://ec2.example")


@dataclass
class FakeTable:
    """Home's table: the items of partition CONTROL by sort key."""

    items: dict[str, dict[str, Any]] = field(default_factory=dict)
    gone: bool = False

    def query(self, TableName: str, ConsistentRead: bool, **condition: Any) -> dict[str, Any]:
        self._check()
        assert ConsistentRead
        assert condition["ExpressionAttributeValues"] == {":pk": {"S": "CONTROL"}}
        return {"Items": [{"pk": {"S": "CONTROL"}, "sk": {"S": name}, **item} for name, item in self.items.items()]}

    def put_item(self, TableName: str, Item: Any) -> None:
        self._check()
        self.items[Item["sk"]["S"]] = {name: value for name, value in Item.items() if name not in ("pk", "sk")}

    def delete_item(self, TableName: str, Key: Any) -> None:
        self._check()
        self.items.pop(Key["sk"]["S"], None)

    def close(self, region: str, why: str) -> None:
        self.items[f"CELL {region}"] = {"closed": {"S": why}}

    def open(self, *regions: str) -> FakeTable:
        self.items.update({f"CELL {region}": {} for region in regions})
        return self

    def cells(self) -> dict[str, str | None]:
        """Region -> why it is closed."""
        named = {name.removeprefix("CELL "): item for name, item in self.items.items() if name.startswith("CELL ")}
        return {region: item.get("closed", {}).get("S") for region, item in named.items()}

    def _check(self) -> None:
        if self.gone:
            raise refusal("ResourceNotFoundException")


def beaten_at(moment: float) -> FakeTable:
    """The lease proves nothing: a controller takes it and dies with it, repeatedly."""
    return FakeTable({"LEASE": {"until": {"N": str(NOW + 60)}}, "HEARTBEAT": {"at": {"N": str(moment)}}})


def never_beaten() -> FakeTable:
    return FakeTable({"LEASE": {"until": {"N": str(NOW + 60)}}})


@dataclass
class FakeEcs:
    registered: list[str] = field(default_factory=list)
    error: Exception | None = None

    def list_container_instances(self, cluster: str) -> dict[str, Any]:
        if self.error:
            raise self.error
        return {"containerInstanceArns": list(self.registered)}

    def deregister_container_instance(self, cluster: str, containerInstance: str, force: bool) -> None:
        assert force
        self.registered.remove(containerInstance)


@dataclass
class FakeEvents:
    disabled: list[str] = field(default_factory=list)
    gone: bool = False

    def disable_rule(self, Name: str) -> None:
        if self.gone:
            raise refusal("ResourceNotFoundException")
        self.disabled.append(Name)


@dataclass
class FakeS3:
    keys: list[str] = field(default_factory=list)
    gone: bool = False

    def list_object_versions(self, Bucket: str, MaxKeys: int) -> dict[str, Any]:
        if self.gone:
            raise refusal("NoSuchBucket")
        return {"Versions": [{"Key": key, "VersionId": "null"} for key in self.keys[:2]]}

    def delete_objects(self, Bucket: str, Delete: dict[str, Any]) -> None:
        for entry in Delete["Objects"]:
            self.keys.remove(entry["Key"])


class Regions(dict[str, Any]):
    """Makes the EC2 client of a Region, as the teardown does. home: that of us-east-1."""

    def __init__(self, home: Any, **others: Any) -> None:
        super().__init__({"us-east-1": home, **{name.replace("_", "-"): ec2 for name, ec2 in others.items()}})

    def __call__(self, region: str) -> Any:
        return self[region]


def cell(**changes: Any) -> teardown.DeployedCell:
    return replace(
        teardown.DeployedCell(
            stage="main",
            region="us-east-1",
            home="us-east-1",
            cluster="argosy",
            table="argosy-state",
            tick_rule="argosy-tick",
            empty_bucket=None,
            ec2=Regions(home=busy_ec2()),
            ecs=FakeEcs(),
            dynamodb=FakeTable(),
            events=FakeEvents(),
            s3=FakeS3(),
        ),
        **changes,
    )


def deleting(killed_at: float = NOW) -> dict[str, Any]:
    return {"RequestType": "Delete", "Data": {"KilledAt": str(killed_at)}}


def away(table: FakeTable, ec2: FakeEc2 | None = None) -> teardown.DeployedCell:
    return cell(region="eu-west-1", ec2=Regions(Unreachable(), eu_west_1=ec2 or FakeEc2()), dynamodb=table)
