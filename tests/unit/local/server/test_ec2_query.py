"""The EC2 query protocol: the model gets a real botocore client's request, and the client gets the model's reply."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import requests
from botocore.exceptions import ClientError

from tests.fakes.serving import front
from tests.fakes.signing import send

pytestmark = pytest.mark.slow

MOMENT = datetime(2026, 11, 21, 6, 40, 17, 250000, UTC)


class Ec2:
    """Remembers its last call and gives a prepared answer."""

    def __init__(self, reply: dict[str, Any] | Exception | None = None) -> None:
        self.reply = {} if reply is None else reply
        self.request: dict[str, Any] = {}

    def describe_instances(self, **request: Any) -> dict[str, Any]:
        self.request = request
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply

    modify_fleet = create_fleet = describe_fleets = describe_spot_price_history = describe_instances


def _post(endpoint: str, body: str | bytes) -> requests.Response:
    return send("POST", endpoint, "ec2", body.encode() if isinstance(body, str) else body)


def test_lists_filters_numbers_and_flags_arrive_as_boto3_names_them() -> None:
    ec2 = Ec2({"Reservations": []})
    filters = [{"Name": "tag:argosy:stage", "Values": ["main", "other"]}, {"Name": "instance-type", "Values": ["x"]}]
    with front(ec2=ec2) as clients:
        clients("ec2").describe_instances(Filters=filters, MaxResults=50, DryRun=False)
    assert ec2.request == {"Filters": filters, "MaxResults": 50, "DryRun": False}


def test_more_than_nine_list_elements_keep_their_order() -> None:
    ec2, ids = Ec2({"Reservations": []}), [f"i-{number:017x}" for number in range(12)]
    with front(ec2=ec2) as clients:
        clients("ec2").describe_instances(InstanceIds=ids)
    assert ec2.request["InstanceIds"] == ids


def test_nested_structures_arrive_whole() -> None:
    ec2 = Ec2({"FleetId": "fleet-1"})
    request = {
        "Type": "maintain",
        "TargetCapacitySpecification": {"TotalTargetCapacity": 0, "DefaultTargetCapacityType": "spot"},
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": {"LaunchTemplateName": "tem", "Version": "1"},
                "Overrides": [{"InstanceType": "c5.large", "AvailabilityZone": "us-east-1a", "WeightedCapacity": 1.0}],
            }
        ],
        "TagSpecifications": [{"ResourceType": "fleet", "Tags": [{"Key": "argosy:stage", "Value": "main"}]}],
    }
    with front(ec2=ec2) as clients:
        assert clients("ec2").create_fleet(**request)["FleetId"] == "fleet-1"
    ec2.request.pop("ClientToken", None)  # botocore's own
    assert ec2.request == request


def test_replies_keep_lists_flags_numbers_and_times() -> None:
    fleet = {
        "FleetId": "fleet-1",
        "CreateTime": MOMENT,
        "FulfilledCapacity": 2.5,
        "TerminateInstancesWithExpiration": True,
        "TargetCapacitySpecification": {"TotalTargetCapacity": 3},
        "Tags": [{"Key": "argosy:pool", "Value": "c5.large/us-east-1a"}, {"Key": "empty", "Value": ""}],
        "LaunchTemplateConfigs": [],
    }
    with front(ec2=Ec2({"Fleets": [fleet], "NextToken": None, "invented": 1})) as clients:
        reply = clients("ec2").describe_fleets()
    assert reply["Fleets"] == [fleet]
    assert set(reply) == {"Fleets", "ResponseMetadata"}
    assert reply["ResponseMetadata"]["RequestId"]


def test_times_arrive_as_aware_datetimes() -> None:
    ec2 = Ec2({"SpotPriceHistory": []})
    with front(ec2=ec2) as clients:
        clients("ec2").describe_spot_price_history(StartTime=MOMENT)
        assert ec2.request["StartTime"] == MOMENT
        assert _post(clients.endpoint, "Action=DescribeSpotPriceHistory&StartTime=2026-11-21T06:40:17.250").ok
    assert ec2.request["StartTime"] == MOMENT


def test_a_refusal_arrives_with_its_code_and_message() -> None:
    error = {"Code": "InvalidInstanceID.NotFound", "Message": "no <such> instance"}
    refusing = Ec2(ClientError({"Error": error}, "DescribeInstances"))
    with front(ec2=refusing) as clients, pytest.raises(ClientError) as caught:
        clients("ec2").describe_instances(InstanceIds=["i-1"])
    assert caught.value.response["Error"] == error


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("Action=DescribeInstances&MaxResults=many", "InvalidParameterValue"),
        ("Action=DescribeInstances&DryRun=perhaps", "InvalidParameterValue"),
        ("Action=DescribeInstances&Filter=x", "InvalidParameterValue"),
        ("Action=DescribeInstances&Filter.first.Name=x", "MalformedQueryString"),
        ("Action=DescribeInstances&Filter.1=x&Filter.1.Name=y", "MalformedQueryString"),
        ("Action=ModifyFleet", "InvalidParameterException"),  # FleetId is required
        (b"Action=DescribeInstances&Filter.1=\xff", "MalformedQueryString"),
    ],
)
def test_malformed_queries_are_refused(body: str | bytes, code: str) -> None:
    with front(ec2=Ec2()) as clients:
        reply = _post(clients.endpoint, body)
    assert reply.status_code == 400
    assert f"<Code>{code}</Code>" in reply.text


def test_an_empty_list_is_a_list() -> None:
    ec2 = Ec2({"Reservations": []})
    with front(ec2=ec2) as clients:
        assert _post(clients.endpoint, "Action=DescribeInstances&InstanceId=").ok
    assert ec2.request == {"InstanceIds": []}


def test_actions_that_the_model_does_not_have_go_to_moto_with_their_body() -> None:
    with front(ec2=Ec2()) as clients:
        reply = _post(clients.endpoint, "Action=DescribeVpcs&Version=2016-11-15")
    assert reply.status_code == 418
    assert reply.text.endswith("Action=DescribeVpcs&Version=2016-11-15")
