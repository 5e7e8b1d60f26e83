"""An EC2 that makes AMIs of instances, as botocore's model has the calls: requests and replies are checked against it.

Local mode has no AMIs, so this is no part of the emulator. Time passes by `sleep` alone.
"""

# ruff: noqa: N803 - boto3's names

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ConnectionClosedError

from argosy.emulator.botocore_check import SimulatedClient
from argosy.emulator.ec2.filters import passing
from tests.fakes.cli import NOW, refusal

JSON = dict[str, Any]
DIGEST = f"sha256:{'ab' * 32}"
ECS_AMI, OWN_AMI = "ami-0ec5000000000001", "ami-00000000000000aa"
STATES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}


@dataclass
class Machine:
    """An instance. script: seconds from its launch -> what happens then: "stopped", "terminated" or a console line."""

    request: JSON
    launched_at: float
    script: list[tuple[float, str]]
    ended: str = ""

    @property
    def tags(self) -> dict[str, str]:
        return tags_of(self.request["TagSpecifications"][0]["Tags"])


def holds(machine: JSON) -> list[tuple[float, str]]:
    """What an instance does that pulls its image."""
    image = machine["UserData"].split("--setenv=IMAGE=")[1].split()[0]
    return [(100.0, f"argosy bake: holds {image} as {DIGEST}"), (160.0, "stopped")]


def tags_of(tags: list[JSON]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in tags}


@dataclass
class AmiCloud:
    """refused: type -> code that RunInstances answers. behaves: what an instance does. failing: operations that EC2
    refuses."""

    pools: dict[str, tuple[str, int]] = field(default_factory=lambda: {"c5.large": (ECS_AMI, 30)})  # AMI, GiB
    refused: dict[str, str] = field(default_factory=dict)
    failing: dict[str, str] = field(default_factory=dict)
    behaves: Callable[[JSON], list[tuple[float, str]]] = holds
    nitro: bool = True
    ami_state: str = "available"
    ami_s: float = 300.0
    now: float = NOW
    machines: dict[str, Machine] = field(default_factory=dict)
    images: dict[str, JSON] = field(default_factory=dict)
    snapshots: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.client: Any = SimulatedClient(self, "ec2")
        for ami, name, owner in ((ECS_AMI, "al2023-ami-ecs-hvm-2023.0.1", "amazon"), (OWN_AMI, "ours", "")):
            alias = {"ImageOwnerAlias": owner} if owner else {}
            self.images[ami] = {"ImageId": ami, "Name": name, "State": "available", "OwnerId": "1", **alias}

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def alive(self) -> list[str]:
        return [each for each, machine in self.machines.items() if self._state(machine) != "terminated"]

    def run_instances(self, **request: Any) -> JSON:
        self._check("RunInstances")
        if code := self.refused.get(request["InstanceType"]):
            raise refusal(code, f"no {request['InstanceType']} for you", "RunInstances")
        name = f"i-{len(self.machines):017d}"
        self.machines[name] = Machine(request, self.now, self.behaves(request))
        if "lost reply" in self.failing:
            raise ConnectionClosedError(endpoint_url="https://ec2.us-east-1.amazonaws.com")
        return {"Instances": [self._view(name)]}

    def describe_instances(self, Filters: list[JSON]) -> JSON:
        read: Any = {
            "instance-id": lambda name: [name],
            "instance-state-name": lambda name: [self._state(self.machines[name])],
        }
        found = passing(list(self.machines), Filters, read, lambda name: self.machines[name].tags)
        return {"Reservations": [{"Instances": [self._view(name)]} for name in found]}

    def terminate_instances(self, InstanceIds: list[str]) -> JSON:
        self._check("TerminateInstances")
        for name in InstanceIds:
            self.machines[name].ended = "Client.UserInitiatedShutdown"
        return {}

    def get_console_output(self, InstanceId: str, Latest: bool = False) -> JSON:
        if Latest and not self.nitro:
            raise refusal("UnsupportedOperation", "not on Nitro", "GetConsoleOutput")
        machine = self.machines[InstanceId]
        said = [line for at, line in machine.script if machine.launched_at + at <= self.now and line not in STATES]
        return {"InstanceId": InstanceId, "Output": "\r\n".join(["[    0.1] Linux", *said])} if said else {}

    def create_image(self, **request: Any) -> JSON:
        self._check("CreateImage")
        assert self._state(self.machines[request["InstanceId"]]) == "stopped"
        ami, snapshot = f"ami-{len(self.images):017d}", f"snap-{len(self.images):017d}"
        assert {each["ResourceType"] for each in request["TagSpecifications"]} == {"image", "snapshot"}
        disk = self.machines[request["InstanceId"]].request["BlockDeviceMappings"][0]
        self.snapshots.add(snapshot)
        self.images[ami] = {
            "ImageId": ami,
            "Name": request["Name"],
            "OwnerId": "self",
            "CreationDate": datetime.fromtimestamp(self.now, UTC).isoformat(),
            "Tags": request["TagSpecifications"][0]["Tags"],
            "BlockDeviceMappings": [{**disk, "Ebs": {**disk["Ebs"], "SnapshotId": snapshot}}],
            "ready": self.now + self.ami_s,
        }
        return {"ImageId": ami}

    def describe_images(self, Filters: list[JSON], Owners: list[str] | None = None) -> JSON:
        views = [
            {"State": self.ami_state if each.get("ready", 0.0) <= self.now else "pending", **each}
            for each in self.images.values()
            if not Owners or each["OwnerId"] in Owners
        ]
        views = [{key: value for key, value in each.items() if key != "ready"} for each in views]
        read: Any = {"image-id": lambda each: [each["ImageId"]]}
        return {"Images": passing(views, Filters, read, lambda each: tags_of(each.get("Tags", [])))}

    def deregister_image(self, ImageId: str) -> JSON:
        del self.images[ImageId]
        return {}

    def delete_snapshot(self, SnapshotId: str) -> JSON:
        self._check("DeleteSnapshot")
        self.snapshots.remove(SnapshotId)
        return {}

    def describe_launch_template_versions(self, Versions: list[str]) -> JSON:
        assert Versions == ["$Latest"]
        return {
            "LaunchTemplateVersions": [
                {
                    "LaunchTemplateId": f"lt-{name}",
                    "LaunchTemplateName": f"name-{name}",
                    "LaunchTemplateData": template(ami, gib),
                }
                for name, (ami, gib) in self.pools.items()
            ]
        }

    def describe_fleets(self) -> JSON:
        ours = [{"Key": "argosy:stage", "Value": "main"}]
        fleets = [
            {
                "FleetState": state,
                "Tags": tags,
                "LaunchTemplateConfigs": [
                    {
                        "LaunchTemplateSpecification": {"LaunchTemplateId": f"lt-{name}", "Version": "1"},
                        "Overrides": [{"InstanceType": name, "SubnetId": "subnet-a"}],
                    }
                ],
            }
            for name in self.pools
            for state, tags in (("active", ours), ("deleted_running", ours), ("active", []))
        ]
        return {"Fleets": fleets}

    def _check(self, operation: str) -> None:
        if code := self.failing.get(operation):
            raise refusal(code, "AWS's own words", operation)

    def _state(self, machine: Machine) -> str:
        if machine.ended:
            return "terminated"
        past = [what for at, what in machine.script if machine.launched_at + at <= self.now and what in STATES]
        return past[-1] if past else "running"

    def _view(self, name: str) -> JSON:
        machine = self.machines[name]
        state = self._state(machine)
        return {
            "InstanceId": name,
            "State": {"Name": state, "Code": STATES[state]},
            "LaunchTime": datetime.fromtimestamp(machine.launched_at, UTC),
            "StateTransitionReason": "Server.SpotInstanceTermination" if state == "terminated" else "",
            "Tags": [{"Key": key, "Value": value} for key, value in machine.tags.items()],
        }


def template(ami: str, gib: int) -> JSON:
    """LaunchTemplateData as the stacks make it."""
    owners = [{"Key": "argosy:stage", "Value": "main"}, {"Key": "team", "Value": "vision"}]
    disk = {"VolumeSize": gib, "VolumeType": "gp3", "Encrypted": True, "DeleteOnTermination": True}
    return {
        "ImageId": ami,
        "SecurityGroupIds": ["sg-1"],
        "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": disk}],
        "TagSpecifications": [{"ResourceType": "instance", "Tags": owners}],
    }
