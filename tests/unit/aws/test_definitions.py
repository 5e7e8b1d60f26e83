"""What ECS says about a task definition: all of it, nothing, or that it does not answer."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from argosy.aws.preparation import EcsDefinitions
from tests.fakes.aws import ScriptedClient

UNKNOWN = ClientError(
    {"Error": {"Code": "ClientException", "Message": "Unable to describe task definition."}}, "DescribeTaskDefinition"
)
DENIED = ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "DescribeTaskDefinition")


def definitions(script: object) -> EcsDefinitions:
    client = ScriptedClient("ecs", describe_task_definition=script)
    return EcsDefinitions(lambda: client)


def test_a_definition_is_given_as_ecs_describes_it() -> None:
    found = {"family": "train", "networkMode": "host"}
    assert definitions({"taskDefinition": found}).describe("train:7") == found


def test_an_unregistered_definition_is_not_deregistered() -> None:
    assert definitions(UNKNOWN).describe("train") is None


def test_a_call_that_is_refused_is_not_a_missing_definition() -> None:
    with pytest.raises(ClientError, match="AccessDenied"):
        definitions(DENIED).describe("train")


def test_no_client_is_made_before_it_is_needed() -> None:
    """The api needs one only for specs that name a definition, and loading ECS's model takes a cold start longer."""

    def never() -> object:
        raise AssertionError("nobody has asked yet")

    EcsDefinitions(never)
