"""Which requests about load balancers does the embedded AWS answer itself? Asked by a real botocore client."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from argosy.local.server.target_groups import OwnTargetGroups
from tests.fakes.serving import front

pytestmark = pytest.mark.slow

ARN = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/web/0123456789abcdef"
FIRST, SECOND = "i-0123456789abcdef0", "i-0123456789abcdef1"
NAMESPACE = "http://elasticloadbalancing.amazonaws.com/doc/2015-12-01/"


def own() -> OwnTargetGroups:
    return OwnTargetGroups([ARN], {FIRST, SECOND}.__contains__)


def moto(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    """Shows by a code that it was called."""
    start_response("400 Bad Request", [("Content-Type", "text/xml")])
    asked = environ["wsgi.input"].read().decode().partition("&")[0]
    error = f"<Error><Type>Sender</Type><Code>Moto</Code><Message>{asked}</Message></Error>"
    return [f'<ErrorResponse xmlns="{NAMESPACE}">{error}<RequestId>1</RequestId></ErrorResponse>'.encode()]


def code_of(call: Any, **request: Any) -> str:
    with pytest.raises(ClientError) as error:
        call(**request)
    return str(error.value.response["Error"]["Code"])


def test_targets_of_a_group_of_the_settings_come_and_go() -> None:
    targets = [{"Id": FIRST, "Port": 32768 + number} for number in range(11)] + [{"Id": SECOND, "Port": 32768}]
    with front(own=[own()]) as clients:
        elbv2 = clients("elbv2")
        elbv2.register_targets(TargetGroupArn=ARN, Targets=targets)
        elbv2.deregister_targets(TargetGroupArn=ARN, Targets=targets[3:])
        found = elbv2.describe_target_health(TargetGroupArn=ARN)["TargetHealthDescriptions"]
    assert [each["Target"] for each in found] == targets[:3]
    assert {each["TargetHealth"]["State"] for each in found} == {"healthy"}


def test_a_target_that_does_not_run_is_refused_in_the_service_s_own_words() -> None:
    with front(own=[own()]) as clients:
        targets = [{"Id": "i-0123456789abcdef9", "Port": 80}]
        with pytest.raises(ClientError) as error:
            clients("elbv2").register_targets(TargetGroupArn=ARN, Targets=targets)
    assert error.value.response["Error"] == {
        "Type": "Sender",
        "Code": "InvalidTarget",
        "Message": "The following targets are not in a running state: i-0123456789abcdef9",
    }


def test_other_groups_and_other_questions_are_motos() -> None:
    with front(own=[own()], moto=moto) as clients:
        elbv2 = clients("elbv2")
        other = ARN.replace("web", "mine")
        assert code_of(elbv2.describe_target_health, TargetGroupArn=other) == "Moto"
        assert code_of(elbv2.register_targets, TargetGroupArn=other, Targets=[{"Id": FIRST}]) == "Moto"
        assert code_of(elbv2.describe_target_group_attributes, TargetGroupArn=ARN) == "Moto"
        assert code_of(elbv2.describe_load_balancers) == "Moto"
