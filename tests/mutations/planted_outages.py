"""Planted bugs: outages of S3, lost registrations and lagging listings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from argosy.aws import watchdog
from argosy.aws.errors import CallFailure
from argosy.aws.launcher import TaskLauncher
from argosy.lifecycle import apply as apply_module
from argosy.lifecycle import attempts, health, hosts, quarantine, suspended_tasks
from argosy.model.attempts import AttemptTable
from argosy.model.events import InterruptionWarned, LaunchDisproved, LaunchMissed
from argosy.model.state import Setback, State
from tests.builders import NOW, instance_id
from tests.fakes.aws import S3_OUTAGES
from tests.mutations.catalogue import DAMAGE, PROTOCOL, Patch, planted, scenario

FORGETTING = "tests.unit.lifecycle.test_nothing_is_forgotten"
DEFINITIONS = "tests.scenarios.test_unused_definitions"
RECOVERY = "tests.simulation.test_recovery"
SUSPENDED = "tests.scenarios.test_suspended_tasks"
OUTAGES, REGISTRATIONS = "tests.scenarios.test_outages", "tests.scenarios.test_lost_registrations"


@planted(
    "a task definition is deregistered while another run is pinned to it",
    check=scenario(DEFINITIONS, "test_two_runs_of_the_same_content_share_a_definition_until_both_have_ended"),
)
def definitions_go_under_open_runs(patch: Patch) -> None:
    patch.setattr(State, "definitions_in_use", lambda state: set())


@planted(
    "each of the hundreds of calls of one tick counts as a separate round",
    check=scenario(OUTAGES, "test_a_refusal_that_stays_is_asked_twenty_times_at_growing_pauses_and_not_for_an_hour"),
)
def every_call_is_a_round(patch: Patch) -> None:
    real = apply_module.set_back

    def set_back(state: Any, what: str, *rest: Any) -> Setback:
        if what in state.setbacks:
            state.setbacks[what].not_before = 0.0
        return real(state, what, *rest)

    patch.setattr(apply_module, "set_back", set_back)


@planted(
    "results that S3 is too busy to show count as missing",
    check=scenario(OUTAGES, "test_minutes_without_s3_fail_no_task_that_is_done", S3_OUTAGES[0]),
)
def overload_is_a_refusal(patch: Patch) -> None:
    real = apply_module.is_hopeless
    patch.setattr(
        apply_module,
        "is_hopeless",
        lambda setback, now, policy: real(setback, now, replace(policy, outage_patience_s=0.0)),
    )


@planted("an exit code that a host's shutdown caused uses up a user attempt", "os-shutdown", "host-loss", "events-lost")
def failures_do_not_wait(patch: Patch) -> None:
    patch.setattr(attempts, "is_open", lambda seen, cause, instance: False)


@planted(
    "a refusal that would have passed ends its run for good",
    check=scenario(PROTOCOL, "test_a_minute_of_refusals_in_the_middle_of_a_run_costs_no_task", "SomethingNewException"),
)
def refusals_are_final(patch: Patch) -> None:
    patch.setattr(CallFailure, "final", property(lambda fault: fault.lasting))


@planted(
    "an instance that ECS no longer lists keeps getting work",
    check=scenario(REGISTRATIONS, "test_an_instance_that_was_deregistered_unheard_is_replaced_and_its_run_ends"),
)
def unlisted_instances_are_trusted(patch: Patch) -> None:
    patch.setattr(hosts, "miss_registrations", lambda state, sweep, policy: None)


@planted(
    "an agent that registers again is ignored until its version has caught up",
    check=scenario(REGISTRATIONS, "test_an_agent_that_registers_again_gets_work_at_once_whatever_its_version"),
)
def new_registrations_are_ignored(patch: Patch) -> None:
    patch.setattr(hosts, "replaces_registration", lambda instance, seen: False)


@planted(
    "an instance that refuses every launch is asked in every tick",
    check=scenario(REGISTRATIONS, "test_an_instance_that_refuses_whatever_the_reason_is_left_alone_for_ever_longer"),
)
def refusals_are_not_paused(patch: Patch) -> None:
    real = health.note_refusal

    def only_for_want_of_room(state: Any, instance_id: str, reason: str, *rest: Any) -> None:
        if reason.startswith("RESOURCE"):
            real(state, instance_id, reason, *rest)

    patch.setattr(health, "note_refusal", only_for_want_of_room)


@planted(
    "an instance whose attempts were lost counts as busy forever",
    check=scenario(DAMAGE, "test_instances_whose_attempts_were_lost_with_a_cancelled_run_are_given_back"),
)
def lost_attempts_hold_instances(patch: Patch) -> None:
    patch.setattr(quarantine, "_seeming_busy", lambda state, now: iter(()))


@planted(
    "a single complete listing proves that a launch never happened",
    check=scenario(PROTOCOL, "test_one_listing_that_lags_disproves_no_launch"),
)
def one_listing_is_proof(patch: Patch) -> None:
    real = TaskLauncher._absent

    def absent(self: Any, key: Any, *rest: Any) -> Any:
        said = real(self, key, *rest)
        return LaunchDisproved(key) if isinstance(said, LaunchMissed) else said

    patch.setattr(TaskLauncher, "_absent", absent)


@planted(
    "a spot warning is known in memory only: the next controller places work on an instance with seconds to live",
    check=scenario(FORGETTING, "test_what_a_fact_changes_is_stored", [InterruptionWarned(instance_id(1), NOW + 5)]),
)
def warnings_are_not_stored(patch: Patch) -> None:
    real = hosts.warn

    def warn(state: Any, instance: Any, *rest: Any) -> None:
        before = set(state.changed_instances)
        real(state, instance, *rest)
        state.changed_instances &= before

    patch.setattr(hosts, "warn", warn)


@planted(
    "a task that one sweep missed and another showed is lost at the next single miss, after a restart",
    check=scenario(
        FORGETTING, "test_a_task_that_one_sweep_missed_and_another_showed_is_not_lost_at_the_next_miss_after_a_restart"
    ),
)
def forgiven_in_memory_only(patch: Patch) -> None:
    real = AttemptTable.set

    def put(table: AttemptTable, rows: Any, **values: Any) -> None:
        if values == {"absent_since": 0.0}:
            table.columns["absent_since"][rows] = 0.0
        else:
            real(table, rows, **values)

    patch.setattr(AttemptTable, "set", put)


@planted(
    "the end of a suspended run's task is not taken in: its instance counts as busy until the run is tried again",
    check=scenario(
        SUSPENDED,
        "test_the_instances_of_a_suspended_run_are_gone_a_linger_after_its_last_task_ended",
        lambda message: False,
        0.0,
    ),
)
def suspended_runs_hold_instances(patch: Patch) -> None:
    patch.setattr(suspended_tasks, "_follow", lambda *rest: None)


@planted(
    "tasks of a suspended run have no time limit",
    check=scenario(SUSPENDED, "test_an_endless_program_of_a_suspended_run_is_stopped_and_its_instances_go"),
)
def suspended_runs_go_unwatched(patch: Patch) -> None:
    patch.setattr(suspended_tasks, "stop_unwatched", lambda *rest: None)


@planted(
    "a request waits forever if the controller died while going to rest",
    check=scenario(RECOVERY, "test_a_request_is_not_lost_if_the_controller_dies_on_its_way_to_rest"),
)
def requests_at_rest_wake_nobody(patch: Patch) -> None:
    patch.setattr(watchdog, "wake", lambda *rest: False)
