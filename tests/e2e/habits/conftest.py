"""One local mode for all habits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.local.options import LocalOptions
from tests.fakes.local_mode import local_aws


@pytest.fixture(scope="module")  # a process has one embedded AWS at a time, and other files start theirs
def endpoint() -> Iterator[str]:
    with local_aws(LocalOptions(boot_s=0.05, tick_s=0.3, stop_timeout_s=5.0, processes=4)) as aws:
        yield aws.endpoint_url


@pytest.fixture
def environment(endpoint: str, tmp_path: Path) -> dict[str, str]:
    """Of a shell that reaches it and resolves no packages."""
    return {
        "ARGOSY_ENDPOINT_URL": endpoint,
        "ARGOSY_CACHE": str(tmp_path / ".cache"),
        "PIP_NO_INDEX": "1",
        "COLUMNS": "120",
    }
