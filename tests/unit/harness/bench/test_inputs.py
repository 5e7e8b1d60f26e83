"""`bench inputs` reports the bytes that it sends to its test server."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from tests.harness.bench.__main__ import app

pytestmark = pytest.mark.slow  # a moto server and the AWS CLI are started


def test_the_bytes_that_are_sent_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "ARGOSY_CACHE"):
        monkeypatch.setenv(name, "x")  # which the command replaces
    monkeypatch.setenv("PATH", "/nowhere")
    words = ["inputs", "--files", "3", "--file-bytes", "1000", "--large-mb", "3", "--json"]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    sent = {row["what"]: row["sent"] for row in json.loads(result.stdout)["rows"] if row["by"] == "argosy"}
    assert sent["3 files of 1,000 bytes"] > 3_000
    assert sent["the same again"] == 0
    assert sent["a file of 3 MB"] > 3_000_000
    assert 0 < sent["one byte of it changed"] < 4_000_000
