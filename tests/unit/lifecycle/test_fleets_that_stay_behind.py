"""A fleet that EC2 does not move to the newest launch template (N12): since when, why, and when it counts."""

from __future__ import annotations

from argosy.engine.report import BEHIND_S, figures_of
from argosy.model.pools import Pool
from argosy.model.state import State
from tests.builders import NOW, fleet, state_with, told

WHY = "InvalidParameterCombination: not for this fleet"


def pool_of(state: State) -> Pool:
    return next(iter(state.pools.values()))


def test_it_counts_after_a_day_and_until_ec2_shows_the_newest_version() -> None:
    state = state_with()
    told(state, fleet(stays_behind=""))
    assert pool_of(state).behind_since == 0.0
    told(state, fleet(stays_behind=WHY))
    told(state, fleet(stays_behind=""), now=NOW + 60.0)  # a controller that started again knows no refusal
    assert (pool_of(state).behind_since, pool_of(state).behind_because) == (NOW, WHY)
    assert figures_of(state, [], NOW + BEHIND_S - 1.0)["behind"] == 0
    assert figures_of(state, [], NOW + BEHIND_S)["behind"] == 1
    told(state, fleet(stays_behind=None), now=NOW + BEHIND_S)
    assert (pool_of(state).behind_since, pool_of(state).behind_because) == (0.0, "")
