"""Does the auditor see an order above the deployment's dollars, and only an order?"""

from __future__ import annotations

from typing import Any

import pytest

from argosy.model.policy import Policy
from argosy.model.pools import Pool
from argosy.model.shares.sharing import Sharing, SharingDocument
from tests.fakes.worlds import world
from tests.harness.simulation.audit.caps import CapChecker
from tests.harness.simulation.audit.facts import Commit, TrialFacts
from tests.harness.simulation.world.regions import Regions

KEY = "us-east-1/c5.large/us-east-1a"


def found(*commits: tuple[int, list[str]], purchase: str = "spot") -> list[str]:
    """What is found in commits with that target and those statuses of instances at 0.1 USD an hour, where 0.25 are
    allowed."""
    facts = TrialFacts(Regions(world()), {}, Policy())
    checker, stored = CapChecker(facts), facts.stored
    stored.sharing = Sharing(SharingDocument(1, 0.0, {"queues": {}, "limits": {"usdPerHour": 0.25}}))
    for version, (target, statuses) in enumerate(commits):
        pool = Pool(*KEY.split("/"), "fleet-1", spot_usd_per_hour=0.1)
        setattr(pool, "spot_target" if purchase == "spot" else "on_demand_target", target)
        stored.pools = {KEY: {name: getattr(pool, name) for name in Pool.__slots__}}
        known: dict[str, Any] = {"cell": "us-east-1", "instance_type": "c5.large", "zone": "us-east-1a"}
        known |= {"purchase": purchase, "owned": True, "price_usd_per_hour": 0.1}
        stored.instances = {f"i-{number}": {**known, "status": status} for number, status in enumerate(statuses)}
        stored.version = version + 1
        checker.committed(Commit(version, {}, [], frozenset()))
    return [violation.invariant for violation in facts.violations]


@pytest.mark.parametrize("purchase", ["spot", "on-demand"])
def test_an_order_above_the_dollars_of_the_deployment_is_found(purchase: str) -> None:
    assert found((2, ["ACTIVE"] * 2), (3, ["ACTIVE"] * 2), purchase=purchase) == ["S8"]
    assert found((3, ["ACTIVE"] * 3), (2, ["ACTIVE", "ACTIVE", "RELEASING"]), (3, ["ACTIVE", "ACTIVE", "RELEASING"]),
                 purchase=purchase) == ["S8"]  # fmt: skip


def test_a_target_that_follows_what_ec2_launched_in_place_of_an_ended_instance_orders_nothing() -> None:
    assert (
        found((3, ["ACTIVE"] * 3), (2, ["ACTIVE", "ACTIVE", "RELEASING"]), (3, ["ACTIVE", "ACTIVE", "BOOTING"])) == []
    )
