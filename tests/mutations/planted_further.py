"""Planted bugs of the protocol, second half: guards, sick instances, damaged and reopened state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from argosy.aws import launcher, manifest
from argosy.aws.dynamodb import DynamoStore
from argosy.aws.launcher import TaskLauncher
from argosy.engine.own_faults import PortFailed
from argosy.engine.tick import Engine
from argosy.lifecycle import apply as apply_module
from argosy.lifecycle import attempts, begin, hosts, quarantine, revival
from argosy.market import release
from argosy.messages import eventbridge, fleet_faults
from argosy.model import columns
from argosy.model.attempts import StopCause
from argosy.model.events import LaunchDisproved
from argosy.model.instances import Instance, InstanceStatus
from argosy.model.pools import Pool
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.scheduler.buying import orders
from argosy.scheduler.supply import roster
from argosy.scheduler.upkeep import upkeep
from tests.harness.simulation.faults import kinds_of
from tests.harness.simulation.plan import TrialPlan
from tests.mutations.catalogue import (
    DAMAGE,
    LIFE,
    MESSAGES,
    PROTOCOL,
    RETRY,
    SICK,
    UNJOINED,
    Patch,
    planned,
    planted,
    scenario,
)


@planted(
    "an old intent is sent again, though its token may have expired",
    check=scenario(PROTOCOL, "test_an_intent_whose_reply_was_lost_is_never_sent_again_after_ten_minutes"),
)
def age_gate_off(patch: Patch) -> None:
    patch.setattr(upkeep, "_young", lambda moment, row: True)
    real = upkeep.resolutions
    patch.setattr(
        upkeep,
        "resolutions",
        lambda moment: (replace(action, resend=True) for action in real(moment)),
    )


@planted(
    "an older event undoes what a newer one said",
    check=scenario(MESSAGES, "test_versions_that_go_backwards_change_nothing"),
)
def version_compare_off(patch: Patch) -> None:
    see, see_instance = attempts.see, hosts.see_container_instance
    numbers = iter(range(10**9))
    patch.setattr(attempts, "see", lambda s, seen, *rest: see(s, replace(seen, version=2**40 + next(numbers)), *rest))
    patch.setattr(
        hosts,
        "see_container_instance",
        lambda s, seen, *rest: see_instance(s, replace(seen, version=2**40 + next(numbers)), *rest),
    )


@planted(
    "a store that does not answer counts as empty: everything is idle and is released",
    check=scenario(PROTOCOL, "test_a_store_that_does_not_answer_ends_nothing"),
)
def gc_on_store_error(patch: Patch) -> None:
    real = Engine._load

    def load(self: Engine) -> State:
        try:
            return real(self)
        except (ClientError, BotoCoreError, PortFailed):
            return State(version=self.store.version())

    patch.setattr(Engine, "_load", load)


@planted(
    "a listing that broke off counts as proof that a launch never happened",
    check=planned(TrialPlan(123, kinds_of("reply-lost,page-failure,listing-lag,events-lost,overlap"), limit_s=7200.0)),
)
def broken_listing_is_proof(patch: Patch) -> None:
    patch.setattr(TaskLauncher, "_absent", lambda self, key, *rest: LaunchDisproved(key))
    patch.setattr(
        upkeep,
        "resolutions",
        lambda moment, real=upkeep.resolutions: (replace(action, resend=False) for action in real(moment)),
    )


@planted("absence from listings is proof at once, though tasks show late", "reply-lost", "listing-lag", "events-late")
def disproved_too_early(patch: Patch) -> None:
    patch.setattr(launcher, "DISPROVED_AFTER_S", 0.0)
    patch.setattr(launcher, "LaunchMissed", LaunchDisproved)
    patch.setattr(
        upkeep,
        "resolutions",
        lambda moment, real=upkeep.resolutions: (replace(action, resend=False) for action in real(moment)),
    )


@planted("a commit that came second counts as done")
def conflicts_ignored(patch: Patch) -> None:
    patch.setattr(DynamoStore, "_settle", lambda self, version, digest, error: None)


@planted("a run is closed while tasks are still starting")
def closed_under_live_tasks(patch: Patch) -> None:
    def complete(self: Run) -> bool:
        counts = self.tasks.counts()
        return not (counts[TaskStatus.PENDING] or counts[TaskStatus.RUNNING] or self.revives)

    patch.setattr(Run, "complete", property(complete))


@planted("what was launched a moment ago takes no room")
def live_attempts_take_no_room(patch: Patch) -> None:
    real = roster.row_of
    patch.setattr(roster, "row_of", lambda instance, runs, *rest: real(instance, {}, *rest))


@planted(
    "an instance on which every task fails at once keeps getting tasks",
    check=scenario(SICK, "test_a_black_hole_burns_at_most_three_attempts_of_others_than_lay_there_at_once"),
)
def black_hole_is_fed(patch: Patch) -> None:
    patch.setattr(attempts, "note_end", lambda *args: None)


@planted(
    "after a warning tasks run on until the host is gone",
    check=scenario(SICK, "test_a_warning_stops_tasks_requeues_them_and_buys_the_shortfall_in_one_tick"),
)
def warned_tasks_are_not_stopped(patch: Patch) -> None:
    real = upkeep.stops
    patch.setattr(
        upkeep,
        "stops",
        lambda *args: (stop for stop in real(*args) if stop.cause is not StopCause.INTERRUPTED),
    )


@planted(
    "a draining instance keeps its tasks forever, so it never ends",
    check=scenario(SICK, "test_an_instance_that_drains_for_an_hour_is_emptied_and_let_go"),
)
def draining_for_ever(patch: Patch) -> None:
    patch.setattr(upkeep, "_drained_too_long", lambda instance, now, policy: False)
    patch.setattr(release, "_is_past_hope", lambda instance, now, policy: False)


@planted(
    "a warning without an interruption holds its tasks forever",
    check=scenario(SICK, "test_a_warning_that_never_comes_true_holds_nothing_for_longer_than_ten_minutes"),
)
def warnings_are_waited_for(patch: Patch) -> None:
    def past_hope(instance: Instance, now: float, policy: Any) -> bool:
        return bool(instance.disconnected_at) and now - instance.disconnected_at >= policy.agent_patience_s

    patch.setattr(release, "_is_past_hope", past_hope)


@planted(
    "a pool whose instances never join the cluster is asked again and again",
    check=scenario(SICK, "test_instances_that_never_register_are_let_go_and_after_three_their_pool_is_given_up"),
)
def unregistered_are_not_counted(patch: Patch) -> None:
    patch.setattr(apply_module.pools, "note_unregistered", lambda state, now, policy: None)


@planted(
    "where instances never join the cluster, each retry buys as many as the limits allow",
    check=scenario(UNJOINED, "test_a_minimum_size_is_tried_with_one_instance_too"),
)
def retries_buy_all(patch: Patch) -> None:
    patch.setattr(orders, "trials_left", lambda moment, first: {})


@planted("as many instances of an AMI are bought as tasks need although none has ever joined", "first-order")
def first_order_buys_all(patch: Patch) -> None:
    patch.setattr(orders, "unproven", lambda moment: {})


@planted(
    "an AMI from which instances joined vouches for the next one",
    check=scenario(UNJOINED, "test_a_new_ami_that_is_broken_is_tried_with_few_instances_too"),
)
def any_version_vouches(patch: Patch) -> None:
    patch.setattr(Pool, "is_proven", property(lambda pool: bool(pool.registered_memory_mib)))


@planted(
    "a cancelled run's tasks run on",
    check=scenario(LIFE, "test_cancelling_stops_everything_and_the_cluster_goes_to_zero"),
)
def cancel_lets_tasks_run(patch: Patch) -> None:
    real = upkeep.stops
    patch.setattr(
        upkeep, "stops", lambda *args: (stop for stop in real(*args) if stop.cause is not StopCause.CANCELLED)
    )


@planted(
    "a launch that can never work is requested again and again",
    check=scenario(
        PROTOCOL,
        "test_what_may_not_start_is_asked_for_at_growing_pauses_for_a_quarter_of_an_hour",
        "AccessDeniedException",
    ),
)
def lasting_refusals_are_tried_again(patch: Patch) -> None:
    patch.setattr(apply_module.attempts, "give_up", lambda state, run, reason: None)


@planted(
    "a task that is tried again repeats its attempt numbers",
    check=scenario(RETRY, "test_failed_tasks_run_again_with_a_fresh_budget_and_the_results_are_complete_afterwards"),
)
def retry_repeats_numbers(patch: Patch) -> None:
    real = revival._revive_rows

    def revive(state: Any, run: Run, rows: Any) -> bool:
        touched = real(state, run, rows)
        again = rows[run.tasks["status"][rows] == TaskStatus.PENDING]
        run.tasks.set_many(again, attempts=0)
        return touched

    patch.setattr(revival, "_revive_rows", revive)


@planted(
    "a run that is tried again still says that it has ended",
    check=scenario(RETRY, "test_while_it_is_tried_again_no_marker_says_that_the_run_has_ended"),
)
def marker_of_the_earlier_end_stays(patch: Patch) -> None:
    from argosy.aws import preparation

    patch.setattr(preparation, "remove_former_failure", lambda s3, run: None)


@planted(
    "what succeeded is done again with the rest",
    check=scenario(RETRY, "test_failed_tasks_run_again_with_a_fresh_budget_and_the_results_are_complete_afterwards"),
)
def retry_of_everything(patch: Patch) -> None:
    real = begin.revival.revive

    def revive(state: Any, run: Run, policy: Any) -> None:
        run.revives = [*run.revives, int(TaskStatus.SUCCEEDED)]
        real(state, run, policy)

    patch.setattr(begin.revival, "revive", revive)


@planted(
    "how often something failed is forgotten with the process",
    check=scenario(DAMAGE, "test_a_run_that_can_never_be_closed_is_given_up_even_if_every_invocation_is_short"),
)
def setbacks_are_forgotten(patch: Patch) -> None:
    patch.setattr(State, "lasting_setbacks", lambda self: {})


@planted(
    "a chunk that cannot be read counts as never touched",
    check=scenario(DAMAGE, "test_a_lost_chunk_of_attempts_costs_each_of_them_a_loss_and_no_task"),
)
def corrupt_chunks_read_as_new(patch: Patch) -> None:
    real = columns.ColumnTable.unpack

    def unpack(self: Any, chunk: int, body: bytes) -> None:
        try:
            real(self, chunk, body)
        except columns.CorruptChunk:
            return

    patch.setattr(columns.ColumnTable, "unpack", unpack)


@planted(
    "tasks of a run that was set aside run on, and hold their instances",
    check=scenario(DAMAGE, "test_a_record_that_is_gone_is_set_aside_too_and_its_tasks_are_stopped"),
)
def strays_are_left_alone(patch: Patch) -> None:
    patch.setattr(quarantine, "_strays", lambda state, now: iter(()))


@planted("work is given to instances that are released in the same tick")
def released_with_work(patch: Patch) -> None:
    from argosy.scheduler.buying import capacity as scheduling

    real = release.releasable

    def releasable(moment: Any, wanted: Any, *rest: Any) -> Any:
        hurried = replace(moment, policy=replace(moment.policy, linger_s=0.0, cool_down_s=0.0))
        return real(hurried, frozenset(), *rest)

    patch.setattr(scheduling, "releasable", releasable)


@planted("an instance that is being released may still be given work")
def releasing_is_placeable(patch: Patch) -> None:
    alive = (InstanceStatus.ACTIVE, InstanceStatus.RELEASING)
    sound = property(
        lambda self: (
            self.status in alive
            and self.owned
            and self.agent_connected
            and not (self.interrupted_at or self.rebalance_at or self.cordon)
        )
    )
    patch.setattr(Instance, "placeable", sound)


@planted(
    "the reason why a fleet launches nothing is lost: each one reads as a lack of capacity",
    check=scenario(
        "tests.scenarios.test_fleets_that_cannot_launch",
        "test_one_fleet_that_cannot_launch_leaves_the_work_to_the_others_and_is_counted",
    ),
)
def fleets_give_no_reason(patch: Patch) -> None:
    real = fleet_faults.shortage
    patch.setattr(eventbridge, "shortage", lambda pool, code, description="": real(pool, ""))


@planted("of a task with very many objects the manifest names the first ones only", "reply-lost")
def rest_of_a_task_left_out(patch: Patch) -> None:
    patch.setattr(manifest, "_rest_after", lambda name, task, committed: "")


@planted(
    "with many measured attempts a run is closed task by task",
    check=scenario(
        "tests.properties.test_manifest_properties",
        "test_what_runners_have_measured_makes_no_part_of_a_manifest",
    ),
)
def measurements_are_listed(patch: Patch) -> None:
    patch.setattr(manifest, "_AFTER_ATTEMPTS", "~")


@planted(
    "a retry goes on with the manifest of the earlier try",
    check=scenario(
        "tests.scenarios.test_closing_in_parts", "test_a_retry_writes_its_own_parts_and_the_right_marker", False
    ),
)
def manifest_of_the_earlier_try(patch: Patch) -> None:
    real = revival.reopen

    def reopen(state: Any, request: Any, stored: Run | None) -> None:
        run = state.runs.get(request.run_id) or stored
        ends = list(run.manifest_bounds) if run else []
        real(state, request, stored)
        if run is not None:
            run.manifest_bounds[:] = ends

    patch.setattr(revival, "reopen", reopen)
