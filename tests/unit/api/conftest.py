"""What the tests of the api start from."""

from __future__ import annotations

import pytest

from tests.fakes.api import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()
