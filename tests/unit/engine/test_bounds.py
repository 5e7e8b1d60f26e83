"""However many runs one tick or one fact concerns, its commit stays within the limits of a DynamoDB transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from argosy.engine.bounds import CommitTooLarge, begin_all, check_size
from argosy.engine.loading import load
from argosy.engine.tick import Engine
from argosy.lifecycle.apply import pass_time
from argosy.lifecycle.charges import close_run
from argosy.model.actions import Action, CloseRun, Launch, ResolveLaunches, VerifyResult
from argosy.model.attempts import AttemptKey, AttemptStatus
from argosy.model.costs import Costs
from argosy.model.events import Event, HostStateChanged, InterruptionWarned, LaunchAccepted, LaunchInDoubt, Observed
from argosy.model.instances import Instance
from argosy.model.journal.commit import documents_of_commit
from argosy.model.resources import Resources
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.tasks import TaskStatus
from argosy.ports import Key
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    RUN_ID,
    MemoryStore,
    begun,
    container_instance,
    fleet,
    host,
    instance_id,
    joined,
    moment_of,
    prepared,
    state_with,
    state_with_instance,
    submitted,
    task,
    task_arn,
    told,
)
from tests.fakes.engine import EmptyQueue, IdleExecutor

END = NOW + 600


def many_runs(count: int, **overrides: Any) -> State:
    names = [f"run{number:03d}-261121-062733-aaaa" for number in range(count)]
    small = {"resources": {"vcpus": 0.03, "memory": 16, "gpus": 0}, **overrides}
    state = state_with(fleet(spot_target=1), host(1), container_instance(1))
    for name in names:
        told(state, submitted(name, tasks=1, **small), prepared(name, **small))
    return state


def launched_each(state: State, accepted: bool = True) -> Instance:
    """Every run has one task on the one instance."""
    for number, run in enumerate(list(state.runs.values())):
        key = AttemptKey(run.id, 0, 1, 0)
        begun(state, [Launch(key, 1, state.started_by(1), instance_id(1), CELL)])
        if accepted:
            told(state, LaunchAccepted(key, task_arn(number)), task(number, "RUNNING"))
    documents.committed(state)
    instance = state.instances[instance_id(1)]
    instance.price_usd_per_hour = 1.0
    return instance


def settled(state: State) -> list[int]:
    """How many documents each commit has until the lost instance is done with."""
    sizes = [len(documents.changed(state))]
    while any(each.losing for each in state.instances.values()):
        documents.committed(state)
        pass_time(state, END, POLICY)
        sizes.append(len(documents.changed(state)))
        assert len(sizes) < 50
    return sizes


class CountingStore(MemoryStore):
    """A store that remembers how many documents each commit wrote, and takes no launches."""

    def __init__(self) -> None:
        super().__init__()
        self.killed = "no launches in these tests"
        self.sizes: list[int] = []

    def commit(
        self,
        version: int,
        puts: Mapping[Key, bytes],
        deletes: Iterable[Key],
        expires_at: Mapping[Key, float] | None = None,
    ) -> None:
        super().commit(version, puts, deletes, expires_at)
        self.sizes.append(len(puts))


class AcceptingExecutor(IdleExecutor):
    """Every launch in doubt turns out to have happened."""

    def __init__(self) -> None:
        self.resolved: list[int] = []  # launches of each tick

    def carry_out(self, actions: Sequence[Action], state: State, deadline: float) -> list[Event]:
        launches = [launch for each in actions if isinstance(each, ResolveLaunches) for launch in each.launches]
        first = sum(self.resolved)
        self.resolved.append(len(launches))
        return [LaunchAccepted(launch.key, task_arn(first + n)) for n, launch in enumerate(launches)]


def engine(state: State, executor: IdleExecutor | None = None) -> tuple[Engine, CountingStore]:
    """An engine that goes on from `state`, which it has committed."""
    store = CountingStore()
    store.stored_version = state.version
    made = Engine(store, EmptyQueue(), executor or IdleExecutor(), {}, POLICY, lambda: END)
    made.state = state
    return made, store


def test_runs_whose_budgets_end_together_are_stopped_over_several_ticks() -> None:
    state = many_runs(120, capacity={"budgetUsd": 0.01})
    for run in state.runs.values():
        run.cost_usd, run.costs = 1.0, {"us-east-1/c5.xlarge/us-east-1a|spot": Costs(useful=1.0)}
    documents.committed(state)
    controller, store = engine(state)
    while not all(run.capped_at for run in state.runs.values()):
        controller.tick()
        assert len(store.sizes) < 20
    assert len(store.sizes) > 1
    assert max(store.sizes) < 99


@pytest.mark.parametrize("count", [60, 120])
def test_an_instance_that_worked_for_many_runs_is_lost_over_several_commits(count: int) -> None:
    state = many_runs(count)
    instance = launched_each(state)
    told(state, HostStateChanged(instance.id, "terminated", END), now=END)
    assert instance.losing
    assert not instance.alive
    sizes = settled(state)
    assert max(sizes) < 99
    assert len(sizes) > 1
    assert not state.attempts.live().size
    assert {int(run.tasks["status"][0]) for run in state.runs.values()} == {TaskStatus.PENDING}
    total = sum(run.cost_usd for run in state.runs.values()) + state.unattributed.total
    assert total == pytest.approx(600 / 3600)
    costs = [run.cost_usd for run in state.runs.values()]
    assert max(costs) == pytest.approx(min(costs))  # the run that is charged first pays no other part
    assert instance.is_settled
    assert not instance.work


def test_losing_continues_where_it_stopped_after_a_reload() -> None:
    state, store = many_runs(60), MemoryStore()
    instance = launched_each(state)
    told(state, HostStateChanged(instance.id, "terminated", END), now=END)
    left = len(state.attempts.live())
    assert 0 < left < 60
    state.new_runs |= {*state.runs}
    whole = documents.changed(state)
    for chunk in state.attempts.dirty | {0}:
        whole[documents.STATE, f"ATTEMPTS#{chunk:04d}"] = state.attempts.pack(chunk)
    for run in state.runs.values():
        whole[documents.run_partition(run.id), "TASKS#00000"] = run.tasks.pack(0)
    store.items, store.stored_version = whole, state.version
    loaded = load(store)
    assert loaded.instances[instance.id].losing
    assert len(loaded.attempts.live()) == left
    settled(loaded)
    assert not loaded.attempts.live().size
    assert sum(run.cost_usd for run in loaded.runs.values()) == pytest.approx(600 / 3600)


def test_a_run_that_closes_before_it_was_charged_still_pays_its_part() -> None:
    state = many_runs(3)
    instance = launched_each(state)
    instance.total = Resources(4096, 7000, 0)
    told(
        state,
        HostStateChanged(instance.id, "terminated", END),
        now=END,
        policy=replace(POLICY, max_settling_documents=8),
    )
    for row in state.attempts.live().tolist():
        told(state, task(int(state.attempts["run"][row]) - 1, "STOPPED", 9, exit_code=0, stopped_at=END), now=END)
    assert instance.losing
    assert len(instance.work) > 1
    last = state.run_by_number(max(instance.work))
    assert last is not None
    assert not last.cost_usd
    close_run(state, last, END)
    assert last.cost_usd == pytest.approx(200 / 3600)
    documents.committed(state)
    settled(state)
    total = sum(run.cost_usd for run in state.runs.values()) + state.unattributed.total
    assert total == pytest.approx(600 / 3600)


def test_a_warning_takes_back_as_many_unsent_launches_as_a_commit_holds() -> None:
    state = many_runs(60)
    launched_each(state, accepted=False)
    told(state, InterruptionWarned(instance_id(1)))
    assert 0 < state.attempts.with_status(AttemptStatus.INTENT).size < 60
    assert len(documents.changed(state)) < 99


def test_attempts_that_ecs_has_forgotten_all_at_once_are_given_up_over_several_sweeps() -> None:
    state = many_runs(60)
    launched_each(state)
    at, sizes = NOW + POLICY.absence_s, []
    while state.attempts.live().size:
        told(state, Observed(at, tasks_complete=True), now=at)
        sizes.append(len(documents.changed(state)))
        documents.committed(state)
        at += POLICY.absence_s
        assert len(sizes) < 20
    assert max(sizes) < 99
    assert len(sizes) > 2


def test_launches_in_doubt_of_many_runs_are_resolved_over_several_ticks() -> None:
    state = many_runs(60)
    launched_each(state, accepted=False)
    told(state, *(LaunchInDoubt(launch, "no reply") for launch in map(state.key_of, range(60)) if launch))
    documents.committed(state)
    state.setbacks.clear()
    executor = AcceptingExecutor()
    controller, store = engine(state, executor)
    for _ in range(5):
        controller.tick()
    assert executor.resolved == [10, 10, 10, 10, 10]  # 10 runs each: a record, a chunk and an item of history of 30
    assert max(store.sizes) < 99


def test_a_tick_that_would_commit_too_much_says_so() -> None:
    check_size(89, 10)
    with pytest.raises(CommitTooLarge, match="write 90 documents and remove 10; a commit holds 99"):
        check_size(90, 10)
    state = many_runs(120)
    for run_id in state.runs:
        state.changed_runs.add(run_id)
    controller, store = engine(state)
    with pytest.raises(CommitTooLarge):
        controller.tick()
    assert not store.commits


def test_what_a_tick_is_thought_to_write_is_never_less_than_what_it_writes() -> None:
    """Thousands of attempts end at once, each with its own code, for one of two hundred long reasons."""
    state = state_with_instance(tasks=1000, retryStrategy={"attempts": 1})
    run, words = state.runs[RUN_ID], np.random.default_rng(0)
    told(state, *joined(range(2, 60)))
    for index in range(1000):
        key = AttemptKey(RUN_ID, index, 1, 0)
        begun(state, [Launch(key, 1, state.started_by(1), instance_id(1 + index % 59), CELL)])
        told(state, LaunchAccepted(key, task_arn(index)))
    run.tasks.set(0, status=TaskStatus.SUCCEEDED)  # or the first failures, all alike, would stop the run
    documents_of_commit(state, NOW)
    documents.committed(state)
    reasons = [words.bytes(150).hex() for _ in range(200)]
    for index in range(1000):
        told(state, task(index, "STOPPED", 3, exit_code=1 + index % 200, reason=reasons[index % 199]))
    thought, documents_thought = state.dirty_bytes, state.dirty_documents
    puts, expires_at = documents_of_commit(state, NOW)
    assert sum(map(len, puts.values())) < thought
    assert len(puts) <= documents_thought
    assert len(expires_at) >= 1
    assert all(len(body) < 400_000 for body in puts.values())


def with_launches_before_ends(results: int, closings: int) -> tuple[State, list[Action]]:
    """Forty runs have a task to launch. Others have a result to look up, and others are complete."""
    state = many_runs(40)
    documents.committed(state)
    runs = list(state.runs.values())
    launches = [
        Launch(AttemptKey(run.id, 0, 1, 0), state.next_wave, state.started_by(state.next_wave), instance_id(1), CELL)
        for run in runs[:20]
    ]
    ends = [VerifyResult(run.id, 0, 1) for run in runs[20 : 20 + results]]
    return state, [*launches, *ends, *(CloseRun(run.id) for run in runs[30 : 30 + closings])]


def begun_of(state: State, actions: Sequence[Action]) -> Counter[str]:
    return Counter(type(each).__name__ for each in begin_all(moment_of(state), actions, 0))


def test_while_many_runs_launch_tasks_results_are_still_looked_up_and_runs_closed() -> None:
    assert begun_of(*with_launches_before_ends(10, 10)) == {"Launch": 7, "VerifyResult": 3, "CloseRun": 7}
    assert begun_of(*with_launches_before_ends(0, 3)) == {"Launch": 13, "CloseRun": 3}
    assert begun_of(*with_launches_before_ends(1, 0)) == {"Launch": 13, "VerifyResult": 1}


def test_what_results_and_closings_do_not_need_is_for_launches() -> None:
    assert begun_of(*with_launches_before_ends(0, 0)) == {"Launch": 15}
