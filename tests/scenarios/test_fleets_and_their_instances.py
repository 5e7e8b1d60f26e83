"""To which pool does an instance belong, and what may raise a fleet's target? Second, replaced and deleted fleets;
instances that EC2 does not end; the kill switch while instances idle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.model.stored import documents
from argosy.model.tasks import TaskStatus
from tests.builders import CELL
from tests.fakes.aws import refusal
from tests.scenarios.controlled import Controlled
from tests.scenarios.two_cells import AWAY, TwoCells

KIND, ZONE = "c5.xlarge", "us-east-1a"
POOL = f"{KIND}/{ZONE}"
MORE, NEXT = "more-261121-062801-aaaa", "next-261121-062801-aaaa"
TAGS = {"argosy:stage": "main", "argosy:pool": POOL}


def busy(**policy: float) -> Controlled:
    """Four instances with 16 tasks, six allowed."""
    cluster = Controlled(zones=(ZONE,), **{"max_instances": 6, "linger_s": 60.0, "work_s": 600.0, **policy})
    cluster.submit(16)
    while len(cluster.live_instances()) < 4 or cluster.record().counts[TaskStatus.RUNNING] < 16:
        cluster.step()
    return cluster


def only_fleet(cluster: Controlled) -> str:
    (fleet,) = cluster.ec2.describe_fleets()["Fleets"]
    return str(fleet["FleetId"])


def targets(cluster: Controlled) -> dict[str, int]:
    fleets = cluster.ec2.describe_fleets()["Fleets"]
    return {fleet["FleetId"]: fleet["TargetCapacitySpecification"]["TotalTargetCapacity"] for fleet in fleets}


def most_alive(cluster: Controlled, seconds: float) -> int:
    most, end = 0, cluster.world.now + seconds
    while cluster.world.now < end:
        cluster.step()
        most = max(most, len(cluster.live_instances()))
    return most


def test_a_second_fleet_of_a_pool_buys_nothing_for_what_the_first_one_holds() -> None:
    cluster = busy()
    first = only_fleet(cluster)
    second = cluster.world.add_fleet(KIND, ZONE, **TAGS)
    assert most_alive(cluster, 900.0) == 4
    assert targets(cluster)[second] == 0
    assert cluster.controllers[0].state.pools[f"{CELL}/{POOL}"].fleet_id == first  # type: ignore[union-attr]
    cluster.run_to_rest()
    assert set(targets(cluster).values()) == {0}


def test_a_fleet_that_replaces_another_takes_over_and_what_the_old_one_left_is_used_and_let_go() -> None:
    cluster = busy()
    first = only_fleet(cluster)
    second = cluster.world.add_fleet(KIND, ZONE, **TAGS)
    cluster.ec2.delete_fleets(FleetIds=[first], TerminateInstances=False)
    assert most_alive(cluster, 400.0) == 4
    assert targets(cluster)[second] == 0
    cluster.submit(16, MORE, name="more")
    assert most_alive(cluster, 400.0) <= 6
    cluster.run_to_rest()
    assert cluster.live_instances() == []
    assert cluster.record(MORE).status == "SUCCEEDED"


def test_the_target_of_a_second_fleet_is_set_to_zero() -> None:
    """In the state that a controller leaves if it takes the fleet for the pool's own."""
    cluster = busy()
    first = only_fleet(cluster)
    second = cluster.world.add_fleet(KIND, ZONE, spot=2, **TAGS)
    cluster.run_for(300.0)
    assert targets(cluster) == {first: 4, second: 0}
    cluster.run_to_rest()
    assert cluster.live_instances() == []


def test_instances_of_a_deleted_fleet_are_let_go_and_its_pool_is_left_alone_until_there_is_one_again() -> None:
    cluster = busy()
    cluster.ec2.delete_fleets(FleetIds=[only_fleet(cluster)], TerminateInstances=False)
    cluster.run_to_rest()
    assert cluster.live_instances() == []
    cluster.submit(4, NEXT, name="next")
    cluster.run_for(300.0)
    assert cluster.record(NEXT).counts[TaskStatus.PENDING] == 4
    assert "no fleets" in cluster.record(NEXT).waiting
    cluster.world.add_fleet(KIND, ZONE, **TAGS)
    cluster.run_to_rest()
    assert cluster.record(NEXT).status == "SUCCEEDED"


class Stubborn:
    """EC2, which refuses to end one instance."""

    def __init__(self, real: Any, error: str) -> None:
        self._real, self._error = real, error
        self.protected = ""
        self.asked: list[float] = []
        self.now: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def terminate_instances(self, **request: Any) -> Any:
        if self.protected in request["InstanceIds"]:
            self.asked.append(self.now())
            raise refusal(self._error, f"The instance '{self.protected}' may not be terminated.")
        return self._real.terminate_instances(**request)


@pytest.mark.parametrize("error", ["OperationNotPermitted", "UnauthorizedOperation"])
def test_an_instance_that_ec2_will_not_end_keeps_no_other_alive(error: str, caplog: pytest.LogCaptureFixture) -> None:
    cluster = Controlled(zones=(ZONE,), work_s=60.0, max_instances=4, linger_s=60.0)
    cluster.ec2 = stubborn = Stubborn(cluster.ec2, error)
    stubborn.now = cluster.world.clock
    cluster.controllers = [cluster.controller()]
    cluster.submit(40)
    while len(cluster.live_instances()) < 4:
        cluster.step()
    stubborn.protected = cluster.live_instances()[0]["InstanceId"]
    cluster.run_for(1800.0)
    assert cluster.record().status == "SUCCEEDED"
    assert [each["InstanceId"] for each in cluster.live_instances()] == [stubborn.protected]
    assert f"{stubborn.protected} could not be terminated" in caplog.text
    assert cluster.controllers[0].tick().stubborn == 1
    asked = len(stubborn.asked)
    cluster.run_for(1800.0)
    assert 0 < len(stubborn.asked) - asked <= 31  # once a minute
    cluster.submit(4, NEXT, name="next")  # its fleet counts it, we do not: what is ordered comes on top of it, at once
    cluster.run_for(cluster.policy.order_patience_s - 5.0)
    assert cluster.record(NEXT).status == "SUCCEEDED"
    stubborn.protected = "nobody"
    cluster.run_to_rest()
    assert cluster.live_instances() == []


def test_with_the_kill_switch_on_idle_instances_go_and_none_comes_in_place_of_a_lost_one() -> None:
    cluster = busy(min_instances=3)
    cluster.submit(8, MORE, name="more")
    cluster.store.killed = "stop"
    cluster.run_for(20.0)
    lost = cluster.live_instances()[0]["InstanceId"]
    cluster.world.interrupt(lost)
    assert most_alive(cluster, 300.0) <= 4
    assert len(cluster.live_instances()) == 3
    cluster.run_for(1200.0)
    assert cluster.live_instances() == []
    assert set(targets(cluster).values()) == {0}


class Unseen:
    """EC2, whose instances cannot be listed."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def describe_instances(self, **request: Any) -> Any:
        raise refusal("UnauthorizedOperation", "You are not authorized to perform this operation.")


def test_while_one_cell_stays_unknown_what_idles_in_the_other_is_let_go_and_nothing_is_bought() -> None:
    cluster = TwoCells({CELL: 0.05, AWAY: 0.09})
    cluster.submit(16)
    while len(cluster.live_instances()) < 4 or cluster.record().status != "SUCCEEDED":
        cluster.step()
    assert cluster.live_instances()
    home, away = cluster.cells()
    cluster.cells = lambda ecs=None: [home, replace(away, ec2=Unseen(away.ec2))]  # type: ignore[method-assign]
    for partition, name in list(cluster.store.items):
        if partition == documents.STATE and name.startswith("INSTANCES#"):
            cluster.store.items[partition, name] = b"rot"
    cluster.controllers = [cluster.controller()]
    cluster.submit(8, MORE, name="more")
    cluster.run_for(900.0)
    assert cluster.live_instances() == []
    assert set(targets(cluster).values()) == {0}
    assert cluster.record(MORE).counts[TaskStatus.PENDING] == 8
