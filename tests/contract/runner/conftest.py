"""Every case runs once for each runner: the Python one of process mode, and in `make test-engines` the Go one where it
is built.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.local.forks import Forks
from tests.fakes.signed_s3 import SignedS3, signed_s3
from tests.runners import RunnerUnderTest, built_runner, forked_runners


@pytest.fixture
def s3() -> Iterator[SignedS3]:
    with signed_s3() as store:
        yield store
        assert not store.refused, store.refused  # every request was signed as it should be
        assert not store.uploads, "a multipart upload was left open"


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    server = forked_runners()
    yield server
    server.close()


@pytest.fixture(params=["twin", pytest.param("go", marks=pytest.mark.engine)])
def runner(
    request: pytest.FixtureRequest, s3: SignedS3, tmp_path: Path, forks: Forks | None
) -> Iterator[RunnerUnderTest]:
    command = [sys.executable, "-P", "-m", "argosy.runner"]
    if request.param == "go":
        built = built_runner()
        if built is None:
            pytest.skip("the Go runner of this source is not built: make runner")
        command = [str(built)]
    under_test = RunnerUnderTest(command, s3, tmp_path, forks=forks if request.param == "twin" else None)
    yield under_test
    for stop in under_test.stopped:
        stop()
