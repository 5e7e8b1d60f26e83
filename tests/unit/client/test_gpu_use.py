"""What tasks used of their GPUs is shown with what would be enough, and what cannot be read hides nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.client.gpu_use import MeasuredUse, advice, use_from
from argosy.figures.use import gpu_use
from tests.fakes import cli as fakes
from tests.fakes.cli import RUN_ID, World, run_view

BUCKET, FOLDER = "argosy-results", f"{RUN_ID}/attempts/gpu-use/"
ASKED = {"gpus": 1, "gpuShareMib": 0, "memoryMib": 3000, "vcpus": 1.0}


def document(**changes: Any) -> dict[str, Any]:
    """Of an A10G: 12 % of the time and 9 GiB at most."""
    return {
        "version": 1, "gpus": 1, "name": "NVIDIA A10G", "totalMib": 23028, "shareMib": 0,
        "at": [1.0, 11.0, 21.0], "use": [12, 4, 20], "memoryMib": [512, 9216, 9000], "watts": [60, 120, 180],
    } | changes  # fmt: skip


def use(index: int = 0, **changes: Any) -> MeasuredUse:
    found = use_from(f"{FOLDER}{index:07d}/1.json", json.dumps(document(**changes)).encode())
    assert found is not None
    return found


def status(bodies: dict[str, Any], **changes: Any) -> tuple[World, Any]:
    world = World().answers("DescribeRun", run_view(**{**ASKED, **changes}))
    for key, told in bodies.items():
        world.objects.bodies[BUCKET, FOLDER + key] = told if isinstance(told, bytes) else json.dumps(told).encode()
    return world, world.argosy("status", RUN_ID)


def test_status_says_what_was_used_and_what_a_share_that_is_enough_would_cost() -> None:
    _, result = status({"0000000/1.json": document(), "0000003/2.json": document(use=[10, 10, 14])})
    told = " ".join(result.stdout.split())
    assert "GPUs of 2 attempts used 9.0 of 22.5 GiB, 12 % of the time, 146 W" in told
    assert "gpuShare {memoryMib: 10000} would cost $0.50 an hour of a task instead of $1.01 (on demand)" in told


def test_json_has_every_sample() -> None:
    world, _ = status({"0000003/2.json": document()})
    (found,) = json.loads(world.argosy("status", RUN_ID, "--json").stdout)["gpuUse"]
    told = document()
    del told["version"]
    assert found == {"index": 3, "attempt": 2, **told}


def test_each_attempt_has_a_row_with_the_tasks() -> None:
    world, _ = status({"0000003/2.json": document()}, taskList=[fakes.task_row(3)], nextToken=None)
    told = " ".join(world.argosy("status", RUN_ID, "--tasks").stdout.split())
    assert "3 2 1 x NVIDIA A10G 9.0 of 22.5 GiB, 12 % of the time, 146 W" in told


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        ({"use": [90, 90, 90]}, {}),
        ({"memoryMib": [512, 22_000, 22_000]}, {}),  # a library that takes all of the memory says nothing
        ({"memoryMib": [None] * 3}, {}),
        ({"use": [None] * 3}, {}),
        ({}, {"vcpus": 96.0}),  # its vCPUs fill the instance anyway
        ({}, {"gpus": 2}),
        ({"name": "NVIDIA Unheard Of"}, {}),
        ({"name": "Tesla V100-SXM2-16GB"}, {}),  # cannot be shared
        ({"shareMib": 10_000}, {"gpus": 0, "gpuShareMib": 10_000}),
    ],
)
def test_where_a_share_saves_nothing_or_too_little_is_known_none_is_advised(
    changes: dict[str, Any], asked: dict[str, Any]
) -> None:
    assert advice([use(**changes)], {**ASKED, **asked}, "us-east-1") == ""


def test_a_share_that_is_too_large_could_be_smaller() -> None:
    shared = {**ASKED, "gpus": 0, "gpuShareMib": 10_000, "vcpus": 0.25}
    told = advice([use(shareMib=10_000, memoryMib=[900, 1900, 1800])], shared, "us-east-1")
    assert told == "gpuShare {memoryMib: 2000} would cost $0.12 an hour of a task instead of $0.50 (on demand)"


@given(st.lists(st.tuples(st.integers(1, 50), st.one_of(st.none(), st.integers(0, 100))), min_size=1, max_size=30))
def test_a_mean_is_that_of_every_second(spans: list[tuple[int, int | None]]) -> None:
    at, now, seconds = list[int](), 0, list[int]()
    for span, value in spans:
        now += span
        at.append(now)
        seconds += [] if value is None else [value] * span
    values = tuple(value for _, value in spans)
    found = use(at=at, use=values, memoryMib=[1] * len(at), watts=[1] * len(at)).mean(values)
    assert found == (pytest.approx(sum(seconds) / len(seconds)) if seconds else None)


@pytest.mark.parametrize(
    "body",
    [
        b"no json", b"{}", b"[1]", b"\xff", json.dumps(document(at=[1.0])).encode(),
        json.dumps(document(use="abc")).encode(), json.dumps(document(use=[float("nan")] * 3)).encode(),
        json.dumps(document(gpus=None)).encode(), json.dumps(document(use=[{}] * 3)).encode(),
    ],
)  # fmt: skip
def test_what_is_no_measurement_is_left_out(body: bytes) -> None:
    _, result = status({"0000000/1.json": body, "notes.txt": document()})
    assert (result.exit_code, result.stderr) == (0, "")
    assert "GPUs of" not in result.stdout


def test_status_is_shown_without_the_right_to_read_them_and_not_read_for_other_runs() -> None:
    world = World().answers("DescribeRun", run_view(**ASKED))
    world.objects.refuses[BUCKET] = fakes.refusal("AccessDenied", operation="ListObjectsV2")
    assert world.argosy("status", RUN_ID).exit_code == 0
    _, result = status({"0000000/1.json": document()}, gpus=0)
    assert "GPUs of" not in result.stdout


def test_the_figure_has_a_line_for_what_is_known_and_a_row_for_each_attempt() -> None:
    figure = gpu_use([use(), use(4, name="<b>", memoryMib=[None] * 3)], "Less would be enough.")
    assert "computing" in str(figure.picture)
    assert "memory" in str(figure.picture)
    assert figure.note == "9.0 of 22.5 GiB, 12 % of the time, 146 W. Less would be enough."
    assert figure.table is not None
    assert len(figure.table.rows) == 2
