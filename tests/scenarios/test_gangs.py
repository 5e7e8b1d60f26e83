"""Gangs: tasks that start, run and restart together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from argosy.emulator.ec2.instances import instance_view
from argosy.emulator.ec2.records import Ec2Instance
from argosy.model.runs import RunStatus
from argosy.model.tasks import TaskStatus
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled, index_of

SIZE = 3
WHOLE = {"resources": {"vcpus": 4, "memory": 4096}}  # a task fills an instance
HOSTS = "ARGOSY_GANG_HOSTS"


def gangs(cluster: Controlled, count: int = 1, **overrides: Any) -> None:
    gang = {"size": SIZE, **overrides.pop("gang", {})}
    cluster.submit(count * SIZE, gang=gang, array={"size": count}, **{**WHOLE, **overrides})


Place = tuple[str, str, str]  # instance id, zone, private address


class Seen:
    """Where members begin, by gang and attempt, and by rank."""

    def __init__(self, cluster: Controlled, behaves: Callable[[dict[str, Any]], TaskBehaviour]) -> None:
        self._behaves, self._cluster = behaves, cluster
        self._places: defaultdict[tuple[int, int], dict[int, Place]] = defaultdict(dict)
        self.told: dict[tuple[int, int], dict[str, str]] = {}
        """The variables of each attempt, by its task and number."""
        cluster.world.workload = self._begin

    def _begin(self, task: dict[str, Any], host: Ec2Instance) -> TaskBehaviour:
        told = {each["name"]: each["value"] for each in task["overrides"]["containerOverrides"][0]["environment"]}
        gang, rank = divmod(index_of(task), SIZE)
        place = host.instance_id, host.zone, instance_view(host, "x86_64")["PrivateIpAddress"]
        self._places[gang, int(told["ARGOSY_TASK_ATTEMPT"])][rank] = place
        self.told[index_of(task), int(told["ARGOSY_TASK_ATTEMPT"])] = told
        return self._behaves(task)

    def of(self, gang: int = 0, attempt: int = 1) -> list[Place]:
        return [place for _, place in sorted(self._places[gang, attempt].items())]

    @property
    def attempts(self) -> set[tuple[int, int]]:
        return {key for key, its in self._places.items() if its}


def test_a_gang_is_bought_whole_in_one_zone_and_its_members_know_each_other() -> None:
    cluster = Controlled()
    seen = Seen(cluster, lambda task: TaskBehaviour(60.0))
    gangs(cluster, 2)
    cluster.run_to_rest()
    assert cluster.record().status is RunStatus.SUCCEEDED
    variables = seen.told
    assert seen.attempts == {(0, 1), (1, 1)}
    for gang in range(2):
        hosts = seen.of(gang)
        assert len({name for name, _, _ in hosts}) == SIZE
        assert len({zone for _, zone, _ in hosts}) == 1
        for rank in range(SIZE):
            mine = variables[gang * SIZE + rank, 1]
            assert mine[HOSTS] == ",".join(address for _, _, address in hosts)
            assert (mine["MASTER_ADDR"], mine["RANK"], mine["WORLD_SIZE"]) == (hosts[0][2], str(rank), str(SIZE))
            assert mine["MASTER_PORT"] == variables[gang * SIZE, 1]["MASTER_PORT"]
    assert [entry["index"] for entry in cluster.manifest()] == [0, 1]


def test_a_member_whose_instance_dies_unseen_restarts_all_and_the_others_exit_codes_count_for_nothing() -> None:
    """The peers notice the loss before the controller does, and fail."""
    cluster = Controlled(zones=("us-east-1a",), fate_s=0.0)
    seen = Seen(cluster, lambda task: TaskBehaviour(600.0))
    gangs(cluster, retryStrategy={"attempts": 1})
    cluster.run_for(300)
    [(lost, _, _), *_] = seen.of()
    for name, agent in cluster.world.agents.items():
        for task in [*agent.tasks.values()] if name != lost else ():
            task.fail(1)
    cluster.world.ec2.lose(lost)
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.failures) == (RunStatus.SUCCEEDED, ())
    before, after = seen.of(attempt=1), seen.of(attempt=2)
    assert {*before[1:]} < {*after}, "the instances of the others were kept"
    assert lost not in {name for name, _, _ in after}


def test_a_member_that_fails_stops_the_others_and_the_gang_has_its_tries_as_one() -> None:
    cluster = Controlled(zones=("us-east-1a",))
    seen = Seen(cluster, lambda task: TaskBehaviour(30.0, 7) if index_of(task) == 1 else TaskBehaviour(3600.0))
    gangs(cluster, retryStrategy={"attempts": 2})
    took_s = cluster.run_to_rest()
    record = cluster.record()
    assert record.status is RunStatus.FAILED
    assert record.counts[TaskStatus.FAILED] == SIZE
    assert [(each.index, each.attempt, each.exit_code) for each in record.failures] == [(1, 1, 7), (1, 2, 7)]
    assert took_s < 1800, "the other members were stopped"
    assert seen.attempts == {(0, 1), (0, 2)}


def test_a_gang_waits_for_a_zone_that_has_all_of_it_and_holds_nothing_meanwhile() -> None:
    """One zone delivers two instances of three, and then nothing."""
    cluster = Controlled(zones=("us-east-1a", "us-east-1b"), linger_s=60.0)
    seen = Seen(cluster, lambda task: TaskBehaviour(60.0))
    cluster.world.ec2.set_shortage("c5.xlarge/us-east-1a", 2)
    cluster.world.ec2.set_shortage("c5.xlarge/us-east-1b", 0)
    gangs(cluster)
    cluster.run_for(900)
    assert not cluster.starts(), "no member started alone"
    cluster.world.ec2.set_shortage("c5.xlarge/us-east-1b", None)
    cluster.run_to_rest()
    assert cluster.record().status is RunStatus.SUCCEEDED
    assert {zone for _, zone, _ in seen.of()} == {"us-east-1b"}


def test_a_gang_that_does_not_start_in_time_is_stopped_and_started_again() -> None:
    cluster, slow = Controlled(zones=("us-east-1a",)), [True]
    is_slow = lambda task: index_of(task) == 2 and slow and slow.pop()  # noqa: E731
    seen = Seen(cluster, lambda task: TaskBehaviour(300.0, pull_s=9_999.0 if is_slow(task) else 1.0))
    gangs(cluster, gang={"startWithinSeconds": 60})
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.failures) == (RunStatus.SUCCEEDED, ())
    assert seen.attempts == {(0, 1), (0, 2)}


def test_a_cancelled_gang_ends_as_one() -> None:
    cluster = Controlled(zones=("us-east-1a",))
    seen = Seen(cluster, lambda task: TaskBehaviour(3600.0))
    gangs(cluster)
    cluster.run_for(300)
    cluster.cancel()
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.counts[TaskStatus.CANCELLED]) == (RunStatus.CANCELLED, SIZE)
    assert seen.attempts == {(0, 1)}


def test_a_gang_whose_rank_0_left_no_result_is_tried_again_and_fails_as_one() -> None:
    cluster = Controlled(zones=("us-east-1a",))
    seen = Seen(cluster, lambda task: TaskBehaviour(60.0))
    gangs(cluster, retryStrategy={"attempts": 2}, expects_result=True)
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.counts[TaskStatus.FAILED]) == (RunStatus.FAILED, SIZE)
    assert seen.attempts == {(0, 1), (0, 2)}
