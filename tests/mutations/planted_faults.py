"""Which bugs are planted? Faults of our own code that reach others than those at whom it fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from argosy.engine import steps
from argosy.engine.blame import PortFailed
from argosy.engine.intake import Taken
from argosy.engine.set_apart import SetApart
from argosy.lifecycle import attempts
from argosy.model.actions import Terminate
from argosy.model.events import ContainerInstanceSeen, RunCancelled
from argosy.model.moment import Moment
from argosy.model.state import State
from tests.mutations.catalogue import Patch, planted, scenario

OWN = "tests.scenarios.test_own_faults"


@planted(
    "what only tells of a tick ends it when it fails",
    check=scenario(OWN, "test_a_report_that_fails_is_left_out_and_told_and_everybody_finishes"),
)
def a_report_ends_the_tick(patch: Patch) -> None:
    @contextmanager
    def tolerating(self: SetApart, what: str) -> Iterator[None]:
        yield

    patch.setattr(SetApart, "tolerating", tolerating)


@planted(
    "cells are closed outside of the guard: what fails there is nobody's fault",
    check=scenario(OWN, "test_an_instance_at_which_closing_the_cells_fails_is_forgotten_and_no_run_is_suspended"),
)
def cells_are_closed_unguarded(patch: Patch) -> None:
    real = steps.close_cells

    def close_cells(state: State, closed: Any) -> None:
        try:
            real(state, closed)
        except Exception as error:
            raise PortFailed(error) from error

    patch.setattr(steps, "close_cells", close_cells)


@planted(
    "of the facts that our code fails at, a search sees those up to the first one",
    check=scenario("tests.unit.engine.test_intake", "test_good_messages_are_taken_in_with_a_hundred_bad_ones"),
)
def bad_facts_are_found_one_by_one(patch: Patch) -> None:
    patch.setattr(Taken, "ahead", lambda *rest: [])


@planted(
    "a cancellation at which our code fails is not known again when its run is read anew",
    check=scenario(
        "tests.scenarios.test_refused_requests",
        "test_a_cancellation_at_which_the_code_fails_is_refused_and_stops_nobody",
    ),
)
def bad_requests_are_never_known(patch: Patch) -> None:
    patch.setattr(RunCancelled, "__hash__", object.__hash__)


@planted(
    "an instance at which our own code keeps failing is forgotten again and again, and runs for ever",
    check=scenario(OWN, "test_an_instance_at_which_the_code_always_fails_is_ended_soon_after_its_run"),
)
def forgotten_instances_run_on(patch: Patch) -> None:
    patch.setattr(SetApart, "hopeless", lambda self, moment: [])


@planted(
    "an instance whose registration our own code fails at counts as booting until its time is up",
    check=scenario(
        OWN, "test_what_runs_on_an_instance_at_which_the_code_always_fails_is_lost_with_it_and_done_elsewhere"
    ),
)
def registrations_are_left_out_alone(patch: Patch) -> None:
    real = SetApart._add_fact
    patch.setattr(
        SetApart,
        "_add_fact",
        lambda self, fact, now: (
            self._keep(fact, now) if isinstance(fact, ContainerInstanceSeen) else real(self, fact, now)
        ),
    )


@planted(
    "an instance that was never stored, because our own code fails at its first sighting, runs for ever",
    check=scenario(
        OWN,
        "test_an_instance_at_which_the_code_fails_whenever_it_is_shown_is_ended_though_it_was_never_stored",
        "see_host",
    ),
)
def unmet_instances_run_on(patch: Patch) -> None:
    real = SetApart.hopeless

    def hopeless(self: SetApart, moment: Moment) -> list[Terminate]:
        known = moment.state.forgotten
        self.running = {name: host for name, host in self.running.items() if name in known}
        return real(self, moment)

    patch.setattr(SetApart, "hopeless", hopeless)


@planted(
    "a launch in doubt waits for its instance to be learned again, which has ended",
    check=scenario(OWN, "test_a_launch_in_doubt_on_a_forgotten_instance_that_ends_is_done_again"),
)
def doubt_waits_for_its_instance(patch: Patch) -> None:
    patch.setattr(attempts, "_miss_launches", lambda state, at, policy: None)
