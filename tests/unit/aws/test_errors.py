"""Real messages and what they mean (reliability.md rows 4 to 11, aws.md 2.4)."""

from __future__ import annotations

import pytest
from botocore.exceptions import (
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
)

from argosy.aws.errors import KIND_OF_CODE, MESSAGE_LIMIT, FailureKind, classify
from tests.fakes.aws import refusal, timed_out

ROLE = "User: arn:aws:sts::123456789012:assumed-role/c/x is not authorized to perform: iam:PassRole on resource: y"


@pytest.mark.parametrize(
    ("code", "message", "status", "kind"),
    [
        ("ThrottlingException", "Rate exceeded", 400, FailureKind.THROTTLED),
        ("InvalidParameterException", "Rate exceeded", 400, FailureKind.THROTTLED),
        ("ClientException", "Too many concurrent attempts; Rate exceeded", 400, FailureKind.THROTTLED),
        ("RequestLimitExceeded", "Request limit exceeded.", 503, FailureKind.THROTTLED),
        ("SlowDown", "Please reduce your request rate.", 503, FailureKind.THROTTLED),
        ("ProvisionedThroughputExceededException", "The level of provisioned throughput", 400, FailureKind.THROTTLED),
        ("AccessDeniedException", ROLE, 400, FailureKind.ACCESS_DENIED),
        ("ClientException", ROLE, 400, FailureKind.ACCESS_DENIED),
        ("ClientException", "ECS was unable to assume the role 'arn:x' of this task.", 400, FailureKind.ACCESS_DENIED),
        ("UnauthorizedOperation", "You are not authorized to perform this operation.", 403, FailureKind.ACCESS_DENIED),
        ("403", "Forbidden", 403, FailureKind.ACCESS_DENIED),
        ("BlockedException", "Your AWS account was blocked", 400, FailureKind.ACCESS_DENIED),
        ("InvalidParameterException", "Container overrides length must be at most 8192", 400, FailureKind.INVALID),
        ("ClientException", "TaskDefinition is inactive", 400, FailureKind.INVALID),
        ("ClientException", "TaskDefinition not found.", 400, FailureKind.INVALID),
        ("SomethingNewException", "never seen before", 400, FailureKind.INVALID),
        ("InvalidParameterException", "No Container Instances were found in your cluster.", 400, FailureKind.CAPACITY),
        ("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded", 400, FailureKind.CAPACITY),
        (
            "InsufficientInstanceCapacity",
            "We currently do not have sufficient p3.2xlarge capacity",
            500,
            FailureKind.CAPACITY,
        ),
        (
            "VcpuLimitExceeded",
            "You have requested more vCPU capacity than your current limit",
            400,
            FailureKind.CAPACITY,
        ),
        ("ClientException", "Unable to describe task definition.", 400, FailureKind.NOT_FOUND),
        ("InvalidParameterException", "The referenced task was not found.", 400, FailureKind.NOT_FOUND),
        ("ClusterNotFoundException", "Cluster not found.", 400, FailureKind.NOT_FOUND),
        ("InvalidInstanceID.NotFound", "The instance ID 'i-0abc' does not exist", 400, FailureKind.NOT_FOUND),
        ("InvalidSomething.NotFound", "", 400, FailureKind.NOT_FOUND),
        ("404", "Not Found", 404, FailureKind.NOT_FOUND),
        ("ConflictException", "The request could not be processed because of conflict", 400, FailureKind.CONFLICT),
        (
            "PreconditionFailed",
            "At least one of the pre-conditions you specified did not hold",
            412,
            FailureKind.CONFLICT,
        ),
        ("ServerException", "Service Unavailable. Please try again later.", 500, FailureKind.IN_DOUBT),
        ("ServiceUnavailable", "", 503, FailureKind.IN_DOUBT),
        ("SomethingNewException", "never seen before", 502, FailureKind.IN_DOUBT),
        ("ExpiredTokenException", "The security token included in the request is expired", 400, FailureKind.IN_DOUBT),
        ("InvalidSignatureException", "Signature expired: 20261121T062733Z is too early", 403, FailureKind.IN_DOUBT),
    ],
)
def test_an_answer_is_classified_by_code_and_message(code: str, message: str, status: int, kind: FailureKind) -> None:
    fault = classify(refusal(code, message, status))
    assert fault.kind is kind
    assert fault.code == code
    assert fault.lasting == (kind in (FailureKind.ACCESS_DENIED, FailureKind.INVALID))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (timed_out(), FailureKind.IN_DOUBT),
        (ConnectTimeoutError(endpoint_url="https://x"), FailureKind.IN_DOUBT),
        (EndpointConnectionError(endpoint_url="https://x"), FailureKind.IN_DOUBT),
        (ParamValidationError(report="Missing required parameter"), FailureKind.INVALID),
        (NoCredentialsError(), FailureKind.ACCESS_DENIED),
        (RuntimeError("a fault of our own"), FailureKind.IN_DOUBT),
    ],
)
def test_no_answer_at_all_proves_nothing(error: Exception, kind: FailureKind) -> None:
    fault = classify(error)
    assert (fault.kind, fault.code) == (kind, type(error).__name__)


def test_a_code_stands_in_one_class_and_long_messages_are_cut() -> None:
    assert len(KIND_OF_CODE) > 50
    fault = classify(refusal("ServerException", "x" * 1000, 500))
    assert fault.text == "ServerException: " + "x" * MESSAGE_LIMIT
    assert classify(refusal("ServerException", "", 500)).text == "ServerException"
