"""Scenarios under the less usual reading of contradictory AWS contracts. The real engine."""

from __future__ import annotations

import pytest

from argosy.aws.shutdown import free
from argosy.emulator.readings import READINGS, known
from argosy.model.runs import RunStatus
from tests.builders import RUN_ID
from tests.scenarios.controlled import Controlled

EACH = (*READINGS, "all")


@pytest.mark.parametrize("reading", EACH)
def test_a_run_is_bought_for_and_ends_and_its_fleets_go_back_to_nothing(reading: str) -> None:
    cluster = Controlled(zones=("us-east-1a",), work_s=30.0)
    cluster.world.readings |= known([reading])
    cluster.submit(6)
    cluster.run_to_rest()
    assert cluster.record(RUN_ID).status == RunStatus.SUCCEEDED
    assert [fleet.spot_target for fleet in cluster.world.ec2.ledger.fleets.values()] == [0]


@pytest.mark.parametrize("reading", EACH)
def test_a_teardown_in_the_middle_of_a_run_leaves_nothing(reading: str) -> None:
    cluster = Controlled(zones=("us-east-1a",), work_s=3_600.0)
    cluster.world.readings |= known([reading])
    cluster.submit(6)
    cluster.run_for(300.0)
    for _ in range(3):
        found = free(cluster.world.ec2_client(), "main")
        cluster.pass_time(60.0)
    assert found.clean, found
