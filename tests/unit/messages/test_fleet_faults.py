"""A dead image, a missing role, a policy, a full subnet, a full quota, no capacity and the price read differently."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.messages.fleet_faults import MAX_DESCRIPTION, OBSTACLES, latest_shortage, shortage
from argosy.model.instances import Purchase

INVALID = "spotFleetRequestConfigurationInvalid"
HELD = "Repeated errors have occurred processing the launch specification. Error message: "
# Seen in public: the descriptions with capacity and free addresses come from
# https://github.com/c6fc/npk/issues/70 and https://github.com/scylladb/scylla-cluster-tests/issues/781,
# the texts of EC2's errors from https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html.
SEEN = [
    (
        INVALID,
        "p2.xlarge, ami-0e0, Linux/UNIX: We currently do not have sufficient p2.xlarge capacity in the Availability "
        "Zone you requested",
        "no capacity",
    ),
    (
        INVALID,
        "i3.large, ami-0a0, Linux/UNIX (Amazon VPC): There are not enough free addresses in subnet 'subnet-ad' to "
        "satisfy the requested number of instances.",
        "subnet has no free address",
    ),
    (
        "launchSpecUnusable",
        "p2.xlarge, ami-0e0, Linux/UNIX, eu-central-1c, requested instance type is not supported in the requested "
        "Availability Zone",
        "does not offer this type",
    ),
    ("launchSpecTemporarilyBlacklisted", f"{HELD}The image id '[ami-0c5]' does not exist", "machine image"),
    (INVALID, "Value (argosy-instance) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile "
     "name", "instance profile"),
    ("iamFleetRoleInvalid", "", "may not launch it"),
    (
        "launchSpecTemporarilyBlacklisted",
        f"{HELD}You are not authorized to perform this operation. User is not authorized to perform: ec2:RunInstances "
        "with an explicit deny in a service control policy",
        "may not launch it",
    ),
    ("spotInstanceCountLimitExceeded", "Max spot instance count exceeded", "quota for spot"),
    (
        INVALID,
        "You have requested more vCPU capacity than your current vCPU limit of 0 allows for the instance bucket that "
        "the specified instance type belongs to.",
        "quota for on-demand",
    ),
    ("fleetProgressHalted", "", "spot price"),
    ("allLaunchSpecsTemporarilyBlacklisted", "Several attempts to launch instances failed.", "no capacity"),
    (INVALID, "c5.xlarge, ami-0, Linux/UNIX: Value", "refuses the fleet's configuration"),
    (INVALID, "The specified launch template, with template name argosy, does not exist.", "launch template"),
]  # fmt: skip
LASTING = ("machine image", "instance profile", "may not launch", "refuses", "launch template")


@pytest.mark.parametrize(("sub_type", "description", "says"), SEEN)
def test_each_reason_reads_differently_and_keeps_ec2_s_own_words(sub_type: str, description: str, says: str) -> None:
    short = shortage("fleet-1", sub_type, description)
    assert says in short.reason
    assert {other for _, _, other in SEEN if other in short.reason} == {says}
    assert sub_type in short.reason
    assert description[:40] in short.reason
    assert short.lasting == any(each in says for each in LASTING)


def test_a_full_quota_concerns_all_that_draw_on_it_and_one_purchase_option_only() -> None:
    spot = shortage("fleet-1", "spotInstanceCountLimitExceeded")
    assert (spot.over_quota, spot.only) == (True, Purchase.SPOT)
    on_demand = shortage("fleet-1", "VcpuLimitExceeded")
    assert (on_demand.over_quota, on_demand.only) == (True, Purchase.ON_DEMAND)
    assert shortage("fleet-1", INVALID, "not enough free addresses in subnet").only is None


def test_a_reason_is_short_and_has_no_control_characters() -> None:
    reason = shortage("fleet-1", "launchSpecUnusable", "\x1b]0;x\x07\n" + "y" * 5000 + "\ud865").reason
    assert reason.isprintable()
    assert len(reason) < MAX_DESCRIPTION + 200


def record(sub_type: str, description: str = "") -> dict[str, Any]:
    return {
        "EventType": "service-error",
        "EventInformation": {"EventSubType": sub_type, "EventDescription": description},
    }


def test_the_history_gives_the_last_obstacle_and_prefers_one_that_an_operator_must_remove() -> None:
    quiet: list[dict[str, Any]] = [record("launched"), record("modify_succeeded"), {"EventType": "fleet-change"}]
    assert latest_shortage("fleet-1", quiet) is None
    earlier = record("allLaunchSpecsTemporarilyBlacklisted", "no capacity, the first time")
    later = record("allLaunchSpecsTemporarilyBlacklisted", "no capacity, the second time")
    found = latest_shortage("fleet-1", [*quiet, earlier, later, record("launched")])
    assert found is not None
    assert "the second time" in found.reason
    dead = record("launchSpecUnusable", "The image id '[ami-0c5]' does not exist")
    found = latest_shortage("fleet-1", [dead, later])
    assert found is not None
    assert found.lasting


def test_only_documented_sub_types_are_obstacles() -> None:
    """All of them are named by EC2's own service model."""
    import botocore.session

    model = botocore.session.get_session().get_service_model("ec2")
    documented = model.shape_for("EventInformation").members["EventSubType"].documentation
    assert [each for each in sorted(OBSTACLES) if f"<code>{each}</code>" not in documented] == []
