"""Can the launch protocol start an attempt twice or book its end twice? Every reachable state of a small model says no.

Taking any one safeguard away must be found: a check that cannot fail proves nothing.
"""

from __future__ import annotations

import pytest

from tests.protocol.search import Protocol, World, search, variant


def test_the_whole_protocol_reaches_no_violation() -> None:
    states, violation = search(Protocol())
    assert violation is None
    assert states > 5_000  # it did look


@pytest.mark.deep
def test_two_crashes_and_two_lost_replies_reach_none_either() -> None:
    states, violation = search(Protocol(), World(crashes=2, lost_replies=2))
    assert violation is None
    assert states > 50_000


@pytest.mark.parametrize(
    ("protocol", "what"),
    [
        (variant(token=False), "an attempt was started twice"),
        (variant(age_gate=False), "an attempt was started twice"),
        (variant(conditional_events=False), "the end of an attempt was booked"),
        (variant(token=False, start_task=True), "an attempt was started twice"),
    ],
    ids=["without the token", "without the age gate", "with events of any attempt", "with StartTask"],
)
def test_without_one_safeguard_a_violation_is_reached(protocol: Protocol, what: str) -> None:
    _, violation = search(protocol)
    assert violation is not None
    assert violation.sentence.startswith(what)
    assert len(violation.steps) <= 12, violation.steps
