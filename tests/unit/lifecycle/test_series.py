"""A run's course is noted in commits that change it anyway, as far as they have room."""

from __future__ import annotations

from dataclasses import replace

from argosy.lifecycle import series
from argosy.model.events import RunClosed
from argosy.model.runs import RunStatus
from argosy.model.state import State
from argosy.model.stored import documents
from tests.builders import (
    NOW,
    POLICY,
    RUN_ID,
    launched,
    prepared,
    state_with_instance,
    stored,
    submitted,
    task,
    the_run,
    told,
)


def courses(state: State) -> list[int]:
    return [len(run.series.samples) for run in state.runs.values()]


def test_what_changes_nothing_is_no_sample_and_writes_nothing() -> None:
    state, items = state_with_instance(), {}
    series.sample(state, NOW, POLICY)
    state = stored(state, items)
    series.sample(state, NOW + 1000, POLICY)
    assert courses(state) == [1]
    assert len(documents.changed(state)) == 1  # the root, which is always among them


def test_samples_keep_their_distance_but_for_the_one_at_the_end() -> None:
    state = state_with_instance(tasks=1)
    launched(state)
    series.sample(state, NOW, POLICY)
    told(state, task(1, "STOPPED", 3, exit_code=0, started_at=NOW, stopped_at=NOW + 1))
    series.sample(state, NOW + 1, POLICY)
    assert courses(state) == [1]
    told(state, RunClosed(RUN_ID), now=NOW + 1)
    series.sample(state, NOW + 1, POLICY)
    (first, last) = the_run(state).series.samples
    assert (first.starting, first.instances, first.usd_per_hour > 0) == (1, 1, True)
    assert (last.succeeded, last.instances, the_run(state).status) == (1, 0, RunStatus.SUCCEEDED)
    assert last.useful + last.boot + last.idle + last.redone + last.failed_usd > 0


def test_a_commit_that_is_full_takes_no_sample() -> None:
    state = state_with_instance()
    full = replace(POLICY, full_commit_documents=state.dirty_documents)
    series.sample(state, NOW, full)
    assert courses(state) == [0]
    series.sample(state, NOW, replace(POLICY, full_commit_documents=state.dirty_documents + 3), deletions=3)
    assert courses(state) == [0]
    series.sample(state, NOW, POLICY)
    assert courses(state) == [1]


def test_a_series_is_stored_and_one_that_cannot_be_read_stops_no_run() -> None:
    state, items = state_with_instance(), {}
    series.sample(state, NOW, POLICY)
    state = stored(state, items)
    assert courses(state) == [1]
    items[documents.run_partition(RUN_ID), documents.SERIES] = b"damaged"
    told(state, task(99, "RUNNING"))
    again = stored(state, items)
    assert courses(again) == [0]
    assert again.losses.found == []


def test_of_two_runs_on_an_instance_only_the_one_that_has_changed_is_sampled() -> None:
    state, items = state_with_instance(), {}
    launched(state)
    stored(state, items)
    told(state, submitted("second-261121-062733-k3f9"), prepared("second-261121-062733-k3f9"))
    series.sample(state, NOW, POLICY)
    assert courses(state) == [0, 1]
    assert state.runs["second-261121-062733-k3f9"].series.samples[0].instances == 0
