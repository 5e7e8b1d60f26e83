"""An invented next version continues from the state of this one, and this one refuses the state of the next one."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.aws.dynamodb import DynamoStore
from argosy.emulator.dynamodb import DynamoModel
from argosy.engine.loading import load
from argosy.model.damage import NewerFormat, OlderFormat
from argosy.model.stored import documents
from tests.builders import RUN_ID, launched, state_with_instance
from tests.harness.simulation.controllers.next_version import NEXT, ROOT, NextVersionStore


def commit(store: DynamoStore, state: Any) -> None:
    store.commit(state.version, documents.changed(state), [])
    documents.committed(state)


def stores() -> tuple[DynamoStore, NextVersionStore, list[str]]:
    model, noticed = DynamoModel(), list[str]()
    return DynamoStore(model, "t"), NextVersionStore(model, "t", lambda: noticed.append("!")), noticed


def test_the_next_version_continues_from_this_one() -> None:
    now, after, noticed = stores()
    state = state_with_instance(tasks=5)
    launched(state)
    commit(now, state)
    read = load(after)
    assert noticed
    assert read.runs[RUN_ID].tasks.counts().tolist() == state.runs[RUN_ID].tasks.counts().tolist()
    commit(after, read)
    noticed.clear()
    assert load(after).runs.keys() == state.runs.keys()
    assert not noticed
    assert documents.active_runs({documents.ROOT: after.read(ROOT) or b""}) == [RUN_ID]


def test_this_version_refuses_what_the_next_one_stored_and_says_so() -> None:
    now, after, _ = stores()
    commit(after, state_with_instance())
    with pytest.raises(NewerFormat, match=f"format {NEXT} is newer than {documents.FORMAT}"):
        load(now)
    with pytest.raises(NewerFormat):
        documents.active_runs({documents.ROOT: now.read(ROOT) or b""})


def test_the_next_version_refuses_what_is_older_than_this_one() -> None:
    now, after, _ = stores()
    root = documents.encode({"format": documents.FORMAT - 1, "runs": []})
    now.commit(0, {ROOT: root}, [])
    with pytest.raises(OlderFormat):
        load(after)


def test_what_is_not_there_is_not_there_for_the_next_version_either() -> None:
    _, after, _ = stores()
    assert after.read(ROOT) is None
    assert after.read_partition(documents.STATE) == {}
