"""Nothing is decided before the time that `next_due` gives: on states of trials in which the controller has left."""

from __future__ import annotations

import io
import math
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from argosy.catalogue.lookup import load_catalogue
from argosy.lifecycle.apply import pass_time
from argosy.model.columns import ChangedIds
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.state import State
from argosy.scheduler.decide import decide
from argosy.scheduler.due import next_due
from tests.harness.simulation.faults import kinds_of
from tests.harness.simulation.plan import TrialPlan
from tests.harness.simulation.trial import Trial

SEEDS = 4
LONGEST_S = 4 * 3600.0
KINDS = "service,interruption,host-loss,partition,shortage,call-lost,events-late,bad-gpu,clean-exit"
CATALOGUE = load_catalogue()


def quiet_states(seed: int) -> Iterator[tuple[bytes, float, Policy]]:
    """Pickled as they were when controllers left, and when that was."""
    trial = Trial(TrialPlan(seed, kinds_of(KINDS), every_kind=seed % 2 == 0, controllers=1))
    found: list[tuple[bytes, float]] = []
    (controller,) = trial.controllers
    left = trial.deployment.invocations.left

    def note(reason: str) -> None:
        left(reason)
        if reason == "quiet" and controller.engine.state is not None:
            found.append((pickled_state(controller.engine.state), controller.engine.now()))

    trial.deployment.invocations.left = note  # type: ignore[method-assign]
    assert trial.run().violations == []
    return ((state, at, trial.deployment.policy) for state, at in found)


class StatePickler(pickle.Pickler):
    """A state without its changed instances: decisions are not stored. Copied by `copy` it takes five times as
    long."""

    def reducer_override(self, obj: Any) -> Any:
        return (ChangedIds, ()) if isinstance(obj, ChangedIds) else NotImplemented


def pickled_state(state: State) -> bytes:
    StatePickler(file := io.BytesIO()).dump(state)
    return file.getvalue()


def unpickled(state: bytes) -> State:
    found: State = pickle.loads(state)  # noqa: S301 - by this test
    return found


def decided(pickled: bytes, at: float, policy: Policy) -> list[object]:
    state = unpickled(pickled)
    pass_time(state, at, policy)
    return list(decide(Moment(state, CATALOGUE, at, policy)))


@pytest.mark.slow
def test_before_it_is_due_nothing_is_decided_in_states_of_trials() -> None:
    looked_at = waited = 0
    for seed in range(SEEDS):
        for pickled, at, policy in quiet_states(seed):
            due = next_due(Moment(unpickled(pickled), CATALOGUE, at, policy))
            assert due > at, (seed, at)
            until = min(due, at + LONGEST_S)
            looked_at, waited = looked_at + 1, waited + (due < math.inf)
            for share in (0.0, 0.1, 0.5, 0.9, 0.999):
                moment = at + share * (until - at)
                actions = decided(pickled, moment, policy)
                assert not actions, (seed, at, due, moment - at, actions[:3])
    assert looked_at >= SEEDS / 4
    assert waited >= SEEDS / 8
