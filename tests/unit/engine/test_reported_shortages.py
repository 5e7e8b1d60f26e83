"""Each shortage is reported once."""

from __future__ import annotations

from argosy.engine.report import ReportedShortages
from argosy.messages.fleet_faults import shortage
from tests.builders import NOW, POLICY, fleet, state_with, told


def test_a_shortage_is_reported_once_and_again_when_its_reason_changes_or_it_returns() -> None:
    state, log = state_with(fleet()), ReportedShortages()
    assert log.new(state, NOW) == ()
    told(state, shortage("fleet-c5.xlarge-us-east-1a", "fleetProgressHalted"), now=NOW)
    (sentence,) = log.new(state, NOW)
    assert sentence.startswith("us-east-1/c5.xlarge/us-east-1a: the spot price")
    assert log.new(state, NOW + 1) == ()
    told(state, shortage("fleet-c5.xlarge-us-east-1a", "iamFleetRoleInvalid"), now=NOW + 2)
    assert len(log.new(state, NOW + 2)) == 1
    over = NOW + 3 + POLICY.cool_off_max_s
    assert log.new(state, over) == ()
    told(state, shortage("fleet-c5.xlarge-us-east-1a", "iamFleetRoleInvalid"), now=over)
    assert len(log.new(state, over)) == 1
