"""EC2 withdraws an instance type after the deployment: a note, and no other pool suffers."""

from __future__ import annotations

from argosy.api.cluster.views import fleet_view
from argosy.aws.offerings import OFFERS_FRESH_S
from argosy.engine.report import TickReport
from argosy.model.pools import Pool
from argosy.model.runs import RunStatus
from tests.scenarios.controlled import Controlled

A, B = "c5.xlarge/us-east-1a", "c5.xlarge/us-east-1b"


def pool_of(cluster: Controlled, pool: str) -> Pool:
    state = cluster.controllers[0].state
    assert state is not None
    return next(each for key, each in state.pools.items() if key.endswith(pool))


def test_the_work_goes_to_the_types_that_ec2_still_offers() -> None:
    """Until the second sweep reads EC2's list, ModifyFleet refuses for that pool alone."""
    cluster = Controlled(zones=("us-east-1a", "us-east-1b"), work_s=400.0)
    cluster.world.ec2.set_withdrawn(A)
    cluster.submit(4)
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert {each.zone for each in cluster.world.ec2.ledger.instances.values()} == {"us-east-1b"}
    shown = fleet_view(pool_of(cluster, A), cluster.world.now, cluster.policy)
    assert shown["noOfferBecause"] == (
        "EC2 no longer offers c5.xlarge in us-east-1a; the next deployment leaves its fleet out"
    )
    assert not shown["needsMending"]
    assert pool_of(cluster, B).withdrawn_at == 0.0


def test_a_type_that_is_withdrawn_while_the_list_is_fresh_is_refused_as_a_note() -> None:
    """ModifyFleet refuses before the list is read again. No alarm sounds: there is nothing to mend."""
    cluster = Controlled(zones=("us-east-1a",), work_s=30.0)
    cluster.submit(1)
    cluster.run_for(20)
    cluster.run_to_rest()
    cluster.world.ec2.set_withdrawn(A)
    again = cluster.submit(1)
    reports: list[TickReport] = []
    for _ in range(30):
        reports.append(cluster.controllers[0].tick())
        cluster.pass_time(2.0)
    waiting = cluster.record(again).waiting
    assert "EC2 does not offer this type in the zone" in waiting
    assert "Unsupported instancetypes specified: c5.xlarge" in waiting
    assert max(report.to_mend for report in reports) == 0


def test_a_type_that_is_offered_again_is_bought_again() -> None:
    cluster = Controlled(zones=("us-east-1a", "us-east-1b"), work_s=OFFERS_FRESH_S + 1_000.0)
    cluster.world.ec2.set_withdrawn(A)
    cluster.submit(1)
    cluster.run_for(300)
    assert pool_of(cluster, A).withdrawn_at
    cluster.world.ec2.set_withdrawn(A, withdrawn=False)
    cluster.run_for(OFFERS_FRESH_S + 300.0)
    assert not pool_of(cluster, A).withdrawn_at
