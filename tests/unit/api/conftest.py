"""Fixtures of the api's tests."""

from __future__ import annotations

import pytest

from tests.fakes.api import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()
