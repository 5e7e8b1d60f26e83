"""A controller of the version before: what it stores, what it refuses, and that the new one goes on from it."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.emulator.dynamodb.service import DynamoModel
from argosy.engine.loading import load
from argosy.model import documents
from argosy.model.columns import CorruptChunk
from argosy.model.tasks import TaskStatus
from argosy.simulation.former_version import FORMER, FormerStore, archive, former
from tests.builders import RUN_ID, launched, state_with_instance


def stored(store: FormerStore, state: Any) -> None:
    store.commit(state.version, documents.changed(state), [])
    documents.committed(state)


def table() -> tuple[DynamoModel, FormerStore, list[str]]:
    model, noticed = DynamoModel(), list[str]()
    return model, FormerStore(model, "t", lambda: noticed.append("!")), noticed


def test_what_it_stores_is_of_its_own_format_and_the_new_version_goes_on_from_it() -> None:
    _, old, noticed = table()
    state = state_with_instance(tasks=5)
    launched(state)
    stored(old, state)
    root = documents.decode(old.read_partition(documents.STATE)[documents.ROOT])
    assert (root["format"], noticed) == (FORMER, ["!"])
    read = load(old)
    assert read.runs[RUN_ID].tasks.counts().tolist() == state.runs[RUN_ID].tasks.counts().tolist()
    assert read.instances.keys() == state.instances.keys()
    assert len(read.attempts.live()) == 1
    assert read.runs[RUN_ID].tasks["status"][0] == TaskStatus.STARTING


def test_what_the_new_version_stored_it_refuses_and_says_so() -> None:
    from argosy.aws.dynamodb import DynamoStore

    model, old, noticed = table()
    new = DynamoStore(model, "t")
    state = state_with_instance()
    new.commit(0, documents.changed(state), [])
    with pytest.raises(documents.NewerFormat, match=f"format {documents.FORMAT} is newer than {FORMER}"):
        load(old)
    assert noticed == ["!"]


def test_documents_that_it_does_not_know_are_not_written_by_it() -> None:
    assert former((documents.STATE, "SOMETHING#1"), b"new") is None
    assert former(("INBOX-REFUSED", "x"), b"as it is") == b"as it is"
    record = documents.encode({"id": "r", "status": "RUNNING", "not_known_then": 1})
    assert documents.decode(former((documents.RUNS, "x"), record) or b"") == {"id": "r", "status": "RUNNING"}


def test_its_chunks_are_archives_of_full_length() -> None:
    state = state_with_instance(tasks=5)
    launched(state)
    run = state.runs[RUN_ID]
    body = archive(run.tasks.pack(0))
    assert body[4:6] == b"PK"
    run.tasks.set(1, exit_code=3)  # only the first rows are stored: what follows must not turn into exit code 0
    body = archive(run.tasks.pack(0))
    before = {name: run.tasks[name].tolist() for name in run.tasks.columns}
    run.tasks.unpack(0, body)
    assert {name: run.tasks[name].tolist() for name in run.tasks.columns} == before
    with pytest.raises(CorruptChunk):
        run.tasks.unpack(0, body[:-1])
