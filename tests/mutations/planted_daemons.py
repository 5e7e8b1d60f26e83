"""Planted bugs: daemons and their reserved room."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from argosy.market import offers
from argosy.market.daemons import DaemonRoom
from argosy.model.state import State
from argosy.scheduler.services import daemon_environments, daemons
from argosy.scheduler.supply import rows
from tests.mutations.catalogue import Patch, planted, scenario

SCENARIOS = "tests.scenarios.test_daemons"
PROPERTIES = "tests.properties.test_daemon_properties"
ROLLOUTS = "tests.unit.scheduler.services.test_rollouts"
GIVEN_UP = "test_in_the_tick_that_gives_a_revision_of_a_daemon_up_nothing_is_stopped_for_it"
GOES = "test_every_instance_gets_one_task_and_the_last_one_goes_with_its_instance"
SIZES = "test_no_type_is_bought_that_is_too_small_next_to_the_daemon"
WORLDS = "test_every_daemon_comes_to_one_task_on_each_instance_and_no_law_is_broken"


@planted("an instance on which only a daemon runs counts as busy", check=scenario(SCENARIOS, GOES))
def daemon_keeps_its_instance(patch: Patch) -> None:
    patch.setattr(State, "has_work", lambda state, name: state.attempts.is_busy(name))


@planted("the room of daemons is not kept", check=scenario(SCENARIOS, SIZES))
def daemon_is_not_reserved(patch: Patch) -> None:
    def nothing(*given: Any) -> DaemonRoom:
        return DaemonRoom()

    patch.setattr(offers, "kept_for", nothing)
    patch.setattr(rows, "kept_for", nothing)


@planted("an update of a daemon stops first on all instances at once", check=scenario(PROPERTIES, WORLDS))
def daemon_stops_everywhere(patch: Patch) -> None:
    real = daemons._stops
    patch.setattr(daemons, "_stops", lambda here, spare, starts_first: real(here, len(here), starts_first))


@planted("the tick that gives a daemon's revision up still replaces tasks by it", check=scenario(ROLLOUTS, GIVEN_UP))
def given_up_daemon_is_still_rolled_out(patch: Patch) -> None:
    patch.setattr(daemon_environments, "DeploymentStatus", SimpleNamespace(FAILED=None))
