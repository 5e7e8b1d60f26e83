"""A company's account (N10): its bootstrap, every role's boundary, its tags on everything; a small stage (N8)."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.settings.settings import SettingsError, load_settings
from tests.stacks.templates import Template, text

pytestmark = pytest.mark.stacks
OURS = {"Key": "argosy:stage", "Value": "main"}
THEIRS = {"Key": "cost-centre", "Value": "4711"}


def test_every_role_has_the_boundary_those_of_the_cdks_own_constructs_included(guest: Template) -> None:
    roles = guest.of_type("AWS::IAM::Role")
    assert len(roles) > 10
    boundaries = {text(role.get("PermissionsBoundary")) for role in roles.values()}
    assert boundaries == {"arn:<Partition>:iam::<AccountId>:policy/teams/batch"}


def tags_of(properties: dict[str, Any]) -> list[Any]:
    """Every list of tags of a resource: a launch template has one for each kind of thing that it makes."""
    found = [properties["Tags"]] if "Tags" in properties else []
    specifications = [*properties.get("TagSpecifications", ())]
    specifications += properties.get("LaunchTemplateData", {}).get("TagSpecifications", [])
    return found + [each["Tags"] for each in specifications]


def test_what_carries_our_tag_carries_the_companys(guest: Template) -> None:
    """Instances and volumes too, which an organization may refuse without."""
    tagged = 0
    for id, each in guest.resources.items():
        for tags in tags_of(each.get("Properties", {})):
            pairs = tags if isinstance(tags, list) else [{"Key": key, "Value": value} for key, value in tags.items()]
            if OURS in pairs:
                tagged += 1
                assert THEIRS in pairs, id
    assert tagged > 50
    (template, *_) = guest.of_type("AWS::EC2::LaunchTemplate").values()
    assert len(tags_of(template)) == 3


def test_it_is_deployed_through_the_companys_bootstrap(guest: Template) -> None:
    assert guest.body["Parameters"]["BootstrapVersion"]["Default"] == "/cdk-bootstrap/company/version"
    function = guest.named("AWS::Lambda::Function", "FunctionName", "argosy-api")
    assert text(function["Code"]["S3Bucket"]).startswith("cdk-company-assets-")


def test_the_home_of_a_stage_is_on_the_role_that_the_doctor_asks_for(home: Template) -> None:
    role = home.named("AWS::IAM::Role", "RoleName", "argosy-execution")
    assert {"Key": "argosy:home", "Value": "us-east-1"} in role["Tags"]


def test_a_small_stage_needs_neither_alarms_nor_a_dashboard(guest: Template, home: Template) -> None:
    """N8."""
    for kind in ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard"):
        assert home.of_type(kind)
        assert not guest.of_type(kind)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"alarms": False, "alarmEmail": "ops@example.com"}, "alarmEmail: would hear of nothing"),
        ({"bootstrapQualifier": "not-one"}, "bootstrapQualifier"),
        ({"permissionsBoundary": "arn:aws:iam::1:role/x"}, "permissionsBoundary"),
        ({"tags": {"argosy:stage": "other"}}, "is a tag of AWS or Argosy"),
        ({"tags": {"Name": "mine"}}, "is a tag of AWS or Argosy"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_built(setting: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        load_settings(setting)
