"""`argosy doctor --probe` under each reading of AWS's contracts: what it says, and that it leaves nothing behind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from argosy.api.cluster.views import readings_view
from argosy.cli.deployment.probe import OBSERVED, QUESTIONS, probe
from argosy.emulator.readings import READINGS, known
from argosy.model.readings import DOCKER_BLOCKS, OLD_TARGET
from argosy.model.runs import RunStatus
from argosy.model.state import State
from tests.builders import RUN_ID
from tests.fakes.cli import refusal
from tests.scenarios.controlled import Controlled

# What the finding says when the reading holds, where a call decides it; and when it does not.
HOLDS = {
    "modify-fleet-total-only": "AWS refuses targets by purchase (InvalidTargetCapacitySpecification",
    "modify-only-active": "AWS refuses a fleet that is being modified (FleetNotInModifiableState",
}
DOES_NOT = {
    "modify-fleet-total-only": "and targets by purchase as well",
    "modify-only-active": "AWS takes two modifications in a row",
}


def cluster(*readings: str) -> Controlled:
    made = Controlled(zones=("us-east-1a", "us-east-1b", "us-east-1c"), work_s=3_600.0)
    made.world.readings |= known(readings)
    made.pass_time(60.0)  # the fleets become active
    return made


def targets_of(asked: Controlled) -> dict[str, int]:
    return {id: fleet.spot_target for id, fleet in asked.world.ec2.ledger.fleets.items()}


def said(asked: Controlled, **clients: Any) -> dict[str, tuple[str, str]]:
    """Name of each finding -> its state and words."""
    known_clients = {"ec2": asked.ec2, "ecs": asked.ecs, "s3": asked.s3, **clients}
    state = asked.controllers[0].state or State()
    session: Any = SimpleNamespace(
        client=known_clients.__getitem__,
        api=SimpleNamespace(cluster=lambda: {"readings": readings_view(state)}),
        connection=SimpleNamespace(stage="main"),
        deployment=SimpleNamespace(cluster=asked.world.cluster, bucket="results"),
    )
    return {each.name: (each.state, each.says) for each in probe(session)}


@pytest.mark.parametrize("reading", [*READINGS, "all"])
def test_each_reading_is_told_and_nothing_is_left_changed(reading: str) -> None:
    asked = cluster(reading)
    before = targets_of(asked)
    found, holding = said(asked), known([reading])
    for name in HOLDS:
        assert (HOLDS if name in holding else DOES_NOT)[name] in found[name][1]
    asked.pass_time(600.0)
    assert targets_of(asked) == before
    assert not asked.live_instances()
    assert not asked.s3.objects
    assert not {state for state, _ in found.values()} - {"ok", "note"}


def test_every_reading_has_a_line() -> None:
    assert QUESTIONS.keys() | OBSERVED.keys() >= READINGS.keys()
    found = said(cluster())
    assert found.keys() == QUESTIONS.keys() | OBSERVED.keys()
    assert all("not seen yet: " in found[name][1] for name in OBSERVED)


def test_what_the_controller_has_seen_is_told_with_what_follows() -> None:
    asked = cluster(OLD_TARGET)
    asked.submit(2)
    asked.run_for(200.0)
    found = said(asked)
    state, words = found[OLD_TARGET]
    assert state == "ok"
    assert "that it holds: fleet-" in words
    assert words.endswith("Argosy works the same way under either reading")
    assert "that it does not hold: i-" in found[DOCKER_BLOCKS][1]
    assert "Argosy buys none with its AMI" in found[DOCKER_BLOCKS][1]


def test_a_launch_that_fits_nowhere_starts_nothing_while_instances_are_there() -> None:
    asked = cluster()
    asked.submit(2)
    asked.run_for(200.0)
    before = asked.ecs.list_tasks(cluster=asked.world.cluster)["taskArns"]
    assert "nothing started" in said(asked)["launch tokens"][1]
    assert asked.ecs.list_tasks(cluster=asked.world.cluster)["taskArns"] == before
    assert asked.record(RUN_ID).status == RunStatus.RUNNING


def test_a_total_that_is_refused_alone_is_wrong() -> None:
    def modify_fleet(**request: Any) -> Any:
        raise refusal("InvalidParameterValue", operation="ModifyFleet")

    asked = cluster()
    ec2 = SimpleNamespace(
        modify_fleet=modify_fleet, get_paginator=asked.ec2.get_paginator, describe_fleets=asked.ec2.describe_fleets
    )
    state, words = said(asked, ec2=ec2)["modify-fleet-total-only"]
    assert state == "wrong"
    assert "InvalidParameterValue" in words
    assert "nothing can be bought" in words


def test_a_write_that_s3_should_have_refused_is_wrong() -> None:
    asked = cluster()
    s3 = SimpleNamespace(put_object=lambda **request: {}, delete_object=lambda **request: {})
    assert said(asked, s3=s3)["conditional writes"][0] == "wrong"


def test_a_missing_right_is_said_and_the_other_questions_are_asked() -> None:
    def put_object(**request: Any) -> Any:
        raise refusal("AccessDenied", operation="PutObject")

    found = said(cluster(), s3=SimpleNamespace(put_object=put_object))
    assert found["conditional writes"][0] == "denied"
    assert found["modify-fleet-total-only"][0] == "ok"
