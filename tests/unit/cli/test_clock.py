"""A clock of the user's machine that is five minutes off is the reason, whichever service refuses the signature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError
from typer.testing import CliRunner

from argosy.cli.main import app
from argosy.client.aws_clients import Connection, make_client
from argosy.client.errors import from_aws
from tests.fakes.cli import CLEAN_SHELL, refusal
from tests.fakes.skewed import skewed

SET = "next: set this machine's clock: `sudo timedatectl set-ntp true`, or `sudo chronyc makestep`"
BEHIND = "this machine's clock is 7 minutes behind AWS's"
CALLS: dict[str, Callable[[Any], Any]] = {
    "sts": lambda client: client.get_caller_identity(),
    "ssm": lambda client: client.get_parameter(Name="/argosy/deployment"),
    "lambda": lambda client: client.invoke(FunctionName="argosy-api"),
    "ec2": lambda client: client.describe_fleets(),
    "s3": lambda client: client.list_objects_v2(Bucket="results"),
    "s3 HEAD": lambda client: client.head_object(Bucket="results", Key="k"),
}


def argosy(*words: str) -> Any:
    return CliRunner().invoke(app, list(words), env=dict(CLEAN_SHELL))


def test_every_command_says_so_in_one_line_with_the_next_step() -> None:
    with skewed(420) as (url, aws):
        said = argosy("runs", "--endpoint-url", url)
    assert (said.exit_code, said.stdout) == (3, "")
    first, step = said.stderr.splitlines()
    assert first.startswith(f"error: AWS refused the call: {BEHIND}. An error occurred (InvalidSignatureException)")
    assert "Signature expired: " in first
    assert step == SET
    assert set(aws.seen) == {"ssm"}  # nothing has been submitted


def test_the_doctor_finds_it_first_and_checks_nothing_else() -> None:
    with skewed(420) as (url, aws):
        said = argosy("doctor", "--endpoint-url", url)
    assert said.exit_code == 3
    assert BEHIND in " ".join(said.stdout.split())
    assert "SignatureDoesNotMatch" in said.stdout
    assert SET in " ".join(said.stdout.split())
    assert set(aws.seen) == {"sts"}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(("off_s", "says"), [(1200, "20 minutes behind"), (-7200, "120 minutes ahead of")])
def test_each_service_has_a_code_of_its_own_for_it(call: str, off_s: float, says: str) -> None:
    with skewed(off_s) as (url, _), pytest.raises(ClientError) as refused:
        CALLS[call](make_client(Connection(url, region="us-east-1"), call.split(maxsplit=1)[0]))
    error = from_aws(refused.value)
    assert f"this machine's clock is {says} AWS's. {refused.value}" in error.message
    assert error.next_step in SET


@pytest.mark.parametrize("date", ["", "yesterday"])
def test_where_the_clock_is_not_the_reason_the_key_is_asked_for(date: str) -> None:
    wrong = refusal("SignatureDoesNotMatch")
    wrong.response["ResponseMetadata"] = {"HTTPHeaders": {"date": date} if date else {}}
    assert "clock is" not in from_aws(wrong).message
    assert "check the secret access key" in from_aws(wrong).next_step
