"""Tasks share GPUs by their memory, from the run to ECS's devices, whichever device ECS picks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from argosy.api.waiting.explanation import explain_run
from argosy.catalogue.lookup import load_catalogue
from argosy.cli.runs.explain import lines_of
from argosy.emulator.ecs.records import PhysicalGpu
from argosy.emulator.ecs.resources import fullest
from argosy.engine.report import figures_of
from argosy.model.moment import Moment
from argosy.model.tasks import TaskStatus
from tests.builders import RUN_ID
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled

ONE = ("us-east-1a",)
SHARE = {"vcpus": 0.5, "memory": 1000, "gpuShare": {"memoryMib": 10_000, "maxComputePercent": 50}}
WHOLE = {"vcpus": 0.5, "memory": 1000, "gpus": 1}
Pick = Callable[[Sequence[PhysicalGpu]], PhysicalGpu]


def emptiest(gpus: Sequence[PhysicalGpu]) -> PhysicalGpu:
    return max(gpus, key=lambda gpu: (gpu.free_mib, gpu.id))


class Watched:
    """ECS, and what it refused to launch."""

    def __init__(self, ecs: Any) -> None:
        self._ecs, self.refused = ecs, list[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ecs, name)

    def run_task(self, **request: Any) -> Any:
        reply = self._ecs.run_task(**request)
        self.refused += [each["reason"] for each in reply["failures"]]
        return reply


def world(*types: str, pick: Pick = fullest, work_s: float = 600.0, **policy: Any) -> tuple[Controlled, Watched]:
    cluster = Controlled(types=types, zones=ONE, work_s=work_s, **policy)
    cluster.world.ecs.ledger.pick_gpu = pick
    watched = Watched(cluster.ecs)
    cluster.controllers = [cluster.controller(watched)]
    return cluster, watched


def sharers(cluster: Controlled) -> Counter[str]:
    """Live tasks by GPU."""
    arns = cluster.ecs.list_tasks(cluster="argosy")["taskArns"]
    tasks = cluster.ecs.describe_tasks(cluster="argosy", tasks=arns)["tasks"] if arns else ()
    return Counter(gpu for task in tasks for gpu in task["containers"][0]["gpuIds"])


def test_as_many_tasks_share_a_gpu_as_its_memory_holds_and_no_more_instances_are_bought() -> None:
    cluster, watched = world("c5.xlarge", "g5.xlarge")
    cluster.submit(6, resources=SHARE)
    cluster.run_for(400)
    assert sorted(sharers(cluster).values()) == [2, 2, 2]
    assert cluster.fleet_targets() == {"c5.xlarge/us-east-1a": 0, "g5.xlarge/us-east-1a": 3}
    cluster.run_to_rest()
    assert cluster.record(RUN_ID).counts[TaskStatus.SUCCEEDED] == 6
    assert watched.refused == []


@pytest.mark.parametrize("pick", [fullest, emptiest])
def test_no_launch_is_refused_whichever_gpu_ecs_picks_and_whole_gpus_stay_whole(pick: Pick) -> None:
    cluster, watched = world("g5.12xlarge", pick=pick)
    cluster.submit(5, resources=SHARE)
    cluster.submit(3, "whole-261121-062735-bbbb", resources=WHOLE, name="whole")
    cluster.run_for(500)
    devices = [
        device
        for instance in cluster.ecs.describe_container_instances(
            cluster="argosy",
            containerInstances=cluster.ecs.list_container_instances(cluster="argosy")["containerInstanceArns"],
        )["containerInstances"]
        for device in instance["gpuDevices"]
    ]
    assert sum(each["containerCount"] for each in devices if each["sharingMode"] == "DEDICATED") == 3
    assert sum(each["containerCount"] for each in devices if each["sharingMode"] == "NVIDIA_MPS") == 5
    cluster.run_to_rest()
    assert cluster.record(RUN_ID).counts[TaskStatus.SUCCEEDED] == 5
    assert watched.refused == []


def test_explain_shows_the_gpus_that_tasks_share_with_their_mode_and_memory() -> None:
    cluster, _ = world("g5.12xlarge", max_instances=1)
    cluster.submit(11, resources=SHARE)
    cluster.run_for(400)
    state = cluster.controllers[0].state
    assert state is not None
    moment = Moment(state, load_catalogue(), cluster.world.now, cluster.policy)
    (line,) = (each for each in lines_of(explain_run(moment, cluster.run)) if "GPU 0" in each)
    shared = "is shared by 2 tasks (19.5 of 21.7 GiB taken)"
    assert line.endswith(f"(g5.12xlarge): GPU 0 {shared}, GPU 1 {shared}, GPU 2 {shared}, GPU 3 {shared}")


def test_a_share_waits_with_a_reason_where_instances_join_without_mps() -> None:
    cluster, watched = world("g5.xlarge", work_s=60.0)
    usual = cluster.world.agent_behaviour
    cluster.world.agent_behaviour = lambda instance: replace(usual(instance), shares_gpus=False)
    cluster.submit(2, resources=SHARE)
    cluster.run_for(3_600)
    assert watched.refused == []
    said = "instances joined without NVIDIA's MPS, which shares GPUs, so no more are bought for it; tried again at"
    assert cluster.explained().startswith(said)
    assert "`make roll` takes a newer AMI" in cluster.explained()
    cluster.world.agent_behaviour = usual
    cluster.run_to_rest()
    assert cluster.record(RUN_ID).counts[TaskStatus.SUCCEEDED] == 2


def test_in_local_mode_the_reason_names_the_program_that_is_missing_and_no_ami() -> None:
    cluster, _ = world("g5.xlarge", gpus_unshared="nvidia-cuda-mps-control is not installed")
    usual = cluster.world.agent_behaviour
    cluster.world.agent_behaviour = lambda instance: replace(usual(instance), shares_gpus=False)
    cluster.submit(2, resources=SHARE)
    cluster.run_for(1_800)
    said = "tasks cannot share the GPUs of this machine: nvidia-cuda-mps-control is not installed; tried again at"
    assert cluster.explained().startswith(said)
    assert "AMI" not in cluster.explained()


OTHER = "other-261121-062735-bbbb"


def submit_for_two(cluster: Controlled) -> None:
    """Two shares for each of two owners: four of them would fit on one GPU."""
    small = {**SHARE, "gpuShare": {"memoryMib": 5_000}}
    cluster.submit(2, resources=small, owner="ana")
    cluster.submit(2, OTHER, resources=small, name="other", owner="ben")


def test_owners_share_no_gpu_and_each_gets_instances_of_its_own() -> None:
    cluster, watched = world("g5.xlarge", work_s=1_200.0)
    submit_for_two(cluster)
    cluster.run_for(500)
    assert sorted(sharers(cluster).values()) == [2, 2]
    assert cluster.fleet_targets() == {"g5.xlarge/us-east-1a": 2}
    cluster.run_to_rest()
    assert watched.refused == []


def test_owners_share_gpus_where_the_deployment_says_so() -> None:
    cluster, _ = world("g5.xlarge", work_s=1_200.0, gpu_share_across_owners=True)
    submit_for_two(cluster)
    cluster.run_for(500)
    assert list(sharers(cluster).values()) == [4]


def test_a_share_that_waits_for_another_owners_gpu_says_so() -> None:
    cluster, _ = world("g5.xlarge", work_s=3_000.0, max_instances=1)
    submit_for_two(cluster)
    cluster.run_for(500)
    state = cluster.controllers[0].state
    assert state is not None
    moment = Moment(state, load_catalogue(), cluster.world.now, cluster.policy)
    told = str(explain_run(moment, state.runs[OTHER]))
    assert "tasks of another owner share its GPUs" in told
    assert "the setting gpuShareAcrossOwners allowed it" in told


def foreign_mib(cluster: Controlled) -> int:
    """As the metric has it."""
    state = cluster.controllers[0].state
    assert state is not None
    found: int = figures_of(state, (), cluster.world.now)["foreign_gpu_mib"]
    return found


@pytest.mark.parametrize("across", [True, False])
def test_shares_of_strangers_take_memory_of_gpus_until_they_end(across: bool) -> None:
    cluster, watched = world("g5.12xlarge", max_instances=1, work_s=3_000, gpu_share_across_owners=across)
    cluster.submit(1, resources=SHARE)
    cluster.run_for(400)
    gpu = {"type": "GPU", "sharingStrategy": {"nvidiaMps": {"memory": 20_000}}}
    container = {"name": "main", "image": "x", "memory": 100, "resourceRequirements": [gpu]}
    cluster.ecs.register_task_definition(family="stranger", containerDefinitions=[container])
    ours = cluster.world.workload
    cluster.world.workload = lambda task, instance: (
        TaskBehaviour(duration_s=36_000.0) if "stranger" in task["taskDefinitionArn"] else ours(task, instance)
    )
    strangers = cluster.ecs.run_task(cluster="argosy", taskDefinition="stranger", count=3, launchType="EC2")["tasks"]
    cluster.run_for(300)
    assert foreign_mib(cluster) == 60_000
    cluster.submit(8, "more-261121-062735-bbbb", resources=SHARE, name="more")
    cluster.run_for(300)
    assert watched.refused == []
    assert sorted(sharers(cluster).values()) == ([1, 1, 1, 2] if across else [1, 1, 1, 1])
    for stranger in strangers:
        cluster.ecs.stop_task(cluster="argosy", task=stranger["taskArn"])
    cluster.run_for(300)
    assert foreign_mib(cluster) == 0
    assert sorted(sharers(cluster).values()) == [2, 2, 2, 2]
    assert watched.refused == []
