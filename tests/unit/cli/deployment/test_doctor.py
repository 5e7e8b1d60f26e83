"""`doctor`: each check when all is well, when something is wrong, and when one may not look. Nothing is changed."""

# ruff: noqa: N803 - boto3's names

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import NoCredentialsError

from argosy.catalogue.quotas import FAMILIES, quota_family
from argosy.cli.deployment import checks
from argosy.cli.deployment.checks import ACCOUNT_CHECKS, AMI_PARAMETERS, BOOTSTRAP_PARAMETER, SERVICE_ROLES
from argosy.cli.deployment.findings import Finding, looked_at
from argosy.cli.session import Session, Tools
from argosy.client.aws_clients import Connection
from argosy.settings.settings import Settings
from tests.fakes.cli import Functions, Pages, World, golden, refusal

ECR = "123456789012.dkr.ecr.us-east-1.amazonaws.com/argosy/digits"
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

    def get_role(self, *, RoleName: str) -> Any:
        if self._denied:
            raise refusal("AccessDenied", operation="GetRole")
        if RoleName in self._missing:
            raise refusal("NoSuchEntity", operation="GetRole")
        return {"Role": {}}


class Quotas:
    """vCPUs by quota code; what is not named has only AWS's default of 0."""

    def __init__(self, denied: bool = False, **vcpus: float) -> None:
        self._vcpus, self._denied = vcpus, denied

    def get_service_quota(self, *, ServiceCode: str, QuotaCode: str) -> Any:
        if self._denied:
            raise refusal("AccessDeniedException", operation="GetServiceQuota")
        kind = next(each.name for each in FAMILIES if each.spot_code == QuotaCode)
        key = kind.replace(",", " ").split()[0]
        if key not in self._vcpus:
            raise refusal("NoSuchResourceException", operation="GetServiceQuota")
        return {"Quota": {"Value": self._vcpus[key]}}

    def get_aws_default_service_quota(self, *, ServiceCode: str, QuotaCode: str) -> Any:
        return {"Quota": {"Value": 0.0}}


class Ec2:
    def __init__(self, *offered: str, denied: bool = False) -> None:
        self._offered, self._denied = offered, denied

    def get_paginator(self, operation: str) -> Pages:
        assert operation == "describe_instance_type_offerings"
        return Pages(self._offerings)

    def _offerings(self, LocationType: str, Filters: list[Any]) -> list[Any]:
        if self._denied:
            raise refusal("UnauthorizedOperation", operation="DescribeInstanceTypeOfferings")
        found = [name for name in self._offered if name in Filters[0]["Values"]]
        return [{"InstanceTypeOfferings": [{"InstanceType": name} for name in found]}]


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
            "service-quotas": Quotas(Standard=640.0, G=64.0, P4=32.0),
            "ec2": Ec2(*TYPES),
            "ecr": Ecr(),
        }
    )
    world.parameters.values |= {name: f"ami-{kind}" for kind, name in AMI_PARAMETERS.items()}
    world.parameters.values |= {BOOTSTRAP_PARAMETER: "21", "/argosy/images/digits": f"{ECR}@sha256:{'0' * 64}"}
    return world


def findings(name: str, world: World) -> list[Finding]:
    check = ACCOUNT_CHECKS.get(name, checks.credentials)
    return looked_at(name, check, Session(Tools(world.client), Connection()))


def states(name: str, world: World) -> set[str]:
    return {each.state for each in findings(name, world)}


@pytest.mark.parametrize("name", ["credentials", *ACCOUNT_CHECKS])
def test_each_check_is_ok_when_all_is_there(name: str) -> None:
    assert states(name, well()) == {"ok"}


def broken(name: str) -> World:
    """A world in which what the check looks at is missing."""
    world = well()
    values, others = world.parameters.values, world.others
    if name == "credentials":
        others["sts"] = Sts(NoCredentialsError())
    elif name == "deployment":
        del values["/argosy/deployment"]
        others["cloudformation"] = NoStacks()
    elif name == "bootstrap":
        del values[BOOTSTRAP_PARAMETER]
    elif name == "service-linked roles":
        others["iam"] = Iam("AWSServiceRoleForEC2Spot", "AWSServiceRoleForEC2Fleet")
    elif name == "spot quotas":
        others["service-quotas"] = Quotas(Standard=1.0)
    elif name == "AMI":
        del values[AMI_PARAMETERS["GPU"]]
    elif name == "instance types":
        others["ec2"] = Ec2()
    elif name == "images":
        others["ecr"] = Ecr(there=False)
    return world


class NoStacks:
    def describe_stacks(self, *, StackName: str) -> Any:
        raise refusal("ValidationError", operation="DescribeStacks")


@pytest.mark.parametrize("name", ["credentials", *ACCOUNT_CHECKS])
def test_each_check_that_fails_says_what_to_type(name: str) -> None:
    wrong = [each for each in findings(name, broken(name)) if each.state == "wrong"]
    assert wrong
    assert all(each.type_this for each in wrong)


@pytest.mark.parametrize("name", list(ACCOUNT_CHECKS))
def test_each_check_that_may_not_look_says_which_right_is_missing(name: str) -> None:
    world = well()
    world.others |= {"iam": Iam(denied=True), "service-quotas": Quotas(denied=True), "ec2": Ec2(denied=True)}
    world.others["ecr"] = Ecr(denied=True)
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


def test_types_that_are_not_offered_are_noted_by_name() -> None:
    world = well()
    world.others["ec2"] = Ec2(*(name for name in TYPES if name != "p3.2xlarge"))
    [finding] = findings("instance types", world)
    assert (finding.state, "p3.2xlarge" in finding.says) == ("note", True)


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
