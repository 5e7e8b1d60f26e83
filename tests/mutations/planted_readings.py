"""Planted bugs: one reading of a contract of AWS is taken for the only one (`argosy.emulator.readings`)."""

from __future__ import annotations

from collections.abc import Mapping

from argosy.aws import errors
from argosy.aws.errors import FailureKind
from argosy.emulator.readings import TOTAL_ONLY
from argosy.lifecycle import readings, reclaim
from argosy.market import offers
from argosy.model.actions import StopAttempt
from argosy.model.attempts import AttemptTable
from argosy.model.instances import Instance
from argosy.model.moment import Moment
from argosy.model.readings import DOCKER_BLOCKS, OLD_TARGET, ROOM_BACK_EARLY, Readings
from argosy.model.run_terms import RUNNER_ATTRIBUTE
from argosy.model.state import State
from argosy.scheduler.upkeep import pending
from tests.mutations.catalogue import Patch, planted, scenario
from tests.mutations.planted_pulls import STORIES as PULLS

STORIES = "tests.scenarios.test_readings"
SHORT, SERVICE = "two_pools_without_capacity_or_quota", "a_service_with_an_on_demand_base_and_a_rollout"


@planted(
    "a fleet that is being modified counts as one that refuses for good",
    check=scenario(STORIES, "test_an_order_to_a_fleet_that_is_being_modified_is_sent_again_and_nothing_needs_mending"),
)
def modifying_fleets_need_mending(patch: Patch) -> None:
    patch.setitem(errors.KIND_OF_CODE, "FleetNotInModifiableState", FailureKind.INVALID)


@planted(
    "a task that was told to stop takes no room any more",
    check=scenario(STORIES, "test_no_task_waits_on_an_instance_for_one_that_is_stopping_there", ROOM_BACK_EARLY),
)
def stopping_tasks_take_no_room(patch: Patch) -> None:
    real = reclaim.begin_stop

    def begin_stop(state: State, action: StopAttempt, row: int, now: float) -> None:
        real(state, action, row, now)
        state.attempts.leave(row, now)

    patch.setattr(reclaim, "begin_stop", begin_stop)


@planted(
    "a task may wait in its agent's queue for as long as that takes",
    check=scenario(STORIES, "test_a_task_that_an_agents_queue_forgets_is_started_again_and_uses_up_no_attempt"),
)
def queued_tasks_are_waited_for(patch: Patch) -> None:
    def overdue(moment: Moment) -> Mapping[int, tuple[object, str]]:
        return {}

    patch.setattr(pending, "overdue", overdue)


@planted(
    "the pull of a stopped task is taken to continue, so the next attempt has ten minutes",
    check=scenario(PULLS, "test_an_image_that_never_comes_ends_the_run_after_three_tries_of_thirty_minutes", False),
)
def pulls_survive_their_tasks(patch: Patch) -> None:
    def has_image(table: AttemptTable, rows: object) -> object:
        return table["attempt"][rows] > 1

    patch.setattr(pending, "_has_image", has_image)


@planted(
    "new instances are expected to have the runner, although the last ones joined without it",
    check=scenario(STORIES, "test_where_instances_join_without_the_runner_no_more_are_bought_for_a_run_that_needs_it"),
)
def the_runner_is_always_expected(patch: Patch) -> None:
    patch.setattr(offers, "lacking_until", lambda pools, now, policy, since: {})


@planted(
    "all room in use counts as given back before tasks have ended",
    check=scenario(STORIES, "test_every_story_ends_well", OLD_TARGET, SERVICE),
)
def used_room_counts_as_given_back(patch: Patch) -> None:
    def see_room(state: State, instance: Instance, free: int, stopping: int, at: float) -> None:
        readings.note(state, ROOM_BACK_EARLY, free < instance.total.cpu_units, "", at)

    patch.setattr(readings, "_see_room", see_room)


@planted("an instance that joins without the runner counts as one on which a restart of Docker blocked", "no-runner")
def missing_runners_blame_docker(patch: Patch) -> None:
    def note_runner(state: State, instance: Instance) -> None:
        has = RUNNER_ATTRIBUTE in instance.attributes
        readings.note(state, DOCKER_BLOCKS, not has, "", instance.registered_at)

    patch.setattr(readings, "note_runner", note_runner)


@planted(
    "what was seen of AWS's contracts is forgotten by the next controller",
    check=scenario(STORIES, "test_every_story_ends_well", TOTAL_ONLY, SHORT),
)
def sightings_are_forgotten(patch: Patch) -> None:
    patch.setattr(Readings, "from_json", lambda stored: Readings())
