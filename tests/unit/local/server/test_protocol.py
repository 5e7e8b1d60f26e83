"""JSON 1.1: the model gets a real botocore client's request, and the client gets the model's reply."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import requests
from botocore.exceptions import ClientError

from tests.fakes.serving import front
from tests.fakes.signing import send

GUIDE = Path(__file__).parents[4] / "docs" / "guides" / "local-mode.md"
STARTED = datetime(2026, 11, 21, 6, 40, 17, 250000, UTC)


class Ecs:
    """Remembers its last call and gives a prepared answer."""

    def __init__(self, reply: dict[str, Any] | Exception | None = None) -> None:
        self.reply = {} if reply is None else reply
        self.request: dict[str, Any] = {}

    def run_task(self, **request: Any) -> dict[str, Any]:
        self.request = request
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply

    submit_task_state_change = run_task


def _post(endpoint: str, target: str, body: bytes) -> requests.Response:
    return send("POST", endpoint, "ecs", body, {"X-Amz-Target": f"AmazonEC2ContainerServiceV20141113.{target}"})


def test_the_model_receives_the_parameters_as_boto3_names_them() -> None:
    ecs = Ecs({"tasks": [], "failures": []})
    overrides = {"containerOverrides": [{"name": "c", "environment": [{"name": "A", "value": "1"}]}]}
    with front(ecs) as clients:
        clients("ecs").run_task(cluster="argosy", taskDefinition="d:1", count=1, clientToken="t", overrides=overrides)
    assert ecs.request == {
        "cluster": "argosy",
        "taskDefinition": "d:1",
        "count": 1,
        "clientToken": "t",
        "overrides": overrides,
    }


def test_times_travel_as_epoch_numbers_in_both_directions() -> None:
    ecs = Ecs({"tasks": [{"taskArn": "arn:t", "startedAt": STARTED, "version": 3}], "acknowledgment": "ok"})
    with front(ecs) as clients:
        task = clients("ecs").run_task(taskDefinition="d")["tasks"][0]
        clients("ecs").submit_task_state_change(task="t", pullStartedAt=STARTED)
    assert (task["startedAt"], task["version"]) == (STARTED, 3)
    assert ecs.request["pullStartedAt"] == STARTED


def test_members_that_the_service_model_does_not_know_are_left_out_of_replies() -> None:
    with front(Ecs({"tasks": [{"taskArn": "arn:t", "secret": 1, "stopCode": None}]})) as clients:
        assert clients("ecs").run_task(taskDefinition="d")["tasks"] == [{"taskArn": "arn:t"}]


def test_a_refusal_arrives_as_the_modelled_exception_with_its_members() -> None:
    error = {"Code": "ConflictException", "Message": "another request"}
    refusal = ClientError({"Error": error, "resourceIds": ["arn:t"], "ResponseMetadata": {}}, "RunTask")
    with front(Ecs(refusal)) as clients, pytest.raises(clients("ecs").exceptions.ConflictException) as caught:
        clients("ecs").run_task(taskDefinition="d")
    assert caught.value.response["resourceIds"] == ["arn:t"]
    assert caught.value.response["Error"]["Message"] == "another request"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_a_server_fault_of_aws_is_an_http_500() -> None:
    refusal = ClientError({"Error": {"Code": "ServerException", "Message": "busy"}}, "RunTask")
    with front(Ecs(refusal)) as clients:
        assert _post(clients.endpoint, "RunTask", b'{"taskDefinition": "d"}').status_code == 500


@pytest.mark.parametrize(
    ("target", "body", "code"),
    [
        ("Conquer", b"{}", "UnknownOperationException"),
        ("RunTask", b"{", "SerializationException"),
        ("RunTask", b"[]", "SerializationException"),
        pytest.param("RunTask", b"[" * 200_000, "SerializationException", id="nested too deep"),
        ("RunTask", b"{}", "InvalidParameterException"),  # taskDefinition is required
        ("RunTask", b'{"taskDefinition": 7}', "InvalidParameterException"),
        ("ListServices", b"{}", "InvalidAction"),  # AWS has it, the model does not
    ],
)
def test_a_request_that_no_model_should_see_is_refused_with_awss_code(target: str, body: bytes, code: str) -> None:
    with front(Ecs()) as clients:
        reply = _post(clients.endpoint, target, body)
    assert (reply.status_code, reply.json()["__type"]) == (400, code)


def test_a_service_of_ecs_is_refused_with_a_sentence_that_the_guide_has_too() -> None:
    with front(Ecs()) as clients:
        reply = _post(clients.endpoint, "CreateService", b'{"serviceName": "web"}')
    sentence = "The embedded AWS does not offer CreateService."
    assert (reply.status_code, reply.json()) == (400, {"__type": "InvalidAction", "message": sentence})
    assert f"`{sentence}`" in " ".join(GUIDE.read_text(encoding="utf-8").split())


def test_unknown_members_of_a_request_are_ignored_as_aws_does() -> None:
    ecs = Ecs()
    with front(ecs) as clients:
        assert _post(clients.endpoint, "RunTask", b'{"taskDefinition": "d", "later": 1}').ok
    assert ecs.request == {"taskDefinition": "d"}


def test_a_fault_of_our_own_is_an_internal_failure_and_is_logged(capfd: pytest.CaptureFixture[str]) -> None:
    with front(Ecs(RuntimeError("a bug"))) as clients:
        reply = _post(clients.endpoint, "RunTask", b'{"taskDefinition": "d"}')
    assert (reply.status_code, reply.json()["__type"]) == (500, "InternalFailure")
    assert "a bug" in capfd.readouterr().err
