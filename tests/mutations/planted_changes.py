"""Planted bugs: changes to open runs, and retries of chosen tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from argosy.aws import manifest
from argosy.lifecycle import revival, user_requests
from argosy.model.inbox import RetryRequest
from argosy.model.run_record import RunRecord
from argosy.model.run_terms import RunTerms
from argosy.model.runs import Run
from argosy.model.tasks import TaskTable
from tests.harness.simulation.plan import TrialPlan
from tests.mutations.catalogue import RETRY, Patch, planned, planted, scenario

TRIALS = scenario("tests.simulation.test_updates", "trials_find_nothing", range(3))
UPDATES, REOPENED = "tests.scenarios.test_updates", "tests.unit.lifecycle.test_reopened_runs"


@planted("what was changed counts once the run is loaded again", check=TRIALS)
def changes_wait_for_the_next_controller(patch: Patch) -> None:
    def change(self: Run, changes: Mapping[str, Any], reason: str = "") -> None:
        self.changes |= changes

    patch.setattr(Run, "change", change)


@planted("what was changed ends with the controller that took it in", check=scenario(
    UPDATES, "test_a_change_outlives_the_controller_that_took_it_in"
))  # fmt: skip
def changes_end_with_the_controller(patch: Patch) -> None:
    real = RunRecord.to_run

    def to_run(self: RunRecord, spec: Mapping[str, Any], terms: RunTerms, tasks: Any) -> Run:
        run = real(self, spec, terms, tasks)
        run.changes = {}
        run.terms = terms
        return run

    patch.setattr(RunRecord, "to_run", to_run)


@planted("a later change takes the earlier ones back", check=TRIALS)
def later_changes_replace_earlier_ones(patch: Patch) -> None:
    real = Run.change

    def change(self: Run, changes: Mapping[str, Any], reason: str = "") -> None:
        self.changes = {}
        real(self, changes, reason)

    patch.setattr(Run, "change", change)


@planted("a run that was cancelled is changed as though it went on", check=scenario(
    UPDATES, "test_a_run_that_is_to_start_nothing_more_stays_as_it_is", False
))  # fmt: skip
def cancelled_runs_change(patch: Patch) -> None:
    patch.setattr(user_requests, "is_given_up", lambda run: False)


@planted("a retry of chosen tasks retries all the others too", check=scenario(
    REOPENED, "test_of_chosen_tasks_no_others_run_again_whatever_they_ended_as"
))  # fmt: skip
def choice_is_ignored(patch: Patch) -> None:
    patch.setattr(revival, "_chosen", lambda run, rows: np.ones(len(rows), dtype=np.bool_))


@planted("a retry with more memory registers the definition of the old size", check=scenario(
    RETRY, "test_chosen_tasks_run_again_with_more_memory_and_the_others_stay"
))  # fmt: skip
def size_is_not_prepared(patch: Patch) -> None:
    def change(run: Run, request: RetryRequest) -> None:
        run.change(request.changes)

    patch.setattr(revival, "_change", change)


FIXED = frozenset({"retry", "bad-program", "own-program"})


@planted("what a retry has fixed is said to be made by the first version of the program", check=planned(
    TrialPlan(196, FIXED, limit_s=7200.0)
))  # fmt: skip
def versions_are_not_said(patch: Patch) -> None:
    real = manifest._entry

    def entry(run: Run, *facts: Any) -> dict[str, Any]:
        return {name: value for name, value in real(run, *facts).items() if name != "program"}

    patch.setattr(manifest, "_entry", entry)


@planted("a part that an earlier version of the program left counts as the fixed one's", check=scenario(
    REOPENED, "test_only_retried_tasks_run_another_version_and_what_the_earlier_one_left_of_them_does_not_count"
))  # fmt: skip
def old_parts_count(patch: Patch) -> None:
    real = TaskTable.set_many

    def set_many(self: TaskTable, rows: Any, **values: Any) -> None:
        real(self, rows, **{name: value for name, value in values.items() if name != "first"})

    patch.setattr(TaskTable, "set_many", set_many)
