"""Figures about a task's use of resources, sampled while its program runs and written beside the attempts' folders.

A meter that fails is not read again. Nothing here makes a task fail; it then has no figures. A program that ends before
the first sample is not measured.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from argosy.runner.objects import Objects
from argosy.runner.order import RunnerFault

FIRST_S = 1.0  # to the first sample
WRITTEN_S = 10.0  # to the first write; the interval then doubles up to the meter's longest
_TOGETHER_S = 0.05  # how much later than FIRST_S it may be
LAST_WRITE_S = 3.0  # how long a task's end may wait for it
MOST_SAMPLES = 240  # even; when there are as many, each two become one
_ATTEMPT = re.compile(r"(s3://.+/attempts/)(\d+/\d+)/")
Row = tuple[float | None, ...]  # None = not known


class Meter(Protocol):
    """One kind of figures. names: of the columns. When two samples become one, columns in `most` keep the larger value,
    the others the mean."""

    folder: str
    names: Sequence[str]
    most: str
    about: Mapping[str, Any]  # goes into the document; may change with a sample
    every_s: float
    longest_s: float  # between two writes
    least_s: float  # a program that ended earlier is not worth a request

    def look(self, since_s: float) -> Row | None:
        """A value of each column; since_s: since the program began. None: there are no figures any more."""
        ...


def address(environment: Mapping[str, str], folder: str) -> str:
    """`s3://.../attempts/<folder>/0000003/1.json`; "" for a task without a folder of results."""
    own = _ATTEMPT.fullmatch(environment.get("ARGOSY_OUTPUT_URI", ""))
    return f"{own[1]}{folder}/{own[2]}.json" if own else ""


@contextmanager
def sampled(meters: Iterable[Meter], environment: Mapping[str, str]) -> Iterator[None]:
    """While the block runs, each meter is read in a separate thread."""
    with ExitStack() as running:
        for meter in meters:
            running.enter_context(_sampled(meter, environment))
        yield


@contextmanager
def _sampled(meter: Meter, environment: Mapping[str, str]) -> Iterator[None]:
    watch = _MeterOfTask(meter, environment)
    _FIRST_SAMPLES.add(watch)
    try:
        yield
    finally:
        watch.end()


@dataclass
class Samples:
    """Fewer than `MOST_SAMPLES` rows, each with its time first: the earlier ones are merged. most: see `Meter`."""

    most: int
    rows: list[Row] = field(default_factory=list)

    def add(self, row: Row) -> None:
        self.rows.append(row)
        if len(self.rows) >= MOST_SAMPLES:
            self.rows = list(map(self._merged, self.rows[::2], self.rows[1::2]))

    def _merged(self, early: Row, late: Row) -> Row:
        pairs = enumerate(zip(early, late, strict=True))
        return late[0], *((largest if place == self.most else mean)(*pair) for place, pair in pairs if place)


@dataclass
class _MeterOfTask:
    """The figures of one meter about one task."""

    meter: Meter
    environment: Mapping[str, str]
    begun: float = field(default_factory=time.monotonic)
    over: threading.Event = field(default_factory=threading.Event)
    guard: threading.Lock = field(default_factory=threading.Lock)
    thread: threading.Thread | None = None

    def start(self) -> None:
        """Take the first sample, unless the program has ended."""
        with self.guard:
            if not self.over.is_set():  # a meter may hang forever
                self.thread = threading.Thread(target=self.run, name=f"argosy-{self.meter.folder}", daemon=True)
                self.thread.start()

    def end(self) -> None:
        """The program has ended."""
        with self.guard:
            self.over.set()
        if self.thread is not None:
            self.thread.join(LAST_WRITE_S)

    def run(self) -> None:
        """Until the program has ended, or the meter gives no figures any more."""
        self._samples = Samples(1 + list(self.meter.names).index(self.meter.most))
        wait_s, pause_s, write_at = 0.0, WRITTEN_S, WRITTEN_S
        while not self.over.wait(wait_s):
            since_s = round(time.monotonic() - self.begun, 2)
            row = self.meter.look(since_s)
            if row is None:
                break
            self._samples.add((since_s, *row))
            wait_s = self.meter.every_s
            if since_s >= write_at:
                pause_s = min(2 * pause_s, self.meter.longest_s)
                write_at = since_s + pause_s
                if not self._write():
                    return
        if time.monotonic() - self.begun >= self.meter.least_s:
            self._write()

    def _write(self) -> bool:
        """Whether S3 has stored it, or there is nothing to store yet."""
        if not self._samples.rows:
            return True
        columns = dict(zip(("at", *self.meter.names), map(list, zip(*self._samples.rows, strict=True)), strict=True))
        try:
            text = json.dumps({"version": 1, **self.meter.about, **columns}).encode()
            objects = Objects({**self.environment, "AWS_MAX_ATTEMPTS": "2"}, threading.Event())
            objects.write(address(self.environment, self.meter.folder), text)
        except RunnerFault:
            return False
        return True


class _FirstSamples:
    """Starts the watches of programs that run for FIRST_S. With tasks of milliseconds a thread for each would take as
    long as they do."""

    def __init__(self) -> None:
        self._waiting: deque[_MeterOfTask] = deque()
        self._guard = threading.Lock()

    def add(self, watch: _MeterOfTask) -> None:
        with self._guard:
            self._waiting.append(watch)
            is_first = len(self._waiting) == 1
        if is_first:
            threading.Thread(target=self._run, name="argosy-first-samples", daemon=True).start()

    def _run(self) -> None:
        """Until none is left."""
        while True:
            with self._guard:
                wait_s = self._waiting[0].begun + FIRST_S - time.monotonic()
                due = self._waiting[0] if wait_s <= 0 else None
                if due is not None:
                    due.start()
                    self._waiting.popleft()
                    if not self._waiting:
                        return
            if due is None:
                time.sleep(max(wait_s, _TOGETHER_S))


_FIRST_SAMPLES = _FirstSamples()


def _known(given: Iterable[float | None]) -> list[float]:
    return [each for each in given if each is not None]


def total(*given: float | None) -> float | None:
    """The sum of the known values; None if there is none."""
    found = _known(given)
    return round(sum(found), 2) if found else None


def mean(*given: float | None) -> float | None:
    """The mean of the known values; None if there is none."""
    found = _known(given)
    return round(sum(found) / len(found), 2) if found else None


def largest(*given: float | None) -> float | None:
    """The largest of the known values; None if there is none."""
    return max(_known(given), default=None)
