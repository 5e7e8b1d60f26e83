"""`argosy.map` is used as Python's own: iterables, windows, runs that end however results are left."""

from __future__ import annotations

import asyncio
import io
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest

import argosy
from argosy.sdk.mapping import map_runs
from argosy.sdk.mapping.progress_line import ProgressLine
from tests.fakes.calling import CallingWorld
from tests.fakes.waiting import until

pytestmark = pytest.mark.slow


def open_runs(deployment: CallingWorld) -> list[str]:
    return [each.id for each in deployment.runs.values() if not each.cancelled]


# --- how calls are named ----------------------------------------------------------------------------------------------


def test_a_function_gets_an_item_of_each_iterable_until_the_shortest_ends(deployment: CallingWorld) -> None:
    results = argosy.map(pow, [2, 3, 4], (each for each in [5, 2]), client=deployment.client)
    assert (list(results), len(results)) == ([32, 9], 2)


def test_starmap_calls_with_the_arguments_of_each_row(deployment: CallingWorld) -> None:
    assert list(argosy.starmap(pow, [(2, 5), [3, 2]], chunksize=2, client=deployment.client)) == [32, 9]
    assert deployment.specs[0]["array"]["size"] == 1


def test_unordered_results_come_as_their_tasks_end(deployment: CallingWorld) -> None:
    found = argosy.map(abs, range(-6, 0), batch=2, unordered=True, client=deployment.client)
    assert sorted(found) == [1, 2, 3, 4, 5, 6]


def test_unordered_results_that_were_lost_are_exceptions(deployment: CallingWorld) -> None:
    def crash(x: int) -> int:
        return x if x else os._exit(1)

    options: dict[str, Any] = {"batch": 1, "attempts": 1, "unordered": True, "return_exceptions": True}
    found = list(argosy.map(crash, [0, 1], client=deployment.client, **options))
    assert found[0] == 1
    assert isinstance(found[1], argosy.RunFailed)


def test_results_can_be_counted_and_awaited(deployment: CallingWorld) -> None:
    results = argosy.map(abs, [-1, -2], client=deployment.client)
    assert (len(results), bool(results)) == (2, True)

    async def taken() -> list[int]:
        return [each async for each in results]

    assert asyncio.run(taken()) == [1, 2]


def test_a_call_is_made_again_after_the_exceptions_that_are_named(deployment: CallingWorld, tmp_path: Path) -> None:
    tries = str(tmp_path / "tries")

    def flaky(x: int) -> int:
        with open(tries, "a") as file:
            file.write("x")
        if os.path.getsize(tries) < 3:
            raise ConnectionError("not yet")
        return x

    assert list(argosy.map(flaky, [7], retry_on=OSError, attempts=3, client=deployment.client)) == [7]
    os.remove(tries)
    with pytest.raises(ConnectionError):
        list(argosy.map(flaky, [7], retry_on=(ValueError,), attempts=3, client=deployment.client))


def test_what_has_not_come_in_time_is_a_timeout_and_the_run_is_cancelled(deployment: CallingWorld) -> None:
    deployment.held.clear()
    results = argosy.map(abs, [1], timeout=0.0, client=deployment.client)
    with pytest.raises(TimeoutError):
        next(results)
    assert open_runs(deployment) == []


def test_an_unknown_option_names_the_one_that_was_meant(deployment: CallingWorld) -> None:
    with pytest.raises(TypeError, match="'gpu' is no option of remote calls; did you mean gpus"):
        argosy.map(abs, [1], client=deployment.client, gpu=1)  # type: ignore[call-arg]
    with pytest.raises(argosy.ArgosyError, match="batch and chunksize are the same"):
        argosy.map(abs, [1], client=deployment.client, batch=1, chunksize=1)


def test_progress_is_a_line_a_step_of_a_pipe_and_in_place_on_a_terminal(deployment: CallingWorld) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    results = argosy.map(abs, range(3), batch=1, client=deployment.client)
    assert results.run is not None
    pipe, terminal = io.StringIO(), Terminal()
    lines = [ProgressLine(pipe), ProgressLine(terminal)]
    for look in results.run.watch():
        for line in lines:
            line.show(look)
            line.show(look)
    assert pipe.getvalue().splitlines()[-1] == "map-abs: 3 of 3 tasks, 0 running, $0.00"
    assert terminal.getvalue().startswith("\rmap-abs: ")
    assert terminal.getvalue().endswith("\x1b[K\n")


def test_prints_of_the_function_are_shown_here_behind_the_index_of_their_item(
    deployment: CallingWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    def say(x: int) -> int:
        print("item", x, flush=True)
        if x == 2:
            print("x" * 20_000)
            raise ValueError(x)
        return x

    list(argosy.map(say, range(3), batch=2, return_exceptions=True, client=deployment.client))
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["[0] item 0", "[1] item 1", "[2] item 2"]
    assert sum(map(len, lines)) < 10_100


# --- exceptions of afar -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("control", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_a_control_exception_of_a_task_does_not_end_this_program(
    deployment: CallingWorld, control: type[BaseException]
) -> None:
    def leave(x: int) -> int:
        raise control(x)

    with pytest.raises(argosy.RemoteError) as raised:
        list(argosy.map(leave, [0], client=deployment.client))
    assert raised.value.kind == control.__name__
    [found] = argosy.map(leave, [0], return_exceptions=True, client=deployment.client)
    assert isinstance(found, argosy.RemoteError)


# --- endless iterables ------------------------------------------------------------------------------------------------


def test_an_endless_iterator_is_read_two_windows_ahead(
    deployment: CallingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_runs, "WINDOW", 4)
    read = []

    def endless() -> Iterator[int]:
        for number in count():
            read.append(number)
            yield number

    results = argosy.map(abs, endless(), client=deployment.client)
    assert (len(read), len(deployment.runs)) == (4, 1)
    assert list(islice(results, 5)) == [0, 1, 2, 3, 4]
    assert (len(read), len(deployment.runs)) == (12, 3)
    with pytest.raises(TypeError, match="unknown"):
        len(results)
    results.close()
    cancelled = [each.cancelled for each in deployment.runs.values()]
    assert (cancelled[0], cancelled[2]) == (False, True)


def test_windows_give_every_result_once_and_name_items_of_the_whole(
    deployment: CallingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_runs, "WINDOW", 4)

    def crash(x: int) -> int:
        return x if x != 5 else os._exit(1)

    options: dict[str, Any] = {"batch": 1, "attempts": 1, "return_exceptions": True}
    found = list(argosy.map(crash, iter(range(10)), client=deployment.client, **options))
    assert [each for each in found if isinstance(each, int)] == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    assert "without a result for item 5" in str(found[5])
    assert open_runs(deployment) == list(deployment.runs)


# --- however results are left -----------------------------------------------------------------------------------------


def waiting_but_for_the_first(deployment: CallingWorld, go: Path) -> Iterator[int]:
    """Four calls, of which all but the first wait for a file."""
    name = str(go)

    def wait(x: int) -> int:
        while x and not os.path.exists(name):
            time.sleep(0.02)
        return x

    return argosy.map(wait, range(4), batch=1, client=deployment.client)


def test_an_exception_in_the_loop_cancels_the_run_although_its_traceback_is_kept(
    deployment: CallingWorld, tmp_path: Path
) -> None:
    kept = []
    try:
        for result in waiting_but_for_the_first(deployment, tmp_path / "go"):
            raise ValueError(result)
    except ValueError as fault:
        kept.append(fault)
    (tmp_path / "go").touch()
    assert kept[0].args == (0,)
    assert open_runs(deployment) == []


# Where a copy of the standard library is interrupted, its file is closed by the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_at_any_moment_leaves_no_run_behind(deployment: CallingWorld) -> None:
    """The signal comes while items are pickled, uploaded or submitted, or while results are waited for."""
    deployment.held.clear()
    moments, interrupted = random.Random(6), 0

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(50):
            results = None
            try:
                # Again after two seconds: Python drops an exception that is raised in a finaliser.
                signal.setitimer(signal.ITIMER_REAL, moments.uniform(0.001, 0.04), 2.0)
                results = argosy.map(abs, range(4), client=deployment.client)
                list(results)
            except KeyboardInterrupt:
                signal.setitimer(signal.ITIMER_REAL, 0)
                interrupted += 1
            del results
            until(lambda: not open_runs(deployment))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted == 50
    assert deployment.runs


PROGRAM = """
import argosy, sys
from pathlib import Path
from tests.fakes.calling import CallingWorld

class Waiting(CallingWorld):
    def _task(self, *_):
        pass

    def _cancel(self, request):
        print("cancelled", request["runId"], flush=True)
        return super()._cancel(request)

world = Waiting(Path(sys.argv[1]))
results = argosy.map(abs, range(4), client=world.client)
raise ValueError("a fault of a program that holds the results in a variable")
"""


def test_the_end_of_the_program_cancels_the_run_while_aws_can_still_be_called(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "cancelled map-abs-0\n"
    assert done.stderr.splitlines()[-1].startswith("ValueError: a fault of a program")


def test_results_that_are_dropped_before_the_first_is_taken_cancel_their_run(deployment: CallingWorld) -> None:
    deployment.held.clear()
    results = argosy.map(abs, range(4), client=deployment.client)
    assert len(open_runs(deployment)) == 1
    del results
    assert open_runs(deployment) == []


def test_a_fork_that_ends_cancels_nothing(deployment: CallingWorld) -> None:
    deployment.held.clear()
    results = argosy.map(abs, range(4), client=deployment.client)
    assert results.run is not None
    of_another = map_runs.AwaitedRuns([results.run], os.getpid() + 1)
    of_another.cancel()
    assert len(open_runs(deployment)) == 1
