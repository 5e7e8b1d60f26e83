"""Do the placement rules of a spec hold in a living cluster: admitted, prepared, placed, started, counted by ECS?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from argosy.api.admission.specs import DeploymentLimits, Sources, admit
from argosy.model.actions import Action, HaltRun
from argosy.model.events import Event
from argosy.model.runs import RunStatus
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.placement.arrays import AnyArray
from argosy.placement.custom import OwnFunctions
from argosy.placement.fitness import Candidates
from argosy.ports import Executor
from tests.fakes.api import Definitions
from tests.harness.simulation.world.agent import AgentBehaviour
from tests.scenarios.controlled import Controlled

ZONE = "ecs.availability-zone"
FIRST, SECOND = "digits-261121-062733-k3f9", "zebra-261121-062734-aaaa"


def widest(candidates: Candidates) -> AnyArray:
    """Prefers the instances with the most cpu units."""
    return -candidates.total(0)


WIDEST = f"{__name__}:widest"
LIMITS = DeploymentLimits("s3://results/", frozenset({"results"}), {}, frozenset({WIDEST, "no_such_module:f"}))


class Images:
    def resolve(self, image: str) -> str | None:
        return image


class Items:
    def read_items(self, uri: str) -> list[Any]:
        raise AssertionError(uri)


def submit(cluster: Controlled, run_id: str, tasks: int, **fields: Any) -> str:
    """Through admission, as the api does it."""
    container = {"image": "argosy/digits", "command": ["work"], **fields.pop("container", {})}
    name = run_id.partition("-")[0]
    spec = {"version": 1, "name": name, "container": container, "array": {"size": tasks}, **fields}
    form = admit(spec, LIMITS, Sources(Images(), Items(), Definitions())).form
    return cluster.submit(tasks, run_id, **form)


class RecordingExecutor:
    """ports.Executor that record the kinds of requested actions."""

    def __init__(self, real: Executor) -> None:
        self.real, self.asked = real, set[type]()

    def carry_out(self, actions: Sequence[Action], state: State, deadline: float) -> list[Event]:
        self.asked.update(map(type, actions))
        return self.real.carry_out(actions, state, deadline)

    def observe(self, now: float, state: State) -> Event:
        return self.real.observe(now, state)


class Census:
    """Which tasks ran where at the same time, from ECS's own view while the cluster runs."""

    def __init__(self, cluster: Controlled) -> None:
        self.cluster, self.until = cluster, cluster.world.now + 3600
        self.together: set[frozenset[str]] = set()  # groups seen on one instance at one time
        self.most: Counter[str] = Counter()  # tasks of a group on one instance at one time
        self.most_of_all = 0  # tasks on one instance at one time
        self.used: defaultdict[str, set[str]] = defaultdict(set)  # group -> instances
        self.types: dict[str, str] = {}  # of each instance
        self.zones: dict[str, str] = {}  # of each task

    def run_to_rest(self) -> None:
        while not self.cluster.step():
            assert self.cluster.world.now < self.until, "it does not come to rest"
            here: defaultdict[str, Counter[str]] = defaultdict(Counter)
            for task in self._live():
                here[task["containerInstanceArn"]][task["group"]] += 1
                self.zones[task["taskArn"]] = task["availabilityZone"]
            for instance, groups in here.items():
                self.together.add(frozenset(groups))
                self.most_of_all = max(self.most_of_all, groups.total())
                self.types[instance] = self._type_of(instance)
                for group, count in groups.items():
                    self.most[group] = max(self.most[group], count)
                    self.used[group].add(instance)

    def _type_of(self, instance: str) -> str:
        answer = self.cluster.ecs.describe_container_instances(
            cluster=self.cluster.world.cluster, containerInstances=[instance]
        )
        (found,) = answer["containerInstances"]
        return next(each["value"] for each in found["attributes"] if each["name"] == "ecs.instance-type")

    def _live(self) -> list[dict[str, Any]]:
        ecs, name = self.cluster.ecs, self.cluster.world.cluster
        arns = ecs.list_tasks(cluster=name)["taskArns"]
        return ecs.describe_tasks(cluster=name, tasks=arns)["tasks"] if arns else []


def ended(cluster: Controlled, run_id: str, tasks: int) -> None:
    record = cluster.record(run_id)
    assert record.status == RunStatus.SUCCEEDED, record
    assert record.counts[TaskStatus.SUCCEEDED] == tasks
    assert record.attempts == tasks


def test_runs_that_keep_apart_never_share_an_instance() -> None:
    cluster = Controlled()
    submit(cluster, FIRST, 10, placement={"group": "a", "antiAffinity": ["b"]})
    cluster.run_for(20)
    submit(cluster, SECOND, 10, placement={"group": "b"})
    census = Census(cluster)
    census.run_to_rest()
    ended(cluster, FIRST, 10)
    ended(cluster, SECOND, 10)
    assert census.together == {frozenset("a"), frozenset("b")}


def test_without_the_rule_they_do_share() -> None:
    """So that the test above tests something."""
    cluster = Controlled()
    submit(cluster, FIRST, 10, placement={"group": "a"})
    submit(cluster, SECOND, 10, placement={"group": "b"})
    census = Census(cluster)
    census.run_to_rest()
    assert frozenset("ab") in census.together


def test_host_ports_never_collide() -> None:
    """Each is taken at most once on an instance, and ECS never has to refuse a launch for one."""
    cluster = Controlled()
    submit(cluster, FIRST, 6, container={"hostPorts": [8080, "53/udp"]}, placement={"group": "a"})
    submit(cluster, SECOND, 6, container={"hostPorts": ["53/udp"]}, placement={"group": "b"})
    census = Census(cluster)
    census.run_to_rest()
    ended(cluster, FIRST, 6)
    ended(cluster, SECOND, 6)
    assert census.together == {frozenset("a"), frozenset("b")}
    assert census.most == {"a": 1, "b": 1}


def test_runs_of_one_group_share_its_limit() -> None:
    cluster = Controlled()
    for run_id in (FIRST, SECOND):
        submit(cluster, run_id, 6, placement={"group": "team", "maxTasksPerInstance": 3})
    census = Census(cluster)
    census.run_to_rest()
    ended(cluster, FIRST, 6)
    ended(cluster, SECOND, 6)
    assert census.most == {"team": 3}


def test_an_instance_never_runs_more_tasks_than_its_most_and_enough_instances_are_bought_for_all() -> None:
    cluster = Controlled(most_tasks_by_type=(("c5.*", 3),))
    submit(cluster, FIRST, 5, placement={"group": "a"})
    submit(cluster, SECOND, 4, placement={"group": "b"})
    census = Census(cluster)
    census.run_to_rest()
    ended(cluster, FIRST, 5)
    ended(cluster, SECOND, 4)
    assert census.most_of_all == 3
    assert len(census.used["a"] | census.used["b"]) == 3


def test_company_is_kept() -> None:
    cluster = Controlled()
    submit(cluster, FIRST, 2, placement={"group": "db", "strategy": ["spread:instanceId"]})
    submit(cluster, SECOND, 2, placement={"group": "web", "affinity": ["db"]})
    census = Census(cluster)
    census.run_to_rest()
    ended(cluster, FIRST, 2)
    ended(cluster, SECOND, 2)
    assert census.used["web"] <= census.used["db"]


def test_a_fitness_function_decides_and_one_that_is_missing_ends_its_run_with_the_reason() -> None:
    cluster = Controlled()
    executor = RecordingExecutor(cluster.controllers[0].executor)
    functions = OwnFunctions.load([WIDEST, "no_such_module:f"])
    cluster.controllers = [replace(cluster.controllers[0], functions=functions, executor=executor)]
    submit(cluster, FIRST, 4, placement={"strategy": [WIDEST]})
    submit(cluster, SECOND, 4, placement={"strategy": ["no_such_module:f"]})
    cluster.run_to_rest()
    ended(cluster, FIRST, 4)
    record = cluster.record(SECOND)
    assert (record.status, record.attempts) == (RunStatus.FAILED, 0)
    assert "no_such_module:f" in record.status_reason
    assert HaltRun not in executor.asked  # it is a mark in the state and nothing to be done outside


def test_tasks_that_name_a_model_run_on_no_other_however_cheap_and_however_warm() -> None:
    """A T4 is cheapest: V100s are bought nevertheless, and those of 32 GiB for the run that asks for 20,000 MiB."""
    cluster = Controlled(types=("g4dn.xlarge", "p3.2xlarge", "p3dn.24xlarge"))
    submit(cluster, FIRST, 1, resources={"gpus": 1})
    submit(cluster, SECOND, 2, resources={"gpus": 1, "gpuModel": "V100"})
    third = submit(cluster, "wide-261121-062735-bbbb", 1, resources={"gpus": 1, "gpuMemoryMib": 20_000})
    census = Census(cluster)
    census.run_to_rest()
    for run_id, tasks in ((FIRST, 1), (SECOND, 2), (third, 1)):
        ended(cluster, run_id, tasks)
    used = {group: {census.types[arn] for arn in arns} for group, arns in census.used.items()}
    assert used[f"run:{FIRST}"] == {"g4dn.xlarge"}
    assert used[f"run:{SECOND}"] <= {"p3.2xlarge", "p3dn.24xlarge"}
    assert used[f"run:{third}"] == {"p3dn.24xlarge"}


def test_nine_tasks_that_are_spread_over_zones_run_three_in_each_though_one_zone_is_cheapest() -> None:
    """From an empty cluster. Without a spread all nine run where it is cheapest."""
    prices = {"a": 0.04, "b": 0.09, "c": 0.09}
    for strategy, zones in (((f"spread:attribute:{ZONE}",), {"a": 3, "b": 3, "c": 3}), ((), {"a": 9})):
        cluster = Controlled(prices=lambda kind, zone, *when: prices[zone[-1]])
        submit(cluster, FIRST, 9, placement={"strategy": list(strategy)} if strategy else {})
        census = Census(cluster)
        census.run_to_rest()
        ended(cluster, FIRST, 9)
        assert Counter(zone[-1] for zone in census.zones.values()) == zones


def test_a_zone_that_does_not_deliver_holds_no_task_of_a_spread_back_for_ever() -> None:
    cluster = Controlled()
    for zone in "bc":
        cluster.world.ec2.set_shortage(f"c5.xlarge/us-east-1{zone}", 0)
    submit(cluster, FIRST, 9, placement={"strategy": [f"spread:attribute:{ZONE}"]})
    census = Census(cluster)
    census.run_to_rest()
    ended(cluster, FIRST, 9)
    assert set(census.zones.values()) == {"us-east-1a"}


def test_an_attribute_that_a_setting_gives_decides_what_is_bought() -> None:
    """The more expensive type is bought for the team whose instances have the attribute; nothing is for the other
    team."""
    given = (("c5.2*", (("team", "vision"),)),)
    cluster = Controlled(types=("c5.xlarge", "c5.2xlarge"), attributes_by_type=given)
    cluster.world.agent_behaviour = lambda instance: AgentBehaviour(
        attributes=cluster.policy.attributes_of(instance.instance_type)
    )
    submit(cluster, FIRST, 3, placement={"constraints": ["attribute:team == vision"]})
    submit(cluster, SECOND, 3, placement={"constraints": ["attribute:team == audio"]})
    cluster.run_for(300)
    ended(cluster, FIRST, 3)
    assert {each.instance_type for each in cluster.world.ec2.ledger.instances.values()} == {"c5.2xlarge"}
    assert "attribute:team == audio" in cluster.record(SECOND).waiting
