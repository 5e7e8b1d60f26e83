"""What DescribeCluster shows."""

from __future__ import annotations

import pytest

from tests.fakes.api import Desk, running


def test_the_cluster_is_shown_with_use_and_money(desk: Desk) -> None:
    running(desk)
    view = desk.body("DescribeCluster")
    busy, gone = view["instances"]
    assert busy == {
        "instanceId": "i-0000000000000000a", "instanceType": "p3.8xlarge", "availabilityZone": "us-east-1a",
        "cell": "us-east-1", "purchase": "spot", "status": "ACTIVE",
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


def test_a_cluster_that_never_worked_is_empty(desk: Desk) -> None:
    view = desk.body("DescribeCluster")
    assert view["instances"] == view["fleets"] == []
    assert view["spentUsd"] == 0
