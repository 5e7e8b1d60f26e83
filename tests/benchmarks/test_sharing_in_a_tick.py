"""What do caps, and taking room, add to a tick: 5,000 instances, 80,000 live attempts, 1,000 runs of 200 queues?

Floor of all that sharing adds to a tick: 60 ms; 30 ms wished for. Processor time. `make bench` prints the figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from argosy.model.actions import Action, StopAttempt
from argosy.model.moment import Moment
from argosy.model.run_terms import RunTerms
from argosy.model.sharing import Sharing
from argosy.model.state import State
from argosy.scheduler import decide as decide_module
from argosy.scheduler.caps import CapRoom, prices
from argosy.scheduler.decide import decide
from argosy.scheduler.roster import Roster
from tests.benchmarks.full_cluster import INSTANCES, full_state
from tests.builders import NOW, POLICY, container_instance, moment_of, told

RUNS, QUEUES = 1_000, 200
LATER = NOW + 600
FULL = replace(POLICY, max_instances=INSTANCES)


def crowd(owed: int = 0, **document: Any) -> State:
    """Every queue has caps and may be preempted, but for the first one, which may take room."""
    state = full_state(RUNS, mixed=True, owed=owed)
    for number in range(200):  # full as well
        told(state, container_instance(number, 16 * 1024, 30_000))
    names = [f"q{number}" for number in range(QUEUES)]
    queues: dict[str, Any] = {name: {"cap": {"usdPerHour": 1e4, "vcpus": 1e5}, "preemptible": True} for name in names}
    queues["q0"] = {"weight": 5, "preempts": True}
    state.sharing = Sharing().with_document({"version": 1, "queues": queues, **document}, NOW)
    for number, run in enumerate(state.runs.values()):
        run.terms = RunTerms.of({**run.spec, "queue": names[number % QUEUES]})
    return state


def least_ms(act: Callable[[], object], times: int = 7) -> float:
    seconds = []
    for _ in range(times):
        began = time.process_time()
        act()
        seconds.append(time.process_time() - began)
    return 1_000 * min(seconds)


@pytest.mark.benchmark
def test_what_the_queues_use_and_what_instances_cost(capsys: pytest.CaptureFixture[str]) -> None:
    state = crowd()
    moment = moment_of(state)
    lineup = Roster().at(moment)
    used, priced = least_ms(lambda: CapRoom.of(state)), least_ms(lambda: prices(moment, lineup))
    with capsys.disabled():
        print(
            f"\nwhat 200 queues with caps use of 5,000 instances: {used:.1f} ms; the prices of these: {priced:.1f} ms"
        )
    assert used < 30
    assert priced < 5


@pytest.mark.benchmark
def test_a_decision_with_caps_while_thousands_of_instances_are_on_their_way(capsys: pytest.CaptureFixture[str]) -> None:
    state, roster = crowd(owed=2 * INSTANCES), Roster()
    took = least_ms(lambda: decide(_moment(state), roster=roster), times=3)
    with capsys.disabled():
        print(f"\na decision about 1,000 runs with caps, 10,000 instances on their way: {took:.0f} ms")
    assert took < 2_000


@pytest.mark.benchmark
def test_room_is_taken_at_full_size(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty tasks of others are stopped in one tick."""
    state = crowd(reclaim={"by": "preempt", "afterSeconds": 0, "perHourOfSpend": 1})
    takers = [each for each in state.runs.values() if each.terms.queue == "q0"]
    state.sharing = replace(state.sharing, held_since={run.id: NOW - 60 for run in takers})
    seconds: list[float] = []
    real = decide_module.reclaims

    def timed(*given: Any) -> Any:
        began = time.process_time()
        found = real(*given)
        seconds.append(time.process_time() - began)
        return found

    monkeypatch.setattr(decide_module, "reclaims", timed)
    roster = Roster()
    for _ in range(3):
        acts: list[Action] = decide(_moment(state), roster=roster)
    stopped = sum(isinstance(each, StopAttempt) for each in acts)
    with capsys.disabled():
        print(f"\nroom is taken for {stopped} tasks beside 80,000 attempts: {1_000 * min(seconds):.0f} ms")
    assert stopped == 50
    assert min(seconds) < 1.5


def _moment(state: State) -> Moment:
    return replace(moment_of(state), policy=FULL, now=LATER)
