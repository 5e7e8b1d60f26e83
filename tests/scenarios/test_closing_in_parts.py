"""A run with many tasks is closed one part of the manifest at a time: other runs are served in between, and a crash
costs one part at most."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from argosy.aws.cell import PartSize
from argosy.model.runs import RunStatus
from tests.builders import RUN_ID
from tests.scenarios.controlled import Controlled, failing

SECOND = "second-261121-062733-k3f9"
SUCCESS, FAILED, MANIFEST = (f"{RUN_ID}/{name}" for name in ("_SUCCESS", "_FAILED", "manifest.json"))


def large(tasks: int = 24, **options: Any) -> Controlled:
    """A run of a dozen parts, all of whose tasks have ended."""
    cluster = Controlled(zones=("us-east-1a",), part_size=PartSize(2), **options)
    cluster.submit(tasks, retryStrategy={"attempts": 1})
    cluster.tick()
    return cluster


def until_closing(cluster: Controlled) -> None:
    limit = cluster.world.now + 3600
    while "results are being listed" not in cluster.record().waiting:
        assert cluster.world.now < limit, "it is never closed"
        cluster.tick()


def written(cluster: Controlled) -> list[str]:
    """The names of the objects that are written to the results folder from now on, in order."""
    names: list[str] = []
    real = cluster.s3.put_object

    def put_object(**request: Any) -> Any:
        names.append(request["Key"])
        return real(**request)

    cluster.s3.put_object = put_object  # type: ignore[method-assign]
    return names


def test_another_run_starts_and_ends_while_a_large_one_is_being_closed() -> None:
    cluster = large(tasks=80, work_s=10.0, tick_s=1.0)
    until_closing(cluster)
    cluster.submit(4, run_id=SECOND)
    cluster.tick()
    while cluster.record(SECOND).status != RunStatus.SUCCEEDED:
        assert SUCCESS not in cluster.s3.objects
        cluster.tick()
    cluster.run_to_rest()
    assert [entry["index"] for entry in cluster.manifest()] == list(range(80))
    assert SUCCESS in cluster.s3.objects


def test_a_tick_writes_one_part_and_the_marker_comes_last_and_once() -> None:
    cluster = large()
    names = written(cluster)
    while cluster.record().status != RunStatus.SUCCEEDED:
        before = len(names)
        cluster.tick()
        assert sum("/manifest/" in name for name in names[before:]) <= 1
    results = [name for name in names if "/manifest" in name or name.endswith("_SUCCESS")]
    assert results[-2:] == [MANIFEST, SUCCESS]
    assert set(Counter(results).values()) == {1}
    assert len(results) == 24 / 2 + 2


def test_a_controller_that_dies_between_two_parts_resumes_there() -> None:
    cluster = large()
    names = written(cluster)
    until_closing(cluster)
    while cluster.record().status != RunStatus.SUCCEEDED:
        cluster.controllers = [cluster.controller()]  # nothing in memory
        cluster.tick()
        cluster.tick()  # what the first one did is committed by the second
    assert [entry["index"] for entry in cluster.manifest()] == list(range(24))
    assert max(Counter(name for name in names if "/manifest/" in name).values()) <= 2
    assert names.count(SUCCESS) == 1
    assert names.index(SUCCESS) > names.index(MANIFEST) > max(names.index(n) for n in names if "/manifest/" in n)


def test_a_controller_that_dies_in_the_middle_of_a_tasks_objects_resumes_there() -> None:
    cluster = Controlled(zones=("us-east-1a",), part_size=PartSize(2, 3))
    cluster.submit(3)
    cluster.tick()
    files = [f"{RUN_ID}/attempts/0000001/1/{number}" for number in range(8)]
    for name in files:
        cluster.s3.put_object(Key=name, Body=b"12")
    until_closing(cluster)
    shown = set()
    while cluster.record().status != RunStatus.SUCCEEDED:
        cluster.controllers = [cluster.controller()]
        cluster.tick()
        cluster.tick()
        shown.add(cluster.record().waiting.rpartition(", and ")[2])
    assert shown >= {f"{number} objects of the next one" for number in (3, 6)}
    assert [(entry["keys"], entry["bytes"]) for entry in cluster.manifest()] == [([], 0), (files, 16), ([], 0)]


@pytest.mark.parametrize("again_fails", [False, True])
def test_a_retry_writes_its_own_parts_and_the_right_marker(again_fails: bool) -> None:
    cluster = large()
    failing(cluster, 3, 17)
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.PARTIAL
    first = {name: body for name, body in cluster.s3.objects.items() if "/manifest/0/" in name}
    failing(cluster, *([17] if again_fails else []))
    cluster.retry()
    cluster.run_to_rest()
    assert {name: cluster.s3.objects[name] for name in first} == first
    ended = {entry["index"]: entry["status"] for entry in cluster.manifest()}
    assert [index for index, status in ended.items() if status != "SUCCEEDED"] == ([17] if again_fails else [])
    assert json.loads(cluster.s3.objects[MANIFEST])["retries"] == 1
    assert (SUCCESS in cluster.s3.objects, FAILED in cluster.s3.objects) == (not again_fails, again_fails)
    assert {entry["instanceType"] for entry in cluster.manifest()} == {"c5.xlarge"}


def test_a_retry_in_the_middle_of_a_close_restarts_the_manifest() -> None:
    cluster = large()
    failing(cluster, 3)
    until_closing(cluster)
    failing(cluster)
    cluster.retry()
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert {entry["status"] for entry in cluster.manifest()} == {"SUCCEEDED"}
    parts = json.loads(cluster.s3.objects[MANIFEST])["parts"]
    assert {each["key"].split("/")[1] for each in parts} == {"1"}
    assert FAILED not in cluster.s3.objects
