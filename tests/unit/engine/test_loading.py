"""The whole state is read in few calls, however many runs are open."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from argosy.engine.loading import load
from argosy.model.damage import Damage
from argosy.model.events import RunSubmitted
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.tasks import TaskStatus
from tests.builders import NOW, MemoryStore, prepared, spec, state_with, submit_request, told


class Counting(MemoryStore):
    """Counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()

    def __getattribute__(self, name: str) -> Any:
        if name in ("read", "read_partition", "page", "version"):
            self.asked[name] += 1
        return super().__getattribute__(name)

    def read_many(self, keys: Any) -> Any:
        wanted = list(keys)
        self.asked["items of a batch"] += len(wanted)
        self.asked["batches"] += -(-len(wanted) // 100)
        return {key: self.items[key] for key in wanted if key in self.items}


def with_runs(count: int, tasks: int = 3) -> tuple[State, Counting]:
    state, store = state_with(), Counting()
    for number in range(count):
        run_id = f"small-261121-{number:06d}-k3f9"
        form = spec(array={"size": tasks})
        told(state, RunSubmitted(submit_request(run_id, NOW, form, tasks, "i", f"s3://r/{run_id}/", False)))
        told(state, prepared(run_id=run_id))
        if tasks > 100:
            state.runs[run_id].tasks.set(tasks - 1, status=TaskStatus.CANCELLED)
    store.items.update(documents.changed(state))
    documents.committed(state)
    return state, store


@pytest.mark.slow
def test_a_thousand_open_runs_take_some_forty_calls_and_not_two_thousand() -> None:
    state, store = with_runs(1_000)
    loaded = load(store)
    assert {run.id: run.task_count for run in loaded.runs.values()} == dict.fromkeys(state.runs, 3)
    assert loaded.runs.keys() == state.runs.keys()
    assert not loaded.losses.found
    assert store.asked.total() - store.asked["items of a batch"] <= 45
    assert store.asked["read"] == 0


def test_chunks_that_were_never_touched_are_not_missed() -> None:
    _, store = with_runs(1, tasks=100_000)
    (run,) = load(store).runs.values()
    assert int(run.tasks.statuses()[-1]) == TaskStatus.CANCELLED
    assert int(run.tasks.counts()[TaskStatus.PENDING]) == 99_999


def test_a_record_that_cannot_be_read_is_named_and_hides_no_other_run() -> None:
    state, store = with_runs(3)
    first, *rest = state.runs
    store.items[documents.RUNS, next(sk for pk, sk in store.items if sk.endswith(first))] = b"?"
    loaded = load(store)
    assert list(loaded.runs) == rest
    (damage,) = loaded.losses.runs
    assert isinstance(damage, Damage)
    assert damage.run_id == first
