"""Planted bugs: how long a task may wait for its image."""

from __future__ import annotations

from dataclasses import replace

from argosy.model.attempts import AttemptTable
from argosy.model.moment import Moment
from argosy.scheduler.upkeep import pending
from tests.mutations.catalogue import Patch, planted, scenario

STORIES = "tests.scenarios.test_image_pulls"


@planted(
    "a task may be PENDING for ten minutes in all, a pull of its image included",
    check=scenario(STORIES, "test_a_pull_that_takes_longer_than_ten_minutes_succeeds_with_the_first_attempt", False),
)
def pulls_have_ten_minutes(patch: Patch) -> None:
    real = pending.overdue

    def overdue(moment: Moment) -> object:
        policy = replace(moment.policy, pull_patience_s=moment.policy.pending_patience_s)
        return real(replace(moment, policy=policy))

    patch.setattr(pending, "overdue", overdue)


@planted(
    "only what ECS tells of a pull before it has ended is waited for",
    check=scenario(STORIES, "test_a_pull_that_takes_longer_than_ten_minutes_succeeds_with_the_first_attempt", False),
)
def silent_pulls_are_stuck(patch: Patch) -> None:
    def has_image(table: AttemptTable, rows: object) -> object:
        return table["launched_at"][rows] > 0

    patch.setattr(pending, "_has_image", has_image)
