"""What does the auditor say of a controller that has left?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from argosy.model.policy import Policy
from argosy.model.services.environments import DeploymentStatus, Environment, Revision, ServiceDeployment
from tests.fakes.worlds import world
from tests.harness.simulation.audit.facts import TrialFacts
from tests.harness.simulation.audit.quiet import QuietChecker
from tests.harness.simulation.world.regions import Regions

NOT_FROZEN, FROZEN = "", "look first"
GOES_ON, HAS_ENDED = DeploymentStatus.IN_PROGRESS, DeploymentStatus.COMPLETED


def left(frozen_reason: str, status: DeploymentStatus, *, deleting: bool = False) -> list[str]:
    """The invariants that are broken where a controller leaves such an environment."""
    facts = TrialFacts(Regions(world()), {}, Policy(), one_controller=True)
    facts.is_quiet = lambda: True
    env = Environment.new("web", Revision(1, 0.0), desired=1)
    env.deployments.append(replace(ServiceDeployment(1, 1, 0.0), status=status))
    env.frozen_reason, env.deleting = frozen_reason, deleting
    facts.stored.environments["web"] = env
    QuietChecker(facts).time_passed()
    return [found.invariant for found in facts.violations]


@pytest.mark.parametrize(
    ("frozen_reason", "status", "violated"),
    [(NOT_FROZEN, GOES_ON, ["Q3"]), (NOT_FROZEN, HAS_ENDED, []), (FROZEN, GOES_ON, [])],
)
def test_a_deployment_keeps_the_controller_unless_it_is_frozen(
    frozen_reason: str, status: DeploymentStatus, violated: list[str]
) -> None:
    assert left(frozen_reason, status) == violated


def test_what_is_to_be_deleted_keeps_the_controller_though_it_is_frozen() -> None:
    assert left(FROZEN, HAS_ENDED, deleting=True) == ["Q3"]
