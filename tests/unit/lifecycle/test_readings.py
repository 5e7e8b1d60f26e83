"""What decides how AWS reads its contracts, and what does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from argosy.lifecycle.apply import apply
from argosy.model.events import Event, FleetSeen, NotCarriedOut, Observed, PoolShort, TargetAccepted
from argosy.model.policy import Policy
from argosy.model.readings import DELETED_OVER_LIMIT, OLD_TARGET, ONLY_ACTIVE
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State

CELL = "us-east-1"
RESTING = FleetSeen(CELL, "c5.large", "us-east-1a", "fleet-1", 0)
POOL = f"{CELL}/c5.large/us-east-1a"
NOTHING = Observed(0.0, whole_cells=frozenset({CELL}))
REFUSED = NotCarriedOut("FleetNotInModifiableState: no", about=Subject(Act.TARGET, POOL), passing=True)
FULL = PoolShort("fleet-1", "the quota is used up", over_quota=True)
ACCEPTED = TargetAccepted(POOL, 5)


def modifying(target: int) -> FleetSeen:
    return replace(RESTING, spot_target=target, is_modifying=True)


def seen(*facts: Event) -> dict[str, bool]:
    """After a listing of a fleet at rest and these facts, a minute apart."""
    state = State()
    for number, fact in enumerate((RESTING, *facts)):
        at = 60.0 * number
        apply(state, replace(fact, at=at) if isinstance(fact, Observed) else fact, at, Policy())
    return {name: sighting.holds for name, sighting in state.readings.seen.items()}


@pytest.mark.parametrize(
    ("facts", "decided"),
    [
        ((ACCEPTED, modifying(0)), {OLD_TARGET: True}),
        ((ACCEPTED, modifying(5)), {}),  # or 5 was its old target, of a modification by another controller
        ((ACCEPTED, modifying(3)), {}),  # somebody else's
        ((modifying(0),), {}),
        ((ACCEPTED, NotCarriedOut("no answer", about=REFUSED.about, passing=True), modifying(0)), {}),
        ((replace(ACCEPTED, spot_target=0), modifying(0)), {}),
        ((REFUSED, RESTING), {ONLY_ACTIVE: True}),
        ((REFUSED, NOTHING), {}),  # it was deleted
        ((REFUSED, replace(RESTING, fleet_id="fleet-2")), {}),
        ((FULL, RESTING), {DELETED_OVER_LIMIT: False}),
        ((FULL, NOTHING), {DELETED_OVER_LIMIT: True}),
        ((FULL, replace(NOTHING, fleets=(replace(RESTING, fleet_id="fleet-2"),))), {}),  # the owner replaced it
        ((replace(RESTING, zone="us-east-1b", fleet_id="fleet-2"), FULL, NOTHING), {}),  # all were deleted
        ((FULL, RESTING, FULL, NOTHING), {DELETED_OVER_LIMIT: True}),  # the latest answer counts
        ((replace(FULL, pool=POOL, refused=True), RESTING), {}),  # a refused call changes nothing
        ((replace(FULL, over_quota=False), NOTHING), {}),
    ],
)
def test_a_reading_is_decided_by_these_facts_alone(facts: tuple[Event, ...], decided: dict[str, bool]) -> None:
    assert seen(*facts) == decided


def test_the_first_sighting_of_an_answer_is_kept() -> None:
    state = State()
    for at, fact in enumerate((RESTING, ACCEPTED, modifying(0), modifying(0))):
        apply(state, fact, float(at), Policy())
    assert state.readings.seen[OLD_TARGET].at == 2.0
