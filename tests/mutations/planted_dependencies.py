"""Planted bugs: runs that wait for each other, or for a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from argosy.engine import tick
from argosy.lifecycle import apply as applied
from argosy.lifecycle import dependencies
from argosy.model.attempts import StopCause
from argosy.model.runs import Run
from argosy.model.tasks import TaskStatus
from tests.fakes.trials import SMALL, SMALL_JOB
from tests.mutations.catalogue import Patch, planned, planted, scenario
from tests.mutations.planted_once_missed import reworded

WAITING, SCENARIOS = "dependency", "tests.scenarios.test_dependencies"
FIRST = replace(
    SMALL_JOB, run_id="first-270115-080000-aaaa", spec={**SMALL_JOB.spec, "array": {"size": 16}}, tasks=16, faulty=0.3
)
SECOND = replace(
    FIRST,
    run_id="second-270115-080000-bbbb",
    spec={**FIRST.spec, "dependsOn": [{"run": FIRST.run_id, "type": "N_TO_N", "on": "success"}]},
    faulty=0.0,
)
PAIR = replace(SMALL, jobs=(FIRST, SECOND))
"""Task by task, and in some ticks one task of the first run fails and another one succeeds."""


@planted("nothing waits for the end of a whole run", WAITING)
def whole_runs_are_not_waited_for(patch: Patch) -> None:
    patch.setattr(Run, "held", property(lambda run: bool(run.not_before)))


@planted(
    "a run starts although what it depends on has failed",
    check=scenario(SCENARIOS, "test_a_run_fails_without_a_task_when_what_it_depends_on_does_not_succeed"),
)
def failed_dependencies_are_met(patch: Patch) -> None:
    patch.setattr(
        dependencies, "_take_end", lambda state, run, dependency, *rest: dependencies._meet(state, run, dependency)
    )


@planted("a task that waits starts although a user has cancelled it", "cancel-tasks")
def cancelled_tasks_still_start(patch: Patch) -> None:
    def cancel(state: Any, request: Any, now: float) -> None:
        run = state.runs.get(request.run_id)
        for first, _ in request.tasks if run is not None else ():
            row = state.attempts.row_of_task.get((run.number, first))
            if row is not None:
                state.attempts.set(row, stop_cause=StopCause.CANCELLED, stop_at=0.0)

    patch.setattr(applied, "cancel_tasks", cancel)


@planted("a task starts while the result of the task that it depends on is still being looked up", WAITING)
def unverified_tasks_count_as_over(patch: Patch) -> None:
    _take_for_success(patch, TaskStatus.VERIFYING)


@planted(
    "a task starts although its own one has failed",
    check=scenario(
        SCENARIOS,
        "test_with_n_to_n_the_tasks_whose_dependency_fails_are_cancelled_and_the_others_run",
        False,
    ),
)
def failed_tasks_count_as_any_end(patch: Patch) -> None:
    _take_for_success(patch, TaskStatus.FAILED)


@planted(
    "what is to start later starts at once",
    check=scenario(SCENARIOS, "test_nothing_starts_before_its_time_and_a_time_limit_counts_from_then"),
)
def times_to_wait_for_are_ignored(patch: Patch) -> None:
    real = Run.begin_waiting

    def begin(run: Run, asked_at: float) -> None:
        real(run, asked_at)
        run.not_before = 0.0

    patch.setattr(Run, "begin_waiting", begin)


@planted(
    "a run submitted after its dependency was closed waits forever",
    check=scenario(SCENARIOS, "test_what_has_ended_before_the_run_was_submitted_is_known"),
)
def closed_dependencies_are_not_looked_up(patch: Patch) -> None:
    patch.setattr(tick, "ended_dependencies", lambda store, state: ())


@planted(
    "what one commit has no room for is never marked",
    check=scenario(SCENARIOS, "test_more_tasks_than_one_commit_can_mark_follow_in_later_ones"),
)
def dependencies_are_dropped_half_way(patch: Patch) -> None:
    real = dependencies._follow

    def follow(state: Any, run: Any, dependency: Any, statuses: Any, policy: Any) -> bool:
        real(state, run, dependency, statuses, replace(policy, max_dirty_documents=0))
        return True

    patch.setattr(dependencies, "_follow", follow)


@planted("a task is cancelled because the counterpart of another one failed", check=planned(PAIR))
def one_failure_cancels_its_neighbours(patch: Patch) -> None:
    each = "statuses[rows] != TaskStatus.SUCCEEDED.value"
    reworded(patch, dependencies._follow, f"fails = ({each})", f"fails = np.full(len(rows), ({each}).any())")


assert applied.dependencies is dependencies


def _take_for_success(patch: Patch, wrong: TaskStatus) -> None:
    real = dependencies._follow

    def follow(state: Any, run: Any, dependency: Any, statuses: Any, policy: Any) -> Any:
        seen = statuses.copy()
        seen[statuses == wrong] = TaskStatus.SUCCEEDED
        return real(state, run, dependency, seen, policy)

    patch.setattr(dependencies, "_follow", follow)
