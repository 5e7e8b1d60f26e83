"""How long does a tick spend on services: 200 environments of 50 tasks each, quiet and in the middle of updates?"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from argosy.model.attempts import AttemptKey, AttemptStatus
from argosy.model.instances import Instance, InstanceStatus
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.services.environments import DeploymentStatus, Environment, Revision, ServiceDeployment
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.scheduler.decide import decide
from argosy.scheduler.services.environments import rollouts
from tests.builders import CELL, NOW, instance_id, spec, submit_request

ENVIRONMENTS, TASKS, INSTANCES = 200, 50, 100
FLOOR_S = 0.25  # of a machine that is busy; the goal is 0.05


def at_work(status: DeploymentStatus) -> Moment:
    """Every desired task of every environment runs and is healthy."""
    state = State()
    for number in range(INSTANCES):
        name = instance_id(number)
        state.instances[name] = Instance(name, CELL, "c5.large", f"{CELL}a", status=InstanceStatus.ACTIVE)
    for number in range(ENVIRONMENTS):
        _add(state, f"web{number}", number, status)
    return Moment(state, {}, NOW + 100, Policy())


def _add(state: State, name: str, number: int, status: DeploymentStatus) -> None:
    run_id = f"{name}-261121-062733-k3f9"
    form = spec(kind="service", name=name, service={"desired": TASKS}, array={"size": TASKS})
    run = state.take_in(submit_request(run_id, NOW, form, TASKS, "argosy/web", "s3://results/x/", False), TASKS)
    env = state.environments[name] = Environment.new(name, Revision(1, NOW), TASKS)
    env.revisions[0].run_id, env.completed = run_id, 1
    env.deployments.append(ServiceDeployment(1, 1, NOW, status=status))
    for index in range(TASKS):
        where = instance_id((number * TASKS + index) % INSTANCES)
        run.tasks.set(index, status=TaskStatus.RUNNING, attempts=1)
        row = state.attempts.add(run.number, AttemptKey(run_id, index, 1, 0), 1, where, NOW)
        state.attempts.name_task(row, f"{number}-{index}")
        state.attempts.set(row, status=AttemptStatus.RUNNING, started_at=NOW)


@pytest.mark.benchmark
@pytest.mark.parametrize("status", [DeploymentStatus.COMPLETED, DeploymentStatus.IN_PROGRESS])
@pytest.mark.parametrize("act", [rollouts, decide], ids=["rollouts", "all decisions of a tick"])
def test_two_hundred_environments(act: Callable[[Moment], object], status: DeploymentStatus) -> None:
    moment = at_work(status)
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        act(moment)
        seconds.append(time.perf_counter() - began)
    what = f"{ENVIRONMENTS} environments x {TASKS} tasks, {status}, {act.__name__}"
    print(f"\n{what}: {min(seconds) * 1000:.1f} ms a tick")
    assert min(seconds) < FLOOR_S
