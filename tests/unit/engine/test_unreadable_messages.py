"""Unreadable messages stay in the queue, which sets them aside; their neighbours are applied and deleted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from argosy.engine.tick import Engine
from argosy.model import inbox
from argosy.model.stored import documents
from argosy.ports import StaleState
from tests.builders import NOW, POLICY, MemoryStore, instance_id, spec, state_with_instance, submit_request
from tests.fakes.engine import IdleExecutor, Queue


def test_a_poison_message_is_counted_and_left_to_the_dead_letter_queue() -> None:
    kind = {"source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning"}
    good = {**kind, "detail": {"instance-id": "i-0123456789abcdef0"}}
    broken = {**kind, "detail": {"instance-id": {}}}
    foreign = {"source": "aws.s3", "detail-type": "Object Created", "detail": {}}
    queue = Queue(None, good, broken, foreign)
    report = Engine(MemoryStore(), queue, IdleExecutor(), {}, POLICY, lambda: NOW).tick()
    assert (report.events, report.poison) == (2, 2)
    assert queue.deleted == ["1", "3"]


def test_no_message_is_deleted_before_the_commit_that_holds_it() -> None:
    """The commit is refused, or its answer is lost: the messages come again."""
    kind = {"source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning"}
    queue, store = Queue({**kind, "detail": {"instance-id": instance_id(1)}}), MemoryStore()
    engine = Engine(store, queue, IdleExecutor(), {}, POLICY, lambda: NOW)
    state = state_with_instance()
    store.commit(0, documents.changed(state), ())
    engine.tick()
    assert queue.deleted == ["0"]
    queue.bodies, queue.deleted = {"1": {**kind, "detail": {"instance-id": instance_id(2)}}}, []
    store.stored_version += 1  # another controller has committed
    with pytest.raises(StaleState):
        engine.tick()
    assert queue.deleted == []


def test_large_requests_are_folded_in_over_several_ticks() -> None:
    store = MemoryStore()
    for number in range(4):
        run_id = f"large{number}-261121-062733-aaaa"
        container = {"image": "argosy/digits", "command": ["x" * 8_000] * 31}
        request = submit_request(run_id, NOW, spec(container=container), 1, "argosy/digits", "s3://r/", False)
        store.create({(inbox.INBOX, inbox.inbox_key(NOW + number, run_id)): inbox.to_bytes(request)})
    engine = Engine(store, Queue(), IdleExecutor(), {}, POLICY, lambda: NOW)
    left = []
    for _ in range(3):
        engine.tick()
        left.append(len(store.read_partition(inbox.INBOX)))
    assert left == [1, 0, 0]


def test_what_does_not_fit_into_a_commit_is_decided_again_in_the_next_tick() -> None:
    store = MemoryStore()
    for number in range(5):
        run_id = f"small{number}-261121-062733-aaaa"
        request = submit_request(run_id, NOW, spec(), 1, "argosy/digits", "s3://r/", False)
        store.create({(inbox.INBOX, inbox.inbox_key(NOW + number, run_id)): inbox.to_bytes(request)})
    few = replace(POLICY, max_promised_documents=2)
    engine = Engine(store, Queue(), IdleExecutor(), {}, few, lambda: NOW)
    assert engine.tick().actions == 2  # PrepareRun of two; the others wait
