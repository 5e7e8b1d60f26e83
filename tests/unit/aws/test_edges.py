"""Small adapters: waking, images, clients."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from argosy.aws.cell import chunks, pages
from argosy.aws.clients import AwsClients
from argosy.aws.folder_images import SsmImages
from argosy.aws.wake import AwsWake
from tests.fakes.aws import ScriptedClient, refusal, timed_out


def test_waking_enables_the_tick_and_invokes_without_waiting() -> None:
    functions, events = ScriptedClient("lambda", invoke={}), ScriptedClient("events", enable_rule={}, disable_rule={})
    wake = AwsWake(functions, events, "argosy-controller", "argosy-tick")
    wake.controller()
    wake.rest()
    wake.stay()
    assert functions.requests("invoke")[0]["InvocationType"] == "Event"
    assert [name for name, _ in events.calls] == ["enable_rule", "disable_rule", "enable_rule"]
    assert all(request == {"Name": "argosy-tick"} for _, request in events.calls)


def test_an_invocation_that_fails_only_costs_a_minute_but_a_tick_that_stays_off_is_raised(
    caplog: pytest.LogCaptureFixture,
) -> None:
    AwsWake(
        ScriptedClient("lambda", invoke=timed_out()), ScriptedClient("events", enable_rule={}), "f", "r"
    ).controller()
    assert "the controller could not be invoked; the next tick will do it: ReadTimeoutError" in caplog.text
    denied = ScriptedClient("events", enable_rule=refusal("AccessDeniedException"))
    with pytest.raises(ClientError):
        AwsWake(ScriptedClient("lambda", invoke={}), denied, "f", "r").controller()


def test_a_controller_that_may_not_enable_its_tick_now_says_so_and_works_on(caplog: pytest.LogCaptureFixture) -> None:
    denied = ScriptedClient("events", enable_rule=refusal("AccessDeniedException"))
    AwsWake(ScriptedClient("lambda"), denied, "f", "r").stay()
    assert "the tick could not be enabled: AccessDeniedException" in caplog.text


def test_our_own_image_resolves_to_its_parameter_and_others_to_themselves() -> None:
    ssm = ScriptedClient(
        "ssm", get_parameter=lambda **asked: {"Parameter": {"Value": f"registry{asked['Name']}@sha256:0"}}
    )
    images = SsmImages(ssm, "argosy-dev")
    assert images.resolve("argosy/digits") == "registry/argosy-dev/images/digits@sha256:0"
    assert images.resolve("python:3.13") == "python:3.13"


def test_the_stock_image_needs_no_build() -> None:
    """The deployment's published image takes precedence over the public image that it is made from."""
    public = "public.ecr.aws/docker/library/python"
    bare = SsmImages(ScriptedClient("ssm", get_parameter=refusal("ParameterNotFound")), "argosy", "3.13")
    assert bare.resolve("argosy/python") == f"{public}:3.13-slim"
    assert bare.resolve("argosy/python:3.11") == f"{public}:3.11-slim"
    assert bare.resolve("argosy/python:2.7") is None
    ssm = ScriptedClient("ssm", get_parameter=lambda **asked: {"Parameter": {"Value": asked["Name"]}})
    assert SsmImages(ssm, "argosy").resolve("argosy/python") == "/argosy/images/python"
    assert SsmImages(ssm, "argosy").resolve("argosy/python:3.11") == "/argosy/images/python/3.11"


@pytest.mark.parametrize("image", ["argosy/digits:3", "argosy/digits@sha256:00", "argosy/", "argosy/../x"])
def test_an_own_image_by_tag_or_digest_is_unknown(image: str) -> None:
    assert SsmImages(ScriptedClient("ssm"), "argosy").resolve(image) is None


def test_an_image_without_a_parameter_is_unknown_and_other_trouble_is_raised() -> None:
    assert (
        SsmImages(ScriptedClient("ssm", get_parameter=refusal("ParameterNotFound")), "argosy").resolve("argosy/x")
        is None
    )
    with pytest.raises(ClientError):
        SsmImages(ScriptedClient("ssm", get_parameter=refusal("AccessDeniedException")), "argosy").resolve("argosy/x")


def test_clients_are_made_once_for_each_service_and_region() -> None:
    clients = AwsClients("us-east-1")
    assert clients.get("ecs") is clients.get("ecs", "us-east-1")
    other = clients.get("ecs", "eu-west-1")
    assert other is not clients.get("ecs")
    assert other.meta.region_name == "eu-west-1"
    assert clients.get("ecs").meta.config.retries == {"mode": "standard", "total_max_attempts": 3}
    assert clients.get("sqs").meta.config.read_timeout > 20  # a long poll must be able to end


def test_listings_are_followed_under_either_name_of_the_token() -> None:
    asked: list[dict[str, Any]] = []

    def answers(*tokens: dict[str, str]) -> Any:
        left = list(tokens)

        def call(**request: Any) -> dict[str, str]:
            asked.append(request)
            return left.pop(0)

        return call

    assert len(list(pages(answers({"nextToken": "a"}, {}), cluster="c"))) == 2
    assert len(list(pages(answers({"NextToken": "b"}, {"NextToken": ""})))) == 2
    assert asked == [{"cluster": "c"}, {"cluster": "c", "nextToken": "a"}, {}, {"NextToken": "b"}]
    assert [len(chunk) for chunk in chunks([str(number) for number in range(250)])] == [100, 100, 50]
