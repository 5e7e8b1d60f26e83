"""`argosy.map` over a deployment whose tasks are real processes."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

import argosy
from argosy.sdk.mapping.calls import batch_size, run_name, stock_image
from argosy.sdk.mapping.options import TaskTerms
from argosy.sdk.mapping.worker import python_version
from argosy.spec.parse import parse_spec
from tests.fakes.calling import CallingWorld
from tests.fakes.waiting import until

pytestmark = pytest.mark.slow


def test_results_come_in_the_order_of_the_items(deployment: CallingWorld) -> None:
    results = argosy.map(lambda x: x * x, range(20), batch=3, client=deployment.client)
    assert list(results) == [x * x for x in range(20)]
    assert results.run is not None
    [spec] = deployment.specs
    assert (spec["name"], spec["array"]) == ("map-lambda", {"size": 7, "partSuffix": ".pkl"})


def test_a_run_asks_for_the_share_of_a_gpu_that_each_task_gets(tmp_path: Path) -> None:
    spec = TaskTerms(gpu_share=8_000).spec("x", 1, [], tmp_path)
    assert spec["resources"] == {"vcpus": 1, "memory": 1024, "gpus": 0, "gpuShare": {"memoryMib": 8_000}}
    parse_spec({**spec, "container": None, "inputs": ["s3://bucket/x/"]})


def test_a_run_asks_for_what_each_task_gets(deployment: CallingWorld) -> None:
    list(argosy.map(abs, [-1], vcpus=2, memory=4096, gpus=1, attempts=2, budget=1.5, client=deployment.client))
    [spec] = deployment.specs
    assert spec["resources"] == {"vcpus": 2, "memory": 4096, "gpus": 1}
    assert spec["retryStrategy"] == {"attempts": 2, "evaluateOnExit": [{"onExitCode": "64", "action": "EXIT"}]}
    assert spec["capacity"] == {"budgetUsd": 1.5}
    assert {"workdir", "packages"}.isdisjoint(spec)


def test_packages_are_asked_for_as_a_spec_names_them(tmp_path: Path) -> None:
    assert TaskTerms(packages=("numpy",)).spec("squares", 1, [], tmp_path)["packages"] == ["numpy"]


def test_the_image_is_that_of_this_python() -> None:
    assert stock_image(python_version()) == "argosy/python"
    assert stock_image("3.2") == f"argosy/python:{python_version()}"


def test_another_image_is_taken_as_it_is(deployment: CallingWorld) -> None:
    list(argosy.map(abs, [-1], image="argosy/own", client=deployment.client))
    assert deployment.specs[0]["container"] == {"image": "argosy/own"}


def test_no_items_need_no_run(deployment: CallingWorld) -> None:
    results = argosy.map(abs, [], client=deployment.client)
    assert (list(results), results.run, deployment.runs) == ([], None, {})


def test_items_may_be_an_iterator_and_large(deployment: CallingWorld) -> None:
    texts = ("x" * 100_000 for _ in range(3))
    assert list(argosy.map(len, texts, client=deployment.client)) == [100_000] * 3


def test_the_run_is_submitted_before_its_results_are_asked_for(deployment: CallingWorld) -> None:
    results = argosy.map(abs, [1], client=deployment.client)
    assert len(deployment.runs) == 1
    assert list(results) == [1]


def test_an_exception_is_raised_in_its_turn_and_the_run_is_cancelled(deployment: CallingWorld) -> None:
    def inverse(x: int) -> float:
        return float(x) if x != 3 else 1 / 0

    results = argosy.map(inverse, range(8), batch=1, client=deployment.client)
    assert [next(results) for _ in range(3)] == [0.0, 1.0, 2.0]
    with pytest.raises(ZeroDivisionError) as raised:
        next(results)
    assert isinstance(raised.value.__cause__, argosy.RemoteTraceback)
    assert "in inverse" in raised.value.__cause__.text
    with pytest.raises(StopIteration):
        next(results)


def test_exceptions_may_stand_in_place_of_results(deployment: CallingWorld) -> None:
    found = list(argosy.map(lambda x: 6 // x, [1, 0, 3], return_exceptions=True, client=deployment.client))
    assert (found[0], found[2]) == (6, 2)
    assert isinstance(found[1], ZeroDivisionError)


def test_exceptions_of_the_function_are_not_tried_again(deployment: CallingWorld) -> None:
    with pytest.raises(ZeroDivisionError):
        list(argosy.map(lambda x: 1 // x, [0], client=deployment.client))
    assert [run.codes for run in deployment.runs.values()] == [{0: 0}]


def test_a_crash_is_tried_again(deployment: CallingWorld) -> None:
    def crash_once(x: int) -> str:
        if os.environ["ARGOSY_TASK_ATTEMPT"] == "1":
            os._exit(139)
        return f"{x} in attempt {os.environ['ARGOSY_TASK_ATTEMPT']}"

    assert list(argosy.map(crash_once, [5], client=deployment.client)) == ["5 in attempt 2"]


def test_what_crashes_every_time_says_which_items_it_took_along(deployment: CallingWorld) -> None:
    def crash(x: int) -> int:
        if x == 4:
            os.write(2, b"about to crash\n")
            os._exit(139)
        return x

    results = argosy.map(crash, range(6), batch=3, attempts=2, client=deployment.client)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(argosy.RunFailed, match=r"result for items 3 to 5\.\n  task 1: exit 139") as failed:
        next(results)
    assert str(failed.value).endswith("its last output: about to crash")
    assert failed.value.run is results.run


def test_lost_results_may_be_exceptions_in_their_place(deployment: CallingWorld) -> None:
    def crash(x: int) -> int:
        return x if x else os._exit(1)

    lost, fine = argosy.map(crash, [0, 1], batch=1, attempts=1, return_exceptions=True, client=deployment.client)
    assert isinstance(lost, argosy.RunFailed)
    assert fine == 1


def test_an_item_that_does_not_pickle_is_named_before_anything_is_sent(deployment: CallingWorld) -> None:
    with pytest.raises(argosy.CannotPickle, match="Item 1, a lock, cannot be pickled"):
        argosy.map(id, [1, threading.Lock()], client=deployment.client)
    assert deployment.bucket.bodies == {}


def test_a_batch_has_at_least_one_item(deployment: CallingWorld) -> None:
    with pytest.raises(argosy.ArgosyError, match="from 1, not 0"):
        argosy.map(abs, [1], batch=0, client=deployment.client)


def test_closing_it_cancels_the_run(deployment: CallingWorld) -> None:
    deployment.held.clear()
    results = argosy.map(abs, range(4), client=deployment.client)
    results.close()
    assert [run.cancelled for run in deployment.runs.values()] == [True]
    assert list(results) == []


def test_ctrl_c_while_results_are_waited_for_cancels_the_run(deployment: CallingWorld) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    deployment.held.clear()
    results = argosy.map(abs, range(4), client=deployment.client)
    deployment.world.on_sleep = interrupt
    with pytest.raises(KeyboardInterrupt):
        next(results)
    assert [run.cancelled for run in deployment.runs.values()] == [True]


def test_leaving_a_loop_over_complete_results_cancels_nothing(deployment: CallingWorld) -> None:
    results = argosy.map(abs, range(4), client=deployment.client)
    assert list(results) == [0, 1, 2, 3]
    results.close()
    assert [run.cancelled for run in deployment.runs.values()] == [False]


def test_results_are_looked_for_only_when_something_has_succeeded(deployment: CallingWorld) -> None:
    deployment.held.clear()
    found = argosy.map(abs, range(2), batch=1, client=deployment.client)
    taker = threading.Thread(target=lambda: next(found))
    taker.start()
    until(lambda: len(deployment.world.slept) >= 3)
    assert deployment.bucket.lists == 0
    deployment.held.set()
    taker.join()
    assert deployment.bucket.lists in (1, 2)


def test_the_same_program_is_uploaded_once(deployment: CallingWorld) -> None:
    for _ in range(2):
        list(argosy.map(abs, [1], client=deployment.client))
    programs = [key for _, key in deployment.bucket.bodies if key.startswith("argosy/programs/archives/")]
    assert len(programs) == 1
    jobs = [json.loads(body) for (_, key), body in deployment.bucket.bodies.items() if "/jobs/" in key]
    assert [each["protocol"] for each in jobs] == [1]


@pytest.mark.parametrize(
    ("count", "wanted", "size"),
    [(1, None, 1), (8, None, 1), (200, None, 15), (1_000, None, 32), (1_000_000, None, 1_000), (10, 4, 4)],
)
def test_neither_tasks_nor_their_batches_grow_alone(count: int, wanted: int | None, size: int) -> None:
    assert batch_size(count, wanted) == size


@pytest.mark.parametrize(("count", "tasks"), [(8, 8), (1_000, 16), (1_000_000, 16)])
def test_on_this_machine_there_are_no_more_tasks_than_keep_its_cores_busy(count: int, tasks: int) -> None:
    assert -(-count // batch_size(count, None, cores=2)) == tasks
    assert batch_size(count, 1, cores=2) == 1


def test_no_run_has_more_tasks_than_one_may_have() -> None:
    assert batch_size(3_000_000, 1) == 3


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("square", "map-square"),
        ("f.<locals>.<lambda>", "map-lambda"),
        ("größe", "map-gr-e"),
        ("_", "map"),
        ("a" * 99, "map-" + "a" * 59),
    ],
)
def test_a_run_is_named_after_its_function(function: str, name: str) -> None:
    assert run_name(function) == name


def test_results_name_their_task(deployment: CallingWorld) -> None:
    results: Any = argosy.map(abs, [1], client=deployment.client)
    assert repr(results).startswith("<results of <argosy.Run map-abs-0 ")


def test_an_image_of_another_python_is_a_sentence(deployment: CallingWorld) -> None:
    """Before the task starts, the head says that a Python 3.2 has sent it."""
    deployment.held.clear()
    results = argosy.map(abs, [1], client=deployment.client)
    [place] = [place for place in deployment.bucket.bodies if place[1].endswith("functions.bin")]
    sent = deployment.bucket.bodies[place]
    deployment.bucket.bodies[place] = sent.replace(f'"{python_version()}"'.encode(), b'"3.2"', 1)
    deployment.held.set()
    with pytest.raises(argosy.RunFailed, match=r"exit 64(.|\n)*was sent by Python 3\.2 and this image has Python"):
        list(results)
    assert [run.codes for run in deployment.runs.values()] == [{0: 64}]


def test_a_call_cannot_itself_wait_for_calls(deployment: CallingWorld) -> None:
    """All tasks that this machine runs at once might wait for others, forever."""

    def outer(item: int) -> list[int]:
        return list(argosy.map(abs, [item], client=argosy.Client("http://127.0.0.1:1")))

    with pytest.raises(argosy.ArgosyError, match=r"cannot itself use argosy\.map") as refused:
        list(argosy.map(outer, [-1], client=deployment.client))
    assert refused.value.next_step == "call argosy.map once, with all the items"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"packages": "numpy"}, r"packages must be a list of requirements: \['numpy'\], not 'numpy'"),
        ({"batch": "3"}, "a whole number from 1, not '3'"),
        ({"batch": 2.0}, "a whole number from 1, not 2.0"),
    ],
)
def test_an_option_of_another_kind_is_refused_before_anything_is_sent(
    deployment: CallingWorld, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(argosy.ArgosyError, match=said):
        argosy.map(abs, [-1], client=deployment.client, **options)
    assert deployment.runs == {}
