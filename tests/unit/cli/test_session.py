"""Which AWS a command reaches: options before environment, the deployment by parameter or stack, dummy keys."""

# ruff: noqa: N803 - boto3's names

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from argosy.cli.session import Session, Tools
from argosy.client.aws_clients import Connection, make_client
from tests.fakes.cli import RUN_ID, World, ended, refusal, run_view

LOCAL = "http://127.0.0.1:4566"


def test_no_deployment_is_one_sentence_that_says_what_to_do() -> None:
    world = World(others={"cloudformation": Stacks(None)})
    world.parameters.values.clear()
    result = world.argosy("runs", "--stage", "dev")
    assert result.exit_code == 3
    assert result.stderr.splitlines() == [
        "error: No deployment found: there is no parameter /argosy-dev/deployment and no stack argosy-dev.",
        "next: type `make deploy`, or name another --stage, --region or --profile (`argosy local` needs no account)",
    ]


def test_a_local_aws_without_deployment_names_the_command_that_starts_one() -> None:
    world = World()
    world.parameters.values.clear()
    result = world.argosy("runs", "--endpoint-url", f"{LOCAL}/")
    assert "a local mode with `argosy local --port 4566`" in result.stderr


def test_without_the_parameter_the_stack_s_outputs_are_read() -> None:
    outputs = {"ApiFunctionName": "argosy-api", "ClusterName": "argosy", "ResultsBucketName": "b"}
    world = World(others={"cloudformation": Stacks(outputs)}).answers("ListRuns", {"runs": [], "nextToken": None})
    world.parameters.values.clear()
    assert world.argosy("runs").exit_code == 0


def test_a_stack_of_another_program_is_no_deployment() -> None:
    world = World(others={"cloudformation": Stacks({"Unrelated": "x"})})
    world.parameters.values.clear()
    assert "No deployment found" in world.argosy("runs").stderr


@pytest.mark.parametrize("denied", ["ssm", "cloudformation"])
def test_a_refusal_to_look_is_not_taken_for_absence(denied: str) -> None:
    world = World(others={"cloudformation": Stacks(None, "AccessDenied")})
    world.parameters.values.clear()
    world.parameters.denied = denied == "ssm"
    result = world.argosy("runs")
    assert result.exit_code == 3
    assert "No deployment" not in result.stderr


def test_a_stage_that_cannot_be_one_is_refused() -> None:
    result = World().argosy("runs", "--stage", "Not A Stage")
    assert result.exit_code == 2
    assert "is not a valid stage" in result.stderr


@pytest.mark.parametrize("variable", ["ARGOSY_ENDPOINT_URL", "AWS_ENDPOINT_URL"])
def test_the_endpoint_may_come_from_the_environment(variable: str) -> None:
    world = World().answers("DescribeRun", run_view())
    result = world.argosy("status", RUN_ID, **{variable: LOCAL})
    assert {each.endpoint_url for each in world.connections} == {LOCAL}
    assert f"argosy watch {RUN_ID}\n" in result.stdout  # the same shell needs no flag


def test_an_option_wins_over_the_environment_and_is_repeated_in_the_next_command() -> None:
    world = World().answers("DescribeRun", run_view())
    words = ("--endpoint-url", LOCAL, "--region", "eu-west-1", "--profile", "work")
    result = world.argosy("status", RUN_ID, *words, AWS_ENDPOINT_URL="http://10.0.0.1")
    assert set(world.connections) == {Connection(LOCAL, "eu-west-1", "work", "main")}
    assert f"next: argosy watch {RUN_ID} {' '.join(words)}" in result.stdout


def test_the_stage_is_repeated_in_the_next_command() -> None:
    session = Session(Tools(), Connection(stage="dev"))
    assert session.again("runs") == "argosy runs --stage dev"


@pytest.mark.parametrize(
    ("url", "is_loopback"),
    [
        (LOCAL, True),
        ("http://localhost:1", True),
        ("http://[::1]:1", True),
        ("https://ecs.amazonaws.com", False),
        (None, False),
    ],
)
def test_loopback(url: str | None, is_loopback: bool) -> None:
    assert Connection(url).is_loopback is is_loopback


def signed_with(s3: Any) -> str:
    """The access key that a client signs with."""
    url = s3.generate_presigned_url("get_object", Params={"Bucket": "results", "Key": "x"})
    asked = parse_qs(urlsplit(url).query)
    return asked.get("AWSAccessKeyId", asked.get("X-Amz-Credential", [""]))[0].partition("/")[0]


def test_a_loopback_endpoint_needs_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    client = make_client(Connection(LOCAL), "s3")
    assert (signed_with(client), client.meta.region_name, client.meta.endpoint_url) == ("local", "us-east-1", LOCAL)


def test_the_user_s_own_keys_and_region_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mine")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "mine")
    client = make_client(Connection(LOCAL, region="eu-west-1"), "s3")
    assert signed_with(client) == "mine"
    assert client.meta.region_name == "eu-west-1"


def test_a_fault_of_ours_is_not_reported_as_one_of_aws() -> None:
    world = World().answers("DescribeRun", {"statusCode": 200, "body": {}})
    result = world.argosy("status", RUN_ID)
    assert isinstance(result.exception, KeyError)


def test_ctrl_c_exits_130() -> None:
    result = World().answers("DescribeRun", KeyboardInterrupt()).argosy("status", RUN_ID)
    assert (result.exit_code, result.stderr) == (130, "Interrupted.\n")


def test_a_run_without_results_does_not_mention_results() -> None:
    result = World().answers("DescribeRun", ended(expectsResult=False)).argosy("status", RUN_ID)
    assert "argosy report" in result.stdout
    assert "argosy results" not in result.stdout


def test_next_steps_of_a_run_that_ended_well() -> None:
    result = World().answers("DescribeRun", ended()).argosy("status", RUN_ID)
    assert f"next: argosy results {RUN_ID} --out digits-results" in result.stdout


class Stacks:
    """CloudFormation with at most one stack; `outputs` None = none."""

    def __init__(self, outputs: dict[str, str] | None, code: str = "ValidationError") -> None:
        self._outputs = outputs
        self._code = code

    def describe_stacks(self, *, StackName: str) -> object:
        if self._outputs is None:
            raise refusal(self._code, f"Stack with id {StackName} does not exist", "DescribeStacks")
        outputs = [{"OutputKey": key, "OutputValue": value} for key, value in self._outputs.items()]
        return {"Stacks": [{"StackId": "arn:aws:cloudformation:eu-west-1:1:stack/argosy/x", "Outputs": outputs}]}
