"""`bench map` times calls by each library that is installed."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from tests.harness.bench.__main__ import app

pytestmark = pytest.mark.deep  # a local mode is started, and pools of each library that is there


def test_every_library_that_is_there_is_timed() -> None:
    result = CliRunner().invoke(app, ["map", "--calls", "20", "--json"], catch_exceptions=False)
    seconds = {row["by"]: row["seconds"] for row in json.loads(result.stdout)["rows"]}
    assert list(seconds) == ["argosy.map", "concurrent.futures", "joblib", "dask", "ray"]
    assert seconds["argosy.map"] > 0
    assert seconds["concurrent.futures"] > 0
