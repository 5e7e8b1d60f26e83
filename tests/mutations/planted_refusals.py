"""Planted bugs: AWS's refusal is known, and another reason is shown."""

from __future__ import annotations

from typing import Any

from argosy.api.waiting import explanation
from argosy.aws import launcher
from argosy.aws.errors import NO_CLUSTER
from argosy.aws.on_demand import OnDemandOrders
from argosy.lifecycle import refusals, run_stops
from argosy.model.events import NotCarriedOut
from argosy.scheduler.buying import reasons, remarks
from argosy.scheduler.buying import refusals as why
from argosy.scheduler.turns import asks
from tests.fakes.refusing import DENIED
from tests.mutations.catalogue import Patch, planted, scenario
from tests.mutations.planted_once_missed import reworded

STORIES = "tests.scenarios.test_what_aws_refuses"
ORDERS = "test_a_refused_order_is_the_reason_at_once_and_counts_neither_as_ordered_nor_as_a_limit"
LISTINGS = "test_a_listing_that_breaks_off_is_the_reason_and_never_no_fleets_yet"
LAUNCHES = "test_a_launch_that_is_refused_or_unanswered_is_the_reason_until_a_task_starts"


@planted("a refused order stays ordered", check=scenario(STORIES, ORDERS, DENIED))
def refused_orders_stay(patch: Patch) -> None:
    patch.setattr(refusals, "refuse_order", lambda state, event, now, policy: None)


@planted(
    "a listing that breaks off leaves no word",
    check=scenario(STORIES, LISTINGS, "describe_fleets", "the fleets of us-east-1"),
)
def broken_listings_are_silent(patch: Patch) -> None:
    patch.setattr(reasons, "unlisted", lambda moment: "")


@planted(
    "the next tick takes the words of a refused launch away",
    check=scenario(STORIES, LAUNCHES, DENIED, "no task can be started"),
)
def remarks_hide_refused_launches(patch: Patch) -> None:
    patch.setattr(remarks, "waits_for_answer", lambda moment, run, is_sent: False)


@planted(
    "explain looks for room while a launch is refused",
    check=scenario(STORIES, LAUNCHES, DENIED, "no task can be started"),
)
def explain_overlooks_refusals(patch: Patch) -> None:
    patch.setattr(explanation, "is_refused", lambda state, run: False)


@planted(
    "an on-demand order that EC2 leaves unanswered leaves no word",
    check=scenario(
        STORIES,
        "test_an_order_that_does_not_get_through_stays_and_says_so",
        ("InternalError", "An internal error has occurred."),
        "InternalError",
        "create_fleet",
        "on-demand",
    ),
)
def unanswered_orders_are_silent(patch: Patch) -> None:
    real = OnDemandOrders._failed

    def failed(self: OnDemandOrders, *order: Any) -> Any:
        event = real(self, *order)
        return NotCarriedOut(event.reason) if isinstance(event, NotCarriedOut) else event

    patch.setattr(OnDemandOrders, "_failed", failed)


@planted(
    "where ECS finds no cluster, one instance after the other is avoided",
    check=scenario(
        "tests.scenarios.test_every_refusal",
        "test_a_refusal_of_each_class_is_named_at_once_and_the_run_goes_on_afterwards",
        "ecs",
        "run_task",
        NO_CLUSTER,
    ),
)
def missing_clusters_are_hidden(patch: Patch) -> None:
    patch.setattr(launcher, "NO_CLUSTER", "")


@planted(
    "where maxInstances is reached, cells that lack their cluster leave no word",
    check=scenario(STORIES, "test_cells_that_all_lack_their_cluster_are_the_reason", 2),
)
def full_deployments_hide_refused_listings(patch: Patch) -> None:
    reworded(
        patch, why.why_refused, "coming_or_full = coming or moment.instances_left() <= 0", "coming_or_full = coming"
    )


@planted("tasks that failed with different faults stop their run, because their exit codes are one", check=scenario(
    "tests.unit.scheduler.upkeep.test_failures_alike",
    "test_a_run_whose_logs_differ_continues_until_twice_as_many_tasks_have_failed",
))  # fmt: skip
def exit_codes_decide(patch: Patch) -> None:
    patch.setattr(run_stops, "differ", lambda lines: False)


@planted("a run starts tasks while it is judged by its logs", check=scenario(
    "tests.unit.scheduler.upkeep.test_failures_alike", "test_their_logs_are_read_and_nothing_starts_before"
))  # fmt: skip
def judged_runs_start_tasks(patch: Patch) -> None:
    patch.setattr(asks, "awaits_logs", lambda run, policy: False)
