"""A broken AMI, network or role: instances are paid and never join the cluster. Then each retry buys one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy.model.inbox import ScaleRequest
from argosy.model.runs import RunStatus
from tests.harness.simulation.world.agent import AgentBehaviour
from tests.harness.simulation.world.deployed_fleets import Bill
from tests.scenarios.controlled import Controlled

HOUR_S = 3600.0
ZONES = ("us-east-1a", "us-east-1b")
EIGHT = 8  # maxInstances, and the tasks want more


class Broken(Controlled):
    """A cluster in which some instances never join. `cure` ends that."""

    def __init__(
        self,
        types: Sequence[str],
        zones: Sequence[str],
        is_sick: Callable[[str], bool] = lambda zone: True,
        **policy: Any,
    ) -> None:
        super().__init__(types=types, zones=zones, max_instances=EIGHT, **policy)
        self.bill, self.usual = Bill(self.world), self.world.agent_behaviour
        self.world.agent_behaviour = lambda instance: (
            AgentBehaviour(registers=False) if is_sick(instance.zone) else self.usual(instance)
        )

    def cure(self) -> None:
        self.world.agent_behaviour = self.usual

    def bought(self) -> int:
        """How many instances so far."""
        return len(self.bill.ended) + len(self.live_instances())

    def most_alive(self, seconds: float) -> int:
        """The most instances at once, from now on for so long."""
        most, end = 0, self.world.now + seconds
        while self.world.now < end:
            self.step(end - self.world.now)
            most = max(most, len(self.live_instances()))
        return most


def test_while_no_instance_joins_each_retry_buys_one_and_says_why() -> None:
    """If each retry buys 8, a day costs 160 instances and 4.14 USD."""
    cluster = Broken(("c5.xlarge",), ZONES[:1])
    cluster.submit(80)
    assert cluster.most_alive(HOUR_S) == EIGHT
    said = set()
    for _ in range(3):
        assert cluster.most_alive(HOUR_S) <= 1
        said.add(cluster.explained())
    assert cluster.bought() <= EIGHT + 4
    assert cluster.bill.usd() < 0.5
    assert all("never joined the cluster" in sentence for sentence in said), said
    assert any("one at a time" in sentence for sentence in said)


def test_once_an_instance_joins_the_limit_and_the_pause_end_and_the_rest_is_bought_at_once() -> None:
    cluster = Broken(("c5.xlarge",), ZONES[:1])
    cluster.submit(80)
    cluster.run_for(1.2 * HOUR_S)  # the pause ends 1.25 hours after the first order
    cluster.cure()
    assert cluster.most_alive(HOUR_S) == EIGHT
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert not any(pool.unregistered for pool in cluster.controllers[0].state.pools.values())  # type: ignore[union-attr]


def test_while_a_whole_cell_fails_each_pool_is_tried_once_and_then_one_of_them_an_hour() -> None:
    cluster = Broken(("c5.xlarge", "m5.xlarge"), ZONES)
    cluster.submit(80)
    cluster.run_for(HOUR_S)
    assert cluster.bought() <= EIGHT + 3
    assert cluster.most_alive(3 * HOUR_S) == 1
    assert cluster.bought() <= EIGHT + 3 + 3
    cluster.cure()
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED


def test_a_zone_in_which_nothing_joins_keeps_no_other_zone_from_growing() -> None:
    cluster = Broken(("c5.xlarge",), ZONES, is_sick=lambda zone: zone == ZONES[0])
    cluster.submit(120)
    took = cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert took < HOUR_S


def test_a_minimum_size_is_tried_with_one_instance_too() -> None:
    cluster = Broken(("c5.xlarge",), ZONES[:1])
    cluster.put(ScaleRequest(cluster.world.now, 6), "cluster#scale")
    assert cluster.most_alive(HOUR_S) == 6
    assert cluster.most_alive(0.3 * HOUR_S) == 1
    assert "one at a time" in cluster.controllers[0].state.floor.waiting  # type: ignore[union-attr]
    cluster.cure()
    cluster.run_for(2 * HOUR_S)
    assert len(cluster.live_instances()) == 6


def test_a_first_order_is_small_until_an_instance_joins() -> None:
    cluster = Broken(("c5.xlarge", "m5.xlarge"), ZONES, first_order=2)
    cluster.submit(80)
    assert cluster.most_alive(60.0) == 2
    said = cluster.explained()
    assert "a first order: until an instance of the cpu AMI in us-east-1 has joined the cluster, no more" in said
    assert cluster.most_alive(0.2 * HOUR_S) == 2


def test_a_first_order_delays_only_what_is_beyond_it_and_only_until_an_instance_joins() -> None:
    def took(tasks: int, first_order: int) -> float:
        cluster = Controlled(("c5.xlarge",), ZONES[:1], max_instances=EIGHT, first_order=first_order)
        cluster.submit(tasks)
        return cluster.run_to_rest()

    assert took(8, 2) == took(8, 0)
    assert 0 < took(24, 2) - took(24, 0) < 180


def test_a_new_ami_that_is_broken_is_tried_with_few_instances_too() -> None:
    cluster = Broken(("c5.xlarge",), ZONES[:1], is_sick=lambda zone: False, first_order=2)
    cluster.submit(4)
    cluster.run_to_rest()
    cluster.world.ec2.add_launch_template("argosy", image_id="ami-2", tags={"argosy:stage": "main"})
    cluster.world.agent_behaviour = lambda instance: AgentBehaviour(registers=False)
    cluster.run_for(cluster.policy.sweep_s + 10)
    cluster.submit(80, run_id="later-261121-062733-k3f9")
    assert cluster.most_alive(0.2 * HOUR_S) == 2
