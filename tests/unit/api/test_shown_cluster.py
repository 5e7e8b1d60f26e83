"""What DescribeCluster shows."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from argosy.api.cluster.gpu_devices import show_devices
from argosy.model.attempts import AttemptKey, AttemptTable
from argosy.model.instances import Instance
from argosy.model.policy import SparePlaces
from argosy.model.resources import Resources
from tests.builders import NOW
from tests.fakes.api import Desk, running


def test_the_cluster_is_shown_with_use_and_money(desk: Desk) -> None:
    running(desk)
    view = desk.body("DescribeCluster")
    busy, gone = view["instances"]
    assert busy == {
        "instanceId": "i-0000000000000000a", "instanceType": "p3.8xlarge", "availabilityZone": "us-east-1a",
        "cell": "us-east-1", "purchase": "spot", "reservation": None, "status": "ACTIVE",
        "cpu": {"total": 32.0, "used": 8.0}, "memory": {"total": 230000, "used": 4096}, "gpus": {"total": 4, "used": 4},
        "tasks": 1, "priceUsdPerHour": 3.0, "onDemandUsdPerHour": 12.0,
        "diskUsdPerHour": 0.02, "addressUsdPerHour": 0.005,
        "launchedAt": "2027-01-15T07:30:00.000Z", "stoppedAt": None, "noWorkBecause": None, "console": None,
    }  # fmt: skip
    assert gone["status"] == "GONE"
    assert view["cluster"] == "argosy"
    assert view["cells"] == ["us-east-1"]
    (fleet,) = view["fleets"]
    assert fleet.items() >= {
        "instanceType": "p3.8xlarge", "availabilityZone": "us-east-1a", "cell": "us-east-1",
        "spotTarget": 1, "onDemandTarget": 0, "coolingOffUntil": None, "interruptionBand": ">20%",
    }.items()  # fmt: skip
    assert view["usdPerHour"] == 3.0
    assert view["spentUsd"] == pytest.approx(1.0 + 0.5 * 3.0)
    assert view["onDemandUsd"] == pytest.approx(4.0 + 0.5 * 12.0)
    assert view["peakUtilisation"] == {"cpu": 0.0, "memory": 0.0, "gpus": 0.5}


def test_the_room_that_is_kept_for_further_tasks_is_shown_and_explained(desk: Desk) -> None:
    run_id = running(desk)
    assert desk.body("DescribeCluster")["headroom"] is None
    desk.api.policy = replace(desk.api.policy, headroom=(SparePlaces(2, Resources(1024, 2048)),))
    shown = desk.body("DescribeCluster", form="columns")["headroom"]
    assert shown == desk.body("ExplainRun", runId=run_id)["headroom"]
    assert [each["places"] for each in shown["sizes"]] == [2]
    assert (shown["instances"], shown["usdPerHour"], shown["waiting"]) == ([], 0, None)  # it is beside the run's tasks


def test_a_cluster_that_never_worked_is_empty(desk: Desk) -> None:
    view = desk.body("DescribeCluster")
    assert view["instances"] == view["fleets"] == []
    assert view["spentUsd"] == 0


def test_gpus_that_tasks_share_are_shown_with_their_modes_and_free_memory() -> None:
    instance = Instance("i-1", "us-east-1", "g5.12xlarge", "us-east-1a", gpu_ids=("g0", "g1", "g2", "g3"))
    instance.gpu_memory_mib = 22_000
    state: Any = SimpleNamespace(attempts=AttemptTable(), instances={"i-1": instance})
    for index, (number, mask) in enumerate([(1, 0b0011), (2, 0b0100), (2, 0b0100), (2, 0)]):
        row = state.attempts.add(number, AttemptKey(f"run-{number}", index, 1, 0), 1, "i-1", NOW)
        state.attempts.set(row, gpu_mask=mask)
    needs = {1: Resources(1, 1, gpus=2), 2: Resources(1, 1, gpu_share_mib=8_000)}
    shown, other = views = [{"instanceId": "i-1"}, {"instanceId": "i-2"}]
    show_devices(views, state, needs)
    assert shown["gpuDevices"] == [
        {"gpuId": "g0", "mode": "DEDICATED", "freeMib": 0, "totalMib": 22_000, "tasks": 1},
        {"gpuId": "g1", "mode": "DEDICATED", "freeMib": 0, "totalMib": 22_000, "tasks": 1},
        {"gpuId": "g2", "mode": "NVIDIA_MPS", "freeMib": 6_000, "totalMib": 22_000, "tasks": 2},
        {"gpuId": "g3", "mode": "IDLE", "freeMib": 22_000, "totalMib": 22_000, "tasks": 0},
    ]
    assert "gpuDevices" not in other
    show_devices(alone := [{"instanceId": "i-1"}], state, needs | {2: Resources(1, 1, gpus=1)})
    assert "gpuDevices" not in alone[0]
