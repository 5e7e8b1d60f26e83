"""Planted bugs: faults of the controller's own code that affect more than the runs that cause them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from argosy.engine import tick
from argosy.engine.own_faults import Exclusions
from argosy.lifecycle import attempts
from tests.mutations.catalogue import Patch, planted, scenario

OWN = "tests.scenarios.test_own_faults"


@planted(
    "a failure of a tick's report ends the tick",
    check=scenario(OWN, "test_a_report_that_fails_is_left_out_and_logged_and_every_run_finishes"),
)
def a_report_ends_the_tick(patch: Patch) -> None:
    @contextmanager
    def tolerating(self: Exclusions, what: str) -> Iterator[None]:
        yield

    patch.setattr(Exclusions, "tolerating", tolerating)


@planted(
    "a launch in doubt waits for an instance that is not known any more",
    check=scenario(
        "tests.unit.lifecycle.test_doubt",
        "test_a_launch_on_an_instance_that_is_not_known_is_settled_once_it_is_old_and_no_task_of_it_runs",
        True,
        1,
        0,
    ),
)
def doubt_waits_for_its_instance(patch: Patch) -> None:
    patch.setattr(attempts, "_miss_launches", lambda state, at, policy: None)


@planted(
    "a decision for all runs that fails at one of them stops them all",
    check=scenario(OWN, "test_a_suspended_run_can_be_cancelled_and_what_runs_of_it_is_stopped"),
)
def culprits_are_not_searched(patch: Patch) -> None:
    patch.setattr(tick, "culprit", lambda *rest: None)


@planted(
    "a request at which the code fails stays in the inbox and stops every tick",
    check=scenario(
        "tests.scenarios.test_refused_requests",
        "test_a_cancellation_at_which_the_code_fails_is_refused_and_blocks_no_other_run",
    ),
)
def requests_are_never_refused(patch: Patch) -> None:
    patch.setattr(Exclusions, "refuses", lambda self, state, key, run_id: False)
