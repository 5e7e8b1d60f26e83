"""What does the library cost a program: its import, and the pickling of a million items for `argosy.map`?"""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from argosy.sdk.mapping.calls import batch_size, batches
from argosy.sdk.mapping.pickling import OwnClasses, framed_here, own_modules_by_value, pickled_function
from argosy.sdk.mapping.worker import Calls

GOAL_S = 0.05
TRIES = 7
TIMED = "import time; begun = time.perf_counter(); import argosy; print(time.perf_counter() - begun)"
ITEMS = 200_000
MOST_US_EACH = 60.0  # of a machine of two cores that is busy; idle, it takes 6 for integers and 13 for own classes


class Small:
    """An item of a user's own class."""

    def __init__(self, number: int) -> None:
        self.number = number


@pytest.mark.benchmark
def test_importing_it_takes_under_50_ms() -> None:
    """The median of seven, so that one short load of the machine does not decide."""
    command = [sys.executable, "-c", TIMED]
    times = sorted(float(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(TRIES))
    print(f"import argosy: median {1000 * times[TRIES // 2]:.1f} ms, worst {1000 * times[-1]:.1f} ms of {TRIES}")
    assert times[TRIES // 2] < GOAL_S


@pytest.mark.benchmark
@pytest.mark.parametrize("kind", [int, Small])
def test_items_are_pickled_sent_and_called_quickly(kind: type) -> None:
    items = [kind(number) for number in range(ITEMS)]
    begun = time.perf_counter()
    with own_modules_by_value():
        table, function = OwnClasses(), pickled_function(lambda item: item)
        calls = [table.call(0, (item,), {}, "It") for item in items]
        classes = table.definitions()
    tasks = batches(calls, batch_size(ITEMS, None))
    size = sum(len(framed_here(each)) for each in tasks)
    pickled = time.perf_counter()
    worker = Calls(classes, [function])
    assert len([worker.answer(call) for call in tasks[0]]) == len(tasks[0])
    called = time.perf_counter()
    each_us = (pickled - begun) / ITEMS * 1e6
    print(
        f"{ITEMS:,} items of {kind.__name__}: {each_us:.1f} us and {size / ITEMS:.0f} bytes each,"
        f" {len(tasks):,} tasks, of which one makes its calls in {called - pickled:.3f} s"
    )
    assert each_us < MOST_US_EACH
