"""Real messages and what they mean (reliability.md rows 4 to 11, aws.md 2.4)."""

from __future__ import annotations

import botocore.session
import pytest
from botocore.exceptions import (
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
)

from argosy.aws.errors import FAULTY_REQUEST, KIND_OF_CODE, MESSAGE_LIMIT, FailureKind, classify
from tests.fakes.aws import refusal, timed_out

ROLE = "User: arn:aws:sts::123456789012:assumed-role/c/x is not authorized to perform: iam:PassRole on resource: y"


@pytest.mark.parametrize(
    ("code", "message", "status", "kind"),
    [
        ("ThrottlingException", "Rate exceeded", 400, FailureKind.THROTTLED),
        ("InvalidParameterException", "Rate exceeded", 400, FailureKind.THROTTLED),
        ("ClientException", "Too many concurrent attempts; Rate exceeded", 400, FailureKind.THROTTLED),
        (
            "ClientException",
            "Too many concurrent attempts to create a new revision of the specified family.",
            400,
            FailureKind.THROTTLED,
        ),
        ("KMSThrottlingException", "Too fast", 400, FailureKind.THROTTLED),
        ("KMS.ThrottlingException", "Too fast", 400, FailureKind.THROTTLED),
        ("ReplicatedWriteConflictException", "", 400, FailureKind.THROTTLED),
        ("RequestTimeTooSkewed", "The difference is too large.", 403, FailureKind.IN_DOUBT),
        ("UnrecognizedClientException", "The security token is invalid", 400, FailureKind.ACCESS_DENIED),
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


def test_a_code_belongs_to_one_class_and_long_messages_are_cut() -> None:
    assert len(KIND_OF_CODE) > 50
    fault = classify(refusal("ServerException", "x" * 1000, 500))
    assert fault.text == "ServerException: " + "x" * MESSAGE_LIMIT
    assert classify(refusal("ServerException", "", 500)).text == "ServerException"


@pytest.mark.parametrize(
    ("error", "final"),
    [
        (ParamValidationError(report="Missing required parameter"), True),
        (refusal("InvalidParameterException", "Container overrides length must be at most 8192"), True),
        (refusal("ClientException", "TaskDefinition is inactive"), True),
        (refusal("ClientException", "Invalid 'cpu' setting for task."), True),
        (refusal("InvalidParameterException", "Rate exceeded"), False),
        (refusal("AccessDeniedException", ROLE), False),
        (refusal("UnrecognizedClientException", "The security token is invalid"), False),
        (refusal("ClientException", "ECS was unable to assume the role 'arn:x' of this task."), False),
        (refusal("ClientException", "something went wrong"), False),
        (refusal("SomethingNewException", "never seen before"), False),
        (NoCredentialsError(), False),
        (timed_out(), False),
    ],
)
def test_only_what_names_a_fault_of_the_request_itself_is_final_at_once(error: Exception, final: bool) -> None:
    assert classify(error).final is final


def test_codes_that_are_final_at_once_are_errors_of_requests_in_the_models_of_the_services() -> None:
    """botocore's models say so of ECS's: their documentation speaks of a parameter, a feature or a platform."""
    ecs = botocore.session.get_session().get_service_model("ecs")
    known = {shape.name for shape in ecs.error_shapes}
    assert {"InvalidParameterException", "UnsupportedFeatureException", "PlatformUnknownException"} <= (
        known & FAULTY_REQUEST
    )
    assert not FAULTY_REQUEST & {"ClientException", "AccessDeniedException", "ServerException", "ConflictException"}
