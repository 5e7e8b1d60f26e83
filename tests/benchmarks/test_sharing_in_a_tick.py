"""What do caps, and taking room, add to a tick: 5,000 instances, 80,000 live attempts, 1,000 runs of 200 queues?

Floor for all that sharing adds to a tick: 60 ms; goal 30 ms. CPU time. `make bench` prints the figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from argosy.lifecycle.user_requests import note_use as note
from argosy.model.actions import Action, StopAttempt
from argosy.model.moment import Moment
from argosy.model.shares.sharing import Sharing
from argosy.model.state import State
from argosy.scheduler import decide as decide_module
from argosy.scheduler.decide import decide
from argosy.scheduler.supply.kept_instances import kept_for_runs, needed_from, open_to
from argosy.scheduler.supply.roster import Roster
from argosy.scheduler.turns.caps import CapRoom, prices
from argosy.scheduler.turns.fair_order import FairOrder, latest_starts
from argosy.spec.terms import terms_of_form
from tests.benchmarks.full_cluster import INSTANCES, full_state
from tests.builders import NOW, POLICY, container_instance, moment_of, told

RUNS, QUEUES = 1_000, 200
LATER = NOW + 600
FULL = replace(POLICY, max_instances=INSTANCES)


def crowd(owed: int = 0, **document: Any) -> State:
    """Every queue has caps and may be preempted, except the first one, which may take room."""
    state = full_state(RUNS, mixed=True, owed=owed)
    for number in range(200):  # full as well
        told(state, container_instance(number, 16 * 1024, 30_000))
    names = [f"q{number}" for number in range(QUEUES)]
    queues: dict[str, Any] = {name: {"cap": {"usdPerHour": 1e4, "vcpus": 1e5}, "preemptible": True} for name in names}
    queues["q0"] = {"weight": 5, "preempts": True}
    state.sharing = Sharing().with_document({"version": 1, "queues": queues, **document}, NOW)
    for number, run in enumerate(state.runs.values()):
        run.terms = terms_of_form({**run.spec, "queue": names[number % QUEUES]})
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
        print(f"\nroom is taken for {stopped} tasks among 80,000 attempts: {1_000 * min(seconds):.0f} ms")
    assert stopped == 50
    assert min(seconds) < 1.5


@pytest.mark.benchmark
def test_what_was_used_lately_and_deadlines_add_to_the_order(capsys: pytest.CaptureFixture[str]) -> None:
    """All runs have deadlines, all queues have used something."""
    state = crowd(halfLife="24h")
    runs = list(state.runs.values())
    plain = least_ms(lambda: FairOrder.of(state, runs))
    deadline = {"deadline": "4h"}
    for number, run in enumerate(runs):
        run.terms = terms_of_form({**run.spec, "queue": f"q{number % QUEUES}", "capacity": deadline})
    note(state, NOW)
    noted = least_ms(lambda: note(_forgotten(state), LATER))
    remembered = least_ms(lambda: FairOrder.of(state, runs))
    moment = _moment(state)
    slack = least_ms(lambda: latest_starts(moment, runs))
    urgent = latest_starts(moment, runs)
    in_order = least_ms(lambda: FairOrder.of(state, runs, urgent))
    with capsys.disabled():
        print(
            f"\nthe order of 1,000 runs of 200 queues: {plain:.1f} ms; with what was used lately {remembered:.1f} ms, "
            f"with deadlines as well {in_order:.1f} ms and {slack:.1f} ms for their slack; noting what is used, every "
            f"five minutes: {noted:.1f} ms"
        )
    assert len(urgent) == RUNS
    assert in_order + slack < 30
    assert noted < 30


def _forgotten(state: State) -> State:
    """It was recorded ten minutes ago."""
    state.sharing = replace(state.sharing, recent=replace(state.sharing.recent, at=NOW))
    return state


@pytest.mark.benchmark
def test_only_the_run_that_took_room_may_use_an_instance_that_is_being_emptied(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Fifty instances of sixteen tasks each."""
    state = crowd()
    runs = list(state.runs.values())
    for run in runs:
        run.ended, run.shortest_s, run.longest_s = 100, 3_600.0, 4_000.0
        run.terms = replace(run.terms, attempt_timeout_s=60.0)
    for instance in list(state.instances.values())[:50]:
        instance.yields_to, instance.yields_tasks, instance.yields_until = runs[0].number, 1, LATER + 3_600
        instance.yields_since = LATER
    moment = _moment(state)
    kept = kept_for_runs(state, LATER)

    def act() -> int:
        needed = needed_from(moment, kept)
        return sum(len(open_to(run, moment, needed)) for run in runs)

    took = least_ms(act)
    with capsys.disabled():
        print(f"\nwho of 1,000 runs may use 50 instances that are being emptied: {took:.1f} ms")
    assert len(kept) == 50
    assert took < 30


def _moment(state: State) -> Moment:
    return replace(moment_of(state), policy=FULL, now=LATER)
