"""What the engine does about its own faults where no other test can bring them about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from argosy.engine.culprits import SEARCH_S
from argosy.engine.leaving_out import Suspect
from argosy.engine.loading import load_run, record_of
from argosy.engine.tick import MOST_ROUNDS, Engine
from argosy.lifecycle.suspension import refuse
from argosy.model import documents, inbox
from argosy.model.documents import RUNS, run_partition
from argosy.model.events import Event
from argosy.model.run_terms import RunTerms
from argosy.model.runs import RunStatus, sort_key
from argosy.model.state import State
from argosy.ports import Message
from tests.builders import NOW, POLICY, RUN_ID, MemoryStore, instance_id, submitted
from tests.fakes.engine import EmptyQueue, IdleExecutor
from tests.fakes.throwing import throwing


def with_a_run() -> MemoryStore:
    store = MemoryStore()
    store.create({(inbox.INBOX, inbox.inbox_key(NOW, RUN_ID)): inbox.to_bytes(submitted().request)})
    return store


def engine_on(store: MemoryStore, executor: Any = None, **more: Any) -> Engine:
    return Engine(store, EmptyQueue(), executor or IdleExecutor(), {}, POLICY, lambda: NOW, **more)


class BlindOnce(IdleExecutor):
    """Its first sweep fails."""

    failed = False

    def observe(self, now: float) -> Event:
        if not self.failed:
            self.failed = True
            raise TypeError("a fault of our own")
        return super().observe(now)


def test_a_sweep_that_fails_is_told_and_tried_again_after_a_pause() -> None:
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
    """Like OwnFunctions; fails at the first of every three questions, so never in a rehearsal."""

    ready: Mapping[str, Any] = {}
    asked = 0

    def missing(self, strategy: tuple[str, ...]) -> str:
        self.asked += 1
        if self.asked % 3 == 1:
            raise RuntimeError("now and then")
        return ""


def test_what_no_rehearsal_shows_is_tried_again_a_few_times_and_raised_in_the_end() -> None:
    moody = Moody()
    engine = engine_on(with_a_run(), functions=moody)
    with pytest.raises(RuntimeError, match="now and then"):
        engine.tick()
    assert moody.asked == 3 * (MOST_ROUNDS - 1) + 1


def test_searches_are_bounded_for_the_whole_tick_keep_the_lease_and_suspend_nobody_when_time_is_up() -> None:
    class AlwaysFailing(Moody):
        def missing(self, strategy: tuple[str, ...]) -> str:
            raise RuntimeError("at this run")

    store, at, signs = with_a_run(), [NOW], []
    store.create({(inbox.INBOX, inbox.inbox_key(NOW, OTHER)): inbox.to_bytes(submitted(OTHER).request)})

    def slow() -> None:
        signs.append(at[0])
        at[0] += SEARCH_S / 2

    functions: Any = AlwaysFailing()
    engine = Engine(
        store, EmptyQueue(), IdleExecutor(), {}, POLICY, lambda: at[0], functions=functions, keep_alive=slow
    )
    with pytest.raises(RuntimeError, match="at this run"):
        engine.tick()
    assert 2 <= len(signs) <= 4
    assert not engine.apart.runs


def test_no_search_begins_without_time() -> None:
    moody, at = Moody(), [NOW]

    def slow() -> None:
        at[0] += SEARCH_S

    functions: Any = moody
    engine = Engine(
        with_a_run(), EmptyQueue(), IdleExecutor(), {}, POLICY, lambda: at[0], functions=functions, keep_alive=slow
    )
    with pytest.raises(RuntimeError, match="now and then"):
        engine.tick()
    assert moody.asked == 4, "the second round's failure is not searched for"


OTHER = "other-261121-062733-bbbb"


def suspended(store: MemoryStore) -> Engine:
    """An engine that has suspended the only run."""
    engine = engine_on(store)
    engine.tick()
    engine.apart.runs[RUN_ID] = "it fails"
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


def test_a_record_that_is_not_there_is_a_fault() -> None:
    with pytest.raises(KeyError):
        record_of(MemoryStore(), RUN_ID)


def test_what_our_own_code_makes_of_a_runs_documents_is_said_as_a_fault_of_them() -> None:
    store = with_a_run()
    engine_on(store).tick()
    of_terms = RunTerms.of.__func__  # type: ignore[attr-defined]
    with throwing(of_terms, lambda arguments: True, anywhere=True), pytest.raises(ValueError, match="Planted"):
        load_run(store, RUN_ID)


def test_a_message_about_an_instance_that_is_set_apart_is_handled_and_no_poison() -> None:
    kind = {"source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning"}
    body = {**kind, "detail": {"instance-id": instance_id(1)}}
    deleted: list[str] = []

    class OneMessage(EmptyQueue):
        def receive(self, wait_s: float) -> list[Message]:
            return [Message("1", body)]

        def delete(self, receipts: Sequence[str]) -> None:
            deleted.extend(receipts)

    engine = Engine(MemoryStore(), OneMessage(), IdleExecutor(), {}, POLICY, lambda: NOW)
    engine.apart.add(Suspect("instance", instance_id(1)), [], "x", NOW)
    assert engine.tick().poison == 0
    assert deleted == ["1"]


def test_a_submission_that_is_refused_leaves_a_record_and_a_request_about_no_run_none() -> None:
    state = State()
    refuse(state, inbox.RetryRequest(RUN_ID, NOW), None, NOW)
    assert not state.quarantined
    refuse(state, submitted().request, None, NOW)
    assert state.quarantined[RUN_ID].status is RunStatus.FAILED
