"""The contract of `concurrent.futures.Executor`, after the cases of CPython's own tests of it (Lib/test/
test_concurrent_futures: executor, as_completed, wait, shutdown, deadlock), over tasks that are real processes.

The tests for processes are here, rewritten; those for threads, forks, initializers and weak references are not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import pytest

import argosy
from tests.fakes.calling import CallingWorld
from tests.fakes.cli import api_error
from tests.fakes.waiting import until

pytestmark = pytest.mark.slow
LONG_S = 60.0


@pytest.fixture
def pool(deployment: CallingWorld) -> Iterator[argosy.Executor]:
    with argosy.Executor(client=deployment.client, collect=0.05) as executor:
        yield executor
        deployment.held.set()


@pytest.fixture
def patient(deployment: CallingWorld) -> Iterator[argosy.Executor]:
    """It collects until it is shut down."""
    executor = argosy.Executor(client=deployment.client, collect=LONG_S)
    yield executor
    executor.shutdown(cancel_futures=True)


# --- executor ---------------------------------------------------------------------------------------------------------


def test_submit(pool: argosy.Executor) -> None:
    assert pool.submit(pow, 2, 8).result() == 256


def test_submit_with_keywords(pool: argosy.Executor) -> None:
    def capture(*args: Any, **kwargs: Any) -> Any:
        return args, kwargs

    assert pool.submit(capture, 1, self=2, fn=3).result() == ((1,), {"self": 2, "fn": 3})


def test_submit_without_a_function_is_a_type_error(pool: argosy.Executor) -> None:
    with pytest.raises(TypeError):
        pool.submit()  # type: ignore[call-arg]


def test_map(pool: argosy.Executor) -> None:
    assert list(pool.map(pow, range(10), range(10))) == [pow(x, x) for x in range(10)]


@pytest.mark.parametrize("chunksize", [1, 2, 6, 50])
def test_map_with_a_chunksize(pool: argosy.Executor, deployment: CallingWorld, chunksize: int) -> None:
    assert list(pool.map(pow, range(13), range(13), chunksize=chunksize)) == [pow(x, x) for x in range(13)]
    assert len(deployment.runs) == 1


def test_a_chunksize_of_nothing_is_refused(pool: argosy.Executor) -> None:
    with pytest.raises(ValueError, match="chunksize must be >= 1"):
        pool.map(pow, [1], [1], chunksize=0)


def test_map_submits_at_once(pool: argosy.Executor, tmp_path: Path) -> None:
    marks = [tmp_path / f"mark-{number}" for number in range(3)]
    pool.map(lambda path: path.touch(), marks)
    pool.shutdown()
    assert all(mark.exists() for mark in marks)


def test_map_raises_the_exception_of_a_call_in_its_turn(pool: argosy.Executor) -> None:
    found = pool.map(divmod, [1, 1, 1, 1], [2, 3, 0, 5])
    assert next(found) == (0, 1)
    assert next(found) == (0, 1)
    with pytest.raises(ZeroDivisionError):
        next(found)


def test_an_exception_of_a_chunk_is_that_of_all_its_calls(pool: argosy.Executor) -> None:
    found = pool.map(divmod, [1, 1, 1, 1], [2, 3, 0, 5], chunksize=2)
    assert (next(found), next(found)) == ((0, 1), (0, 1))
    with pytest.raises(ZeroDivisionError):
        next(found)


def test_map_ends_in_time(pool: argosy.Executor, deployment: CallingWorld) -> None:
    deployment.held.clear()
    with pytest.raises(futures.TimeoutError):
        list(pool.map(abs, [1, 2], timeout=0.05))


def test_a_traceback_is_that_of_the_task(pool: argosy.Executor) -> None:
    def outer(x: int) -> float:
        return inner(x)

    def inner(x: int) -> float:
        raise RuntimeError(f"{x} is wrong")  # some comment

    with pytest.raises(RuntimeError, match="7 is wrong") as raised:
        pool.submit(outer, 7).result()
    cause = raised.value.__cause__
    assert isinstance(cause, argosy.RemoteTraceback)
    assert "in outer" in cause.text
    assert "in inner" in cause.text


def test_many_calls_are_one_run_and_each_function_is_sent_once(
    patient: argosy.Executor, deployment: CallingWorld
) -> None:
    big = bytes(100_000)
    found = [patient.submit(lambda x: len(big) + x, number) for number in (1, 2)]
    more = [patient.submit(pow, number, 2) for number in range(40)]
    patient.shutdown()
    assert [each.result() for each in found] == [100_001, 100_002]
    assert [each.result() for each in more] == [number**2 for number in range(40)]
    assert len(deployment.runs) == 1


def test_a_function_that_is_called_often_is_sent_once(patient: argosy.Executor, deployment: CallingWorld) -> None:
    big = bytes(100_000)

    def length(_: int) -> int:
        return len(big)

    found = [patient.submit(length, number) for number in range(10)]
    patient.shutdown()
    assert {each.result() for each in found} == {100_000}
    assert sum(len(body) for (_, key), body in deployment.bucket.bodies.items() if "/calls/" in key) < 200_000


def test_what_cannot_be_pickled_is_the_exception_of_its_future(patient: argosy.Executor) -> None:
    """CPython: test_error_during_task_pickle of the deadlock tests."""
    bad, good = patient.submit(id, threading.Lock()), patient.submit(abs, -1)
    patient.shutdown()
    assert good.result() == 1
    with pytest.raises(argosy.CannotPickle, match="An argument of id cannot be pickled"):
        bad.result()


def test_nothing_that_can_be_pickled_is_no_run(patient: argosy.Executor, deployment: CallingWorld) -> None:
    bad = patient.submit(id, threading.Lock())
    patient.shutdown()
    assert isinstance(bad.exception(), argosy.CannotPickle)
    assert deployment.runs == {}


def test_a_result_that_cannot_be_pickled_is_an_exception(pool: argosy.Executor) -> None:
    """CPython: test_error_during_result_pickle_in_result_handler."""

    def lock() -> Any:
        import threading

        return threading.Lock()

    with pytest.raises(TypeError, match="cannot be pickled"):
        pool.submit(lock).result()


def test_a_crash_is_an_exception_and_the_pool_continues(deployment: CallingWorld) -> None:
    """CPython breaks its pool (test_crash_during_func_exec_on_worker); a deployment does not break."""
    with argosy.Executor(client=deployment.client, collect=0.05, attempts=1) as pool:
        with pytest.raises(argosy.RunFailed, match=r"without a result for a call\.\n  task 0: exit 3"):
            pool.submit(os._exit, 3).result()
        assert pool.submit(abs, -1).result() == 1


def test_a_submission_that_fails_is_the_exception_of_every_future(
    deployment: CallingWorld, pool: argosy.Executor
) -> None:
    deployment.world.answers("SubmitRun", api_error(429, "ThrottlingException", "slower"))
    found = [pool.submit(abs, number) for number in range(3)]
    for each in found:
        with pytest.raises(argosy.ArgosyError, match="slower"):
            each.result()


def test_a_batch_has_at_least_one_call(deployment: CallingWorld) -> None:
    with pytest.raises(argosy.ArgosyError, match="from 1, not 0"):
        argosy.Executor(client=deployment.client, batch=0)


def test_what_is_wanted_of_a_task_is_asked_for(deployment: CallingWorld) -> None:
    with argosy.Executor(client=deployment.client, collect=0.05, vcpus=2, memory=2048, batch=3) as pool:
        list(pool.map(abs, range(7)))
    [spec] = deployment.specs
    assert spec["resources"] == {"vcpus": 2, "memory": 2048, "gpus": 0}
    assert spec["array"]["size"] == 3


# --- cancelling -------------------------------------------------------------------------------------------------------


def test_a_call_that_waits_can_be_cancelled(patient: argosy.Executor, deployment: CallingWorld) -> None:
    first, second = patient.submit(abs, -1), patient.submit(abs, -2)
    assert first.cancel()
    patient.shutdown()
    assert first.cancelled()
    assert second.result() == 2
    assert deployment.specs[0]["array"]["size"] == 1


def test_a_call_that_runs_can_be_cancelled_with_its_task_and_its_run_with_the_last_of_its_calls(
    pool: argosy.Executor, deployment: CallingWorld
) -> None:
    deployment.held.clear()
    first, second = pool.submit(abs, -1), pool.submit(abs, -2)
    assert futures.wait([first], timeout=0).not_done
    until(lambda: deployment.runs)
    assert first.cancel()
    assert (first.cancelled(), first.cancel(), second.done()) == (True, True, False)
    with pytest.raises(futures.CancelledError):
        first.result()
    until(lambda: [run.cancelled_tasks for run in deployment.runs.values()] == [[[0, 0]]])
    assert [run.cancelled for run in deployment.runs.values()] == [False]
    second.cancel()
    until(lambda: [run.cancelled for run in deployment.runs.values()] == [True])


def test_a_cancelled_call_drops_its_result_alone_and_what_has_ended_stays(
    pool: argosy.Executor, deployment: CallingWorld
) -> None:
    deployment.held.clear()
    first, second = pool.submit(abs, -1), pool.submit(abs, -2)
    until(lambda: deployment.runs)
    first.cancel()
    deployment.held.set()
    assert (second.result(), second.cancel(), second.cancelled()) == (2, False, False)


def test_a_call_prints_here_behind_its_number(pool: argosy.Executor, capsys: pytest.CaptureFixture[str]) -> None:
    futures.wait([pool.submit(print, "one"), pool.submit(print, "two", "lines", sep="\n")])
    pool.shutdown()
    assert sorted(capsys.readouterr().out.splitlines()) == ["[0] one", "[1] lines", "[1] two"]


# --- as_completed and wait --------------------------------------------------------------------------------------------


def test_as_completed(pool: argosy.Executor) -> None:
    first, second = pool.submit(pow, 2, 2), pool.submit(pow, 3, 3)
    assert set(futures.as_completed([first, second])) == {first, second}


def test_as_completed_in_no_time_gives_what_is_done(pool: argosy.Executor, deployment: CallingWorld) -> None:
    done: futures.Future[int] = futures.Future()
    done.set_result(1)
    deployment.held.clear()
    found = futures.as_completed([done, pool.submit(abs, -1)], timeout=0)
    assert next(found) is done
    with pytest.raises(futures.TimeoutError):
        next(found)


def test_a_future_that_is_named_twice_is_given_once(pool: argosy.Executor) -> None:
    future = pool.submit(abs, -1)
    assert list(futures.as_completed([future, future])) == [future]


def test_wait_for_all(pool: argosy.Executor) -> None:
    found = {pool.submit(divmod, 21, 6), pool.submit(divmod, 1, 0)}
    assert futures.wait(found, return_when=futures.ALL_COMPLETED) == (found, set())


def test_wait_for_the_first_exception(pool: argosy.Executor, deployment: CallingWorld) -> None:
    other: futures.Future[int] = futures.Future()
    failed = pool.submit(divmod, 1, 0)
    done, left = futures.wait([failed, other], return_when=futures.FIRST_EXCEPTION)
    assert (done, left) == ({failed}, {other})


def test_wait_for_the_first(pool: argosy.Executor) -> None:
    other: futures.Future[int] = futures.Future()
    future = pool.submit(abs, -1)
    assert futures.wait([future, other], return_when=futures.FIRST_COMPLETED) == ({future}, {other})


def test_waiting_ends_in_time(pool: argosy.Executor, deployment: CallingWorld) -> None:
    deployment.held.clear()
    future = pool.submit(abs, -1)
    assert futures.wait([future], timeout=0.02) == (set(), {future})


def test_a_callback_is_called(pool: argosy.Executor) -> None:
    found: list[int] = []
    future = pool.submit(abs, -1)
    future.add_done_callback(lambda each: found.append(each.result()))
    future.result()
    pool.shutdown()
    assert found == [1]


# --- shutdown ---------------------------------------------------------------------------------------------------------


def test_after_shutdown_nothing_is_taken(pool: argosy.Executor) -> None:
    pool.shutdown()
    with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
        pool.submit(pow, 2, 5)


def test_shutdown_sends_what_waits_and_waits_for_it(patient: argosy.Executor) -> None:
    found = [patient.submit(abs, -number) for number in range(5)]
    began = time.monotonic()
    patient.shutdown()
    assert time.monotonic() - began < LONG_S / 2
    assert [each.result(timeout=0) for each in found] == list(range(5))


def test_shutdown_without_waiting_returns_at_once(patient: argosy.Executor, deployment: CallingWorld) -> None:
    deployment.held.clear()
    future = patient.submit(abs, -5)
    patient.shutdown(wait=False)
    assert not future.done()
    deployment.held.set()
    assert future.result() == 5


def test_shutdown_may_cancel_what_waits(patient: argosy.Executor, deployment: CallingWorld) -> None:
    found = [patient.submit(abs, -number) for number in range(5)]
    patient.shutdown(cancel_futures=True)
    assert all(each.cancelled() for each in found)
    assert deployment.runs == {}


def test_a_second_shutdown_is_fine(pool: argosy.Executor) -> None:
    pool.shutdown()
    pool.shutdown()


def test_an_executor_that_was_never_used_can_be_shut_down(patient: argosy.Executor) -> None:
    patient.shutdown()


def test_leaving_its_block_waits_for_all(deployment: CallingWorld) -> None:
    with argosy.Executor(client=deployment.client, collect=0.05) as pool:
        found = list(pool.map(abs, range(-3, 3)))
    assert found == [3, 2, 1, 0, 1, 2]


def test_a_program_that_never_used_or_shut_it_down_ends() -> None:
    """CPython: test_interpreter_shutdown. No thread of it waits for calls that never come."""
    code = "import argosy; pool = argosy.Executor(client=argosy.Client('http://127.0.0.1:1')); print('end')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "end\n"


def test_a_ctrl_c_in_its_block_cancels_what_runs_and_what_waits(deployment: CallingWorld) -> None:
    """ProcessPoolExecutor's workers get the signal too. Here nothing else would end the runs, and they cost money."""
    deployment.held.clear()
    pool = argosy.Executor(client=deployment.client, collect=0.05)
    sent = pool.submit(abs, -1)
    until(lambda: deployment.runs)
    with pytest.raises(KeyboardInterrupt), pool:
        raise KeyboardInterrupt
    assert [run.cancelled for run in deployment.runs.values()] == [True]
    with pytest.raises(argosy.RunFailed, match="CANCELLED"):
        sent.result(timeout=LONG_S)
    deployment.held.set()


def test_calls_during_open_runs_make_further_runs(pool: argosy.Executor, deployment: CallingWorld) -> None:
    assert pool.submit(abs, -1).result() == 1
    assert pool.submit(abs, -2).result() == 2
    assert len(deployment.runs) == 2
