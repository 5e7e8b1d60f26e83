"""S3 is slow, busy, elsewhere or missing: temporary failures are retried, and others are reported in one sentence."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.fakes.serving import served
from tests.fakes.signed_s3 import ACCESS_KEY, SECRET_KEY, TOKEN
from tests.runners import OUTPUT, PART, RunnerUnderTest

pytestmark = pytest.mark.slow


PASSING: list[int | str] = [500, 503, 429, "reset", "truncated"]


@pytest.mark.parametrize("what", PASSING)
def test_a_read_that_fails_is_repeated(runner: RunnerUnderTest, what: int | str) -> None:
    runner.s3.put("x.txt", b"whole\n")
    runner.s3.trouble("GET", "x.txt", what, times=1)
    ended = runner.shell('cat "$ARGOSY_IN/x.txt"', result="stdout", inputs=["s3://results/x.txt"])
    assert (ended.code, ended.out) == (0, b"whole\n")


@pytest.mark.parametrize("what", [500, 503, 429, "reset", "lost"])
def test_a_write_that_fails_is_repeated(runner: RunnerUnderTest, what: int | str) -> None:
    runner.s3.trouble("PUT", f"{OUTPUT}a", what, times=1)
    runner.s3.trouble("PUT", PART, what, times=1)
    ended = runner.shell('echo a > "$ARGOSY_OUT/a"; echo part > "$ARGOSY_OUT/part.jsonl"', result="folder")
    assert ended.code == 0, ended.err
    assert (runner.s3.body(f"{OUTPUT}a"), runner.s3.body(PART)) == (b"a\n", b"part\n")


def test_a_listing_that_fails_is_repeated(runner: RunnerUnderTest) -> None:
    runner.s3.put("p/x.txt", b"x")
    runner.s3.trouble("GET", "", 503, times=1)
    assert runner.shell('cat "$ARGOSY_IN/x.txt"', result="stdout", inputs=["s3://results/p/"]).out == b"x"


def test_a_conditional_write_in_conflict_is_repeated(runner: RunnerUnderTest) -> None:
    runner.s3.trouble("PUT", PART, 409, times=1)
    assert runner.shell("echo 1", result="stdout").code == 0
    assert runner.s3.body(PART) == b"1\n"


@pytest.mark.parametrize("what", [500, 503, 403, "reset", "truncated"])
def test_a_read_that_keeps_failing_is_temporary(runner: RunnerUnderTest, what: int | str) -> None:
    runner.s3.put("x.txt", b"whole\n")
    runner.s3.trouble("GET", "x.txt", what)
    ended = runner.shell("echo ran", result="stdout", inputs=["s3://results/x.txt"])
    assert (ended.code, ended.out) == (75, b"")
    assert "s3://results/x.txt" in ended.sentence


@pytest.mark.parametrize("what", [500, 403, "reset"])
def test_a_write_that_keeps_failing_is_temporary(runner: RunnerUnderTest, what: int | str) -> None:
    runner.s3.trouble("PUT", PART, what)
    ended = runner.shell("echo ran", result="stdout")
    assert ended.code == 75
    assert f"s3://results/{PART}" in ended.sentence


def test_as_many_tries_are_made_as_are_allowed(runner: RunnerUnderTest) -> None:
    runner.s3.trouble("GET", "x.txt", 503)
    runner.shell("echo ran", changes={"AWS_MAX_ATTEMPTS": "2"}, result="stdout", inputs=["s3://results/x.txt"])
    assert runner.s3.asked("GET", "x.txt") == 2


def test_a_refusal_is_not_repeated(runner: RunnerUnderTest) -> None:
    runner.s3.trouble("GET", "x.txt", 403)
    runner.shell("echo ran", result="stdout", inputs=["s3://results/x.txt"])
    assert runner.s3.asked("GET", "x.txt") == 1


def test_a_request_that_is_wrong_is_not_repeated(runner: RunnerUnderTest) -> None:
    runner.s3.trouble("PUT", PART, 400)
    ended = runner.shell("echo ran", result="stdout")
    assert ended.code == 64
    assert runner.s3.asked("PUT", PART) == 1


def test_an_s3_that_is_not_there_is_temporary(runner: RunnerUnderTest) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    changes = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_MAX_ATTEMPTS": "2"}
    ended = runner.shell("echo ran", changes=changes, result="stdout", inputs=["s3://results/x.txt"])
    assert (ended.code, ended.out) == (75, b"")
    assert "s3://results/x.txt" in ended.sentence


def test_a_missing_bucket_is_reported(runner: RunnerUnderTest) -> None:
    ended = runner.shell(
        "echo ran", changes={"ARGOSY_PART_URI": "s3://nowhere/parts/part-0000007.jsonl"}, result="stdout"
    )
    assert ended.code == 64
    assert "s3://nowhere/" in ended.sentence


@pytest.mark.parametrize("status", [301, 400])
def test_a_bucket_of_another_region_is_found_there(runner: RunnerUnderTest, status: int) -> None:
    runner.s3.redirect_status = status
    runner.s3.regions["elsewhere"] = "eu-west-3"
    runner.s3.put("p/x.txt", b"x\n", bucket="elsewhere")
    inputs = ["s3://elsewhere/p/", "s3://elsewhere/p/x.txt"][:1]
    ended = runner.shell('cat "$ARGOSY_IN/x.txt"', result="stdout", inputs=inputs)
    assert (ended.code, ended.out) == (0, b"x\n"), ended.err


def test_the_results_bucket_may_be_in_another_region(runner: RunnerUnderTest) -> None:
    runner.s3.regions["results"] = "eu-west-3"
    assert runner.shell("echo 1", result="stdout").code == 0
    assert runner.s3.body(PART) == b"1\n"


def test_the_endpoint_of_s3_itself_comes_first(runner: RunnerUnderTest) -> None:
    changes = {"AWS_ENDPOINT_URL_S3": runner.s3.endpoint, "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}
    assert runner.shell("echo 1", changes=changes, result="stdout").code == 0


def test_the_default_region_is_enough(runner: RunnerUnderTest) -> None:
    changes = {"AWS_REGION": None, "AWS_DEFAULT_REGION": "us-east-1"}
    assert runner.shell("echo 1", changes=changes, result="stdout").code == 0


def test_without_credentials_the_request_is_wrong(runner: RunnerUnderTest) -> None:
    changes = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None, "AWS_EC2_METADATA_DISABLED": "true"}
    ended = runner.shell("echo 1", changes=changes, result="stdout")
    assert ended.code == 64
    assert "credentials" in ended.sentence


def test_no_result_needs_no_s3_at_all(runner: RunnerUnderTest) -> None:
    changes = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None, "AWS_ENDPOINT_URL": None}
    assert runner.shell("exit 0", changes=changes, result="none").code == 0


@pytest.mark.parametrize("when", ["part", "completion"])
def test_a_large_upload_that_fails_leaves_no_parts(runner: RunnerUnderTest, when: str) -> None:
    runner.s3.trouble("PUT" if when == "part" else "POST", f"{OUTPUT}big", 403)
    script = "import os; open(os.environ['ARGOSY_OUT'] + '/big', 'wb').truncate(65 * 1024**2)"
    ended = runner.python(script, result="folder")
    assert ended.code == 75
    assert runner.s3.uploads == {}
    assert runner.s3.names() == []


@contextmanager
def credentials_endpoint(failures: int) -> Iterator[tuple[str, list[str]]]:
    """The ECS agent's endpoint for a task's role: its address, and the received tokens. It fails a few times."""
    shown: list[str] = []

    def answer(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        shown.append(environ.get("HTTP_AUTHORIZATION", ""))
        if len(shown) <= failures:
            start_response("503 Service Unavailable", [("Content-Length", "0")])
            return [b""]
        keys = {
            "AccessKeyId": ACCESS_KEY,
            "SecretAccessKey": SECRET_KEY,
            "Token": TOKEN,
            "RoleArn": "arn:aws:iam::1:role/t",
        }
        body = json.dumps({**keys, "Expiration": "2099-01-01T00:00:00Z"}).encode()
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]

    with served(answer) as server:
        yield f"http://127.0.0.1:{server.port}/v2/credentials/x", shown


@pytest.mark.parametrize("failures", [0, 1])
def test_the_role_of_a_task_is_asked_for_its_credentials(runner: RunnerUnderTest, failures: int) -> None:
    runner.s3.tokens_needed = True
    with credentials_endpoint(failures) as (uri, shown):
        changes = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}
        changes |= {"AWS_CONTAINER_CREDENTIALS_FULL_URI": uri, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "Basic abc"}
        ended = runner.shell("echo 1", changes=changes, result="stdout")
    assert ended.code == 0, ended.err
    assert runner.s3.body(PART) == b"1\n"
    assert set(shown) == {"Basic abc"}


LARGE = "import os; open(os.environ['ARGOSY_OUT'] + '/part.jsonl', 'wb').truncate(65 * 1024**2)"


@pytest.mark.parametrize("what", ["lost", "truncated", 500, 503, 409])
def test_a_large_upload_is_whole_whatever_becomes_of_its_completion(runner: RunnerUnderTest, what: int | str) -> None:
    runner.s3.trouble("COMPLETE", PART, what, times=1)
    ended = runner.python(LARGE, result="folder")
    assert ended.code == 0, ended.err
    assert len(runner.s3.body(PART)) == 65 * 1024**2


def test_a_completion_that_conflicts_sends_all_parts_again(runner: RunnerUnderTest) -> None:
    runner.s3.trouble("COMPLETE", PART, 409, times=1)
    assert runner.python(LARGE, result="folder").code == 0
    assert runner.s3.number_of_uploads == 2


def test_conflicts_without_end_are_temporary(runner: RunnerUnderTest) -> None:
    runner.s3.trouble("COMPLETE", PART, 409)
    ended = runner.python(LARGE, changes={"AWS_MAX_ATTEMPTS": "2"}, result="folder")
    assert ended.code == 75
    assert "conflict" in ended.sentence
    assert runner.s3.names() == []


@pytest.mark.parametrize("code", ["RequestTimeout", "ExpiredToken"])
def test_a_request_that_came_too_late_is_repeated(runner: RunnerUnderTest, code: str) -> None:
    runner.s3.put("x.txt", b"x\n")
    runner.s3.trouble("GET", "x.txt", 400, times=1, code=code)
    ended = runner.shell('cat "$ARGOSY_IN/x.txt"', result="stdout", inputs=["s3://results/x.txt"])
    assert (ended.code, ended.out) == (0, b"x\n")


def test_an_input_in_an_archive_is_a_wrong_request(runner: RunnerUnderTest) -> None:
    runner.s3.trouble("GET", "x.txt", 403, code="InvalidObjectState")
    ended = runner.shell("echo ran", result="stdout", inputs=["s3://results/x.txt"])
    assert ended.code == 64
    assert "InvalidObjectState" in ended.sentence
