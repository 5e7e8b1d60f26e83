"""Planted bugs: how long a task may wait for its image."""

from __future__ import annotations

from dataclasses import replace

from argosy.client.baking import bake, image_amis
from argosy.lifecycle import start_ups
from argosy.model.attempts import AttemptTable
from argosy.model.events import TaskSeen
from argosy.model.moment import Moment
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.scheduler.placing import places
from argosy.scheduler.upkeep import pending
from tests.mutations.catalogue import Patch, planted, scenario

HELD = "test_a_task_goes_to_the_idle_instance_that_has_its_image_and_pulls_nothing"
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


@planted("placement overlooks which instances hold the image", check=scenario(STORIES, HELD))
def images_are_overlooked(patch: Patch) -> None:
    patch.setattr(places, "EMPTYING", ("least-waste", "busy-first", "best-fit"))


@planted("an instance counts as holding the image of a task that could not pull it", "pull-storm")
def failed_pulls_leave_images(patch: Patch) -> None:
    real = start_ups.note_start

    def note_start(state: State, run: Run, row: int, seen: TaskSeen) -> None:
        real(state, run, row, replace(seen, started_at=seen.started_at or seen.stopped_at))

    patch.setattr(start_ups, "note_start", note_start)


@planted(
    "an instance that bakes an image stays when its command is interrupted",
    check=scenario("tests.unit.cli.deployment.test_image", "test_ctrl_c_terminates_the_instance", 20.0),
)
def bakes_leave_instances(patch: Patch) -> None:
    patch.setattr(bake, "_terminate", lambda ec2, launched, recipe, order: None)


@planted(
    "an AMI from which instances start is deleted",
    check=scenario(
        "tests.unit.cli.deployment.test_image",
        "test_an_ami_is_listed_and_deleted_with_its_snapshot_unless_instances_start_from_it",
    ),
)
def amis_in_use_are_deleted(patch: Patch) -> None:
    patch.setattr(image_amis, "newest_templates", lambda ec2: {})
