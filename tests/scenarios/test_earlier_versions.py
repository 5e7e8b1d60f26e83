"""This version loads and finishes the state of an earlier one, with work in flight (DESIGN D37).

`tests/data/stored-59c9ded3.json` holds the items of a store as the controller and the api of commit 59c9ded3 left them:
a failed run, a run at work (limits on money, tags, retries, a change), one that waits for it and has a deadline, one
with constraints and host ports, a cancelled one, a service and a daemon that run, and a schedule. The inbox has a new
run, a new revision of the service and a retry.
"""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from argosy.engine.loading import load
from argosy.model.resources import Resources
from argosy.model.run_terms import TERMS
from argosy.model.services.environments import DeploymentStatus
from argosy.model.stored import documents
from tests.builders import MemoryStore
from tests.fakes.api import Desk
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled
from tests.scenarios.services import FOR_EVER_S

STORED = json.loads((Path(__file__).parents[1] / "data" / "stored-59c9ded3.json").read_text())


def store() -> MemoryStore:
    found = MemoryStore()
    found.items = {(partition, key): base64.b64decode(body) for partition, key, body in STORED["items"]}
    found.stored_version = STORED["version"]
    return found


def behaviour(task: dict[str, Any], instance: Any) -> TaskBehaviour:
    return TaskBehaviour(FOR_EVER_S if str(task.get("group")).startswith("env:") else 60.0)


def loaded() -> Controlled:
    """A world in which none of the instances is there any more."""
    found = Controlled()
    found.pass_time(STORED["now"] - found.world.now)
    found.world.workload = behaviour
    found.store = store()
    found.controllers = [found.controller()]
    return found


@pytest.fixture(scope="module")
def finished() -> Controlled:
    """The same half an hour later, after the schedule was run once."""
    found = loaded()
    desk_of(found).body("RunScheduleNow", name="nightly")
    found.run_for(1200)
    return found


def desk_of(cluster: Controlled) -> Desk:
    desk = Desk()
    desk.store = desk.api.store = cluster.store
    desk.time = cluster.world.now
    desk.api.limits = replace(desk.api.limits, shapes={"c5.xlarge": Resources(4096, 7600, 0)})
    return desk


def named(cluster: Controlled, name: str) -> str:
    return next(row["runId"] for row in desk_of(cluster).body("ListRuns")["runs"] if row["runId"].startswith(name))


def test_it_was_stored_without_terms_and_every_run_is_read_with_them() -> None:
    specs = [documents.decode(body) for (partition, key), body in store().items.items() if key == documents.SPEC]
    assert len(specs) >= 6
    assert not any(TERMS in spec for spec in specs)
    state = load(store())
    assert not state.losses.found
    assert not state.suspended
    runs = {run.name: run for run in state.runs.values()}
    first, late, placed, web = (runs[name].terms for name in ("first", "late", "placed", "web"))
    assert (first.budget_usd, first.drains_at_cap, first.priority, first.max_instances) == (50, False, 7, 40)
    assert (first.tags, first.shard_size, first.attempt_limit) == ((("team", "vision"),), 10, 3)
    assert (first.gpu_share_mib, first.gpu_compute_percent) == (0, 0)
    assert (late.purchase, late.fallback_wait_s) == ("spot-then-on-demand", float("inf"))
    assert (placed.host_ports, placed.group) == (((53, "udp"), (8080, "tcp")), "team")
    assert web.service is not None
    assert web.health is not None
    assert (web.service.desired, web.health.interval_s) == (2, 10)


def test_its_runs_come_to_their_end_and_its_schedule_starts_one(finished: Controlled) -> None:
    for name in ("first", "late", "placed", "waiting", "broken", "nightly"):
        assert finished.record(named(finished, name)).status == "SUCCEEDED"
    assert finished.record(named(finished, "stopped")).status == "CANCELLED"


def test_its_services_continue_and_the_next_revision_adopts_their_tasks(finished: Controlled) -> None:
    state = load(finished.store)
    web, agent = state.environments["web"], state.environments["agent"]
    (run_id,) = load(store()).environments["web"].runs()
    assert web.runs() == [run_id]
    assert (web.desired, web.completed) == (3, 2)
    assert web.deployment is not None
    assert agent.deployment is not None
    assert {web.deployment.status, agent.deployment.status} == {DeploymentStatus.COMPLETED}
    assert TERMS in documents.decode(finished.store.items[documents.run_partition(run_id), documents.SPEC])


def test_the_api_shows_and_changes_its_runs() -> None:
    cluster = loaded()
    desk = desk_of(cluster)
    assert desk.body("DescribeRun", runId=named(cluster, "waiting"))["name"] == "waiting"
    assert desk.body("UpdateRun", runId=named(cluster, "first"), changes={"budgetUsd": 60})["created"]
