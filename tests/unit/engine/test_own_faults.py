"""The runs and messages that a tick leaves out, for causes that no other test can produce."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from argosy.engine.loading import load_run, record_of
from argosy.engine.own_faults import Exclusions, run_of
from argosy.engine.tick import SEARCH_S, Engine
from argosy.lifecycle.suspension import refuse
from argosy.model import inbox
from argosy.model.events import Event, LaunchMissed, NotCarriedOut, RebalanceAdvised, RunResumed
from argosy.model.run_record import RunRecord
from argosy.model.run_terms import RunTerms
from argosy.model.runs import RunStatus, sort_key
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.stored.documents import RUNS, run_partition
from argosy.model.suspensions import SURVIVED_S, Suspension
from tests.builders import (
    NOW,
    POLICY,
    RUN_ID,
    MemoryStore,
    instance_id,
    launched,
    state_with,
    state_with_instance,
    submitted,
    task,
    the_run,
)
from tests.fakes.engine import EmptyQueue, IdleExecutor
from tests.fakes.throwing import throwing

OTHER = "other-261121-062733-bbbb"
NAMED: Any = {"placement": {"strategy": ["random"]}}  # of a run with a strategy, so that `Moody` is called for it


def with_a_run() -> MemoryStore:
    store = MemoryStore()
    store.create({(inbox.INBOX, inbox.inbox_key(NOW, RUN_ID)): inbox.to_bytes(submitted(**NAMED).request)})
    return store


def engine_on(store: MemoryStore, executor: Any = None, **more: Any) -> Engine:
    return Engine(store, EmptyQueue(), executor or IdleExecutor(), {}, POLICY, lambda: NOW, **more)


class BlindOnce(IdleExecutor):
    """Its first sweep fails."""

    failed = False

    def observe(self, now: float, state: State) -> Event:
        if not self.failed:
            self.failed = True
            raise TypeError("a fault of our own")
        return super().observe(now, state)


def test_a_sweep_that_fails_is_logged_and_retried_after_a_pause() -> None:
    at = [NOW]
    engine = Engine(with_a_run(), EmptyQueue(), BlindOnce(), {}, POLICY, lambda: at[0])
    (trouble,) = engine.tick().troubles
    assert (trouble.what, "a fault of our own" in trouble.reason) == ("a sweep", True)
    assert "TypeError" in trouble.trace
    assert not engine.sightings
    at[0] += POLICY.sweep_s
    assert engine.tick().troubles == ()
    assert engine.sightings


class Moody:
    """Like OwnFunctions; fails whenever `fails` says so, and counts its calls."""

    ready: Mapping[str, Any] = {}

    def __init__(self, fails: Any) -> None:
        self.fails, self.asked = fails, 0

    def missing(self, strategy: tuple[str, ...]) -> str:
        self.asked += 1
        if self.fails(self.asked):
            raise RuntimeError("at this run")
        return ""


def test_a_failure_that_no_rehearsal_shows_is_raised() -> None:
    moody = Moody(lambda asked: asked == 1)
    engine = engine_on(with_a_run(), functions=moody)
    with pytest.raises(RuntimeError, match="at this run"):
        engine.tick()
    assert moody.asked > 1
    assert engine.tick().troubles == (), "the next tick works"


def test_a_run_at_which_a_decision_always_fails_is_refused_if_it_comes_first_in_this_tick() -> None:
    store = with_a_run()
    engine = engine_on(store, functions=Moody(lambda asked: True))
    (trouble,) = engine.tick().troubles
    assert trouble.what == f"run {RUN_ID}"
    assert record_of(store, RUN_ID).status is RunStatus.FAILED
    assert len(store.read_partition(inbox.REFUSED)) == 1
    assert not engine.excluded.is_in_use


def test_searches_are_bounded_keep_the_lease_and_suspend_no_run_when_their_time_is_up() -> None:
    store, at, signs = with_a_run(), [NOW], []
    store.create({(inbox.INBOX, inbox.inbox_key(NOW, OTHER)): inbox.to_bytes(submitted(OTHER, **NAMED).request)})

    def slow() -> None:
        signs.append(at[0])
        at[0] += SEARCH_S / 2

    functions: Any = Moody(lambda asked: True)
    engine = Engine(
        store, EmptyQueue(), IdleExecutor(), {}, POLICY, lambda: at[0], functions=functions, keep_alive=slow
    )
    with pytest.raises(RuntimeError, match="at this run"):
        engine.tick()
    assert len(signs) == 2, "with nothing and with all runs left out; then no time is left"
    assert not engine.excluded.runs


def suspended(store: MemoryStore) -> Engine:
    """An engine that has suspended the only run."""
    engine = engine_on(store)
    engine.tick()
    engine.excluded.runs[RUN_ID] = "it fails"
    engine.forget()
    engine.tick()
    assert state_of(engine).suspended
    return engine


def state_of(engine: Engine) -> State:
    assert engine.state is not None
    return engine.state


def test_a_suspended_run_whose_documents_cannot_be_read_stays_so() -> None:
    store = with_a_run()
    suspended(store)
    store.items[run_partition(RUN_ID), "SPEC"] = b"x"
    again = engine_on(store)
    again.tick()
    found = state_of(again).suspended[RUN_ID]
    assert (found.times, found.reason.split(":")[0]) == (2, "error")


def test_a_suspended_run_that_a_person_has_closed_is_suspended_no_more() -> None:
    store = with_a_run()
    suspended(store)
    closed = replace(record_of(store, RUN_ID), status=RunStatus.FAILED)
    store.items[RUNS, sort_key(RUN_ID)] = documents.encode(closed.to_json())
    again = engine_on(store)
    again.tick()
    assert not state_of(again).suspended
    assert not state_of(again).runs


def test_a_run_that_fails_when_it_is_tried_again_is_suspended_for_longer() -> None:
    store = with_a_run()
    suspended(store)
    again = engine_on(store, functions=Moody(lambda asked: True))
    assert [each.what for each in again.tick().troubles] == [f"run {RUN_ID}"]
    assert state_of(again).suspended[RUN_ID].times == 2


def test_a_record_that_is_not_there_is_a_fault() -> None:
    with pytest.raises(KeyError):
        record_of(MemoryStore(), RUN_ID)


def test_a_failure_while_reading_a_runs_documents_is_reported_as_damage() -> None:
    store = with_a_run()
    engine_on(store).tick()
    of_terms = RunTerms.from_dict.__func__  # type: ignore[attr-defined]
    with throwing(of_terms, lambda arguments: True, anywhere=True), pytest.raises(ValueError, match="Planted"):
        load_run(store, RUN_ID)


def test_a_submission_that_is_refused_leaves_a_record_and_a_request_about_no_run_none() -> None:
    state = State()
    refuse(state, inbox.RetryRequest(RUN_ID, NOW), None, NOW)
    assert not state.quarantined
    refuse(state, submitted().request, None, NOW)
    assert state.quarantined[RUN_ID].status is RunStatus.FAILED


def test_a_run_whose_retry_failed_and_one_whose_record_cannot_be_read_are_suspended() -> None:
    state = state_with_instance()
    excluded = Exclusions()

    def unreadable(run_id: str) -> RunRecord:
        raise KeyError(run_id)

    excluded.runs[RUN_ID] = "it fails"
    excluded.apply(state, NOW, unreadable)
    found = state.suspended[RUN_ID]
    assert (found.record.number, found.times, list(state.runs)) == (1, 1, [])
    excluded.runs[RUN_ID] = "again"
    excluded.apply(state, NOW + 60, unreadable)
    assert (state.suspended[RUN_ID].times, state.suspended[RUN_ID].since) == (2, NOW)
    excluded.apply(state_with(submitted(OTHER)), NOW, unreadable)


def failed_again_after(seconds: float) -> tuple[int, float]:
    """A run that was suspended three times is tried again, and works so long: how often in a row, and since when."""
    state, excluded = state_with_instance(), Exclusions()
    run = state.runs[RUN_ID]
    excluded.earlier[RUN_ID] = Suspension(RunRecord.of(run), "it failed", NOW - 80_000, NOW, 3)
    excluded.tried_at[RUN_ID] = NOW
    excluded.runs[RUN_ID] = "it fails"
    excluded.apply(state, NOW + seconds, lambda run_id: RunRecord.of(run))
    found = state.suspended[RUN_ID]
    return found.times, found.since


def test_a_run_that_has_worked_for_ten_minutes_fails_for_the_first_time() -> None:
    assert failed_again_after(SURVIVED_S - 1) == (4, NOW - 80_000)
    assert failed_again_after(SURVIVED_S) == (1, NOW + SURVIVED_S)


def test_a_fact_names_its_run_by_key_request_id_or_the_task_that_it_shows() -> None:
    state = state_with_instance()
    key = launched(state, number=7)
    named = [
        LaunchMissed(key),
        submitted(),
        RunResumed(RUN_ID, the_run(state)),
        NotCarriedOut("no time", key=key),
        task(7, "RUNNING", key=key),
        task(7, "RUNNING"),
    ]
    assert {run_of(state, fact) for fact in named} == {RUN_ID}
    unnamed = [RebalanceAdvised(instance_id(1)), NotCarriedOut("no time"), task(8, "RUNNING")]
    assert {run_of(state, fact) for fact in unnamed} == {""}
