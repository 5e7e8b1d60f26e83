"""Planted bugs: room that is taken for a queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from argosy.lifecycle import accounts
from argosy.lifecycle import reclaim as lifecycle_reclaim
from argosy.model.attempts import AttemptKey, StopCause
from argosy.model.instances import Instance
from argosy.model.runs import Run
from argosy.model.shares.sharing import ShareQueue
from argosy.runner.checkpoints import Checkpoints
from argosy.scheduler.services import environments
from argosy.scheduler.supply import kept_instances
from argosy.scheduler.taking_room import reclaim
from argosy.scheduler.taking_room.drain_choice import DrainChoice
from argosy.scheduler.turns import asks, share_levels
from argosy.sharing import victims
from argosy.sharing.victims import Holders, Standings, WaitingTask
from argosy.spec import shards
from tests.mutations.catalogue import Patch, planted, scenario, trials
from tests.mutations.planted_once_missed import reworded

WORLDS, ROOM = "tests.unit.sharing.test_victims", "tests.unit.scheduler.taking_room.test_taking_room"
EMPTIED = "tests.scenarios.test_emptied_instances"
TRIALS = scenario("tests.simulation.test_preemption", "trials_find_nothing", range(6, 7))


@planted("the tasks that may be stopped are determined before the victims are chosen", check=scenario(
    WORLDS, "test_taking_room_always_ends"
))  # fmt: skip
def guard_before_trimming(patch: Patch) -> None:
    def is_just(wish: WaitingTask, holders: Holders, standing: Standings, gone: Sequence[int]) -> bool:
        mine = standing.level(wish.sharer)
        return all(standing.level(int(holders.sharer[row])) > mine for row in gone)

    patch.setattr(victims, "is_just", is_just)


@planted("weights do not count where room is taken", check=scenario(WORLDS, "test_weights_count"))
def guard_without_weights(patch: Patch) -> None:
    real = victims.scaled
    patch.setattr(
        victims, "scaled", lambda amount, capacity, weight, *more: real(amount, capacity, weight * 0 + 1, *more)
    )


@planted("a queue may take room from queues below its own level", check=TRIALS)
def guard_is_off(patch: Patch) -> None:
    patch.setattr(victims, "is_just", lambda *args: True)
    patch.setattr(victims, "_may_go", lambda wish, standing: np.arange(len(standing.used)) != wish.sharer)


@planted("in one tick room is taken for as many tasks as wait", check=scenario(
    "tests.simulation.test_preemption", "trials_find_nothing", range(1, 2)
))  # fmt: skip
def all_room_is_taken_at_once(patch: Patch) -> None:
    reworded(patch, reclaim._TickExchanges.acts, "min(MOST_STOPPED, len(", "max(MOST_STOPPED, len(")


@planted("tasks that need not stop are stopped too", check=scenario(WORLDS, "test_a_task_that_is_not_needed_stays"))
def nobody_is_taken_back(patch: Patch) -> None:
    patch.setattr(victims, "_trimmed", lambda holders, chosen, missing: chosen)


@planted("the most expensive work is stopped first", check=scenario(
    WORLDS, "test_of_tasks_of_one_size_the_least_work_is_lost"
))  # fmt: skip
def dearest_first(patch: Patch) -> None:
    real = victims._price
    patch.setattr(victims, "_price", lambda wish, holders, rows: -np.asarray(real(wish, holders, rows)))


@planted("the choice of victims counts a task's saved work as lost", check=scenario(
    ROOM, "test_a_task_that_has_just_saved_its_work_makes_room"
))  # fmt: skip
def checkpoints_do_not_count(patch: Patch) -> None:
    patch.setattr(reclaim, "since_checkpoint_s", lambda seconds, every_s: np.asarray(seconds))


@planted("what a task has saved is displaced as well", check=scenario(
    ROOM, "test_what_is_saved_was_of_use_and_only_what_is_lost_is_displaced"
))  # fmt: skip
def all_is_displaced(patch: Patch) -> None:
    patch.setattr(lifecycle_reclaim, "since_checkpoint_s", lambda seconds, every_s: np.asarray(seconds))


@planted("an attempt that is believed lost removes its successor's checkpoints", check=scenario(
    "tests.properties.test_checkpoints",
    "test_a_restored_state_is_whole_and_never_older_than_the_newest_of_the_highest_attempt",
))  # fmt: skip
def attempts_remove_what_is_newer(patch: Patch) -> None:
    patch.setattr(Checkpoints, "_may_remove", lambda self, each: True)


@planted("an attempt never sends again what has not changed, and the expiry of checkpoints takes it", check=scenario(
    "tests.properties.test_checkpoints",
    "test_what_never_changes_is_sent_again_once_a_day_because_objects_expire_by_their_age",
))  # fmt: skip
def nothing_is_renewed(patch: Patch) -> None:
    patch.setattr(Checkpoints, "_renew", lambda self, now, cause: None)


SAVING = trials(frozenset({"interruption"}), checkpoints=1.0)


@planted("each attempt has a folder of checkpoints that no other one finds", check=SAVING)
def attempts_keep_their_checkpoints(patch: Patch) -> None:
    real = shards.task_values

    def values(spec: Mapping[str, Any], output: str, key: AttemptKey, item: Any, count: int) -> dict[str, str]:
        found = real(spec, output, key, item, count)
        return found | {"checkpoints": f"{found['checkpoints']}{key.attempt}/"}

    patch.setattr(shards, "task_values", values)


@planted("programs save their work less often than their spec says", check=SAVING)
def saves_are_rare(patch: Patch) -> None:
    real = shards.program_environment

    def environment(spec: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, str]:
        found = real(spec, values)
        rarely = {"ARGOSY_CHECKPOINT_SECONDS": str(60 * int(found.get("ARGOSY_CHECKPOINT_SECONDS", 0)))}
        return found | (rarely if "checkpoint" in spec else {})

    patch.setattr(shards, "program_environment", environment)


@planted("what a lost task had saved counts as redone", check=scenario(
    "tests.unit.lifecycle.test_charges",
    "test_what_a_lost_attempt_had_saved_was_useful_and_only_the_rest_is_redone", 60, 180,
))  # fmt: skip
def losses_take_what_was_saved(patch: Patch) -> None:
    patch.setattr(lifecycle_reclaim, "since_checkpoint_s", lambda seconds, every_s: np.asarray(seconds))


@planted("a service stays on an instance that is emptied for others", check=scenario(
    EMPTIED, "test_a_service_moves_to_other_instances_first_and_never_has_fewer_tasks"
))  # fmt: skip
def services_stay(patch: Patch) -> None:
    patch.setattr(environments, "emptied_for", lambda state, now: {})


@planted("an instance is emptied although its service tasks have no room elsewhere", check=scenario(
    EMPTIED, "test_an_instance_whose_services_find_no_room_elsewhere_is_not_emptied"
))  # fmt: skip
def emptied_without_room(patch: Patch) -> None:
    patch.setattr(DrainChoice, "_has_room_elsewhere", lambda self, where: True)


@planted("an instance is emptied although its release does not help", check=scenario(
    EMPTIED, "test_where_the_going_of_an_instance_does_not_help_none_is_emptied"
))  # fmt: skip
def emptied_for_nothing(patch: Patch) -> None:
    patch.setattr(DrainChoice, "_opens", lambda self, where, batch: True)


@planted("what is stopped for others counts as a loss", check=TRIALS)
def preempted_counts_as_a_loss(patch: Patch) -> None:
    patch.setitem(accounts._OURS, StopCause.PREEMPTED, accounts.Account.LOST)


@planted("the room is open to all", check=scenario(
    "tests.simulation.test_backfill", "trials_find_nothing", range(2, 3)
))  # fmt: skip
def room_is_open_to_all(patch: Patch) -> None:
    def off_limits(run: Run, kept: Mapping[str, int], *more: object) -> tuple[str, ...]:
        return ()

    patch.setattr(asks, "off_limits", off_limits)


@planted("tasks that must not be stopped are stopped", check=scenario(
    ROOM, "test_a_run_may_say_whether_its_tasks_may_be_stopped"
))  # fmt: skip
def others_are_stopped(patch: Patch) -> None:
    patch.setattr(ShareQueue, "gives_up", lambda self, says: True)


@planted("the run that lost its task pays for it", check=scenario(
    ROOM, "test_a_stopped_task_waits_again_with_all_its_attempts_and_the_other_run_pays"
))  # fmt: skip
def the_loser_pays(patch: Patch) -> None:
    from argosy.lifecycle import charges

    real = charges.book_for

    def book_for(state: Any, payer: Run, instance: Any, share_s: float, work: Any) -> None:
        loser = next(run for run in state.runs.values() if run.number != payer.number)
        real(state, loser, instance, share_s, work)

    patch.setattr(charges, "book_for", book_for)


@planted("more is lost in an hour than is allowed", check=scenario(
    ROOM, "test_nothing_is_stopped_where_the_document_does_not_say_so"
))  # fmt: skip
def hours_are_endless(patch: Patch) -> None:
    patch.setattr(reclaim, "_usd_left", lambda moment, terms: 1e9)


@planted("room is taken for the queue that used less lately, whatever its weight", check=scenario(
    "tests.unit.sharing.test_victims", "test_so_it_does_whatever_was_used_lately"
))  # fmt: skip
def history_takes_room(patch: Patch) -> None:
    real = victims._is_just
    patch.setattr(
        victims, "_is_just", lambda wish, holders, standing, rows, by_weight: real(
            wish, holders, standing, rows, False
        )
    )  # fmt: skip


@planted("work of unknown duration starts in room that is kept for others", check=scenario(
    "tests.simulation.test_backfill", "trials_find_nothing", range(4, 7)
))  # fmt: skip
def guests_of_unknown_length(patch: Patch) -> None:
    patch.setattr(kept_instances, "longest_stay_s", lambda run, policy: 0.0)


@planted("using reserved room postpones the time at which it is needed, so more tasks are admitted", check=scenario(
    "tests.unit.scheduler.placing.test_backfill", "test_what_came_in_later_does_not_put_the_moment_off"
))  # fmt: skip
def guests_make_room_for_guests(patch: Patch) -> None:
    real = kept_instances._as_if_alone

    def as_if_alone(instance: Instance, *given: Any) -> Any:
        return real(replace(instance, yields_since=float("inf")), *given)

    patch.setattr(kept_instances, "_as_if_alone", as_if_alone)


@planted("a task in room that is kept for others is taken to end at its time-out at once", check=scenario(
    "tests.unit.scheduler.placing.test_backfill", "test_a_time_out_counts_with_the_time_to_answer_it"
))  # fmt: skip
def guests_end_at_once(patch: Patch) -> None:
    patch.setattr(kept_instances, "STOPPING_S", 0.0)


@planted("a queue that uses up the launches takes room that the next allocation gives back", check=scenario(
    ROOM, "test_a_queue_that_uses_up_launches_takes_no_room"
))  # fmt: skip
def launches_lift_nobody(patch: Patch) -> None:
    patch.setattr(share_levels, "_launches_of_a_place", lambda run: 0)
