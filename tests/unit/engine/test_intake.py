"""The messages and requests that the controller's own code fails at are left out, and the others are taken in."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import pytest

from argosy.engine.loading import record_of
from argosy.engine.tick import MAX_REQUESTS_PER_TICK, SEARCH_S, Engine
from argosy.model import cluster_history, inbox
from argosy.model.events import Event, Observed, RebalanceAdvised
from argosy.model.inbox import REFUSED, CancelRequest, RetryRequest
from argosy.model.journal.items import CHANGES
from argosy.model.runs import RunStatus
from argosy.model.state import State
from argosy.model.stored import documents
from tests.builders import NOW, POLICY, RUN_ID, MemoryStore, host, instance_id, state_with_instance, submitted, the_run
from tests.fakes.engine import EmptyQueue, IdleExecutor, Queue
from tests.fakes.throwing import Planted, any_of, named, throwing

BAD, GOOD = 150, 50
SHORT = {"source": "aws.ec2", "detail-type": "EC2 Instance Rebalance Recommendation"}


def rebalance(number: int) -> dict[str, object]:
    return {**SHORT, "time": "2027-01-15T08:00:00Z", "detail": {"instance-id": instance_id(number)}}


def failing_at(*names: str) -> AbstractContextManager[list[int]]:
    """Taking in the facts about these runs or instances."""

    def is_about(value: Any) -> bool:
        request = getattr(value, "request", None)
        return getattr(request, "run_id", None) in names or (
            isinstance(value, RebalanceAdvised) and value.instance_id in names
        )

    return throwing(named("lifecycle.apply.apply"), any_of(is_about))


def engine_on(store: MemoryStore, queue: Any = None, policy: Any = POLICY) -> Engine:
    return Engine(store, queue or EmptyQueue(), IdleExecutor(), {}, policy, lambda: NOW)


def asked(store: MemoryStore, *requests: inbox.Request) -> None:
    for number, request in enumerate(requests):
        store.create({(inbox.INBOX, inbox.inbox_key(NOW + number, request.run_id)): inbox.to_bytes(request)})


@pytest.mark.slow
def test_good_messages_are_taken_in_with_a_hundred_bad_ones() -> None:
    queue = Queue(*(rebalance(number) for number in range(BAD + GOOD)))
    bad = {str(number) for number in range(BAD + GOOD) if number % 4}
    with failing_at(*(instance_id(int(number)) for number in bad)):
        report = engine_on(MemoryStore(), queue).tick()
    assert len(bad) == BAD
    assert set(queue.bodies) - set(queue.deleted) == bad
    assert {each.what for each in report.troubles} == {"a message"}
    assert len(report.troubles) == BAD


def test_the_requests_that_come_after_bad_ones_are_taken_in_by_the_same_tick() -> None:
    store = MemoryStore()
    names = [f"run{number}-261121-062733-aaaa" for number in range(9)]
    asked(store, *(submitted(name).request for name in names))
    store.items[inbox.INBOX, inbox.inbox_key(NOW + 3.5, "x")] = b"no request"
    engine = engine_on(store)
    with failing_at(*names[:-1]):
        assert len(engine.tick().troubles) == len(names) - 1
    assert engine.state is not None
    assert list(engine.state.runs) == names[-1:]
    assert len(store.read_partition(REFUSED)) == len(names)


def test_a_tick_that_leaves_out_one_message_after_another_gives_up_in_time_and_the_next_tick_continues() -> None:
    at = [NOW]
    queue = Queue(*(rebalance(number) for number in range(4)))
    engine = Engine(MemoryStore(), queue, IdleExecutor(), {}, POLICY, lambda: at[0])

    def slow(arguments: Mapping[str, Any]) -> bool:
        event = arguments["event"]
        if not isinstance(event, RebalanceAdvised) or event.instance_id == instance_id(3):
            return False
        at[0] += 0.7 * SEARCH_S
        return True

    with throwing(named("lifecycle.apply.apply"), slow) as thrown:
        with pytest.raises(Planted):
            engine.tick()
        assert (thrown, queue.deleted) == ([3], [])
        assert [each.what for each in engine.tick().troubles] == ["a message"] * 3
    assert set(queue.deleted) == {"3"}


def test_empty_and_unreadable_messages_differ_from_one_that_the_code_fails_at() -> None:
    queue = Queue(
        rebalance(1),
        {**SHORT, "detail": {"instance-id": {}}},
        {"source": "aws.s3", "detail-type": "x", "detail": {}},
        rebalance(2),
    )
    with failing_at(instance_id(1)):
        engine_on(MemoryStore(), queue).tick()
    assert set(queue.deleted) == {"2", "3"}


def ended(store: MemoryStore) -> None:
    """The run is stored as failed."""
    state = state_with_instance()
    run = the_run(state)
    run.status, run.status_reason = RunStatus.FAILED, "no such image"
    state.changed_runs.add(run.id)
    store.commit(0, documents.changed(state), ())
    documents.committed(state)
    store.commit(1, documents.changed(state), ())


@pytest.mark.parametrize("kind", ["retry", "cancel"])
def test_an_ended_run_says_once_that_a_request_about_it_was_refused(kind: str) -> None:
    store = MemoryStore()
    ended(store)
    before = dict(store.items)
    engine = engine_on(store)
    for number in range(2):
        request = RetryRequest(RUN_ID, NOW + number) if kind == "retry" else CancelRequest(RUN_ID, NOW + number, "no")
        asked(store, request)
        with failing_at(RUN_ID):
            assert engine.tick().troubles
    record = record_of(store, RUN_ID)
    assert record.status is RunStatus.FAILED
    sentence = f"the request to {kind} it could not be carried out, and is not retried"
    assert record.status_reason == f"no such image; {sentence}"
    changed = {key for key, body in store.items.items() if before.get(key) != body and key[0] != REFUSED}
    # the journal, the cluster's course, and in the root where they end
    told = {CHANGES, cluster_history.PARTITION, documents.STATE}
    assert {partition for partition, _ in changed} - told == {documents.RUNS}


def test_a_request_about_an_open_run_that_is_refused_leaves_its_record_as_it_is() -> None:
    """A reason would halt it."""
    store = MemoryStore()
    asked(store, submitted().request)
    engine = engine_on(store)
    engine.tick()
    request = CancelRequest(RUN_ID, NOW, "enough")
    asked(store, request)
    engine.excluded.requests.update(store.read_partition(inbox.INBOX))
    engine.tick()
    assert (record_of(store, RUN_ID).status, record_of(store, RUN_ID).status_reason) == (RunStatus.SUBMITTED, "")
    assert len(store.read_partition(REFUSED)) == 1


def test_a_retry_of_a_run_whose_record_cannot_be_read_is_set_aside() -> None:
    store = MemoryStore()
    ended(store)
    (key,) = [key for key in store.items if key[0] == documents.RUNS]
    store.items[key] = b"x"
    asked(store, RetryRequest(RUN_ID, NOW))
    engine_on(store).tick()
    assert store.items[key] == b"x"
    assert len(store.read_partition(REFUSED)) == 1


def test_of_more_requests_than_a_tick_takes_the_oldest_come_first() -> None:
    store = MemoryStore()
    numbers = range(2 * MAX_REQUESTS_PER_TICK)
    asked(store, *(submitted(f"run{number:02d}-261121-062733-k3f9").request for number in numbers))
    engine_on(store).tick()
    left = [inbox.from_bytes(body).run_id for body in store.read_partition(inbox.INBOX).values()]
    assert sorted(left) == [f"run{number:02d}-261121-062733-k3f9" for number in numbers[MAX_REQUESTS_PER_TICK:]]


class Sweeping(IdleExecutor):
    """Each sweep shows the same instance."""

    def observe(self, now: float, state: State) -> Event:
        return Observed(now, hosts=(host(1),))


def test_a_stream_of_requests_keeps_no_sighting_waiting() -> None:
    store, full = MemoryStore(), replace(POLICY, max_dirty_documents=4, eager_sweep_s=0.0, sweep_s=0.0)
    asked(store, *(submitted(f"run{number}-261121-062733-aaaa").request for number in range(40)))
    engine = Engine(store, EmptyQueue(), Sweeping(), {}, full, lambda: NOW)
    for _ in range(2):
        engine.tick()
    assert store.read_partition(inbox.INBOX), "requests still wait"
    assert engine.state is not None
    assert instance_id(1) in engine.state.instances
