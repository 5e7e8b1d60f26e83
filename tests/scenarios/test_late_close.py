"""A controller was paused while it closed a run, and continues after the run was retried: it does no harm."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from argosy.model.runs import RunStatus
from tests.builders import RUN_ID
from tests.fakes.aws import timed_out
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled, failing

MANIFEST, SUCCESS, FAILED = (f"{RUN_ID}/{name}" for name in ("manifest.json", "_SUCCESS", "_FAILED"))


def paused(
    cluster: Controlled, operation: str, name: str, meanwhile: Callable[[], None], after: bool = False
) -> list[str]:
    """The first call of `operation` for an object whose name ends so takes effect (`after`: returns) only after
    `meanwhile`, in which a fresh controller works. What is returned names it once it has happened."""
    honest, frozen = getattr(cluster.s3, operation), []

    def call(**request: Any) -> Any:
        if not frozen and request.get("Key", request.get("Prefix", "")).endswith(name):
            frozen.append(name)
            answer = honest(**request) if after else None
            sleeping, cluster.controllers = cluster.controllers, [cluster.controller()]
            meanwhile()
            cluster.controllers = sleeping
            return answer if after else honest(**request)
        return honest(**request)

    setattr(cluster.s3, operation, call)
    return frozen


def tried_again(cluster: Controlled, *failed: int) -> Callable[[], None]:
    """The run is closed as failed by somebody else, then its user retries it, in which the tasks in `failed` fail."""

    def act() -> None:
        cluster.run_to_rest()
        assert cluster.record().status == RunStatus.PARTIAL
        failing(cluster, *failed)
        cluster.retry()
        cluster.run_to_rest()
        assert cluster.record().retries == 1

    return act


def one_that_fails() -> Controlled:
    cluster = Controlled(zones=("us-east-1a",))
    failing(cluster, 3)
    cluster.submit(8, retryStrategy={"attempts": 1})
    return cluster


@pytest.mark.parametrize(
    ("operation", "name"),
    [
        ("list_objects_v2", "parts/"),
        ("head_object", "manifest.json"),
        ("put_object", "manifest.json"),
        ("put_object", "_FAILED"),
    ],
)
def test_wherever_a_close_is_paused_it_leaves_the_results_of_the_retry_as_they_are(operation: str, name: str) -> None:
    cluster = one_that_fails()
    frozen = paused(cluster, operation, name, tried_again(cluster))
    cluster.run_to_rest()
    assert frozen
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert SUCCESS in cluster.s3.objects
    assert FAILED not in cluster.s3.objects
    assert {entry["status"] for entry in cluster.manifest()} == {"SUCCEEDED"}


@pytest.mark.parametrize(("operation", "name"), [("put_object", "manifest.json"), ("put_object", "_FAILED")])
def test_a_late_close_leaves_the_marker_of_a_retry_that_failed_as_well(operation: str, name: str) -> None:
    cluster = one_that_fails()
    frozen = paused(cluster, operation, name, tried_again(cluster, 3))
    cluster.run_to_rest()
    assert frozen
    assert cluster.s3.metadata[FAILED] == {"argosy-retries": "1"}
    assert FAILED in cluster.s3.objects
    assert json.loads(cluster.s3.objects[MANIFEST])["retries"] == 1


def test_a_controller_that_wakes_up_between_manifest_and_marker_does_not_write_the_marker() -> None:
    cluster = one_that_fails()
    frozen = paused(cluster, "put_object", "manifest.json", tried_again(cluster), after=True)
    honest, late = cluster.s3.put_object, []

    def put(**request: Any) -> Any:
        if cluster.record().status == RunStatus.SUCCEEDED:
            late.append(request["Key"])
        return honest(**request)

    cluster.s3.put_object = put  # type: ignore[method-assign]
    cluster.run_to_rest()
    assert frozen
    assert not late


def test_a_stale_marker_is_replaced_when_the_run_is_closed_as_failed_again() -> None:
    """From a controller that died right after it had written it."""
    cluster = one_that_fails()
    cluster.run_to_rest()
    honest = cluster.s3.delete_object
    cluster.s3.delete_object = lambda **request: {}  # type: ignore[assignment, method-assign]
    cluster.retry()
    cluster.run_for(4.0)
    cluster.s3.delete_object = honest  # type: ignore[method-assign]
    assert cluster.s3.metadata[FAILED] == {"argosy-retries": "0"}
    cluster.run_to_rest()
    assert cluster.s3.metadata[FAILED] == {"argosy-retries": "1"}


def test_a_marker_that_comes_late_while_the_run_is_at_work_again_is_taken_back() -> None:
    cluster = one_that_fails()

    def at_work() -> None:
        cluster.run_to_rest()
        cluster.world.workload = lambda task, instance: TaskBehaviour(600.0)
        cluster.retry()
        cluster.run_for(200.0)
        assert FAILED not in cluster.s3.objects

    frozen = paused(cluster, "put_object", "_FAILED", at_work)
    while not frozen:
        cluster.step()
    assert FAILED not in cluster.s3.objects
    cluster.run_to_rest()
    assert SUCCESS in cluster.s3.objects


def test_a_late_preparation_does_not_take_the_marker_of_the_end_that_came_after_it() -> None:
    cluster = one_that_fails()
    cluster.run_to_rest()
    frozen = paused(cluster, "head_object", "_FAILED", cluster.run_to_rest)  # the retry fails again, and is closed
    cluster.retry()
    cluster.run_to_rest()
    assert frozen
    assert (cluster.record().status, cluster.record().retries) == (RunStatus.PARTIAL, 1)
    assert FAILED in cluster.s3.objects


def test_manifest_and_marker_name_the_try_that_they_belong_to() -> None:
    cluster = one_that_fails()
    cluster.run_to_rest()
    assert json.loads(cluster.s3.objects[MANIFEST])["retries"] == 0
    assert cluster.s3.metadata[FAILED] == {"argosy-retries": "0"}
    failing(cluster)
    cluster.retry()
    cluster.run_to_rest()
    assert json.loads(cluster.s3.objects[MANIFEST])["retries"] == 1
    assert cluster.s3.metadata[SUCCESS] == {"argosy-retries": "1"}


def test_a_reply_to_a_manifest_that_was_lost_does_not_keep_the_run_open() -> None:
    """The same controller writes it again, over its own."""
    cluster = one_that_fails()
    honest, lost = cluster.s3.put_object, []

    def put(**request: Any) -> Any:
        answer = honest(**request)
        if request["Key"] == MANIFEST and not lost:
            lost.append(request)
            raise timed_out()
        return answer

    cluster.s3.put_object = put  # type: ignore[method-assign]
    cluster.run_to_rest()
    assert lost
    assert cluster.record().status == RunStatus.PARTIAL
    assert FAILED in cluster.s3.objects
