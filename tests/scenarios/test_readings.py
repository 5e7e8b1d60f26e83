"""The core stories under each reading of AWS's contracts alone, and under all at once. The real engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.emulator.readings import HYPHENS, QUEUE_STUCK, READINGS, TOTAL_ONLY, known
from argosy.engine.loading import stored
from argosy.model.inbox import ScaleRequest
from argosy.model.readings import DELETED_OVER_LIMIT, DOCKER_BLOCKS, OLD_TARGET, ONLY_ACTIVE, ROOM_BACK_EARLY
from argosy.model.runs import RunStatus
from argosy.model.tasks import TaskStatus
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled
from tests.scenarios.core_stories import STORIES, a_run_to_its_end, ended, spent_nothing_more, world

OTHER = "other-270115-080000-abcd"
NAMES = list(STORIES)
THIRDS = 3
SOME = [
    pytest.param(reading, name, id=f"{reading}-{name}")
    for number, reading in enumerate(READINGS)
    for name in NAMES[number % THIRDS :: THIRDS]
]
ALL = [pytest.param("all", name, id=f"all-{name}") for name in NAMES]
REST = [
    pytest.param(reading, name, id=f"{reading}-{name}", marks=pytest.mark.deep)
    for number, reading in enumerate(READINGS)
    for place, name in enumerate(NAMES)
    if place % THIRDS != number % THIRDS
]


SHORT, SERVICE = "two_pools_without_capacity_or_quota", "a_service_with_an_on_demand_base_and_a_rollout"
# Reading and story -> what the controller must have seen in it, beside others.
SEEN = {
    ("all", SHORT): {ONLY_ACTIVE: True, OLD_TARGET: True, DELETED_OVER_LIMIT: True},
    ("all", SERVICE): {ROOM_BACK_EARLY: True},
    (TOTAL_ONLY, SHORT): {DELETED_OVER_LIMIT: False, DOCKER_BLOCKS: False},
    (OLD_TARGET, SERVICE): {OLD_TARGET: True, ROOM_BACK_EARLY: False},
}


@pytest.mark.parametrize(("reading", "name"), [*SOME, *ALL, *REST])
def test_every_story_ends_well(reading: str, name: str) -> None:
    readings = known([reading])
    cluster = STORIES[name](readings)
    assert spent_nothing_more(cluster)
    seen = answers(cluster)
    early = {ROOM_BACK_EARLY} if QUEUE_STUCK in readings else set()
    assert seen == {each: each in readings | early for each in seen}
    assert seen.items() >= SEEN.get((reading, name), {}).items()


def answers(cluster: Controlled) -> dict[str, bool]:
    """What the store has of them."""
    state = stored(cluster.store).state()
    return {name: sighting.holds for name, sighting in state.readings.seen.items()}


@pytest.mark.parametrize("reading", READINGS)
def test_a_run_is_bought_for_and_ends_and_its_fleets_go_back_to_nothing(reading: str) -> None:
    assert spent_nothing_more(a_run_to_its_end({reading}))


def test_an_instance_of_a_deleted_fleet_is_still_ours_however_its_state_is_spelt() -> None:
    """A controller that starts afterwards knows the fleet by its listing alone."""
    cluster = world({HYPHENS}, work_s=200.0)
    cluster.submit(4)
    cluster.run_for(150.0)
    cluster.world.ec2.delete_fleets(FleetIds=list(cluster.world.ec2.ledger.fleets), TerminateInstances=False)
    cluster.controllers = [cluster.controller()]
    assert spent_nothing_more(ended(cluster))
    assert len(cluster.world.ec2.ledger.instances) == 1


def test_an_order_to_a_fleet_that_is_being_modified_is_sent_again_and_nothing_needs_mending() -> None:
    cluster = world({ONLY_ACTIVE}, work_s=300.0)
    cluster.submit(4)
    cluster.run_for(20.0)
    cluster.submit(4, OTHER)
    cluster.tick()
    refused = False
    while cluster.record(OTHER).status is not RunStatus.RUNNING:
        cluster.tick()
        said = cluster.record(OTHER).waiting
        refused |= "FleetNotInModifiableState" in said
        assert "until this is fixed" not in said
    assert refused
    assert cluster.world.now - cluster.record(OTHER).submitted_at < 150.0
    assert spent_nothing_more(ended(cluster))


@pytest.mark.parametrize("reading", [ROOM_BACK_EARLY, QUEUE_STUCK])
def test_no_task_waits_on_an_instance_for_one_that_is_stopping_there(reading: str) -> None:
    cluster = world({reading}, max_instances=1)
    cluster.world.workload = lambda task, at: TaskBehaviour(3_600.0, obeys_s=None)
    cluster.submit(4)
    cluster.submit(4, OTHER)
    cluster.run_for(330.0)
    cluster.world.workload = lambda task, at: TaskBehaviour(60.0)
    cluster.cancel()
    pending_s = 0.0
    while cluster.record(OTHER).status is not RunStatus.SUCCEEDED:
        cluster.tick()
        shown = cluster.ecs.list_tasks(cluster=cluster.world.cluster)["taskArns"]
        tasks = cluster.ecs.describe_tasks(cluster=cluster.world.cluster, tasks=shown)["tasks"] if shown else []
        waits = [cluster.world.now - each["createdAt"].timestamp() for each in tasks if each["lastStatus"] == "PENDING"]
        pending_s = max([pending_s, *waits])
    assert pending_s <= cluster.tick_s


def test_a_task_that_an_agents_queue_forgets_is_started_again_and_uses_up_no_attempt() -> None:
    """Somebody else's task ends slowly in front of it, on the only instance."""
    cluster = world({QUEUE_STUCK}, max_instances=1)
    cluster.world.workload = lambda task, at: TaskBehaviour(1_500.0, obeys_s=None)
    cluster.put(ScaleRequest(cluster.world.now, 1, (), 0.0), "cluster#scale#1")
    cluster.run_for(120.0)
    stranger = start_a_strangers(cluster)
    cluster.run_for(60.0)
    run_id = cluster.submit(3, retryStrategy={"attempts": 1})
    cluster.run_for(60.0)
    assert cluster.run.tasks.counts()[TaskStatus.RUNNING] == 2
    cluster.ecs.stop_task(cluster=cluster.world.cluster, task=stranger)
    cluster.run_for(750.0)
    assert cluster.run.tasks.counts()[TaskStatus.RUNNING] == 3
    cluster.put(ScaleRequest(cluster.world.now, 0, (), 0.0), "cluster#scale#0")
    assert spent_nothing_more(ended(cluster))
    assert cluster.record(run_id).attempts == 4


def start_a_strangers(cluster: Controlled) -> str:
    """A task of half an instance that stops slowly: its ARN."""
    container = {"name": "x", "image": "x", "cpu": 2048, "memory": 1024, "stopTimeout": 100}
    made = cluster.ecs.register_task_definition(family="strange", containerDefinitions=[container])
    arn = made["taskDefinition"]["taskDefinitionArn"]
    started = cluster.ecs.run_task(cluster=cluster.world.cluster, taskDefinition=arn, count=1, launchType="EC2")
    return str(started["tasks"][0]["taskArn"])


def test_where_instances_join_without_the_runner_no_more_are_bought_for_a_run_that_needs_it() -> None:
    cluster = world({DOCKER_BLOCKS})
    cluster.submit(4, placement={"constraints": ["attribute:argosy.runner == 1"]})
    cluster.run_for(1_200.0)
    launched = len(cluster.world.ec2.ledger.instances)
    cluster.run_for(1_800.0)
    assert launched == len(cluster.world.ec2.ledger.instances) == 1
    assert "instances joined without the runner" in cluster.record().waiting
    cluster.world.readings.clear()
    assert spent_nothing_more(ended(cluster))


def test_the_page_has_a_row_for_each_reading() -> None:
    page = (Path(__file__).parents[2] / "docs/maintainers/notes/readings.md").read_text(encoding="utf-8")
    rows = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    assert rows == list(READINGS)


def test_an_unknown_reading_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=f"'both' is no reading. There are: all, {TOTAL_ONLY}"):
        known(["both"])
