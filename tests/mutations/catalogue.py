"""A planted bug and the check that must find it: random trials of the simulation, or a scenario."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pytest

from argosy.lifecycle import apply as apply_module
from tests.harness.simulation.campaign import run_trial
from tests.harness.simulation.faults import ALL
from tests.harness.simulation.plan import TrialPlan

Patch = pytest.MonkeyPatch
SEEDS = 100
UNJOINED = "tests.scenarios.test_instances_that_never_join"
DAMAGE, RETRY, SICK, PROTOCOL, LIFE, MESSAGES = (
    "tests.scenarios.test_damaged_state",
    "tests.scenarios.test_retry",
    "tests.scenarios.test_sick_instances",
    "tests.scenarios.test_launch_protocol",
    "tests.scenarios.test_controlled_cluster",
    "tests.properties.test_message_properties",
)


@dataclass(frozen=True, slots=True)
class Found:
    """By what, and after how many trials; 0 = a scenario, which needs one."""

    check: str
    seeds: int = 0


Check = Callable[[], Found | None]


@dataclass(frozen=True, slots=True)
class Bug:
    """plant: plants it; what: the broken rule; check: the test that must find it."""

    plant: Callable[[Patch], None]
    what: str
    check: Check


BUGS: dict[str, Bug] = {}


def planted(
    what: str, *kinds: str, check: Check | None = None
) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    """kinds: the faults under which it shows soonest in random trials; all of them unless given."""

    def add(plant: Callable[[Patch], None]) -> Callable[[Patch], None]:
        BUGS[plant.__name__] = Bug(plant, what, check or trials(frozenset(kinds) or ALL))
        return plant

    return add


def trials(kinds: frozenset[str], seeds: int = SEEDS, gpu_shares: float = 0.0, checkpoints: float = 0.0) -> Check:
    """The first of some seeds whose trial ends in a violation, or in a controller that falls over."""

    def check() -> Found | None:
        for seed in range(seeds):
            try:
                plan = TrialPlan(seed, kinds, limit_s=7200.0, gpu_shares=gpu_shares, checkpoints=checkpoints)
                verdict = run_trial(plan)
            except (TypeError, NameError, AttributeError):
                raise  # the plant itself is out of date
            except Exception as crash:  # noqa: BLE001 - a controller that falls over is found as well
                return Found(f"simulation: {type(crash).__name__}", seed + 1)
            if not verdict.ok:
                return Found(f"simulation: {verdict.violations[0].invariant}", seed + 1)
        return None

    return check


def planned(plan: TrialPlan) -> Check:
    """One trial that is the same for every seed."""

    def check() -> Found | None:
        verdict = run_trial(plan)
        return None if verdict.ok else Found(f"simulation: {verdict.violations[0].invariant}", 1)

    return check


def scenario(module: str, test: str, *arguments: Any) -> Check:
    """A test of the suite that has to fail."""

    def check() -> Found | None:
        try:
            getattr(import_module(module), test)(*arguments)
        except (pytest.fail.Exception, Exception):  # noqa: BLE001 - as pytest has it
            return Found(f"{module.rsplit('.', 1)[-1]}::{test}")
        return None

    return check


def hunt(name: str, patch: Patch) -> Found | None:
    """Plant the bug and run its check."""
    with in_the_ground(name, patch) as bug:
        return bug.check()


@contextmanager
def in_the_ground(name: str, patch: Patch) -> Iterator[Bug]:
    """Plant it. Raises AttributeError if the code that it breaks no longer exists."""
    bug = BUGS[name]
    bug.plant(patch)
    try:
        yield bug
    finally:
        undo = getattr(apply_module, "UNDO", None)
        if undo is not None:
            undo()
