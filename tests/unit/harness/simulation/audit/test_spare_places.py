"""Does the auditor see room that is kept for further tasks while a limit holds tasks back, and only that?"""

from __future__ import annotations

from dataclasses import replace

from argosy.model.policy import Policy, SparePlaces
from argosy.model.resources import Resources
from argosy.model.run_record import RunRecord
from argosy.model.runs import RunStatus
from tests.fakes.worlds import world
from tests.harness.simulation.audit.facts import TrialFacts
from tests.harness.simulation.audit.instances import IDLE_S, STEP_S, InstanceChecker
from tests.harness.simulation.world.regions import Regions

RUN = replace(RunRecord.of_unreadable("a"), status=RunStatus.RUNNING)


def idle(waiting: str, hours: float) -> set[str]:
    """The findings about one idle instance, kept for further tasks beside a run that waits for something."""
    made = world()
    made.add_fleet("c5.large", "us-east-1a", spot=1, **{"argosy:stage": "main"})
    room = (SparePlaces(1, Resources(1024, 1024)),)
    facts = TrialFacts(Regions(made), {}, replace(Policy(), headroom=room, linger_s=0.0))
    facts.stored.records["a"] = replace(RUN, waiting=waiting)
    checker, end = InstanceChecker(facts), made.now + 3600 * hours
    while made.now < end:
        made.run_for(STEP_S / 2)
        checker.time_passed()
    assert facts.regions.ours()
    return {found.invariant for found in facts.violations} - {"I6"}


def test_it_is_kept_for_as_long_as_a_run_is_open() -> None:
    assert idle("", hours=3) == set()
    assert idle("held back by capacity.maxInstances", hours=3) == set()


def test_it_is_in_the_way_where_a_limit_of_the_deployment_holds_tasks_back() -> None:
    held_back = "held back by maxInstances of the deployment"
    assert idle(held_back, hours=0.9 * IDLE_S / 3600) == set()
    assert idle(held_back, hours=1.5) == {"idle"}
