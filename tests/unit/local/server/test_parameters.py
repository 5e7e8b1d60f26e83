"""Which requests to SSM do the deployment's own parameters answer? Asked by a real botocore client."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from argosy.local.server.parameters import OwnParameters
from tests.fakes.serving import front

NAME = "/argosy/images/mine"


def own() -> OwnParameters:
    return OwnParameters("argosy", "123456789012", "us-east-1")


def code_of(call: Any, **request: Any) -> str:
    with pytest.raises(ClientError) as error:
        call(**request)
    return str(error.value.response["Error"]["Code"])


def test_a_parameter_of_the_deployment_is_kept_replaced_listed_and_deleted() -> None:
    with front(own=[own()]) as clients:
        ssm = clients("ssm")
        assert code_of(ssm.get_parameter, Name=NAME) == "ParameterNotFound"
        assert ssm.put_parameter(Name=NAME, Value="first", Type="String")["Version"] == 1
        assert code_of(ssm.put_parameter, Name=NAME, Value="second", Type="String") == "ParameterAlreadyExists"
        assert ssm.put_parameter(Name=NAME, Value="second", Type="String", Overwrite=True)["Version"] == 2
        found = ssm.get_parameter(Name=NAME)["Parameter"]
        assert (found["Value"], found["ARN"]) == ("second", f"arn:aws:ssm:us-east-1:123456789012:parameter{NAME}")
        assert found["LastModifiedDate"].year >= 2026
        pages = [ssm.get_parameters_by_path(Path=path)["Parameters"] for path in ("/argosy", "/argosy/images/")]
        assert [[each["Name"] for each in page] for page in pages] == [[], [NAME]]
        assert len(ssm.get_parameters_by_path(Path="/argosy", Recursive=True)["Parameters"]) == 1
        ssm.delete_parameter(Name=NAME)
        assert code_of(ssm.delete_parameter, Name=NAME) == "ParameterNotFound"


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("GetParameter", {"Name": "/mine/x"}),
        ("GetParameter", {"Name": "/argosy-two/deployment"}),
        ("GetParametersByPath", {"Path": "/"}),
        ("AddTagsToResource", {"ResourceType": "Parameter", "ResourceId": NAME}),
        ("GetParameter", b"{"),
        ("GetParameter", b"[]"),
    ],
)
def test_everything_else_is_left_to_moto(operation: str, body: Any) -> None:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    assert own().reply({"x-amz-target": OwnParameters.target + operation}, raw) is None
