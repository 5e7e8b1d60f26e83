"""What AWS refuses is what a run says that it waits for, at once and in AWS's words; nothing else is said."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from argosy.api.cluster.views import fleet_view
from argosy.aws.cell import Cell
from argosy.aws.errors import NO_CLUSTER
from argosy.engine.report import TickReport
from argosy.model.runs import RunStatus
from argosy.model.setbacks import Act, Setback, Subject
from argosy.model.tasks import TaskStatus
from argosy.scheduler.buying.reasons import BACKS_OFF
from tests.builders import CELL, RUN_ID
from tests.fakes.refusing import DENIED, refusing
from tests.scenarios.controlled import Controlled, failing
from tests.scenarios.two_cells import AWAY, TwoCells

TICKS = 3  # within which a reason is shown
SCP = "explicit deny in a service control policy"


@pytest.mark.parametrize("answer", [DENIED, ("InvalidTargetCapacitySpecification", "Only the total can be modified.")])
def test_a_refused_order_is_the_reason_at_once_and_counts_neither_as_ordered_nor_as_a_limit(
    answer: tuple[str, str],
) -> None:
    """N2. maxInstances is small, so that an order that counts would be the reason."""
    cluster = Controlled(zones=("us-east-1a", "us-east-1b"), max_instances=2)
    ec2 = refusing(cluster, "ec2")
    ec2.answers["modify_fleet"] = answer
    cluster.submit(40)
    words = SCP if answer == DENIED else answer[1]
    reports: list[TickReport] = []
    for number in range(40):
        reports.append(cluster.controllers[0].tick())
        cluster.pass_time(cluster.tick_s)
        if number >= TICKS:
            for sentence in (cluster.record().waiting, cluster.explained()):
                assert words in sentence, number
                assert answer[0] in sentence
                assert not any(other in sentence for other in ("maxInstances", "ordered", "on their way", "capacity;"))
    state = cluster.controllers[0].state
    assert state is not None
    assert not state.owed()
    assert max(report.to_mend for report in reports) == 2
    assert not any(first.to_mend == second.to_mend == 0 for first, second in pairwise(reports[TICKS:]))
    assert all(fleet_view(pool, cluster.world.now, cluster.policy)["needsMending"] for pool in state.pools.values())
    ec2.answers.clear()
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert not any(pool.needs_mending for pool in state.pools.values() if pool.spot_target)


def test_a_pool_that_is_refused_leaves_the_work_to_the_others() -> None:
    cluster = Controlled(zones=("us-east-1a", "us-east-1b"))
    ec2 = refusing(cluster, "ec2")
    ec2.answers["modify_fleet"] = DENIED
    denied = next(iter(cluster.world.ec2.ledger.fleets))
    ec2.meant = lambda request: request["FleetId"] == denied
    cluster.submit(4)
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert ec2.refused


@pytest.mark.parametrize(
    ("operation", "what"), [("describe_fleets", "the fleets of us-east-1"), ("describe_instances", "the hosts of")]
)
def test_a_listing_that_breaks_off_is_the_reason_and_never_no_fleets_yet(operation: str, what: str) -> None:
    """N5."""
    cluster = Controlled(zones=("us-east-1a",))
    ec2 = refusing(cluster, "ec2")
    ec2.answers[operation] = DENIED
    cluster.submit(4)
    for number in range(30):
        cluster.tick()
        assert "no fleets yet" not in cluster.record().waiting + cluster.explained()
        if number >= TICKS:
            for sentence in (cluster.record().waiting, cluster.explained()):
                assert what in sentence, number
                assert SCP in sentence
    assert not cluster.world.ec2.ledger.instances  # could not be proven ours, and ended
    ec2.answers.clear()
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED


@pytest.mark.parametrize(("call", "purchase"), [("modify_fleet", "spot"), ("create_fleet", "on-demand")])
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (("RequestLimitExceeded", "Request limit exceeded."), "RequestLimitExceeded"),
        (("InternalError", "An internal error has occurred."), "InternalError"),
        (ReadTimeoutError(endpoint_url="https://ec2.us-east-1.amazonaws.com"), "ReadTimeoutError: Read timeout"),
    ],
)
def test_an_order_that_does_not_get_through_stays_and_says_so(
    answer: tuple[str, str] | Exception, words: str, call: str, purchase: str
) -> None:
    cluster = Controlled(zones=("us-east-1a",))
    ec2 = refusing(cluster, "ec2")
    ec2.answers[call] = answer
    cluster.submit(4, capacity={"purchase": purchase})
    for number in range(40):
        cluster.tick()
        if number >= TICKS:
            for sentence in (cluster.record().waiting, cluster.explained()):
                assert words in sentence, number
                assert "until this is fixed" not in sentence
                assert not any(other in sentence for other in ("did not arrive", "on their way", "join the cluster"))
    ec2.answers.clear()
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert not cluster.live_instances()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (DENIED, "no task can be started"),
        (("ThrottlingException", "Rate exceeded"), "RunTask does not get through"),
        (("ServerException", "These errors are usually caused by a server issue."), "RunTask does not get through"),
        (("RequestTimeTooSkewed", "The difference between the request time and the current time is too large."), "not"),
    ],
)
def test_a_launch_that_is_refused_or_unanswered_is_the_reason_until_a_task_starts(
    answer: tuple[str, str], says: str
) -> None:
    """Ten minutes pass, after which a launch in doubt is not sent again."""
    cluster = Controlled(zones=("us-east-1a",), max_instances=2)
    ecs = refusing(cluster, "ecs")
    ecs.answers["run_task"] = answer
    cluster.submit(12)
    refused_for = 0
    while refused_for < 70:
        refused_for += bool(ecs.refused)
        cluster.tick()
        if refused_for > TICKS:
            for sentence in (cluster.record().waiting, cluster.explained()):
                assert says in sentence, refused_for
                assert answer[0] in sentence
                assert "maxInstances" not in sentence
    ecs.answers.clear()
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert not cluster.live_instances()


class WithoutClusters(TwoCells):
    """Cells of the settings whose cluster is not there, so that no instance of theirs can join."""

    def __init__(self, *cells: str, **policy: Any) -> None:
        self.lacking: tuple[str, ...] = cells
        super().__init__({CELL: 0.05, AWAY: 0.09})
        self.events.lose = lambda message: message["source"] == "aws.ecs" and message["region"] in self.lacking
        self.policy = replace(self.policy, **policy)
        self.controllers = [self.controller()]

    def cells(self, ecs: Any = None) -> list[Cell]:
        found = super().cells(ecs)
        return [replace(cell, cluster="gone") if cell.name in self.lacking else cell for cell in found]


@pytest.mark.parametrize("most", [2, 100])
def test_cells_that_all_lack_their_cluster_are_the_reason(most: int) -> None:
    """N2. Instances are ordered and paid for, and none can join."""
    cluster = WithoutClusters(CELL, AWAY, max_instances=most)
    cluster.submit(12)
    for number in range(30):
        cluster.tick()
        if number > TICKS:
            for sentence in (cluster.record().waiting, cluster.explained()):
                assert NO_CLUSTER in sentence, number
                assert not any(other in sentence for other in ("maxInstances", "ordered instances", "on their way"))
    cluster.lacking = ()
    cluster.controllers = [cluster.controller()]
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED


def test_a_cell_that_lacks_its_cluster_keeps_no_controller_from_rest() -> None:
    cluster = WithoutClusters(AWAY)
    cluster.submit(4)
    assert cluster.run_to_rest() < 900.0
    assert cluster.record().status == RunStatus.SUCCEEDED


def test_a_task_that_is_tried_again_after_a_lost_answer_waits_for_no_retry_any_more() -> None:
    """Its launch was not answered, though it started; then it failed, and the refusal still counts as the reason."""
    cluster = Controlled(zones=("us-east-1a",))
    failing(cluster, 0)
    cluster.submit(1, retryStrategy={"attempts": 3})
    cluster.tick()
    while not cluster.record().waiting.startswith(BACKS_OFF):
        cluster.tick()
    state = cluster.controllers[0].state
    assert state is not None
    about, now = Subject(Act.SEND, RUN_ID), cluster.world.now
    state.setbacks[about] = Setback(1, now, "no answer", now)
    while cluster.record().waiting.startswith(BACKS_OFF):
        assert not state.runs[RUN_ID].tasks.counts()[TaskStatus.STARTING]
        cluster.tick()
    assert state.setbacks[about].holds(cluster.world.now)
