"""Planted bugs: gangs."""

from __future__ import annotations

from argosy.lifecycle import gangs as settled
from argosy.scheduler.upkeep import upkeep
from tests.mutations.catalogue import Patch, planted, scenario

SCENARIOS = "tests.scenarios.test_gangs"


@planted(
    "the other members of a gang run although one has failed",
    check=scenario(SCENARIOS, "test_a_member_that_fails_stops_the_others_and_the_gang_has_its_tries_as_one"),
)
def members_are_not_stopped(patch: Patch) -> None:
    patch.setattr(upkeep, "members_of_broken_gangs", lambda moment: {})


@planted(
    "the exit codes of the others are charged although an instance of the gang was lost",
    check=scenario(
        SCENARIOS, "test_a_member_whose_instance_dies_unseen_restarts_all_and_the_others_exit_codes_count_for_nothing"
    ),
)
def first_end_is_charged(patch: Patch) -> None:
    patch.setattr(settled, "_rank", lambda account: 0)
