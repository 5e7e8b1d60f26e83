"""`interrupt`: refusals; tests/e2e/test_checkpoints.py interrupts."""

from __future__ import annotations

import pytest

from argosy.client.aws_clients import Connection
from argosy.client.steering import SteeringRefused, steer
from tests.fakes.cli import RUN_ID, World


def test_on_aws_another_service_interrupts() -> None:
    result = World().argosy("interrupt", RUN_ID)
    assert result.exit_code == 2
    assert "Only local mode interrupts on command" in result.stderr
    assert "first-deployment.md" in result.stderr


def test_where_no_local_mode_answers_that_is_said() -> None:
    with pytest.raises(SteeringRefused, match=r"no local mode answers at http://127\.0\.0\.1:9: "):
        steer(Connection(endpoint_url="http://127.0.0.1:9"), "interrupt", {"instanceId": "i-1"})
