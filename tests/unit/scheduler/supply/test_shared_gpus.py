"""Tasks that share GPUs: the room that is counted, bought and charged for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.catalogue.lookup import load_catalogue
from argosy.market.cover import tasks_per_instance
from argosy.market.offers import offers_of, tasks_in
from argosy.model.events import ContainerInstanceSeen
from argosy.model.instances import GpuDevice
from argosy.model.moment import Moment
from argosy.model.pools import Pool
from argosy.model.resources import Resources
from argosy.model.state import State
from argosy.placement.demand import Batch
from argosy.placement.gpu_shares import OF_SEVERAL
from argosy.placement.supply import InstanceRow, Supply
from argosy.scheduler.supply.present import typical_mix, what_is_there
from argosy.scheduler.supply.roster import Roster
from argosy.scheduler.turns.asks import batch_of
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    container_instance,
    fleet,
    host,
    instance_id,
    launched,
    moment_of,
    prepared,
    state_with,
    submitted,
    task,
    the_run,
    told,
)

KIND, SHARING, WHOLE = "g6.12xlarge", "ecs.capability.gpu-sharing-mps", (49_152, 180_000)
SHARE: dict[str, Any] = {"resources": {"vcpus": 1, "memory": 1024, "gpuShare": {"memoryMib": 8000}}}
GPU_MIB = 20_000


def seen(number: int = 1, shares: bool = True, **overrides: Any) -> ContainerInstanceSeen:
    """Four GPUs of 20,000 MiB for shares."""
    attributes = {"ecs.instance-type": KIND, "ecs.availability-zone": "us-east-1a", **({SHARING: ""} if shares else {})}
    idle = devices() if shares else ()
    return container_instance(number, *WHOLE, 4, **{"gpu_devices": idle, "attributes": attributes, **overrides})


def cluster(**overrides: Any) -> State:
    found = state_with(submitted(tasks=10, **SHARE), prepared(**SHARE))
    return told(found, fleet(KIND, spot_target=1), host(1, KIND), seen(**overrides))


def test_the_typical_tasks_are_those_of_open_runs_where_one_shares_gpus() -> None:
    supply = what_is_there(moment_of(cluster()), Roster(), {}).lineup.supply
    assert supply.mix is not None
    assert supply.part(0, 0).mix is supply.mix
    assert (supply.mix.needs[:, 0].tolist(), supply.mix.shares_mib.tolist()) == ([1024, 1024, 0], [8000])
    assert supply.mix.weights.tolist() == [10]
    whole: dict[str, Any] = {"resources": {"vcpus": 1, "memory": 1024, "gpus": 1}}
    assert typical_mix(state_with(submitted(tasks=10, **whole), prepared(**whole)), (), supply) is None
    many = Supply.of([replace(supply.row(0), id=f"i-{number}") for number in range(1_000)])
    assert typical_mix(cluster(), [the_run(cluster())] * 2_000, many) is not None
    assert typical_mix(cluster(), [the_run(cluster())] * 2_001, many) is None


def row(state: State) -> InstanceRow:
    return Roster().at(moment_of(state)).supply.row(0)


def test_a_share_may_be_on_any_gpu_until_ecs_says_on_which() -> None:
    state, roster = cluster(), Roster()
    launched(state, 0, 1)
    launched(state, 1, 2)
    before = roster.at(moment_of(state)).supply
    assert (before.row(0).gpu_use.shares, before.free[2].tolist()) == (2, [2])
    for number in (1, 2):
        told(state, task(number, gpu_ids=("GPU-1-3",)))
    after = roster.at(moment_of(state)).supply
    assert after.row(0).gpu_use.known_mib == (16_000,)
    assert after.free[2].tolist() == [3]


def test_the_memory_of_a_gpu_is_what_ecs_shows_or_an_estimate() -> None:
    assert row(cluster()).gpu_memory_mib == GPU_MIB
    assert row(cluster(gpu_devices=())).gpu_memory_mib == load_catalogue()[KIND].shared_gpu_mib


def test_a_task_pays_for_the_part_of_the_memory_that_it_asked_for() -> None:
    state = cluster()
    instance, run = state.instances[instance_id(1)], the_run(state)
    assert run.needs.share_of(instance.size) == pytest.approx(8_000 / (4 * GPU_MIB))


def test_gpus_that_our_tasks_share_are_no_other_owners() -> None:
    state = cluster()
    launched(state, 0, 1)
    told(state, task(1, gpu_ids=("GPU-1-3",)))
    remaining = (WHOLE[0] - 1_024, WHOLE[1] - 1_024, 3)
    later = NOW + POLICY.foreign_patience_s + 60
    for at in (NOW + 30, later):
        told(state, seen(version=int(at), remaining=remaining, gpu_devices=devices(12_000)), now=at)
    assert state.instances[instance_id(1)].foreign.gpus == 0
    assert row(state).gpu_use.known_mib == (8_000,)


def devices(*free_mib: int) -> tuple[GpuDevice, ...]:
    """Of the last GPUs the free MiB, which tasks share; the others are idle."""
    free = (*[GPU_MIB] * (4 - len(free_mib)), *free_mib)
    return tuple(
        GpuDevice(f"GPU-1-{n}", "NVIDIA_MPS" if mib < GPU_MIB else "IDLE", mib, GPU_MIB) for n, mib in enumerate(free)
    )


def test_shares_that_are_not_ours_take_memory_of_the_gpus_on_which_ecs_shows_them() -> None:
    state = cluster()
    launched(state, 0, 1)
    told(state, task(1, gpu_ids=("GPU-1-3",)))
    remaining = (WHOLE[0] - 1_024, WHOLE[1] - 1_024, 2)
    told(state, seen(version=10, remaining=remaining, gpu_devices=devices(15_000, 2_000)), now=NOW + 30)
    assert (row(state).gpu_use.known_mib, row(state).gpu_use.owner) == ((5_000, 18_000), OF_SEVERAL)
    told(state, seen(version=11, remaining=remaining, gpu_devices=()), now=NOW + 40)  # an event does not show GPUs
    assert state.instances[instance_id(1)].foreign == Resources(gpu_share_mib=15_000)
    assert row(state).gpu_use.known_mib == (5_000, 18_000)
    told(state, seen(version=12, remaining=remaining, gpu_devices=devices(12_000)), now=NOW + 50)
    assert row(state).gpu_use.known_mib == (8_000,)


def offers(state: State) -> list[Any]:
    pools = [
        Pool(CELL, name, "us-east-1a", fleet_id="fleet-1") for name in ("g6.xlarge", KIND, "g6f.xlarge", "c5.xlarge")
    ]
    for pool in pools:
        pool.without_sharing_at = next((p.without_sharing_at for p in state.pools.values()), 0.0)
    return offers_of([pool for pool in pools if pool.instance_type in load_catalogue()], load_catalogue(), NOW)


def batch(state: State) -> Batch:
    return batch_of(Moment(state, load_catalogue(), NOW, POLICY), the_run(state), NOW, {})


def test_an_offer_holds_as_many_shares_as_its_gpus_together() -> None:
    state = cluster()
    found = offers(state)
    fits = zip(found, tasks_per_instance(batch(state), found).tolist(), strict=True)
    assert {each.instance_type: count for each, count in fits if count} == {"g6.xlarge": 2, KIND: 8}
    assert tasks_in(Pool(CELL, KIND, "us-east-1a", "fleet-1"), the_run(state), POLICY) == 8


def test_nothing_is_bought_for_shares_where_the_last_instances_joined_without_sharing() -> None:
    state = cluster(shares=False)
    assert not tasks_per_instance(batch(state), offers(state)).any()
    told(state, host(2, KIND), seen(2))
    assert tasks_per_instance(batch(state), offers(state)).any()
