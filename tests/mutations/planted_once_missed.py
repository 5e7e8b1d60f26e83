"""Planted bugs that no test found when somebody who did not know the code planted them. Fourteen survived then. The
other four are `advice_is_not_stored`, `warnings_are_not_stored`, `hourly_caps_bind_orders_only` and
`messages_are_deleted_before_the_commit`.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from argosy.aws import shutdown
from argosy.aws.observer import Observer
from argosy.lifecycle import accounts, attempts, revival
from argosy.model.events import InterruptionWarned
from argosy.model.moment import Moment
from argosy.scheduler.turns import caps
from argosy.scheduler.upkeep import upkeep
from tests.builders import NOW, instance_id
from tests.fakes.aws import timed_out
from tests.mutations.catalogue import Patch, planted, scenario

WARNED = InterruptionWarned(instance_id(1), NOW)
DECIDE, LIMITS = "tests.unit.scheduler.test_decide", "tests.unit.market.test_limits"
BUDGETS, FATES = "tests.scenarios.test_budgets", "tests.unit.lifecycle.test_fates"
ENDS, REOPENED = "tests.unit.lifecycle.test_ends_of_attempts", "tests.unit.lifecycle.test_reopened_runs"


def reworded(patch: Patch, function: Callable[..., Any], before: str, after: str) -> None:
    """The function with other words in its text, wherever it is known by name already."""
    text = textwrap.dedent(inspect.getsource(function))
    assert text.count(before) == 1, f"{function.__qualname__} does not say {before!r} once"
    scope: dict[str, Any] = {}
    code = compile(
        "from __future__ import annotations\n" + text.replace(before, after), inspect.getfile(function), "exec"
    )
    exec(code, function.__globals__, scope)  # noqa: S102 - our own text
    patch.setattr(function, "__code__", scope[function.__name__].__code__)


@planted(
    "a task that one sweep missed and all later ones showed is lost at the next miss, hours later",
    check=scenario(
        "tests.unit.lifecycle.test_nothing_is_forgotten",
        "test_a_task_that_one_sweep_missed_and_another_showed_is_not_lost_at_the_next_miss_after_a_restart",
    ),
)
def absence_is_never_forgiven(patch: Patch) -> None:
    reworded(patch, attempts.see, 'if state.attempts["absent_since"][row]:', "if False:")


@planted(
    "exit code 143 on an instance that was warned uses up a user attempt",
    check=scenario(FATES, "test_any_other_failure_on_a_warned_instance_is_charged_to_no_user_at_once", 143),
)
def exit_143_is_the_users(patch: Patch) -> None:
    words = "instance is not None and instance.leaves and OUT_OF_MEMORY not in seen.reason"
    reworded(patch, accounts.host_was_lost, words, f"seen.exit_code is None and {words}")


@planted(
    "a run that its budget stopped stops again when it is tried with a higher one",
    check=scenario(BUDGETS, "test_a_run_that_its_budget_stopped_continues_with_a_higher_one"),
)
def capped_runs_stay_capped(patch: Patch) -> None:
    reworded(
        patch,
        revival.reopen,
        "run.capped_at, run.unaffordable_since = False, 0.0, 0.0, 0.0",
        "run.capped_at, run.unaffordable_since = False, 0.0, run.capped_at, 0.0",
    )


@planted(
    "a task that is tried again by its user is given up at its first loss",
    check=scenario(REOPENED, "test_a_task_that_was_given_up_for_its_losses_may_be_lost_as_often_again"),
)
def losses_are_kept_on_retry(patch: Patch) -> None:
    reworded(patch, revival._revive_rows, "user_failures=0, losses=0,", "user_failures=0,")


@planted(
    "a task that was launched a moment ago is missed at once, though listings lag",
    check=scenario(ENDS, "test_a_task_that_was_launched_a_moment_ago_is_missed_by_no_listing"),
)
def new_tasks_are_missed_at_once(patch: Patch) -> None:
    reworded(patch, attempts._miss, 'at - table["launched_at"][row] < policy.absence_s', "False")


@planted(
    "what fleets may still launch does not count for maxInstances",
    check=scenario(DECIDE, "test_what_is_on_order_counts_for_the_most_instances_of_the_deployment"),
)
def promises_take_no_room(patch: Patch) -> None:
    reworded(patch, Moment.instances_left, " - sum(self.promised.values())", "")


@planted(
    "instances that are warned or let go do not count for quotas: orders are refused, and pools cool off",
    check=scenario(LIMITS, "test_an_instance_that_is_about_to_go_takes_its_quota_until_it_is_gone", WARNED),
)
def releasing_instances_take_no_quota(patch: Patch) -> None:
    reworded(patch, caps.vcpus_left, "instance.alive and instance.owned", "instance.counts_for_target")


@planted(
    "tasks in the second half of their time are not stopped at a warning",
    check=scenario(DECIDE, "test_a_warning_stops_an_attempt_at_once_however_much_of_its_time_is_left", 45),
)
def late_tasks_ignore_warnings(patch: Patch) -> None:
    words = "instance is not None and instance.interrupted_at"
    late = "timeout_s and started_at and now - started_at >= timeout_s / 2"
    reworded(patch, upkeep._why_stop, f"if {words} and", f"if {words} and not ({late}) and")


@planted(
    "a broken listing of fleets retires every pool that it did not show",
    check=scenario(
        "tests.unit.aws.test_observer",
        "test_a_listing_that_breaks_off_is_marked_and_spoils_no_other",
        {},
        {"describe_fleets": timed_out()},
        "hosts_complete",
    ),
)
def half_seen_cells_are_whole(patch: Patch) -> None:
    reworded(patch, Observer._swept, "{cell.name} if all_fleets and all_hosts else set()", "{cell.name}")


@planted(
    "teardown and watchdog leave a fleet alone that is just being changed",
    check=scenario(
        "tests.unit.aws.test_shutdown",
        "test_a_fleet_that_can_launch_is_lowered_even_while_it_is_being_changed",
        "modifying",
    ),
)
def modifying_fleets_are_not_lowered(patch: Patch) -> None:
    patch.setattr(shutdown, "_STEERABLE", ("submitted", "active"))
