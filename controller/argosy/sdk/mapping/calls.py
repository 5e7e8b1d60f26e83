"""Calls sent to a deployment as a run, and the parts that its tasks leave.

One object holds the functions and one the calls of each task: the runner brings both into the task's $ARGOSY_IN. A task
leaves one object, its part. A part that exists counts: an object appears in S3 as a whole, and only when the program
has succeeded.
"""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from argosy import layout
from argosy.client.access import Access
from argosy.client.errors import ArgosyError
from argosy.sdk.client import Client
from argosy.sdk.errors import explained
from argosy.sdk.mapping.options import PROGRAM, TaskTerms
from argosy.sdk.mapping.pickling import cloudpickle_module, framed_here
from argosy.sdk.mapping.worker import IN_A_CALL, python_version
from argosy.sdk.run import RunHandle
from argosy.spec.program import DEFAULT_IMAGE

PARALLEL_TRANSFERS = 16
FEWEST_TASKS = 8  # if there are that many items
TASKS_OF_A_CORE = 8
NOT_AWAITED = "its results are no longer awaited"  # why a run is cancelled
MOST_TASKS = 1_000_000
MANY_TASKS = 10_000  # ten pages of S3's list
_NAME = re.compile(r"[^a-z0-9]+")


def batch_size(count: int, wanted: int | None, cores: int | None = None) -> int:
    """Calls of a task: the wanted number or, without one, about as many as there are tasks, so that neither grows
    alone: 32 tasks of 32 calls for 1,000, 1,000 of 1,000 for a million. Never more tasks than a run may have.
    cores: of this machine if all tasks run on it: more tasks than keep it busy to the end only add their start.
    """
    if wanted is None:
        tasks = max(FEWEST_TASKS, round(count**0.5))
        if cores is not None:
            tasks = min(tasks, max(FEWEST_TASKS, TASKS_OF_A_CORE * cores))
        wanted = -(-count // tasks)
    return max(1, wanted, -(-count // MOST_TASKS))


def cores_of(client: Client) -> int | None:
    """None for a deployment that is not on this machine."""
    return (os.cpu_count() or 1) if client.access.connection.is_loopback else None


def batches(calls: Sequence[bytes], size: int) -> list[Sequence[bytes]]:
    """The calls of each task."""
    return [calls[begin : begin + size] for begin in range(0, len(calls), size)]


def run_name(function_name: str) -> str:
    """`map-` and the part of a function's name that fits into a run's name."""
    plain = _NAME.sub("-", function_name.rpartition(".")[2].lower()).strip("-")
    return f"map-{plain}"[:63].rstrip("-")


@contextmanager
def uploaded(
    client: Client, name: str, functions: Sequence[bytes], tasks: Sequence[Sequence[bytes]], terms: TaskTerms
) -> Iterator[dict[str, Any]]:
    """Upload the functions, before them the classes, and the calls of each task. The spec of their run, to be submitted
    inside of this context. Raises ArgosyError."""
    if os.environ.get(IN_A_CALL):
        raise ArgosyError(
            "A function that argosy calls in a task cannot itself use argosy.map or argosy.Executor: its task would"
            " keep its place while it waits for others, and all of them might wait forever.",
            next_step="call argosy.map once, with all the items",
            is_users_fault=True,
        )
    with explained():
        base = f"s3://{client.access.deployment.bucket}/{layout.CALLS}{uuid.uuid4().hex}/"
        objects = {f"{base}functions.bin": lambda: framed_here(functions)}
        objects |= {f"{base}calls-{index}.bin": _framer(calls) for index, calls in enumerate(tasks)}
        _upload(client.access.client("s3"), objects)
    with TemporaryDirectory(prefix="argosy-map-") as folder:
        write_program(Path(folder))
        inputs = [f"{base}functions.bin", f"{base}calls-${{index}}.bin"]
        stock = stock_image(client.access.deployment.python)
        yield replace(terms, image=terms.image or stock).spec(name, len(tasks), inputs, Path(folder))


def stock_image(deployed: str) -> str:
    """Argosy's image of this Python. deployed: the Python of the deployment's own copy, if any."""
    return DEFAULT_IMAGE if deployed == python_version() else f"{DEFAULT_IMAGE}:{python_version()}"


def _framer(calls: Sequence[bytes]) -> Callable[[], bytes]:
    return lambda: framed_here(calls)


def _upload(s3: Any, objects: Mapping[str, Callable[[], bytes]]) -> None:
    def put(uri: str) -> None:
        bucket, key = layout.split_s3(uri)
        s3.put_object(Bucket=bucket, Key=key, Body=objects[uri]())

    with ThreadPoolExecutor(PARALLEL_TRANSFERS) as pool:
        list(pool.map(put, objects))


def write_program(folder: Path) -> None:
    """The program of the tasks: the worker, and this process's own cloudpickle next to it."""
    shutil.copyfile(Path(__file__).with_name("worker.py"), folder / PROGRAM)
    package = Path(cloudpickle_module().__file__).parent
    shutil.copytree(package, folder / package.name, ignore=shutil.ignore_patterns("__pycache__"))


def finished_parts(run: RunHandle, timeout: float | None = None) -> Iterator[dict[int, bytes]]:
    """The new parts at each poll: task -> its part; perhaps none. The last poll is of a run that has ended, and a part
    that is missing then stays missing. timeout: seconds. Raises ArgosyError.
    """
    seen: set[int] = set()
    for look in run.watch(timeout):
        found: dict[int, bytes] = {}
        if look.has_ended or _is_worthwhile(look.tasks, len(seen)):
            with explained():
                found = dict(_new_parts(run.access, look.output, seen))
        seen |= set(found)
        yield found


def _is_worthwhile(tasks: Mapping[str, int], seen: int) -> bool:
    """Whether to list the parts: each time something new has succeeded or, for a run whose list has many pages, at
    every
    hundredth of it.
    """
    step = tasks["total"] // 100 if tasks["total"] > MANY_TASKS else 1
    return tasks["succeeded"] - seen >= step


def _new_parts(access: Access, output: str, seen: set[int]) -> Iterator[tuple[int, bytes]]:
    s3 = access.client("s3")
    bucket, prefix = layout.split_s3(output)
    keys = {}
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}parts/"):
        for each in page.get("Contents", ()):
            index = layout.part_index(each["Key"].removeprefix(prefix))
            if index is not None and index not in seen:
                keys[index] = each["Key"]

    def read(index: int) -> tuple[int, bytes]:
        return index, s3.get_object(Bucket=bucket, Key=keys[index])["Body"].read()

    if keys:
        with ThreadPoolExecutor(PARALLEL_TRANSFERS) as pool:
            yield from pool.map(read, keys)
