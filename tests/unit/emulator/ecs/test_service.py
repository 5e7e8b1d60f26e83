"""The parts of the ECS model outside AWS's API: the agents' side, threads, ids, times."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from argosy.emulator.ecs.service import EcsModel
from argosy.emulator.region import as_uuid, counted_ids, epoch_s, iso, utc, with_iso_times
from tests.fakes.ecs_clouds import CLUSTER, EcsCloud, simulation_and_model


@pytest.fixture
def simulated() -> tuple[EcsCloud, EcsModel]:
    return simulation_and_model()


@pytest.fixture
def cloud(simulated: tuple[EcsCloud, EcsModel]) -> EcsCloud:
    return simulated[0]


@pytest.fixture
def model(simulated: tuple[EcsCloud, EcsModel]) -> EcsModel:
    return simulated[1]


# --- the agents' side ----------------------------------------------------------------------------------------------


def test_an_agent_gets_each_task_once(cloud: EcsCloud, model: EcsModel) -> None:
    arn = cloud.register()["containerInstanceArn"]
    cloud.define()
    started = [task["taskArn"] for task in cloud.run(count=2)["tasks"]]
    assert [task["taskArn"] for task in model.agent_work(arn).start] == started
    assert (model.agent_work(arn).start, model.agent_work(arn).stop) == ([], [])
    cloud.client.stop_task(cluster=CLUSTER, task=started[0])
    assert model.agent_work(arn).stop == started[:1]
    assert model.agent_work(arn).stop == []


def test_on_work_is_called_when_there_is_something_to_ask_for(cloud: EcsCloud, model: EcsModel) -> None:
    arn, called = cloud.register()["containerInstanceArn"], list[str]()
    model.on_work.append(called.append)
    cloud.define()
    task = cloud.run()["tasks"][0]["taskArn"]
    assert called == [arn]
    model.agent_work(arn)
    cloud.client.stop_task(cluster=CLUSTER, task=task)
    assert called == [arn, arn]


def test_work_waits_for_a_disconnected_agent(cloud: EcsCloud, model: EcsModel) -> None:
    arn, called = cloud.register()["containerInstanceArn"], list[str]()
    cloud.define()
    task = cloud.run()["tasks"][0]["taskArn"]
    model.on_work.append(called.append)
    model.set_agent_connected(arn, False)
    assert model.agent_work(arn).start == []
    assert cloud.instance(arn)["agentConnected"] is False
    model.set_agent_connected(arn, True)
    model.set_agent_connected(arn, True)
    assert called == [arn]
    assert [each["taskArn"] for each in model.agent_work(arn).start] == [task]


def test_a_gone_instance_does_not_reconnect(cloud: EcsCloud, model: EcsModel) -> None:
    arn = cloud.register()["containerInstanceArn"]
    model.lose_instance(arn)
    model.set_agent_connected(arn, True)
    assert cloud.instance(arn)["agentConnected"] is False


def test_an_instance_unknown_to_ecs_gets_no_agent_and_its_end_emits_no_event(cloud: EcsCloud, model: EcsModel) -> None:
    unknown = "arn:aws:ecs:us-east-1:123456789012:container-instance/argosy/0"
    assert not model.agent_work(unknown).start
    model.set_agent_connected(unknown, False)
    model.lose_instance(unknown)
    assert not model.list_container_instances(cluster="argosy")["containerInstanceArns"]


# --- threads -------------------------------------------------------------------------------------------------------


def test_eight_threads_never_share_a_gpu_or_a_unit_of_cpu(cloud: EcsCloud) -> None:
    instances = [cloud.register("p3.8xlarge") for _ in range(4)]
    cloud.define(gpus=1)

    def launch(number: int) -> list[str]:
        reply = cloud.run(clientToken=f"token-{number % 24}")
        return [gpu for task in reply["tasks"] for gpu in task["containers"][0]["gpuIds"]]

    with ThreadPoolExecutor(8) as threads:
        pinned = list(threads.map(launch, range(48)))
    ids = {gpu for each in pinned for gpu in each}
    assert len(ids) == 16  # every GPU exactly once
    assert len(cloud.client.list_tasks(cluster=CLUSTER)["taskArns"]) == 16
    assert [cloud.remaining(each)["GPU"] for each in instances] == [[]] * 4


# --- ids and times -------------------------------------------------------------------------------------------------


def test_ids_are_all_different_and_repeat_with_their_seed() -> None:
    one, same, other = counted_ids(1), counted_ids(1), counted_ids(2)
    ids = [one() for _ in range(1_000)]
    assert len(set(ids)) == 1_000
    assert ids == [same() for _ in range(1_000)]
    assert other() not in ids
    assert as_uuid(ids[0]).replace("-", "") == ids[0]


def test_times_are_written_as_aws_writes_them() -> None:
    assert iso(1_800_000_000.1239) == "2027-01-15T08:00:00.124Z"
    assert utc(1_800_000_000.0) == datetime(2027, 1, 15, 8, tzinfo=UTC)
    naive = datetime(2027, 1, 15, 8)  # noqa: DTZ001 - boto3 takes naive times as UTC
    for given in (naive, naive.replace(tzinfo=UTC), "2027-01-15T08:00:00Z", 1_800_000_000, 1_800_000_000.0):
        assert epoch_s(given) == 1_800_000_000.0
    assert with_iso_times({"at": utc(0.0), "n": 1}) == {"at": "1970-01-01T00:00:00.000Z", "n": 1}
