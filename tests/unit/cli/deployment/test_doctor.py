"""`doctor`: each check when all is well, when something is wrong, and when the user lacks the right. Nothing is
changed."""

# ruff: noqa: N803 - boto3's names

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import NoCredentialsError

from argosy.catalogue.quotas import FAMILIES, quota_family
from argosy.cli.deployment.account import (
    ACCOUNT_CHECKS,
    CELL_CHECKS,
    SERVICE_ROLES,
)
from argosy.cli.deployment.checked_account import CheckedAccount, planned, settings_for
from argosy.cli.deployment.checks import DEPLOYMENT_CHECKS, credentials, run_checks
from argosy.cli.deployment.findings import Finding, looked_at
from argosy.cli.deployment.quotas import VPCS
from argosy.cli.session import Session, Tools
from argosy.client.aws_clients import Connection
from argosy.client.errors import ArgosyError
from argosy.settings.amis import newest_ami_parameter
from argosy.settings.settings import Settings, load_settings
from tests.fakes.cli import Functions, Pages, Parameters, World, golden, refusal

ECR = "123456789012.dkr.ecr.us-east-1.amazonaws.com/argosy/digits"
BOOTSTRAP_PARAMETER = "/cdk-bootstrap/hnb659fds/version"
TYPES = Settings().instance_types.all


class Sts:
    def __init__(self, fault: Exception | None = None) -> None:
        self._fault = fault

    def get_caller_identity(self) -> Any:
        if self._fault:
            raise self._fault
        return {"Account": "123456789012", "Arn": "arn:aws:iam::123456789012:user/ada"}


class Iam:
    def __init__(self, *missing: str, denied: bool = False) -> None:
        self._missing, self._denied = missing, denied
        self.made: list[str] = []
        self.roles: dict[str, dict[str, str]] = {}  # name -> tags, of the account's other roles

    def get_role(self, *, RoleName: str) -> Any:
        if self._denied:
            raise refusal("AccessDenied", operation="GetRole")
        if RoleName in self.roles:
            return {"Role": {"Tags": [{"Key": key, "Value": value} for key, value in self.roles[RoleName].items()]}}
        if RoleName in self._missing or RoleName.startswith("argosy"):
            raise refusal("NoSuchEntity", operation="GetRole")
        return {"Role": {}}

    def create_service_linked_role(self, *, AWSServiceName: str) -> Any:
        self.made.append(AWSServiceName)
        return {"Role": {}}


class Quotas:
    """vCPUs by class, of on-demand as OnDemandG; others have AWS's default of 0."""

    def __init__(self, denied: bool = False, **vcpus: float) -> None:
        self._vcpus, self._denied = vcpus, denied

    def get_service_quota(self, *, ServiceCode: str, QuotaCode: str) -> Any:
        if self._denied:
            raise refusal("AccessDeniedException", operation="GetServiceQuota")
        if QuotaCode == VPCS:
            assert ServiceCode == "vpc"
            return {"Quota": {"Value": 5.0}}
        kind = next(each for each in FAMILIES if QuotaCode in (each.spot_code, each.on_demand_code))
        key = ("" if QuotaCode == kind.spot_code else "OnDemand") + kind.name.replace(",", " ").split()[0]
        if key not in self._vcpus:
            raise refusal("NoSuchResourceException", operation="GetServiceQuota")
        return {"Quota": {"Value": self._vcpus[key]}}

    def get_aws_default_service_quota(self, *, ServiceCode: str, QuotaCode: str) -> Any:
        return {"Quota": {"Value": 0.0}}


class Ec2:
    """Every zone offers the same types, but for `only`: type -> its zones."""

    def __init__(
        self,
        *offered: str,
        denied: bool = False,
        vpcs: int = 1,
        own: bool = False,
        zones: str = "abcd",
        only: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._offered, self._denied, self._zones, self._only = offered, denied, zones, only
        self.reservations: list[dict[str, Any]] = []
        self._vpcs = [{"VpcId": f"vpc-{number}"} for number in range(vpcs)]
        self._vpcs += [{"Tags": [{"Key": "argosy:stage", "Value": "main"}]}] if own else []

    def get_paginator(self, operation: str) -> Pages:
        listed = {"describe_vpcs": self._described, "describe_capacity_reservations": self._reserved}
        return Pages(listed[operation])

    def get_groups_for_capacity_reservation(self, CapacityReservationId: str) -> Any:
        groups = [{"GroupArn": RESERVED_GROUP}] if CapacityReservationId == RESERVED["CapacityReservationId"] else []
        return {"CapacityReservationGroups": groups}

    def _reserved(self) -> list[Any]:
        return [{"CapacityReservations": self.reservations}]

    def _described(self) -> list[Any]:
        if self._denied:
            raise refusal("UnauthorizedOperation", operation="DescribeVpcs")
        return [{"Vpcs": self._vpcs}]

    def describe_availability_zones(self, Filters: list[Any]) -> Any:
        if self._denied:
            raise refusal("UnauthorizedOperation", operation="DescribeAvailabilityZones")
        return {"AvailabilityZones": [{"ZoneName": f"us-east-1{letter}"} for letter in self._zones]}

    def describe_instance_type_offerings(self, LocationType: str, Filters: list[Any]) -> Any:
        if self._denied:
            raise refusal("UnauthorizedOperation", operation="DescribeInstanceTypeOfferings")
        assert LocationType == "availability-zone"
        found = [
            {"InstanceType": name, "Location": f"us-east-1{letter}"}
            for name in self._offered
            for letter in self._only.get(name, self._zones)
            if name in Filters[0]["Values"]
        ]
        return {"InstanceTypeOfferings": found}


class Ecr:
    def __init__(self, *, there: bool = True, denied: bool = False) -> None:
        self._there, self._denied = there, denied
        self.requests: list[dict[str, Any]] = []

    def describe_images(self, **request: Any) -> Any:
        self.requests.append(request)
        if self._denied:
            raise refusal("AccessDeniedException", operation="DescribeImages")
        if not self._there:
            raise refusal("ImageNotFoundException", operation="DescribeImages")
        return {}


def well() -> World:
    """An account where everything is there."""
    world = World(
        others={
            "sts": Sts(),
            "iam": Iam(),
            "service-quotas": Quotas(
                Standard=640.0, G=64.0, P4=32.0, P5=192.0, OnDemandStandard=64.0, OnDemandG=8.0, OnDemandP5=8.0
            ),
            "ec2": Ec2(*TYPES),
            "ecr": Ecr(),
        }
    )
    world.parameters.values |= {newest_ami_parameter(kind): f"ami-{kind}" for kind in ("cpu", "gpu")}
    world.parameters.values |= {BOOTSTRAP_PARAMETER: "21", "/argosy/images/digits": f"{ECR}@sha256:{'0' * 64}"}
    return world


# These have to be in the settings.
OF_ALL_CELLS = [name for name in CELL_CHECKS if name not in ("reservations", "baked AMI")]
ALL_CHECKS = ("credentials", *ACCOUNT_CHECKS, *OF_ALL_CELLS, *DEPLOYMENT_CHECKS)


def findings(name: str, world: World, *, may_fix: bool = False) -> list[Finding]:
    session = Session(Tools(world.client), Connection())
    if name in DEPLOYMENT_CHECKS:
        return looked_at(name, partial(DEPLOYMENT_CHECKS[name], session))
    if name == "credentials":
        return looked_at(name, partial(credentials, session))
    checked = CheckedAccount(session, settings_for(session, None), "123456789012", may_fix)
    if name in ACCOUNT_CHECKS:
        return looked_at(name, partial(ACCOUNT_CHECKS[name], checked))
    return looked_at(name, partial(CELL_CHECKS[name], checked, "us-east-1"))


def states(name: str, world: World) -> set[str]:
    return {each.state for each in findings(name, world)}


@pytest.mark.parametrize("name", ALL_CHECKS)
def test_each_check_is_ok_when_all_is_there(name: str) -> None:
    assert states(name, well()) == {"ok"}


def broken(name: str) -> World:
    """A world without the subject of the check."""
    world = well()
    world.others |= BROKEN.get(name, {})
    if name in LOST:
        del world.parameters.values[LOST[name]]
    return world


class Elsewhere(Parameters):
    """Of a shell whose Region is not home."""

    meta = SimpleNamespace(region_name="eu-west-1")


def elsewhere() -> Elsewhere:
    found = Elsewhere()
    found.values = well().parameters.values
    return found


def throttled(unreserved: int) -> Functions:
    found = Functions()
    found.unreserved = unreserved
    return found


class NoStacks:
    def describe_stacks(self, *, StackName: str) -> Any:
        raise refusal("ValidationError", operation="DescribeStacks")


LOST = {"deployment": "/argosy/deployment", "bootstrap": BOOTSTRAP_PARAMETER, "AMI": newest_ami_parameter("gpu")}


def iam_with(**tags: str) -> Iam:
    """An account with the role of stage main."""
    iam = Iam()
    iam.roles["argosy-execution"] = tags
    return iam


BROKEN: dict[str, dict[str, Any]] = {
    "Region": {"ssm": elsewhere()},
    "home": {"iam": iam_with()},
    "Lambda concurrency": {"lambda": throttled(2)},
    "credentials": {"sts": Sts(NoCredentialsError())},
    "deployment": {"cloudformation": NoStacks()},
    "service-linked roles": {"iam": Iam("AWSServiceRoleForEC2Spot", "AWSServiceRoleForEC2Fleet")},
    "spot quotas": {"service-quotas": Quotas(Standard=1.0)},
    "on-demand quotas": {"service-quotas": Quotas(Standard=640.0, OnDemandStandard=64.0)},
    "VPC": {"ec2": Ec2(*TYPES, vpcs=5)},
    "zones": {"ec2": Ec2(*TYPES, zones="d")},
    "instance types": {"ec2": Ec2()},
    "images": {"ecr": Ecr(there=False)},
}


@pytest.mark.parametrize("name", ALL_CHECKS)
def test_each_check_that_fails_says_what_to_type(name: str) -> None:
    """A finding that stops no run is a note: nothing is deployed yet, on-demand quotas are small, a
    deployment uses other zones than the guessed ones, or the shell another Region."""
    expected = "note" if name in ("deployment", "on-demand quotas", "zones", "Region") else "wrong"
    faults = [each for each in findings(name, broken(name)) if each.state != "ok"]
    assert expected in {each.state for each in faults}
    assert all(each.type_this for each in faults)


class DeniedFunctions(Functions):
    def get_account_settings(self) -> dict[str, Any]:
        raise refusal("AccessDeniedException", operation="GetAccountSettings")


@pytest.mark.parametrize("name", [name for name in ALL_CHECKS[1:] if name != "Region"])
def test_each_check_that_may_not_look_says_which_right_is_missing(name: str) -> None:
    world = well()
    world.others |= {"iam": Iam(denied=True), "service-quotas": Quotas(denied=True), "ec2": Ec2(denied=True)}
    world.others["ecr"], world.functions = Ecr(denied=True), DeniedFunctions()
    world.parameters.denied = name in ("deployment", "bootstrap", "AMI")
    [finding] = findings(name, world)
    assert finding.state == "denied"
    assert "you may not call" in finding.says


def test_doctor_s_report_when_all_is_well() -> None:
    result = well().argosy("doctor")
    assert result.exit_code == 0, result.output
    golden("doctor-well", result.stdout)


def test_doctor_s_report_of_a_new_account() -> None:
    world = well()
    world.others |= {
        "iam": Iam("AWSServiceRoleForEC2Spot", "AWSServiceRoleForEC2Fleet"),
        "service-quotas": Quotas(Standard=32.0),
        "ec2": Ec2(*(name for name in TYPES if not name.startswith("p3"))),
    }
    del world.parameters.values["/argosy/images/digits"]
    result = world.argosy("doctor")
    assert result.exit_code == 3
    golden("doctor-new-account", result.stdout)


def test_without_credentials_nothing_else_is_asked() -> None:
    result = World(others={"sts": Sts(NoCredentialsError())}).argosy("doctor")
    assert result.exit_code == 3
    assert result.stdout.count("wrong ") == 1


def test_expired_credentials_are_wrong_not_denied() -> None:
    world = World(others={"sts": Sts(refusal("ExpiredToken", operation="GetCallerIdentity"))})
    assert [each.state for each in findings("credentials", world)] == ["wrong"]


def test_json_has_one_entry_per_finding() -> None:
    document = well().document("doctor")
    assert document["ok"] is True
    assert document["checks"][0] == {
        "name": "credentials",
        "state": "ok",
        "says": "account 123456789012, arn:aws:iam::123456789012:user/ada",
        "next": None,
    }


def test_an_aws_on_this_machine_has_no_account_to_check() -> None:
    world = well()
    world.parameters.values["/argosy/images/digits"] = "argosy/digits"
    document = world.document("doctor", "--endpoint-url", "http://127.0.0.1:4566")
    assert [each["name"] for each in document["checks"]] == ["credentials", "deployment", "images"]


def test_before_the_first_deployment_nothing_of_it_is_wrong_and_the_next_command_is_named() -> None:
    world = broken("deployment")
    del world.parameters.values["/argosy/images/digits"]
    result = world.argosy("doctor")
    assert result.exit_code == 0, result.output
    assert "next: make deploy\n" in result.stdout


def test_a_stopped_local_mode_is_wrong() -> None:
    world = broken("deployment")
    result = world.argosy("doctor", "--endpoint-url", "http://127.0.0.1:4566")
    assert result.exit_code == 3
    assert "argosy local --port 4566" in result.stdout


def test_each_cell_is_checked_in_its_own_region() -> None:
    world = well()
    document = world.document("doctor", "--cells", "us-east-1,eu-west-1", "--account")
    names = [each["name"] for each in document["checks"]]
    assert {name.rpartition(" in ")[2] for name in names[1 + len(ACCOUNT_CHECKS) :]} == {"us-east-1", "eu-west-1"}
    assert [name for name in names if name.startswith("bootstrap")] == [
        "bootstrap in us-east-1",
        "bootstrap in eu-west-1",
    ]
    assert "eu-west-1" in {each.region for each in world.connections}
    assert not {"deployment", "images"} & set(names)


def test_what_is_deployed_says_which_cells_there_are() -> None:
    settings = Settings.model_validate({"cells": "us-east-1,eu-west-1"})

    class Deployed(Functions):
        def get_function_configuration(self, *, FunctionName: str) -> dict[str, Any]:
            return {"Environment": {"Variables": {"ARGOSY_SETTINGS": settings.to_json()}}}

    world = well()
    world.functions = Deployed()
    assert "bootstrap in eu-west-1" in {each.name for each in run_checks(Session(Tools(world.client), Connection()))}


def test_before_it_the_checkout_says_so(tmp_path: Path) -> None:
    file = tmp_path / "cdk.json"
    file.write_text('{"context": {"argosy": {"stage": "main", "cells": ["eu-west-1"]}}}')
    assert planned(file, "dev").cells == ("eu-west-1",)
    assert planned(file, "dev").stage == "dev"
    assert planned(tmp_path / "none.json", "main") == Settings()


def test_faulty_settings_of_the_checkout_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "cdk.json"
    file.write_text('{"context": {"argosy": {"maxInstances": 0}}}')
    with pytest.raises(ArgosyError, match="maxInstances"):
        planned(file, "main")


def test_cells_that_are_no_regions_are_a_usage_error() -> None:
    result = well().argosy("doctor", "--cells", "here,there")
    assert result.exit_code == 2
    assert "argosy doctor --cells us-east-1,eu-west-1" in result.stderr


def test_missing_service_roles_are_made_when_asked_for_and_only_then() -> None:
    world = well()
    iam = world.others["iam"] = Iam("AWSServiceRoleForEC2Spot", "AWSServiceRoleForEC2Fleet")
    assert [each.state for each in findings("service-linked roles", world)] == ["wrong"]
    assert iam.made == []
    assert [each.state for each in findings("service-linked roles", world, may_fix=True)] == ["ok"]
    assert iam.made == ["spot.amazonaws.com", "ec2fleet.amazonaws.com"]


def test_a_deployment_whose_users_interrupt_needs_the_role_of_fis() -> None:
    world = well()
    world.others["iam"] = Iam("AWSServiceRoleForFIS")
    assert [each.state for each in findings("service-linked roles", world)] == ["ok"]
    told = world.argosy("doctor", "--account", "--settings", load_settings({"allowInterrupt": True}).to_json())
    assert "wrong  service-linked roles: missing for fis.amazonaws.com" in told.stdout


def test_a_full_region_is_no_fault_once_the_deployment_has_its_vpc() -> None:
    world = well()
    world.others["ec2"] = Ec2(*TYPES, vpcs=4, own=True)
    assert states("VPC", world) == {"ok"}


def test_a_full_region_is_no_fault_where_the_settings_name_a_vpc() -> None:
    """`make deploy` passes what it is about to deploy, whatever is deployed or in cdk.json."""
    world = well()
    world.others["ec2"] = Ec2(*TYPES, vpcs=5)
    own = {"us-east-1": {"vpcId": "vpc-12345678", "subnets": {"us-east-1a": "subnet-12345678"}}}
    settings = load_settings({"cells": "us-east-1,eu-west-1", "vpcs": own}).to_json()
    result = world.argosy("doctor", "--account", "--settings", settings)
    assert result.exit_code == 3
    assert "ok     VPC in us-east-1: vpc-12345678, from the settings" in result.stdout
    assert "wrong  VPC in eu-west-1: all 5 " in result.stdout


def test_settings_that_are_none_are_a_usage_error() -> None:
    result = well().argosy("doctor", "--settings", "{nonsense")
    assert result.exit_code == 2
    assert "--settings is not valid JSON of settings" in result.stderr


def test_an_old_bootstrap_is_wrong() -> None:
    world = well()
    world.parameters.values[BOOTSTRAP_PARAMETER] = "5"
    assert states("bootstrap", world) == {"wrong"}


def test_every_missing_service_role_gets_its_command() -> None:
    world = well()
    world.others["iam"] = Iam(*SERVICE_ROLES)
    [finding] = findings("service-linked roles", world)
    assert all(f"--aws-service-name {service}" in finding.type_this for service in SERVICE_ROLES.values())


def test_gpu_classes_without_quota_are_only_noted() -> None:
    world = well()
    world.others["service-quotas"] = Quotas(Standard=64.0)
    assert states("spot quotas", world) == {"ok", "note"}


def test_only_images_that_instances_would_start_from_are_looked_for() -> None:
    """AWS is not asked for a pinned AMI, nor for one of a kind that no type needs."""
    world = well()
    del world.parameters.values[newest_ami_parameter("gpu")]
    session = Session(Tools(world.client), Connection())
    for settings in (
        {"amis": {"us-east-1": {"gpu": "ami-12345678"}}},
        {"instanceTypes": {"cpu": ["c5.large"], "gpu": []}},
    ):
        checked = CheckedAccount(session, load_settings(settings), "123456789012")
        assert [each.state for each in CELL_CHECKS["AMI"](checked, "us-east-1")] == ["ok"]
    assert states("AMI", world) == {"wrong"}


def test_types_that_are_not_offered_are_noted_by_name() -> None:
    world = well()
    world.others["ec2"] = Ec2(*(name for name in TYPES if name != "p3.2xlarge"))
    [finding] = findings("instance types", world)
    assert (finding.state, "p3.2xlarge" in finding.says) == ("note", True)
    assert finding.type_this.startswith("nothing to do: a deployment leaves their fleets out")


def test_types_that_only_other_zones_offer_are_noted_with_these_zones() -> None:
    world = well()
    world.others["ec2"] = Ec2(*TYPES, only={"g6.xlarge": "d"})
    _, finding = findings("instance types", world)
    assert (finding.state, finding.says) == (
        "note",
        "only in zones that this deployment does not use (us-east-1d): g6.xlarge",
    )


def test_a_type_that_the_owner_adds_and_ec2_lacks_is_wrong() -> None:
    """The stack would make its fleets, whatever EC2's list says, and be rolled back."""
    world = well()
    world.others["ec2"] = Ec2(*(name for name in TYPES if name != "p3.2xlarge"))
    settings = load_settings({"offered": {"us-east-1": {"add": ["p3.2xlarge"]}}})
    checked = CheckedAccount(Session(Tools(world.client), Connection()), settings, "123456789012")
    [finding] = CELL_CHECKS["instance types"](checked, "us-east-1")
    assert (finding.state, finding.type_this) == ("wrong", "in cdk.json, take p3.2xlarge out of offered.us-east-1.add")


def test_a_zone_that_the_account_lacks_is_named() -> None:
    """Where the settings guess it, a deployment takes others; where they name it, a deployment would fail."""
    world = well()
    assert states("zones", world) == {"ok"}
    world.others["ec2"] = Ec2(*TYPES, zones="abd")
    [finding] = findings("zones", world)
    assert (finding.state, finding.says) == (
        "note",
        "this account has no us-east-1c; it has us-east-1a, us-east-1b, us-east-1d",
    )
    settings = load_settings({"zones": {"us-east-1": ["us-east-1c"]}})
    checked = CheckedAccount(Session(Tools(world.client), Connection()), settings, "123456789012")
    assert [each.state for each in CELL_CHECKS["zones"](checked, "us-east-1")] == ["wrong"]


@pytest.mark.parametrize(
    ("uri", "image"),
    [
        (f"{ECR}@sha256:1", {"imageDigest": "sha256:1"}),
        (f"{ECR}:v2", {"imageTag": "v2"}),
        (ECR, {"imageTag": "latest"}),
    ],
)
def test_an_image_is_looked_up_as_it_is_named(uri: str, image: dict[str, str]) -> None:
    world = well()
    world.parameters.values["/argosy/images/digits"] = uri
    assert states("images", world) == {"ok"}
    assert world.others["ecr"].requests == [
        {"registryId": "123456789012", "repositoryName": "argosy/digits", "imageIds": [image]}
    ]


def test_the_deployment_s_own_settings_decide_which_types_are_checked() -> None:
    settings = Settings.model_validate({"instanceTypes": {"cpu": ["c5.large"], "gpu": []}})

    class Deployed(Functions):
        def get_function_configuration(self, *, FunctionName: str) -> dict[str, Any]:
            assert FunctionName == "argosy-controller"
            return {"Environment": {"Variables": {"ARGOSY_SETTINGS": settings.to_json()}}}

    world = well()
    world.functions = Deployed()
    assert [each.name for each in findings("spot quotas", world)] == ["spot quota Standard"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("c5.large", "Standard"),
        ("dl1.24xlarge", "DL"),
        ("d3.xlarge", "Standard"),
        ("p3.2xlarge", "P4, P3 and P2"),
        ("p5.48xlarge", "P5"),
        ("g6e.xlarge", "G and VT"),
        ("inf2.xlarge", "Inf"),
        ("i4i.large", "Standard"),
        ("x2idn.16xlarge", "X"),
        ("f2.6xlarge", "F"),
        ("trn1.2xlarge", "Trn"),
    ],
)
def test_each_type_draws_on_its_class(name: str, expected: str) -> None:
    assert quota_family(name).name == expected


def wide(**settings: Any) -> str:
    """What `make deploy` passes to the doctor."""
    return load_settings(settings).to_json()


def checked_before_deploying(world: World, **settings: Any) -> dict[str, Any]:
    """The findings about a deployment with these settings, by name."""
    found = run_checks(Session(Tools(world.client), Connection()), settings=wide(**settings), account_only=True)
    return {each.name: each for each in found}


def test_another_home_for_the_same_stage_is_refused_before_anything_is_built() -> None:
    """N9: the roles have no Region in their names, and CloudFormation would fail at them after minutes."""
    world = well()
    world.others["iam"] = iam_with(**{"argosy:stage": "main", "argosy:home": "us-east-1"})
    found = checked_before_deploying(world, cells=["eu-west-1"])["home"]
    assert found.state == "wrong"
    assert found.says == (
        "stage main has its home in us-east-1, which cannot change to eu-west-1: role argosy-execution exists"
    )
    assert found.type_this.startswith("name us-east-1 first in `cells`")
    assert checked_before_deploying(world, cells=["us-east-1", "eu-west-1"])["home"].state == "ok"
    assert checked_before_deploying(world, cells=["eu-west-1"], stage="dev")["home"].state == "ok"


def test_a_role_that_exists_already_is_refused_unless_the_deployment_there_is_of_before_the_tag() -> None:
    world = well()
    world.others["iam"] = iam_with()
    found = checked_before_deploying(world)["home"]
    assert (found.state, "role argosy-execution exists and no deployment" in found.says) == ("wrong", True)
    world.functions = deployed_with(Settings().to_json())
    assert checked_before_deploying(world)["home"].state == "ok"


def deployed_with(settings: str) -> Functions:
    class Deployed(Functions):
        def get_function_configuration(self, *, FunctionName: str) -> dict[str, Any]:
            return {"Environment": {"Variables": {"ARGOSY_SETTINGS": settings}}}

    return Deployed()


def test_a_shell_with_another_region_is_told_what_to_export() -> None:
    """N15: argosy and aws would look for the deployment in the wrong place."""
    found = checked_before_deploying(well(), cells=["eu-west-1"])["Region"]
    assert (found.state, found.says) == (
        "note",
        "home is eu-west-1, but your shell uses us-east-1: argosy and aws look there",
    )
    assert found.type_this == "export AWS_REGION=eu-west-1 AWS_DEFAULT_REGION=eu-west-1"


@pytest.mark.parametrize(
    ("unreserved", "reserved", "state"),
    [(1000, 0, "ok"), (10, 0, "note"), (4, 0, "wrong"), (1000, 100, "ok"), (10, 1, "wrong"), (150, 100, "wrong")],
)
def test_a_lambda_concurrency_that_is_too_small_is_said(unreserved: int, reserved: int, state: str) -> None:
    """N14: a new account has 10, of which nothing may be reserved."""
    world = well()
    world.functions = throttled(unreserved)
    found = checked_before_deploying(world, reservedConcurrency=reserved)["Lambda concurrency"]
    assert found.state == state
    if state != "ok":
        assert "--service-code lambda --quota-code L-B99A9384" in found.type_this


def test_what_is_reserved_already_is_not_asked_for_again() -> None:
    world = well()
    world.functions = deployed_with(wide(reservedConcurrency=100))
    world.functions.unreserved = 150
    assert checked_before_deploying(world, reservedConcurrency=100)["Lambda concurrency"].state == "ok"


def test_a_companys_own_bootstrap_is_looked_for_and_made_beside_the_usual_one() -> None:
    """N10."""
    world = well()
    found = checked_before_deploying(world, bootstrapQualifier="company")["bootstrap in us-east-1"]
    assert (found.state, "no CDK bootstrap with qualifier company" in found.says) == ("wrong", True)
    assert found.type_this == (
        'make bootstrap ARGS="aws://123456789012/us-east-1 --qualifier company --toolkit-stack-name CDKToolkit-company"'
    )
    world.parameters.values["/cdk-bootstrap/company/version"] = "21"
    assert checked_before_deploying(world, bootstrapQualifier="company")["bootstrap in us-east-1"].state == "ok"


def test_the_checkouts_qualifier_may_have_the_cdks_own_name(tmp_path: Path) -> None:
    file = tmp_path / "cdk.json"
    file.write_text('{"context": {"argosy": {}, "@aws-cdk/core:bootstrapQualifier": "company"}}')
    assert planned(file, "main").bootstrap_qualifier == "company"


@pytest.mark.parametrize(
    ("code", "state", "says"),
    [
        ("403", "note", "belongs to another account, or you may not see it"),
        ("404", "wrong", "is gone"),
    ],
)
def test_a_bucket_whose_name_is_taken_or_gone_is_said(code: str, state: str, says: str) -> None:
    world, name = well(), "cdk-hnb659fds-assets-123456789012-us-east-1"
    world.objects.refuses[name] = refusal(code, operation="HeadBucket")
    found = checked_before_deploying(world)["bootstrap in us-east-1"]
    assert (found.state, found.says) == (state, f"its bucket {name} {says}")


SCP = "user/ada is not authorized to perform: {} with an explicit deny in a service control policy"


class DeniedBySCP:
    """A client one of whose calls the organization denies. Others are the client's own."""

    def __init__(self, client: Any, method: str) -> None:
        self._client, self._method = client, method

    def __getattr__(self, name: str) -> Any:
        if name != self._method:
            return getattr(self._client, name)

        def denied(*_: Any, **__: Any) -> Any:
            raise refusal("AccessDeniedException", SCP.format(name), name)

        return denied


CALLS = [
    ("iam", "get_role"),
    ("lambda", "get_account_settings"),
    ("lambda", "get_function_configuration"),
    ("ssm", "get_parameter"),
    ("ssm", "get_paginator"),
    ("s3", "head_bucket"),
    ("ec2", "get_paginator"),
    ("service-quotas", "get_service_quota"),
    ("ecr", "describe_images"),
    ("cloudformation", "describe_stacks"),
]


@pytest.mark.parametrize(("service", "method"), CALLS)
def test_a_call_that_the_organization_denies_is_said_in_awss_words_with_whom_to_ask(service: str, method: str) -> None:
    """Each in turn: bad input of a deployment. Where there is another way the doctor takes it and says nothing."""
    world = well()
    del world.parameters.values["/argosy/deployment"]
    own = {"lambda": world.functions, "ssm": world.parameters, "s3": world.objects, "cloudformation": NoStacks()}
    world.others = own | world.others
    world.others[service] = DeniedBySCP(world.others[service], method)
    found = run_checks(Session(Tools(world.client), Connection()))
    denied = [each for each in found if each.state == "denied"]
    if method != "get_function_configuration":
        assert denied
    for each in denied:
        assert SCP.format(method) in each.says
        assert each.type_this.startswith("ask the administrators of your AWS organization")


def test_a_deployment_of_another_version_is_one_sentence() -> None:
    world = well()
    world.functions = deployed_with('{"aSettingOfNextMonth": 1}')
    result = world.argosy("doctor")
    assert result.exit_code != 0
    assert "The deployment argosy is of another version of Argosy" in result.output
    assert "Traceback" not in result.output


RESERVED = {
    "CapacityReservationId": "cr-0123456789abcdef0",
    "InstanceType": "g5.xlarge",
    "AvailabilityZone": "us-east-1a",
    "InstancePlatform": "Linux/UNIX",
    "State": "active",
    "TotalInstanceCount": 4,
    "AvailableInstanceCount": 3,
    "EndDate": datetime(2027, 1, 15, 12, tzinfo=UTC),
}


@pytest.mark.parametrize(
    ("change", "state", "said"),
    [
        ({}, "ok", "active, 3 of 4 g5.xlarge in us-east-1a are free, until 2027-01-15 12:00 UTC"),
        ({"InstancePlatform": "Windows"}, "note", "it is for Windows"),
        ({"InstanceType": "r5.large"}, "note", "its type is not in instanceTypes"),
        ({"State": "expired"}, "note", "nothing can be launched into it any more"),
        ({"CapacityReservationId": "cr-0123456789abcdef1"}, "note", "EC2 does not show it here"),
    ],
)
def test_each_reservation_of_the_settings_is_judged(change: dict[str, Any], state: str, said: str) -> None:
    world = well()
    world.others["ec2"] = ec2 = Ec2(*TYPES)
    ec2.reservations = [{**RESERVED, **change}]
    settings = load_settings({"capacityReservations": {"us-east-1": ["cr-0123456789abcdef0"]}})
    checked = CheckedAccount(Session(Tools(world.client), Connection()), settings, "123456789012")
    [finding] = CELL_CHECKS["reservations"](checked, "us-east-1")
    assert (finding.state, said in finding.says) == (state, True), finding.says


RESERVED_GROUP = "arn:aws:resource-groups:us-east-1:123456789012:group/gpus"


@pytest.mark.parametrize("is_in", [True, False])
def test_the_reservations_of_a_group_of_the_settings_are_judged(is_in: bool) -> None:
    world = well()
    world.others["ec2"] = ec2 = Ec2(*TYPES)
    ec2.reservations = [{**RESERVED, "CapacityReservationId": "cr-0123456789abcdef9"}, *([RESERVED] if is_in else [])]
    settings = load_settings({"capacityReservations": {"us-east-1": [RESERVED_GROUP]}})
    checked = CheckedAccount(Session(Tools(world.client), Connection()), settings, "123456789012")
    [finding] = CELL_CHECKS["reservations"](checked, "us-east-1")
    said = "3 of 4 g5.xlarge" if is_in else "no Capacity Reservation here is in"
    assert (finding.state, said in finding.says) == ("ok" if is_in else "note", True), finding.says


@pytest.mark.parametrize(
    ("named", "check", "said"),
    [
        ({"spot": {"g": 65}}, "spot quotas", "64 vCPUs, but vcpuQuotas counts on 65"),
        ({"onDemand": {"p": 193}}, "on-demand quotas", "192 vCPUs, but vcpuQuotas counts on 193"),
    ],
)
def test_quotas_of_the_settings_above_the_account_s_are_noted(named: dict[str, Any], check: str, said: str) -> None:
    world = well()
    world.others["service-quotas"] = Quotas(
        Standard=640.0, G=64.0, P4=640.0, P5=640.0, OnDemandStandard=640.0, OnDemandG=64.0, OnDemandP4=192.0,
        OnDemandP5=192.0,
    )  # fmt: skip
    settings = load_settings({"vcpuQuotas": {"us-east-1": named}})
    checked = CheckedAccount(Session(Tools(world.client), Connection()), settings, "123456789012")
    assert any(said in each.says for each in CELL_CHECKS[check](checked, "us-east-1"))
    settings = load_settings({"vcpuQuotas": {"us-east-1": {"spot": {"g": 64}, "onDemand": {"p": 192}}}})
    checked = CheckedAccount(Session(Tools(world.client), Connection()), settings, "123456789012")
    assert {each.state for each in CELL_CHECKS[check](checked, "us-east-1")} == {"ok"}
