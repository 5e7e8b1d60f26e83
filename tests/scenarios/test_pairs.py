"""Features that each have tests alone, together: `tests/unit/test_pairs.py` has all pairs."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.catalogue.lookup import load_catalogue
from argosy.model.moment import Moment
from argosy.model.policy import SparePlaces
from argosy.model.resources import Resources
from argosy.model.runs import RunStatus
from argosy.model.services.environments import DeploymentStatus
from argosy.scheduler.due import next_due
from tests.builders import RUN_ID
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled, failing, index_of
from tests.scenarios.services import ask, deploy, form, running, service, state_of, status, until, up

ONE = ("us-east-1a",)
LATER = "later-261121-062735-bbbb"
JOBS = "s3://results/argosy/programs/jobs/"
SHARE = {"vcpus": 0.5, "memory": 1000, "gpuShare": {"memoryMib": 10_000, "maxComputePercent": 50}}
PROGRAM: dict[str, Any] = {
    "run": ["python", "f.py"],
    "job": f"{JOBS}1a.json",
    "result": "none",
    "container": {"image": "argosy/digits"},
    "retryStrategy": {"attempts": 1},
}


def told(cluster: Controlled, run_id: str = RUN_ID) -> dict[tuple[int, int], dict[str, str]]:
    """The variables of each attempt that ECS started, by (index, attempt)."""
    found = {}
    for message in cluster.world.events:
        if message["detail-type"] == "ECS Task State Change":
            override = message["detail"]["overrides"]["containerOverrides"][0]
            values = {each["name"]: each["value"] for each in override["environment"]}
            if values["ARGOSY_RUN_ID"] == run_id:
                found[int(values["ARGOSY_TASK_INDEX"]), int(values["ARGOSY_TASK_ATTEMPT"])] = values
    return found


def test_a_fixed_program_keeps_all_that_it_had_when_its_instance_is_interrupted() -> None:
    cluster = Controlled(types=("c5.xlarge", "g5.xlarge"), zones=ONE)
    failing(cluster, 1)
    saved = {"checkpoint": {"everySeconds": 60}, "inputs": ["s3://results/in/${index}.bin"]}
    cluster.submit(2, resources=SHARE, **PROGRAM, **saved)
    cluster.run_to_rest()
    cluster.world.workload = lambda task, instance: TaskBehaviour(300.0)
    cluster.controllers = [cluster.controller(), cluster.controller()]
    cluster.retry(job=f"{JOBS}2b.json", size={"memory": 2_000})
    cluster.run_for(300)
    [instance] = cluster.live_instances()
    cluster.world.interrupt(instance["InstanceId"])
    cluster.run_to_rest()
    record, attempts = cluster.record(), told(cluster)
    assert (record.status, record.interruptions) == (RunStatus.SUCCEEDED, 1)
    assert (record.needs.memory_mib, record.needs.gpu_share_mib) == (2_000, 10_000)
    assert {key: each["ARGOSY_JOB"][-7:-5] for key, each in attempts.items()} == {
        (0, 1): "1a", (1, 1): "1a", (1, 2): "2b", (1, 3): "2b",
    }  # fmt: skip
    its = [each for key, each in attempts.items() if key[0] == 1]
    for name in ("ARGOSY_INPUTS", "ARGOSY_CHECKPOINT_URI", "ARGOSY_CHECKPOINT_SECONDS"):
        assert len({each[name] for each in its}) == 1
    assert [entry["program"] for entry in cluster.manifest()] == [1, 2]
    assert max(cluster.starts().values()) == 1


@pytest.mark.slow
def test_room_is_kept_for_a_service_through_updates_interruptions_and_two_controllers() -> None:
    room = (SparePlaces(3, Resources(1024, 1024)),)
    cluster = service(zones=ONE, linger_s=20.0, headroom=room)
    up(cluster, 4)  # of half a vCPU
    until(cluster, lambda: sum(cluster.fleet_targets().values()) == 2)
    cluster.controllers.append(cluster.controller())
    deploy(cluster, 2, form(4, "serve2"))
    until(cluster, lambda: list(running(cluster)) == ["web-261121-062702-k3f9"])
    for instance in cluster.live_instances():
        cluster.world.interrupt(instance["InstanceId"])
    cluster.run_for(300)
    assert sum(cluster.fleet_targets().values()) == len(cluster.live_instances()) == 2
    assert sum(running(cluster).values()) == 4
    cluster.controllers.pop()
    cluster.run_for(60)
    moment = Moment(state_of(cluster), load_catalogue(), cluster.world.now, cluster.policy)
    assert next_due(moment) > cluster.world.now  # the controller rests although room is kept
    ask(cluster, "delete")
    cluster.run_to_rest()
    assert not cluster.live_instances()


def test_shares_of_gpus_are_handed_over_to_the_next_revision_of_a_service() -> None:
    cluster = service(types=("g5.xlarge",), zones=ONE)
    sharing = {**form(2), "resources": SHARE}
    deploy(cluster, 1, sharing)
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED)
    assert len(cluster.live_instances()) == 1
    deploy(cluster, 2, {**sharing, "container": {**sharing["container"], "command": ["serve2"]}})
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED)
    assert list(running(cluster).values()) == [2]


def test_tasks_that_wait_for_tasks_of_another_run_begin_in_the_room_that_is_kept() -> None:
    cluster = Controlled(zones=ONE, linger_s=20.0, headroom=(SparePlaces(2, Resources(1024, 1024)),))
    cluster.world.workload = lambda task, instance: TaskBehaviour(300.0 * (1 + index_of(task)))
    cluster.submit(2)
    cluster.submit(2, LATER, name="later", dependsOn=[{"run": RUN_ID, "type": "N_TO_N"}])
    cluster.run_to_rest()
    assert cluster.record(LATER).status is RunStatus.SUCCEEDED
    assert cluster.record(LATER).started_at - cluster.record().started_at < 330.0
