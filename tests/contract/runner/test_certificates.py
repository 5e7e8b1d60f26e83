"""A runner accepts only servers with a certificate that it trusts as S3."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from tests.fakes.certificates import Authority
from tests.fakes.signed_s3 import SignedS3, signed_s3
from tests.runners import PART, Ended, RunnerUnderTest

pytestmark = pytest.mark.slow

Serve = Callable[[Path], SignedS3]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "known")


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:
        yield lambda certificate: stack.enter_context(signed_s3(certificate))


def result_of(runner: RunnerUnderTest, s3: SignedS3, **changes: str) -> Ended:
    return runner.shell("echo 1", changes={"AWS_ENDPOINT_URL": s3.endpoint, **changes}, result="stdout")


@pytest.mark.parametrize("variable", ["AWS_CA_BUNDLE", "SSL_CERT_FILE"])
def test_an_authority_that_is_given_is_trusted(
    runner: RunnerUnderTest, authority: Authority, serve: Serve, variable: str
) -> None:
    s3 = serve(authority.server())
    ended = result_of(runner, s3, **{variable: str(authority.file)})
    assert ended.code == 0, ended.err
    assert s3.body(PART) == b"1\n"


def test_no_request_is_sent_to_an_unknown_authority(
    runner: RunnerUnderTest, authority: Authority, serve: Serve
) -> None:
    s3 = serve(authority.server())
    ended = result_of(runner, s3)
    assert ended.code == 75
    assert "certificate" in ended.sentence
    assert not s3.requests


@pytest.mark.parametrize("variable", ["AWS_CA_BUNDLE", "SSL_CERT_FILE"])
def test_no_request_is_sent_to_an_authority_other_than_the_given_one(
    runner: RunnerUnderTest, authority: Authority, serve: Serve, tmp_path: Path, variable: str
) -> None:
    s3 = serve(authority.server())
    ended = result_of(runner, s3, **{variable: str(Authority(tmp_path / "another").file)})
    assert (ended.code, s3.requests) == (75, [])


@pytest.mark.parametrize(("address", "age"), [("127.0.0.2", timedelta()), ("127.0.0.1", timedelta(days=3))])
def test_a_certificate_of_another_server_or_time_is_none(
    runner: RunnerUnderTest, authority: Authority, serve: Serve, address: str, age: timedelta
) -> None:
    s3 = serve(authority.server(address, age))
    ended = result_of(runner, s3, AWS_CA_BUNDLE=str(authority.file))
    assert (ended.code, s3.requests) == (75, [])
    assert "expired" in ended.sentence or "127.0.0.2" in ended.sentence


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_certificates_that_cannot_be_read_are_a_wrong_request(
    runner: RunnerUnderTest, tmp_path: Path, content: str | None
) -> None:
    bundle = tmp_path / "bundle.pem"
    if content is not None:
        bundle.write_text(content)
    ended = result_of(runner, runner.s3, AWS_CA_BUNDLE=str(bundle))
    assert (ended.code, runner.s3.requests) == (64, [])
    assert "AWS_CA_BUNDLE" in ended.sentence
