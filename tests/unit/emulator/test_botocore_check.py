"""Does the replacement of a boto3 client detect replies that AWS would not send, and raise boto3's errors?"""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError, OperationNotPageableError, ParamValidationError
from botocore.validate import ParamValidator
from hypothesis import given
from hypothesis import strategies as st

from argosy.emulator.botocore_check import ShapeMismatch, SimulatedClient, check_request, service_model
from argosy.emulator.operations import Refusal


class Answers:
    """A model that answers a few operations with the given replies."""

    def __init__(self, reply: Any) -> None:
        self.reply = reply

    def list_tasks(self, **request: Any) -> Any:
        return self.reply

    def describe_tasks(self, **request: Any) -> Any:
        return self.reply

    def create_tags(self, **request: Any) -> Any:
        return self.reply

    def list_clusters(self, **request: Any) -> Any:
        return self.reply

    def run_task(self, **request: Any) -> Any:
        raise self.reply.as_client_error("RunTask")


def describe(task: dict[str, Any], *, strict: bool = True) -> Any:
    client: Any = SimulatedClient(Answers({"tasks": [task], "failures": []}), "ecs", strict=strict)
    return client.describe_tasks(tasks=["x"])


@pytest.mark.parametrize(
    ("task", "path"),
    [
        ({"colour": "red"}, r"DescribeTasks.tasks\[0\]: AWS has no colour in Task"),
        ({"version": "1"}, r"tasks\[0\].version"),
        ({"version": True}, r"tasks\[0\].version"),
        ({"enableExecuteCommand": 1}, "enableExecuteCommand"),
        ({"createdAt": 1_800_000_000.0}, "createdAt"),
        ({"createdAt": datetime(2027, 1, 1)}, "createdAt"),  # noqa: DTZ001 - the very mistake
        ({"containers": {}}, "containers"),
        ({"containers": ["x"]}, r"containers\[0\]"),
        ({"launchType": "MAINFRAME"}, "launchType"),
        ({"stoppedReason": None}, "stoppedReason"),
        ({"attributes": [{"value": "x"}]}, r"attributes\[0\]: name must be there in Attribute"),
    ],
)
def test_a_reply_that_aws_could_not_have_given_is_a_fault_of_the_model(task: dict[str, Any], path: str) -> None:
    with pytest.raises(ShapeMismatch, match=path):
        describe(task)
    assert describe(task, strict=False)["tasks"] == [task]


def test_a_good_reply_is_a_copy_with_metadata_as_boto3_adds_it() -> None:
    task: dict[str, Any] = {
        "version": 1,
        "createdAt": datetime(2027, 1, 1, tzinfo=UTC),
        "containers": [{"exitCode": 0}],
    }
    reply = describe(task)
    assert reply["tasks"] == [task]
    assert reply["tasks"][0]["containers"] is not task["containers"]
    assert reply["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_an_operation_without_output_answers_nothing() -> None:
    silent: Any = SimulatedClient(Answers({}), "ec2")
    assert set(silent.create_tags(Resources=["i-1"], Tags=[])) == {"ResponseMetadata"}
    talkative: Any = SimulatedClient(Answers({"Return": True}), "ec2")
    with pytest.raises(ShapeMismatch, match="empty"):
        talkative.create_tags(Resources=["i-1"], Tags=[])


def test_a_bad_request_never_reaches_the_model() -> None:
    client: Any = SimulatedClient(Answers({"taskArns": []}), "ecs")
    for bad in ({"maxResults": "3"}, {"colour": "red"}):
        with pytest.raises(ParamValidationError):
            client.list_tasks(**bad)
    with pytest.raises(ParamValidationError):
        client.describe_tasks()


def test_refusals_are_the_modelled_exceptions() -> None:
    client: Any = SimulatedClient(Answers(Refusal("ConflictException", "no", resourceIds=["a"])), "ecs")
    with pytest.raises(client.exceptions.ConflictException) as caught:
        client.run_task(taskDefinition="x")
    assert caught.value.response["resourceIds"] == ["a"]
    assert isinstance(caught.value, ClientError)
    odd: Any = SimulatedClient(Answers(Refusal("ServerException", "broken")), "ecs")
    with pytest.raises(ClientError) as server:
        odd.run_task(taskDefinition="x")
    assert server.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
    assert str(server.value).startswith("An error occurred (ServerException) when calling the RunTask operation")


def test_unknown_operations_differ_from_operations_that_are_not_simulated() -> None:
    client: Any = SimulatedClient(Answers({}), "ecs")
    with pytest.raises(AttributeError, match="no operation 'sing'"):
        client.sing()
    with pytest.raises(NotImplementedError, match="CreateService"):
        client.create_service()


def test_pagination_is_botocores_own() -> None:
    client: Any = SimulatedClient(Answers({"clusterArns": ["a"]}), "ecs")
    assert client.can_paginate("list_clusters")
    assert [page["clusterArns"] for page in client.get_paginator("list_clusters").paginate()] == [["a"]]
    assert not client.can_paginate("describe_tasks")
    with pytest.raises(OperationNotPageableError):
        client.get_paginator("describe_tasks")
    client.close()
    assert client.meta.region_name == "us-east-1"


def test_an_error_that_aws_does_not_name_for_the_operation_is_a_fault_of_the_model() -> None:
    client: Any = SimulatedClient(Answers(Refusal("TargetNotFoundException", "no")), "ecs")
    with pytest.raises(ShapeMismatch, match="RunTask: AWS names no error TargetNotFoundException"):
        client.run_task(taskDefinition="x")
    lenient: Any = SimulatedClient(Answers(Refusal("TargetNotFoundException", "no")), "ecs", strict=False)
    with pytest.raises(ClientError):
        lenient.run_task(taskDefinition="x")


RUN_TASK: dict[str, Any] = {
    "cluster": "argosy",
    "taskDefinition": "tool:3",
    "count": 1,
    "tags": [{"key": "argosy:run", "value": "r"}],
    "placementConstraints": [{"type": "memberOf", "expression": "ec2InstanceId == i-1"}],
    "overrides": {"containerOverrides": [{"name": "main", "environment": [{"name": "A", "value": "b"}]}]},
}
WRITE: dict[str, Any] = {
    "TransactItems": [
        {"Put": {"TableName": "t", "Item": {"pk": {"S": "a"}, "rows": {"L": [{"B": b"x"}]}}}},
        {"Delete": {"TableName": "t", "Key": {"pk": {"S": "a"}}}},
    ]
}
JUNK = st.sampled_from(
    [None, "", "x", 0, True, 1.5, b"", [], (), {}, {"S": "a"}, {"colour": "red"}, [7], datetime(2027, 1, 1, tzinfo=UTC)]
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container in it, with each key or index."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, each in pairs for found in [(value, key), *places(each)]]


@given(st.sampled_from([("ecs", "RunTask", RUN_TASK), ("dynamodb", "TransactWriteItems", WRITE)]), st.data())
def test_a_request_is_refused_exactly_if_botocore_refuses_it(what: tuple[str, str, Any], data: st.DataObject) -> None:
    service, name, request = what
    request = deepcopy(request)
    operation = service_model(service).operation_model(name)
    check_request(operation, request)
    container, key = data.draw(st.sampled_from(places(request)))
    if data.draw(st.booleans()):
        container[key] = data.draw(JUNK)
    else:
        del container[key]
    refused = None
    try:
        check_request(operation, request)
    except ParamValidationError as fault:
        refused = str(fault)
    report = ParamValidator().validate(request, operation.input_shape)
    assert (refused is not None) == report.has_errors()
