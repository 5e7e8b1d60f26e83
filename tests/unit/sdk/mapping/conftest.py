"""A deployment whose tasks are real processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.calling import CallingWorld


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[CallingWorld]:
    world = CallingWorld(tmp_path)
    yield world
    world.close()
