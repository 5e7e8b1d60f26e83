"""A run spec's rules for placement reach every decision: groups, limits, ports, company, wishes, functions."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from argosy.api.waiting.explanation import explain_run
from argosy.catalogue.lookup import load_catalogue
from argosy.model.actions import Action, HaltRun, Launch, PrepareRun, Remark, SetTarget
from argosy.model.events import InterruptionWarned, LaunchAccepted, RunPrepared
from argosy.model.policy import Policy
from argosy.model.runs import RunStatus
from argosy.model.state import State
from argosy.placement.arrays import AnyArray
from argosy.placement.custom import OwnFunctions
from argosy.placement.fitness import Candidates
from argosy.scheduler.decide import NO_FUNCTIONS, decide
from argosy.scheduler.supply.roster import Roster
from tests.builders import (
    POLICY,
    RUN_ID,
    begun,
    container_instance,
    fleet,
    host,
    instance_id,
    joined,
    launched,
    moment_of,
    prepared,
    state_with,
    submitted,
    task,
    task_arn,
    told,
)

OTHER = "zebra-261121-062734-aaaa"
CATALOGUE = load_catalogue()


def web(*ports: Any) -> dict[str, Any]:
    return {"container": {"image": "argosy/web", "hostPorts": list(ports)}}


def ready(state: State, run_id: str = RUN_ID, tasks: int = 10, **overrides: Any) -> State:
    """A prepared run of the spec."""
    told(state, submitted(run_id, tasks=tasks, **overrides))
    event: RunPrepared = prepared(run_id)
    return told(state, replace(event, host_ports=state.runs[run_id].host_ports))


def cluster(instances: int = 1) -> State:
    return state_with(fleet(spot_target=instances), *joined(range(1, instances + 1)))


def decided(
    state: State,
    *kinds: type,
    functions: OwnFunctions = NO_FUNCTIONS,
    launching: bool = True,
    policy: Policy = POLICY,
) -> list[Any]:
    actions: list[Action] = decide(moment_of(state, policy=policy), launching, functions)
    return [action for action in actions if isinstance(action, kinds)]


def where(state: State, **options: Any) -> list[tuple[str, str]]:
    """(run, instance) of every launch."""
    return [(launch.key.run_id, launch.instance_id) for launch in decided(state, Launch, **options)]


def bought(state: State, policy: Policy = POLICY) -> int:
    return sum(action.spot_target for action in decided(state, SetTarget, policy=policy))


def start(state: State, most: int = 100) -> None:
    """Carry out the launches that are decided."""
    for launch in decided(state, Launch)[:most]:
        number = len(state.attempts.live()) + 1
        begun(state, [launch])
        told(state, LaunchAccepted(launch.key, task_arn(number)))


def test_two_runs_of_one_group_on_one_instance_add_up() -> None:
    state = ready(ready(cluster(), tasks=1, placement={"group": "team"}), OTHER, placement={"group": "team"})
    start(state, 3)
    assert Roster().at(moment_of(state)).here.row(0).running_by_group == {"team": 3}


def test_distinct_instance_holds_over_all_runs_of_a_group() -> None:
    shared = {"group": "team", "constraints": ["distinctInstance"]}
    state = ready(ready(cluster(2), tasks=1, placement=shared), OTHER, tasks=5, placement=shared)
    assert sorted(where(state)) == [(RUN_ID, instance_id(1)), (OTHER, instance_id(2))]
    start(state)
    assert not decided(state, Launch)


def test_the_limit_of_tasks_on_an_instance_counts_the_whole_group() -> None:
    shared = {"group": "team", "maxTasksPerInstance": 3}
    state = ready(ready(cluster(), tasks=2, placement=shared), OTHER, tasks=5, placement=shared)
    assert [run for run, _ in where(state)] == [RUN_ID, RUN_ID, OTHER]


def test_purchases_respect_the_limit_of_tasks_on_an_instance() -> None:
    state = ready(state_with(fleet()), tasks=6, placement={"maxTasksPerInstance": 2})
    assert bought(state) == 3


TWO_AT_MOST = replace(POLICY, most_tasks_by_type=(("c5.*", 2),))  # by its resources a c5.xlarge takes four


def test_an_instance_has_a_most_of_tasks_over_all_groups_and_what_ends_makes_room() -> None:
    state = ready(ready(cluster(), tasks=1), OTHER, tasks=5)
    assert [run for run, _ in where(state)] == [RUN_ID, OTHER, OTHER, OTHER]
    assert [run for run, _ in where(state, policy=TWO_AT_MOST)] == [RUN_ID, OTHER]
    start(state, 2)
    assert not where(state, policy=TWO_AT_MOST)
    told(state, task(1, "STOPPED", 3, exit_code=0))
    assert [run for run, _ in where(state, policy=TWO_AT_MOST)] == [OTHER]


def test_what_is_bought_and_what_waits_for_instances_on_their_way_know_their_most_of_tasks() -> None:
    alone = ready(state_with(fleet()), tasks=8)
    assert (bought(alone), bought(alone, TWO_AT_MOST)) == (2, 4)
    coming = ready(state_with(fleet(spot_target=1)), tasks=8)
    assert (bought(coming), bought(coming, TWO_AT_MOST)) == (2, 4)


def test_a_run_that_waits_because_instances_have_their_most_tasks_says_so() -> None:
    state = ready(cluster())
    start(state, 2)
    why = json.dumps(explain_run(moment_of(state, policy=TWO_AT_MOST), state.runs[RUN_ID]))
    assert "at most 2 tasks per instance" in why


def test_an_instance_never_reserves_more_host_ports_than_ecs_lets_it() -> None:
    """For tasks 94, besides the six that are never theirs."""
    state = cluster()
    for number in range(4):
        first = 1_000 + number * 30
        ready(state, f"web{number}-261121-062733-k3f9", tasks=1, **web(*range(first, first + 30)))
    assert len(where(state)) == 3


def test_a_host_port_is_given_out_once_on_an_instance_and_again_when_it_is_free() -> None:
    state = ready(ready(cluster(), **web(8080, "53/udp")), OTHER, **web("53/udp", 9000))
    assert [run for run, _ in where(state)] == [RUN_ID]
    start(state)
    assert Roster().at(moment_of(state)).here.row(0).used_host_ports == {(8080, "tcp"), (53, "udp")}
    assert not decided(state, Launch)
    free = ready(cluster(), **web(8080))
    launched(free)
    assert not decided(free, Launch)
    told(free, task(1, "STOPPED", 3, exit_code=0))
    assert len(decided(free, Launch)) == 1


DISK_20 = {"resources": {"vcpus": 0.25, "memory": 128, "diskGiB": 20}}


def test_disk_is_given_out_once_on_an_instance_and_again_when_it_is_free() -> None:
    """Of the 60 GiB of a type without GPUs, tasks may have 30."""
    state = ready(ready(cluster(), **DISK_20), OTHER, resources={"vcpus": 0.25, "memory": 128, "diskGiB": 10})
    assert [run for run, _ in where(state)] == [RUN_ID, OTHER]
    start(state)
    assert Roster().at(moment_of(state)).here.row(0).disk_gib == 0
    assert not decided(state, Launch)
    ended = ready(cluster(), **DISK_20)
    launched(ended)
    assert not decided(ended, Launch)
    told(ended, task(1, "STOPPED", 3, exit_code=0))
    assert len(decided(ended, Launch)) == 1


def test_what_is_bought_has_the_disk_that_tasks_ask_for() -> None:
    assert bought(ready(state_with(fleet()), tasks=3, **DISK_20)) == 3
    assert bought(ready(ready(state_with(fleet()), tasks=2, **DISK_20), OTHER, tasks=2, **DISK_20)) == 4
    assert bought(ready(state_with(fleet()), tasks=3, resources={"vcpus": 0.25, "memory": 128})) == 1


def test_a_run_that_waits_for_disk_says_so() -> None:
    state = ready(cluster(), **DISK_20)
    launched(state)
    assert "20 GiB of disk" in json.dumps(explain_run(moment_of(state), state.runs[RUN_ID]))


ARM = {"resources": {"architecture": "arm64"}}


@pytest.mark.parametrize(
    ("resources", "kinds"),
    [({}, {"c5.xlarge"}), ({"architecture": "arm64"}, {"c7g.xlarge"}), ({"architecture": "any"}, {"c7g.xlarge"})],
)
def test_an_image_is_bought_for_by_its_architecture(resources: dict[str, Any], kinds: set[str]) -> None:
    """c7g.xlarge is the cheaper of the two."""
    state = ready(
        state_with(fleet("c5.xlarge", spot_usd_per_hour=0.07), fleet("c7g.xlarge", spot_usd_per_hour=0.05)),
        resources=resources,
    )
    found = {action.pool.split("/")[1] for action in decided(state, SetTarget)}
    assert found == kinds


def test_an_image_goes_to_instances_of_its_architecture_only() -> None:
    for said, arm, starts in (("arm64", ARM, True), ("arm64", {}, False), ("x86_64", ARM, False), ("x86_64", {}, True)):
        state = ready(cluster(), **arm)
        (instance,) = state.instances.values()
        instance.attributes = {**instance.attributes, "ecs.cpu-architecture": said}
        assert bool(decided(state, Launch)) is starts, (said, arm)


def test_the_architecture_of_a_users_own_definition_counts() -> None:
    state = told(cluster(), submitted(RUN_ID, taskDefinition="train", container={"command": ["x"]}))
    told(state, replace(prepared(RUN_ID), architecture="arm64"))
    assert state.runs[RUN_ID].architecture == "arm64"
    (instance,) = state.instances.values()
    instance.attributes = {**instance.attributes, "ecs.cpu-architecture": "x86_64"}
    assert not decided(state, Launch)
    instance.attributes["ecs.cpu-architecture"] = "arm64"
    assert decided(state, Launch)


def test_tcp_and_udp_of_one_number_are_two_ports() -> None:
    state = ready(ready(cluster(), tasks=1, **web(53)), OTHER, tasks=1, **web("53/udp"))
    assert len(decided(state, Launch)) == 2


def test_purchases_respect_host_ports() -> None:
    """Two runs of one port need an instance for every task; runs of another port share those instances."""
    state = ready(ready(state_with(fleet()), tasks=3, **web(80)), OTHER, tasks=2, **web(80))
    assert bought(state) == 5
    state = ready(ready(state_with(fleet()), tasks=3, **web(80)), OTHER, tasks=2, **web(81))
    assert bought(state) == 3


@pytest.mark.parametrize("shy", [RUN_ID, OTHER])
def test_keeping_apart_works_both_ways(shy: str) -> None:
    """Whichever of the two said so, and whichever came first."""
    placement: dict[str, dict[str, Any]] = {RUN_ID: {"group": "a"}, OTHER: {"group": "b"}}
    placement[shy]["antiAffinity"] = ["b" if shy == RUN_ID else "a"]
    state = ready(ready(cluster(), tasks=1, placement=placement[RUN_ID]), OTHER, placement=placement[OTHER])
    assert where(state) == [(RUN_ID, instance_id(1))]
    start(state)
    assert not decided(state, Launch)


def test_anti_affinity_to_the_own_group_is_one_task_per_instance() -> None:
    state = ready(cluster(2), placement={"group": "a", "antiAffinity": ["a"]})
    assert len(decided(state, Launch)) == 2


def test_affinity_waits_for_its_company_and_buys_nothing_without_it() -> None:
    state = ready(cluster(), tasks=2, placement={"affinity": ["db"]})
    assert not decided(state, Launch)
    assert bought(state) in (0, 1)  # the instance that is here may stay; none is added
    (remark,) = decided(state, Remark)
    assert remark.sentence == "runs only next to tasks of db (affinity): no instance that runs them has room now"
    reply = explain_run(moment_of(state), state.runs[RUN_ID])
    assert reply["verdict"] == "waiting"
    assert remark.sentence in reply["sentence"]
    assert reply["cluster"]["reasons"][0]["kind"] == "affinity"
    ready(state, OTHER, tasks=1, placement={"group": "db"})
    assert where(state) == [(OTHER, instance_id(1))]
    start(state)
    assert where(state) == [(RUN_ID, instance_id(1))] * 2


def test_company_that_comes_first_is_bought_for_both() -> None:
    state = ready(state_with(fleet()), tasks=1, placement={"group": "db"})
    ready(state, OTHER, tasks=3, placement={"affinity": ["db"]})
    assert bought(state) == 1


def test_a_group_that_keeps_together_gets_one_instance_and_then_waits_for_room_on_it() -> None:
    state = ready(state_with(fleet(), fleet(zone="us-east-1b")), placement={"group": "a", "affinity": ["a"]})
    assert bought(state) == 1
    begun(state, decided(state, SetTarget))
    assert bought(state) == 1  # and none for those that it has no room for
    state = ready(cluster(2), placement={"group": "a", "affinity": ["a"]})
    assert {instance for _, instance in where(state)} == {instance_id(1)}
    start(state)
    assert not decided(state, Launch)
    (remark,) = decided(state, Remark)
    assert remark.sentence == "runs only on the instance of its group a (affinity), which has no room now"


@pytest.mark.parametrize(("cheap", "dear"), [("c5.large", "c5.xlarge"), ("c5.xlarge", "c5.large")])
def test_the_one_instance_of_a_group_that_keeps_together_is_the_cheapest(cheap: str, dear: str) -> None:
    prices = [fleet(cheap, spot_usd_per_hour=0.01), fleet(dear, spot_usd_per_hour=0.05)]
    state = ready(state_with(*prices), tasks=1, placement={"group": "a", "affinity": ["a"]})
    assert [action.pool.split("/")[1] for action in decided(state, SetTarget)] == [cheap]


def test_affinity_is_not_the_reason_where_nothing_could_hold_the_task_anyway() -> None:
    huge = {"vcpus": 64, "memory": 1024, "gpus": 0}
    state = told(state_with(fleet()), submitted(tasks=1, resources=huge, placement={"affinity": ["db"]}))
    told(state, prepared(resources=huge))
    (remark,) = decided(state, Remark)
    assert "65536 cpu units" in remark.sentence


def test_soft_constraints_prefer_and_do_not_require() -> None:
    state = cluster()
    wish = {"ecs.instance-type": "c5.xlarge", "ecs.availability-zone": "us-east-1b"}
    told(state, host(2, zone="us-east-1b"), container_instance(2, attributes=wish))
    soft = [{"expression": "attribute:ecs.availability-zone == us-east-1b", "weight": 1}]
    ready(state, tasks=5, placement={"softConstraints": soft})
    assert [instance for _, instance in where(state)].count(instance_id(2)) == 4
    assert len(where(state)) == 5
    run, heavier = state.runs[RUN_ID], ("attribute:ecs.availability-zone == us-east-1a", 2)
    run.terms = replace(run.terms, soft_constraints=(*run.terms.soft_constraints, heavier))
    assert [instance for _, instance in where(state)].count(instance_id(1)) == 4


def second_half(candidates: Candidates) -> AnyArray:
    """Prefers the instances that are listed last."""
    return -candidates.total(0).cumsum()


def falls_over(candidates: Candidates) -> AnyArray:
    raise RuntimeError("no idea")


LAST, FAILING = f"{__name__}:second_half", f"{__name__}:falls_over"


def test_a_function_of_ones_own_decides_where_tasks_go() -> None:
    functions = OwnFunctions.load([LAST])
    state = ready(cluster(3), tasks=1, placement={"strategy": [LAST]})
    assert where(state, functions=functions) == [(RUN_ID, instance_id(3))]
    assert bought(ready(state_with(fleet()), OTHER, placement={"strategy": ["cheapest"]})) == 3


def test_a_run_whose_function_cannot_be_loaded_is_halted_and_nothing_else_stops() -> None:
    functions = OwnFunctions.load(["no_such_module:f"])
    state = ready(cluster(), tasks=2, placement={"strategy": ["no_such_module:f"]})
    ready(state, OTHER, tasks=1)
    assert where(state, functions=functions) == [(OTHER, instance_id(1))]
    (halt,) = decided(state, HaltRun, functions=functions)
    assert halt.run_id == RUN_ID
    assert "no_such_module:f" in halt.reason
    begun(state, [halt])
    run = state.runs[RUN_ID]
    assert (run.halted, run.complete, run.status_reason) == (True, True, halt.reason)
    assert run.final_status is RunStatus.FAILED
    assert not decided(state, HaltRun, functions=functions)


def test_such_a_run_is_not_even_prepared() -> None:
    state = state_with(submitted(placement={"strategy": ["gone:f"]}))
    assert not decided(state, PrepareRun)
    (halt,) = decided(state, HaltRun, launching=False)
    assert halt.reason == "this deployment has no strategy or fitness function 'gone:f'"


def test_a_function_that_fails_in_use_takes_its_own_run_down_only() -> None:
    functions = OwnFunctions.load([FAILING, LAST])
    state = ready(cluster(2), tasks=1, placement={"strategy": [FAILING]})
    ready(state, OTHER, tasks=1, placement={"strategy": [LAST]})
    assert where(state, functions=functions) == [(OTHER, instance_id(2))]
    (halt,) = decided(state, HaltRun, functions=functions)
    assert halt == HaltRun(RUN_ID, f"the fitness function {FAILING!r} fails: RuntimeError: no idea")


def test_a_function_that_fails_while_buying_is_caught_as_well() -> None:
    """Nothing is active or ordered: the first instance it ever sees is one that could be bought."""
    state = ready(state_with(fleet()), placement={"strategy": [FAILING]})
    (halt,) = decided(state, HaltRun, functions=OwnFunctions.load([FAILING]))
    assert halt.run_id == RUN_ID


@pytest.mark.parametrize(("most", "on"), [(1, set()), (2, {instance_id(2)})])
def test_a_warned_instance_counts_among_those_that_a_run_may_use_until_its_tasks_have_ended(
    most: int, on: set[str]
) -> None:
    state = ready(cluster(2), tasks=4, capacity={"maxInstances": most})
    launched(state, 0, 1, on=1)
    told(state, task(1), InterruptionWarned(instance_id(1)))
    assert {name for _, name in where(state)} == on
    told(state, task(1, "STOPPED", version=3))
    assert {name for _, name in where(state)} == {instance_id(2)}
