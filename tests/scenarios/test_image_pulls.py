"""How long may a task wait for its image (N7)? ECS may tell of a pull while it runs, or only afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from argosy.api.waiting.explanation import explain_run
from argosy.catalogue.lookup import load_catalogue
from argosy.engine.loading import stored
from argosy.model.moment import Moment
from argosy.model.readings import PULL_SURVIVES, PULL_TOLD
from argosy.model.runs import RunStatus
from argosy.model.tasks import TaskStatus
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled

FOREVER = float("inf")
either_reading = pytest.mark.parametrize("tells_pulls", [False, True], ids=["told afterwards", "told at once"])


def cluster_with(course: Callable[[dict[str, Any], Any], TaskBehaviour], tells_pulls: bool = False) -> Controlled:
    cluster = Controlled(zones=("us-east-1a",))
    cluster.world.readings |= {PULL_TOLD} if tells_pulls else set()
    cluster.world.workload = course
    return cluster


@either_reading
def test_a_pull_that_takes_longer_than_ten_minutes_succeeds_with_the_first_attempt(tells_pulls: bool) -> None:
    cluster = cluster_with(lambda task, instance: TaskBehaviour(60.0, pull_s=700.0), tells_pulls)
    cluster.submit(2)
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.attempts) == (RunStatus.SUCCEEDED, 2)


@either_reading
def test_an_image_that_never_comes_ends_the_run_after_three_tries_of_thirty_minutes(tells_pulls: bool) -> None:
    cluster = cluster_with(lambda task, instance: TaskBehaviour(pull_s=FOREVER), tells_pulls)
    cluster.submit(1)
    took = cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.attempts) == (RunStatus.FAILED, 3)
    assert 3 * 1800.0 < took < 3 * 1800.0 + 1200.0
    said = (
        "its image was still being pulled after 30 min"
        if tells_pulls
        else "still PENDING after 30 min; ECS did not say"
    )
    assert f"given up after 3 losses: argosy: {said}" in record.failures[-1].reason
    assert not cluster.live_instances()


def test_a_pull_that_goes_on_after_the_stop_of_its_task_is_seen_to_do_so() -> None:
    cluster = cluster_with(lambda task, instance: TaskBehaviour(60.0, pull_s=2400.0), tells_pulls=True)
    cluster.world.readings.add(PULL_SURVIVES)
    cluster.submit(1)
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
    seen = stored(cluster.store).state().readings.seen
    assert seen[PULL_SURVIVES].holds
    assert seen[PULL_TOLD].holds


def test_a_pull_that_fails_late_ends_the_run_with_the_words_of_aws() -> None:
    words = "CannotPullContainerError: pull image manifest has been retried 1 time(s): failed to resolve ref"
    cluster = cluster_with(lambda task, instance: TaskBehaviour(pull_s=700.0, cannot_start=words))
    cluster.submit(1)
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.FAILED
    assert words in cluster.record().failures[-1].reason


def test_a_task_on_an_instance_that_has_the_image_is_stuck_after_ten_minutes() -> None:
    """The first task of the run runs there; the second one is never started by its agent."""
    first = iter([TaskBehaviour(900.0), TaskBehaviour(pull_s=FOREVER)])
    cluster = cluster_with(lambda task, instance: next(first, TaskBehaviour(5.0)))
    cluster.submit(2)
    took = cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.attempts) == (RunStatus.SUCCEEDED, 3)
    assert took < 1800.0


@either_reading
def test_a_run_whose_only_tasks_pull_their_image_says_so(tells_pulls: bool) -> None:
    cluster = cluster_with(lambda task, instance: TaskBehaviour(60.0, pull_s=700.0), tells_pulls)
    cluster.submit(2)
    cluster.run_for(400.0)
    assert cluster.run.tasks.counts()[TaskStatus.STARTING] == 2
    said = "pulling its image since " if tells_pulls else "perhaps it pulls its image"
    assert said in cluster.record().waiting
    state = cluster.controllers[0].state
    assert state is not None
    explained = explain_run(Moment(state, load_catalogue(), cluster.world.now, cluster.policy), cluster.run)
    assert said in explained["sentence"]
    cluster.run_for(400.0)
    assert cluster.record().waiting == ""


def image_of(name: str) -> dict[str, Any]:
    return {"container": {"image": name, "command": ["work"]}}


def test_a_task_goes_to_the_idle_instance_that_has_its_image_and_pulls_nothing() -> None:
    """Two equal instances stay idle, each with one image. The tasks come in the other order than the instances did."""
    cluster = Controlled(zones=("us-east-1a",), linger_s=1_800.0)
    cluster.world.workload = lambda task, instance: TaskBehaviour(60.0, pull_s=300.0)
    whole = {"resources": {"vcpus": 4, "memory": 1024}}
    names = {image: f"then-{image}-261121-062733-k3f9" for image in ("a", "b")}
    for image in ("a", "b"):
        cluster.submit(1, f"first-{image}-261121-062733-k3f9", **whole, **image_of(f"argosy/{image}"))
        cluster.run_for(120.0)
    cluster.run_for(600.0)
    assert len(cluster.live_instances()) == 2
    for image in ("b", "a"):
        cluster.submit(1, names[image], **whole, **image_of(f"argosy/{image}"))
        cluster.run_for(30.0)
    for image in ("a", "b"):
        first, then = cluster.record(f"first-{image}-261121-062733-k3f9"), cluster.record(names[image])
        assert (first.start_ups.pulls, then.start_ups.pulls, then.start_ups.starts) == (1, 0, 1)
        assert then.instances == first.instances
