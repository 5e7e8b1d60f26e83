"""`argosy.map` and `argosy.starmap`: a function called with every item, in the tasks of runs.

Problem: a run that is forgotten costs money, and a loop over results can be left in many ways: `break`, an exception
of the loop's body, Ctrl-C while the run is being submitted, the end of the program.
Idea: the results own their runs. A finaliser cancels what is open when the last reference to the results goes, and at
the latest when the interpreter ends. A run is submitted in a thread, which Ctrl-C does not reach. If the results have
been left meanwhile, the thread cancels the run itself.

A list of items becomes one run. An iterator may be endless, so it is read in windows of 10,000 items, and each window
becomes a separate run. At most two windows are in progress; the next one is read when the results of the older window
have been taken.
"""

from __future__ import annotations

import asyncio
import os
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sized
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, TypeVar, Unpack

from argosy.client.waiting import WaitTimedOut
from argosy.sdk.client import Client
from argosy.sdk.errors import RunFailed
from argosy.sdk.mapping.calls import NOT_AWAITED, batch_size, batches, cores_of, finished_parts, run_name, uploaded
from argosy.sdk.mapping.options import MapOptions, MapTerms, TaskTerms, divided
from argosy.sdk.mapping.outcomes import CallOutcome, outcomes_of
from argosy.sdk.mapping.pickling import OwnClasses, name_of, own_modules_by_value, pickled_function
from argosy.sdk.mapping.progress_line import ProgressLine
from argosy.sdk.mapping.worker import ClassTable
from argosy.sdk.run import RunHandle

R = TypeVar("R")
Row = tuple[Any, ...]
WINDOW = 10_000  # calls of a run, where the number of items is unknown
WINDOWS_AHEAD = 2
_END: Any = object()


def map_items(
    function: Callable[..., R], items: Iterable[Any], *more: Iterable[Any], **options: Unpack[MapOptions]
) -> MappedResults[R]:
    """Call `function` with every item on other machines; an iterator over the results, in the order of the items.

    With further iterables the function gets an item of each, until the shortest ends. The run is submitted at once. An
    exception of the function is raised when its turn comes, with the traceback of the task as its `__cause__`;
    return_exceptions=True gives it in place of the result. The call is not tried again, unless the exception is one of
    `retry_on`; a task that crashes is, `attempts` times. However the results are left, their run is cancelled.
    Of a task: vcpus, memory (MiB), gpus, gpu_share (MiB of a GPU that it shares, in place of gpus), packages
    (requirements that the function imports, such as `["pandas"]`), image (None = Argosy's, of this Python's version)
    and batch, its calls (`chunksize` is the same; None = about the square root of their number).
    Of the map: attempts, budget (US dollars that the run may cost), timeout (seconds; then TimeoutError), unordered
    (results as they come), progress (a line on standard error) and client (None = `argosy.Client()`).
    Raises `argosy.CannotPickle` for a function or an item that cannot be sent, and ArgosyError.
    """
    iterables = (items, *more)
    sizes = [len(each) for each in iterables if isinstance(each, Sized)]
    known = len(sizes) == len(iterables)
    return _mapped(function, zip(*iterables, strict=False), known, options)


def starmap(
    function: Callable[..., R], rows: Iterable[Iterable[Any]], **options: Unpack[MapOptions]
) -> MappedResults[R]:
    """Call `function(*row)` for every row of arguments, as `argosy.map` calls it with items."""
    return _mapped(function, map(tuple, rows), isinstance(rows, Sized), options)


def _mapped(
    function: Callable[..., R], rows: Iterator[Row], is_finite: bool, options: Mapping[str, Any]
) -> MappedResults[R]:
    tasks, terms = divided(options)
    sender = _Sender(function, tasks, terms)
    first = list(rows if is_finite else islice(rows, WINDOW))
    is_whole = is_finite or len(first) < WINDOW
    results: MappedResults[R] = MappedResults(sender, len(first) if is_whole else None)
    try:
        results.begin(first, iter(()) if is_whole else rows)
    except BaseException:
        results.close()
        raise
    return results


@dataclass
class AwaitedRuns:
    """Runs whose results have not all been given. process: the id of the one that takes them; a fork owns no run."""

    open: list[RunHandle] = field(default_factory=list)
    process: int = field(default_factory=os.getpid)
    _left: bool = field(default=False, init=False)

    def add(self, run: RunHandle) -> None:
        """A new one, perhaps after the results have been left."""
        self.open.append(run)
        if self._left:
            self.cancel()

    def cancel(self) -> None:
        """The results are no longer awaited. Raises ArgosyError."""
        if os.getpid() != self.process:
            return
        self._left = True
        for run in list(self.open):
            if not run.has_ended:
                run.cancel(NOT_AWAITED)


@dataclass
class _SentCalls:
    """Calls of one run. batch: calls of a task. first: the index of the first call in the map."""

    run: RunHandle
    count: int
    batch: int
    first: int
    table: ClassTable


@dataclass
class _Sender:
    """Sends rows of arguments. runs: of all windows."""

    function: Callable[..., Any]
    tasks: TaskTerms
    terms: MapTerms
    runs: list[RunHandle] = field(default_factory=list)
    awaited: AwaitedRuns = field(default_factory=AwaitedRuns)

    def send(self, rows: list[Row], first: int) -> _SentCalls:
        """One run. Raises CannotPickle and ArgosyError."""
        with own_modules_by_value():
            table = OwnClasses()
            pickled = pickled_function(retrying(self.function, self.terms.retry_on, self.tasks.attempts))
            calls = [table.call(0, row, {}, _named(row, first + index)) for index, row in enumerate(rows)]
            functions = [table.definitions(), pickled]
        client = self.terms.client or Client()
        size = batch_size(len(calls), self.terms.batch, cores_of(client))
        name = run_name(name_of(self.function))
        with uploaded(client, name, functions, batches(calls, size), self.tasks) as spec, ThreadPoolExecutor(1) as pool:
            pool.submit(self._submit, client, spec).result()
        return _SentCalls(self.runs[-1], len(calls), size, first, table)

    def _submit(self, client: Client, spec: Mapping[str, Any]) -> None:
        run = client.submit(spec)
        self.runs.append(run)
        self.awaited.add(run)


def _named(row: Row, index: int) -> str:
    return f"Item {index}, a {type(row[0]).__qualname__}," if len(row) == 1 else f"One of the arguments {index}"


def retrying(
    function: Callable[..., R], exceptions: type[Exception] | tuple[type[Exception], ...], attempts: int
) -> Callable[..., R]:
    """A function that makes the call again, in the same task, after one of these exceptions."""
    if not exceptions:
        return function

    def call(*arguments: Any) -> R:  # an inner function, and so sent by value
        for _ in range(1, attempts):
            try:
                return function(*arguments)
            except exceptions:
                pass
        return function(*arguments)

    return call


class MappedResults(Generic[R]):
    """The results of a map, an iterator and an asynchronous one. run: the first run; None if there are no items. runs:
    all so far."""

    def __init__(self, sender: _Sender, count: int | None) -> None:
        self.runs, self._sender, self._count = sender.runs, sender, count
        self._results: Generator[R, None, None] = (_ for _ in ())
        self._leave = weakref.finalize(self, sender.awaited.cancel)

    @property
    def run(self) -> RunHandle | None:
        return self.runs[0] if self.runs else None

    def begin(self, first: list[Row], more: Iterator[Row]) -> None:
        """Send the first window. Raises CannotPickle and ArgosyError."""
        sent = [self._sender.send(first, 0)] if first else []
        ends_at = None if self._sender.terms.timeout is None else time.monotonic() + self._sender.terms.timeout
        # Generators that do not refer to these results: otherwise only the garbage collector would end them.
        self._results = _given(_outcomes(self._sender, sent, more, ends_at), self._sender.terms.return_exceptions)

    def __len__(self) -> int:
        """How many items there are. Raises TypeError for an iterator whose end has not been reached."""
        if self._count is None:
            raise TypeError("the number of items of an iterator is unknown")
        return self._count

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[R]:
        return self

    def __next__(self) -> R:
        try:
            return next(self._results)
        except StopIteration:
            self._leave.detach()
            raise
        except BaseException:
            self._leave()
            raise

    def __aiter__(self) -> MappedResults[R]:
        return self

    async def __anext__(self) -> R:
        found = await asyncio.to_thread(next, self, _END)
        if found is _END:
            raise StopAsyncIteration
        return found

    def close(self) -> None:
        """Take no more of them. The runs that are open are cancelled."""
        self._results.close()
        self._leave()

    def _ipython_display_(self) -> None:
        from argosy.sdk.notebooks import show_live

        show_live(self.runs[-1] if self.runs else None)

    def __repr__(self) -> str:
        return f"<results of {self.run!r}>"


def _given(outcomes: Iterator[CallOutcome], return_exceptions: bool) -> Generator[Any, None, None]:
    for outcome in outcomes:
        outcome.show(outcome.index)
        yield outcome.error if return_exceptions and outcome.error is not None else outcome.taken()


def _outcomes(
    sender: _Sender, sent: list[_SentCalls], more: Iterator[Row], ends_at: float | None
) -> Iterator[CallOutcome]:
    """Of all windows, of which at most WINDOWS_AHEAD are in work."""
    ahead, first = deque(sent), sum(each.count for each in sent)
    while ahead:
        while len(ahead) < WINDOWS_AHEAD and (rows := list(islice(more, WINDOW))):
            ahead.append(sender.send(rows, first))
            first += len(rows)
        calls = ahead.popleft()
        yield from _of_window(calls, sender.terms, ends_at)
        sender.awaited.open.remove(calls.run)


def _of_window(calls: _SentCalls, terms: MapTerms, ends_at: float | None) -> Iterator[CallOutcome]:
    parts = _watched(calls.run, ProgressLine() if terms.progress else None, ends_at)
    return as_they_come(calls, parts) if terms.unordered else in_order(calls, parts)


def _watched(run: RunHandle, line: ProgressLine | None, ends_at: float | None) -> Iterator[dict[int, bytes]]:
    """The finished parts. Raises TimeoutError."""
    left_s = None if ends_at is None else max(0.0, ends_at - time.monotonic())
    try:
        for found in finished_parts(run, left_s):
            if line is not None:
                line.show(run)
            yield found
    except WaitTimedOut as fault:
        raise TimeoutError(str(fault)) from fault


def in_order(calls: _SentCalls, finished: Iterator[dict[int, bytes]]) -> Iterator[CallOutcome]:
    """The result of each item, as soon as all before it are there."""
    parts: dict[int, bytes] = {}
    tasks, due = -(-calls.count // calls.batch), 0  # due: the first task whose results have not been given
    for found in finished:
        parts |= found
        while (part := parts.pop(due, None)) is not None:
            yield from _of_task(calls, due, part)
            due += 1
        if due == tasks:
            return
    for task in range(due, tasks):
        yield from _of_task(calls, task, parts.pop(task, None))


def as_they_come(calls: _SentCalls, finished: Iterator[dict[int, bytes]]) -> Iterator[CallOutcome]:
    """The results of each task, as soon as they are there."""
    missing = dict.fromkeys(range(-(-calls.count // calls.batch)))
    for found in finished:
        for task, part in found.items():
            del missing[task]
            yield from _of_task(calls, task, part)
        if not missing:
            return
    for task in missing:
        yield from _of_task(calls, task, None)


def _of_task(calls: _SentCalls, task: int, part: bytes | None) -> list[CallOutcome]:
    """part: None if the task has left none."""
    first, size = calls.first + task * calls.batch, min(calls.batch, calls.count - task * calls.batch)
    if part is not None:
        return outcomes_of(part, first, calls.table)
    what = f"item {first}" if size == 1 else f"items {first} to {first + size - 1}"
    return [CallOutcome(error=RunFailed(calls.run, what))] * size
