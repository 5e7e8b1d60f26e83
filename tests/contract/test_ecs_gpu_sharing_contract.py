"""How does ECS share the GPUs of an instance: which device, which mode, which refusals?

The requests and replies have the shapes of botocore's model of ECS, and its words: ResourceRequirement, GpuDevice.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.emulator.ecs.records import PhysicalGpu
from argosy.messages.ecs import container_instance_seen, task_seen
from argosy.model.instances import GpuDevice
from tests.fakes.ecs_clouds import EcsCloud, refused, simulation_and_model

TYPE, GPUS, MIB = "g5.12xlarge", 4, 22_563
IDLE, SHARED, DEDICATED = "IDLE", "NVIDIA_MPS", "DEDICATED"


def share(mib: int, percent: int | None = None) -> dict[str, Any]:
    limit = {} if percent is None else {"maxComputePercent": percent}
    return {"resourceRequirements": [{"type": "GPU", "sharingStrategy": {"nvidiaMps": {"memory": mib, **limit}}}]}


def devices(cloud: EcsCloud, instance: dict[str, Any]) -> list[tuple[str, int, int]]:
    """(mode, free MiB, containers) of each GPU."""
    found = cloud.instance(instance["containerInstanceArn"])["gpuDevices"]
    return [(each["sharingMode"], each["remainingMemoryInMiB"], each["containerCount"]) for each in found]


def gpus_of(reply: dict[str, Any]) -> list[list[str]]:
    return [container["gpuIds"] for task in reply["tasks"] for container in task["containers"]]


def reasons(reply: dict[str, Any]) -> list[str]:
    return [each["reason"] for each in reply["failures"]]


def test_sharers_fill_a_gpu_and_the_next_one_gets_another(cloud: EcsCloud) -> None:
    instance = cloud.register(TYPE, share_mib=MIB)
    assert devices(cloud, instance) == [(IDLE, MIB, 0)] * GPUS
    cloud.define(container={"cpu": 10, **share(10_000, 25)})
    reply = cloud.run(count=3)
    first, second, third = gpus_of(reply)
    assert first == second != third
    [container] = reply["tasks"][0]["containers"]
    assert container["gpuSharingStrategy"] == {"nvidiaMps": {"memory": 10_000, "maxComputePercent": 25}}
    assert sorted(devices(cloud, instance)) == [(IDLE, MIB, 0)] * 2 + [(SHARED, 2_563, 2), (SHARED, 12_563, 1)]
    for task in reply["tasks"]:
        cloud.report(task["taskArn"], "STOPPED", exitCode=0)
    assert devices(cloud, instance) == [(IDLE, MIB, 0)] * GPUS


def test_a_gpu_of_one_task_is_not_shared_and_a_shared_one_is_never_whole(cloud: EcsCloud) -> None:
    instance = cloud.register(TYPE, share_mib=MIB)
    cloud.define("whole", gpus=3, container={"cpu": 10})
    cloud.define("part", container={"cpu": 10, **share(20_000)})
    [whole] = gpus_of(cloud.run("whole"))
    [part] = gpus_of(cloud.run("part"))
    assert not set(whole) & set(part)
    assert sorted(devices(cloud, instance)) == [(DEDICATED, 0, 1)] * 3 + [(SHARED, 2_563, 1)]
    assert cloud.remaining(instance)["GPU"] == []
    assert reasons(cloud.run("part")) == ["RESOURCE:GPU"]
    cloud.define("one", gpus=1, container={"cpu": 10})
    assert reasons(cloud.run("one")) == ["RESOURCE:GPU"]


def test_the_containers_of_a_task_share_one_gpu_that_holds_them_all(cloud: EcsCloud) -> None:
    instance = cloud.register(TYPE, share_mib=MIB)
    two = [{"name": name, "image": "i", "cpu": 10, "memory": 100, **share(9_000)} for name in ("a", "b")]
    cloud.define(containers=[*two, {"name": "c", "image": "i", "cpu": 10, "memory": 100, "essential": False}])
    a, b, c = cloud.run()["tasks"][0]["containers"]
    assert a["gpuIds"] == b["gpuIds"]
    assert "gpuIds" not in c
    assert sorted(devices(cloud, instance))[-1] == (SHARED, MIB - 18_000, 2)
    cloud.define("too-much", containers=[{**each, **share(12_000)} for each in two])
    assert reasons(cloud.run("too-much")) == ["RESOURCE:GPU"]


def test_an_instance_whose_agent_shares_no_gpus_is_refused_and_shows_no_devices(cloud: EcsCloud) -> None:
    instance = cloud.register(TYPE)
    cloud.define(container=share(1))
    assert reasons(cloud.run()) == ["ATTRIBUTE"]
    assert "gpuDevices" not in cloud.instance(instance["containerInstanceArn"])
    described = cloud.client.describe_task_definition(taskDefinition="digits")["taskDefinition"]
    assert {"name": "ecs.capability.gpu-sharing-mps"} in described["requiresAttributes"]
    assert described["compatibilities"] == ["EC2"]


@pytest.mark.parametrize(
    "containers",
    [
        [{"resourceRequirements": [{"type": "GPU"}]}],
        [{"resourceRequirements": [{"type": "GPU", "value": "1", **share(1)["resourceRequirements"][0]}]}],
        [{"resourceRequirements": [{"type": "InferenceAccelerator", "sharingStrategy": {"nvidiaMps": {"memory": 1}}}]}],
        [share(1), {"resourceRequirements": [{"type": "GPU", "value": "1"}]}],
    ],
)
def test_value_and_sharing_exclude_each_other_in_a_container_and_in_a_task(
    cloud: EcsCloud, containers: list[dict[str, Any]]
) -> None:
    named = [{"name": f"c{n}", "image": "i", "memory": 100, **each} for n, each in enumerate(containers)]
    with refused("ClientException"):
        cloud.define(containers=named)


def test_an_override_changes_no_share(cloud: EcsCloud) -> None:
    cloud.register(TYPE, share_mib=MIB)
    cloud.define(container=share(10))
    with refused("InvalidParameterException"):
        cloud.run(overrides={"containerOverrides": [{"name": "main", **share(20)}]})


def test_what_ecs_shows_of_gpus_is_read_and_events_say_nothing_of_it(cloud: EcsCloud) -> None:
    instance = cloud.register("g5.xlarge", share_mib=MIB)
    cloud.define(container=share(10_000))
    [task] = cloud.run()["tasks"]
    shown = cloud.instance(instance["containerInstanceArn"])
    [device] = container_instance_seen(shown, "us-east-1").gpu_devices
    assert device == GpuDevice(shown["gpuDevices"][0]["gpuId"], SHARED, MIB - 10_000, MIB)
    assert task_seen(task).gpu_ids == (device.gpu_id,)
    assert cloud.events is not None
    assert not any("gpuDevices" in str(each) or "gpuSharing" in str(each) for each in cloud.events)


@settings(deadline=None)
@given(st.data())
def test_whatever_device_ecs_picks_none_is_overfull_or_in_two_modes_and_all_is_given_back(data: st.DataObject) -> None:
    cloud, model = simulation_and_model()
    model.ledger.pick_gpu = lambda gpus: gpus[data.draw(st.integers(0, len(gpus) - 1))]
    instance = cloud.register(TYPE, share_mib=MIB)
    live: dict[str, tuple[list[str], int]] = {}  # by ARN: the GPUs, and MiB of one of them; 0 = whole
    for _ in range(data.draw(st.integers(1, 12))):
        if live and data.draw(st.booleans()):
            arn = data.draw(st.sampled_from(sorted(live)))
            cloud.report(arn, "STOPPED", exitCode=0)
            del live[arn]
            continue
        mib = data.draw(st.sampled_from([0, 1, 8_000, 12_000, MIB, MIB + 1]))
        used = {gpu: sum(m for ids, m in live.values() if gpu in ids) for ids, _ in live.values() for gpu in ids}
        whole = {gpu for ids, m in live.values() if not m for gpu in ids}
        room = GPUS - len(used) if not mib else sum(mib <= MIB - u for g, u in used.items() if g not in whole)
        room += (GPUS - len(used)) * (0 < mib <= MIB)
        cloud.define(f"f{mib}", container={"cpu": 1, **share(mib)} if mib else {"cpu": 1}, gpus=int(not mib))
        reply = cloud.run(f"f{mib}")
        assert bool(reply["tasks"]) == (room > 0)
        assert reasons(reply) == ([] if room else ["RESOURCE:GPU"])
        live |= {task["taskArn"]: (task["containers"][0]["gpuIds"], mib) for task in reply["tasks"]}
    for device in cloud.instance(instance["containerInstanceArn"])["gpuDevices"]:
        mine = [mib for ids, mib in live.values() if device["gpuId"] in ids]
        assert device["containerCount"] == len(mine)
        assert device["sharingMode"] == (IDLE if not mine else DEDICATED if 0 in mine else SHARED)
        assert device["remainingMemoryInMiB"] == (0 if 0 in mine else MIB - sum(mine)) >= 0


def test_without_another_choice_ecs_fills_the_fullest_gpu() -> None:
    model = simulation_and_model()[1]
    idle, shared = PhysicalGpu("a", 10), PhysicalGpu("b", 10, 4, 1, is_shared=True)
    assert model.ledger.pick_gpu([idle, shared]) is shared
