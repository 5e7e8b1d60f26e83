"""Planted bugs: instances that drain or are sick, times that break views, and controllers without a lease."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from argosy.api import views
from argosy.api.cluster import actions
from argosy.aws import fleets
from argosy.aws.executor import AwsExecutor
from argosy.engine.tick import Engine
from argosy.lifecycle import accounts, hosts, user_requests
from argosy.market import release
from argosy.model.actions import Action
from argosy.model.events import Event, TaskSeen
from argosy.model.instances import Instance
from argosy.model.policy import Policy
from argosy.model.state import State
from argosy.ports import StaleState
from argosy.scheduler.placing import places
from argosy.scheduler.upkeep import drains
from tests.builders import NOW
from tests.fakes.api import Desk
from tests.mutations.catalogue import SICK, Check, Found, Patch, planted, scenario

SCALING, COMPANY = "tests.unit.api.test_scaling_the_cluster", "tests.scenarios.test_two_controllers"
DRAINED = "test_an_instance_that_a_user_drains_gets_no_work_stays_and_takes_work_again_at_the_end"
KNOWN = "test_a_sick_host_is_drained_and_replaced_in_the_first_tick_that_knows_of_it"
SEEN = "test_ended_tasks_are_seen_within_two_minutes_and_a_tick"


def at_a_desk(test: str, *arguments: Any) -> Check:
    """The test, at a new desk."""

    def check() -> Found | None:
        return scenario(SCALING, test, Desk(), *arguments)()

    return check


@planted("what a user drains takes work", check=scenario(SICK, DRAINED))
def drains_are_not_honoured(patch: Patch) -> None:
    patch.setattr(user_requests.host_care, "drain", lambda state, request, now: None)


@planted("ECS is not told that an instance drains", check=scenario(SICK, DRAINED))
def ecs_hears_of_no_drain(patch: Patch) -> None:
    patch.setattr(drains, "_wanted", lambda instance, now: instance.status)


@planted("a drain never ends", check=scenario(SICK, DRAINED))
def drains_never_end(patch: Patch) -> None:
    patch.setattr(hosts.host_care, "pass_time", lambda state, instance, now: None)


@planted("what ECS and EC2 say of a host's health is not heard", check=scenario(SICK, KNOWN, "an event"))
def sick_hosts_are_not_heard_of(patch: Patch) -> None:
    patch.setattr(hosts.host_care, "note_health", lambda state, instance, source, fault, now: None)


@planted("EC2 is not asked which instances fail its status checks", check=scenario(SICK, KNOWN, "EC2's system check"))
def status_checks_are_not_read(patch: Patch) -> None:
    patch.setattr(fleets, "_failed_checks", lambda cell, check_time: None)


@planted(
    "nothing is ordered for tasks on an impaired host before they are lost", check=scenario(SICK, KNOWN, "an event")
)
def sick_hosts_are_replaced_late(patch: Patch) -> None:
    patch.setattr(places, "replacements", lambda moment: [])


@planted("an impaired host with tasks is never terminated", check=scenario(SICK, KNOWN, "a sweep"))
def sick_hosts_stay(patch: Patch) -> None:
    real = release._is_past_hope

    def is_past_hope(instance: Instance, now: float, policy: Policy) -> bool:
        return real(replace(instance, impaired_since=0.0, draining_since=0.0), now, policy)

    patch.setattr(release, "_is_past_hope", is_past_hope)


@planted(
    "a failure with a GPU is booked before ECS can find the GPU impaired",
    check=scenario(SICK, "test_what_fails_for_a_broken_gpu_is_lost_and_not_the_users_and_the_instance_is_replaced"),
)
def gpu_failures_wait_no_longer(patch: Patch) -> None:
    patch.setattr(Policy, "fate_s_of", lambda policy, needs, *, serves: policy.fate_s)


@planted("what fails on an impaired instance is the user's failure", "sick-gpu")
def impaired_hosts_excuse_nothing(patch: Patch) -> None:
    real = accounts.host_was_lost

    def host_was_lost(seen: TaskSeen, instance: Instance | None) -> bool:
        return real(seen, None if instance is None else replace(instance, impaired={}))

    patch.setattr(accounts, "host_was_lost", host_was_lost)


@planted(
    "the end of a minimum size is stored without being judged",
    check=at_a_desk(
        "test_what_could_never_be_kept_is_refused_and_nothing_is_changed",
        {"instances": 1, "until": 1000 * NOW},
        "until",
        "is too late: the latest time is ",
    ),
)
def ends_are_not_judged(patch: Patch) -> None:
    patch.setattr(actions, "_faults", lambda context, request, now: iter(()))


@planted(
    "a stored time that no calendar has breaks the views",
    check=at_a_desk("test_a_time_beyond_the_calendar_that_an_earlier_version_stored_breaks_no_view"),
)
def times_break_views(patch: Patch) -> None:
    patch.setattr(views, "LAST_S", math.inf)


@planted(
    "a sweep asks about the tasks of the state before the last lost commit",
    check=scenario(COMPANY, SEEN, 60.0, 0, False),
)
def sweeps_know_an_old_state(patch: Patch) -> None:
    carry_out = AwsExecutor.carry_out

    def acted(self: AwsExecutor, actions: Sequence[Action], state: State, deadline: float) -> list[Event]:
        self._observer.state = state
        return carry_out(self, actions, state, deadline)

    patch.setattr(AwsExecutor, "carry_out", acted)
    patch.setattr(AwsExecutor, "observe", lambda self, now, state: self._observer.observe(now))


@planted("a sweep does not say when it saw an instance running", check=scenario(COMPANY, SEEN, 60.0, 3, True))
def sweeps_have_no_time(patch: Patch) -> None:
    real = fleets._host_seen
    patch.setattr(fleets, "_host_seen", lambda each, cell, at, failed=None: real(each, cell, 0.0, failed))


@planted("the failures that a lost commit had taken in are forgotten", check=scenario(COMPANY, SEEN, 10.0, 3, True))
def failures_go_with_the_commit(patch: Patch) -> None:
    real = Engine.tick

    def tick(self: Engine, wait_s: float = 0.0) -> Any:
        try:
            return real(self, wait_s)
        except StaleState:
            self.outcomes.clear()
            raise

    patch.setattr(Engine, "tick", tick)
