"""`argosy doctor --probe` in local mode, typed under each reading of AWS's contracts and under all at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from argosy.cli.deployment.probe import OBSERVED, QUESTIONS
from argosy.emulator.readings import READINGS, TOTAL_ONLY, known
from argosy.local.clients import LocalClients
from argosy.local.deployment import local_settings
from argosy.local.options import LocalOptions
from argosy.model.readings import DOCKER_BLOCKS, ONLY_ACTIVE
from tests.e2e.cluster import Cluster
from tests.fakes.commands import outcome_of
from tests.fakes.local_mode import local_aws

pytestmark = pytest.mark.e2e

REFUSALS = {TOTAL_ONLY: "InvalidTargetCapacitySpecification", ONLY_ACTIVE: "FleetNotInModifiableState"}
FEW = local_settings(instanceTypes={"cpu": ["c5.large", "c5.xlarge", "c5.2xlarge"], "gpu": []})


def test_the_probe_says_which_reading_holds_and_what_the_controller_saw(tmp_path: Path) -> None:
    """One local mode, whose readings are switched in between."""
    with local_aws(LocalOptions(FEW, boot_s=0.2, tick_s=0.3, state_dir=tmp_path)) as aws:
        clients = LocalClients(aws.endpoint_url, aws.region, aws.key)
        local, readings = Cluster(aws, clients), aws.cells[aws.region].ec2.ledger.readings
        for reading in [*READINGS, "all"]:
            readings |= known([reading])
            found = probed(local)
            assert found.keys() >= QUESTIONS.keys() | OBSERVED.keys()
            for name, code in REFUSALS.items():
                assert (code in found[name]) == (name in readings), (reading, found[name])
            readings.clear()
        local.ask("ScaleCluster", instances=1)
        local.until(lambda: local.ask("DescribeCluster")["readings"])
        assert "the controller saw at " in probed(local)[DOCKER_BLOCKS]
        clients.close()


def probed(local: Cluster) -> dict[str, str]:
    """Name of each finding -> its words."""
    done = outcome_of(["argosy", "doctor", "--probe", "--json"], ARGOSY_ENDPOINT_URL=local.aws.endpoint_url)
    assert done.returncode in (0, 3), done.stderr
    return {each["name"]: each["says"] for each in json.loads(done.stdout)["checks"]}
