"""A `concurrent.futures` executor whose calls are made by the tasks of a deployment.

A run for each call would be absurd, since a task takes seconds: calls are collected for a second, and make one run.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Any, TypeVar, Unpack

from argosy.client.errors import ArgosyError
from argosy.sdk.client import Client
from argosy.sdk.errors import RunFailed
from argosy.sdk.mapping.calls import (
    NOT_AWAITED,
    batch_size,
    batches,
    cores_of,
    finished_parts,
    run_name,
    uploaded,
)
from argosy.sdk.mapping.options import TaskOptions, TaskTerms, divided, names_of
from argosy.sdk.mapping.outcomes import outcomes_of
from argosy.sdk.mapping.pickling import CannotPickle, OwnClasses, name_of, own_modules_by_value, pickled_function
from argosy.sdk.mapping.worker import ClassTable
from argosy.sdk.run import RunHandle

COLLECTED_S = 1.0
CANCELLED_AT_ONCE = 20  # tasks, as many as a request may name
RUNS_AT_A_TIME = 4  # calls that are submitted in the meantime are collected into the next one

T = TypeVar("T")


class RemoteFuture(Future[T]):
    """A future whose call can be cancelled while it runs."""

    def cancel(self) -> bool:
        """Drop the call and its result. Its task is stopped unless it has other calls. False if it has ended."""
        if super().cancel():
            return True
        with suppress(InvalidStateError):  # it has a result
            self.set_exception(CancelledError())
        return self.cancelled()

    def cancelled(self) -> bool:
        """Whether it was, before it ran or while it ran."""
        return super().cancelled() or (self.done() and isinstance(self.exception(0), CancelledError))


@dataclass(eq=False, slots=True)
class WantedCall:
    """A call that was submitted, and the future that its caller holds. number: of all calls of the executor."""

    number: int
    future: Future[Any]
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    named: dict[str, Any]


class RemoteExecutor(Executor):
    """`concurrent.futures.Executor` whose calls are made by the tasks of a deployment. `argosy.Executor`.

    Futures behave as those of a ProcessPoolExecutor, and one can be cancelled while its call runs: an exception of the
    function comes with the traceback of the task as its `__cause__`, and what cannot be pickled is the exception of its
    future. Arguments are those of `argosy.map`; `budget` is of each run. collect: seconds in which calls are
    gathered into one run.
    """

    def __init__(
        self,
        *,
        batch: int | None = None,
        collect: float = COLLECTED_S,
        client: Client | None = None,
        **options: Unpack[TaskOptions],
    ) -> None:
        self._terms, given = divided({"batch": batch, "client": client, **options})
        self._client = client or Client()
        self._batch, self._collect_s = given.batch, collect
        self._lock = threading.Lock()
        self._waiting: dict[TaskTerms, list[WantedCall]] = {}  # equal terms share a run
        self._threads: list[threading.Thread] = []
        self._at_once = threading.Event()  # nothing more can come: waiting calls are sent
        self._runs: set[RunHandle] = set()  # that have been sent and are waited for
        self._abandoned = False
        self._places = threading.Semaphore(RUNS_AT_A_TIME)
        self._numbers = count()
        _end_before_the_interpreter(self)

    def submit(  # type: ignore[override]  # the standard one gives all keywords to the call
        self, fn: Callable[..., T], /, *args: Any, _resources: TaskOptions | None = None, **kwargs: Any
    ) -> Future[T]:
        """A future of `fn(*args, **kwargs)`. _resources: of this call, in place of the executor's, such as
        `{"gpus": 1}`. Raises RuntimeError after `shutdown`, and TypeError and InvalidInput for resources that cannot
        be.
        """
        future: Future[T] = RemoteFuture()
        terms = replace(self._terms, **_named_resources(_resources)) if _resources else self._terms
        with self._lock:
            if self._at_once.is_set():
                raise RuntimeError("cannot schedule new futures after shutdown")
            waiting = self._waiting.setdefault(terms, [])
            waiting.append(WantedCall(next(self._numbers), future, fn, args, kwargs))
            if len(waiting) == 1:
                # It ends with its run. A wait of None lasts forever, so that the program can end without a shutdown.
                thread = threading.Thread(target=self._serve, args=(terms,), name="argosy-executor")
                self._threads = [each for each in self._threads if each.is_alive()] + [thread]
                thread.start()
        return future

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        **more: Any,
    ) -> Iterator[T]:
        """As `concurrent.futures.Executor.map`. chunksize: how many items are one call; an exception of one of them is
        that of all.
        """
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        if chunksize == 1:
            return super().map(fn, *iterables, timeout=timeout, **more)

        def each_of(chunk: list[tuple[Any, ...]]) -> list[T]:  # an inner function, and so sent by value
            return [fn(*arguments) for arguments in chunk]

        found = super().map(each_of, _chunks(zip(*iterables, strict=False), chunksize), timeout=timeout, **more)
        return (result for chunk in found for result in chunk)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls. wait: until all runs have ended. cancel_futures: drop those that wait to be sent."""
        with self._lock:
            if cancel_futures:
                for call in chain(*self._waiting.values()):
                    call.future.cancel()
            self._at_once.set()
            threads = list(self._threads)
        for thread in threads if wait else ():
            thread.join()

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: Any) -> bool | None:
        """As `Executor` does; but after a Ctrl-C the runs are cancelled, because no program takes their results."""
        if isinstance(fault, KeyboardInterrupt):
            self._abandon()
        return super().__exit__(kind, fault, trace)

    def _abandon(self) -> None:
        with self._lock:
            self._abandoned = True
            runs = list(self._runs)
        self.shutdown(wait=False, cancel_futures=True)
        for run in runs:
            run.cancel(NOT_AWAITED)

    def _serve(self, terms: TaskTerms) -> None:
        """Collect calls of these terms, send them, and give each future the result of its call."""
        self._at_once.wait(self._collect_s)
        with self._places:
            with self._lock:
                taken = self._waiting.pop(terms)
            calls = [call for call in taken if call.future.set_running_or_notify_cancel()]
            try:
                self._run(calls, terms)
            except BaseException as fault:  # noqa: BLE001 - it is raised where the results are asked for
                _refuse(calls, fault)

    def _run(self, calls: list[WantedCall], terms: TaskTerms) -> None:
        table, functions, sent = _pickled(calls)
        if not sent:
            return
        size = batch_size(len(sent), self._batch, cores_of(self._client))
        tasks = batches([pickled for _, pickled in sent], size)
        name = run_name(name_of(sent[0][0].function))
        with uploaded(self._client, name, functions, tasks, terms) as spec:
            run = self._client.submit(spec)
        with self._lock:
            self._runs.add(run)
            abandoned = self._abandoned
        if abandoned:
            run.cancel(NOT_AWAITED)
        try:
            self._collect(run, sent, size, table)
        finally:
            with self._lock:
                self._runs.discard(run)

    def _collect(self, run: RunHandle, sent: list[tuple[WantedCall, bytes]], size: int, table: ClassTable) -> None:
        """Give each future the result of its call. size: calls of a task."""
        of_tasks = [[call for call, _ in sent[first : first + size]] for first in range(0, len(sent), size)]
        told = set[int]()  # tasks that are cancelled
        for found in finished_parts(run):
            for task, part in found.items():
                _settle(of_tasks[task], part, task * size, table)
            if all(call.future.done() for call, _ in sent):
                if not run.has_ended and any(call.future.cancelled() for call, _ in sent):
                    run.cancel(NOT_AWAITED)
                return
            unwanted = {task for task, calls in enumerate(of_tasks) if all(each.future.cancelled() for each in calls)}
            if new := sorted(unwanted - told)[:CANCELLED_AT_ONCE]:
                told |= {*new}
                with suppress(ArgosyError):  # their results are dropped in any case
                    run.cancel(indexes=new)
        _refuse([call for call, _ in sent], RunFailed(run, "a call"))


def _named_resources(resources: TaskOptions) -> dict[str, Any]:
    """Raises TypeError for an unknown name."""
    divided(resources)
    if unknown := resources.keys() - {*names_of(TaskTerms)}:
        raise TypeError(f"{min(unknown)!r} is of a whole executor, not of one call.")
    return {**resources}


_alive: weakref.WeakSet[RemoteExecutor] = weakref.WeakSet()


def _end_before_the_interpreter(executor: RemoteExecutor) -> None:
    """A program that ends without a shutdown still has its calls made, as with the standard library's executors."""
    if not _alive:
        # Otherwise theirs is called before ours, and from then on no thread pool takes work, S3's uploads among it.
        register = getattr(threading, "_register_atexit", atexit.register)
        register(_end_all)
    _alive.add(executor)


def _end_all() -> None:
    for executor in list(_alive):
        executor.shutdown()


def _pickled(calls: Iterable[WantedCall]) -> tuple[ClassTable, list[bytes], list[tuple[WantedCall, bytes]]]:
    """The classes, the functions with the classes first, each once, and the calls. One that cannot be pickled is
    refused at its
    future.
    """
    functions: list[bytes] = []
    numbers: dict[int, int] = {}  # id of the function -> its number; the calls keep it alive
    sent = []
    with own_modules_by_value():
        table = OwnClasses()
        for call in calls:
            try:
                if id(call.function) not in numbers:
                    functions.append(pickled_function(call.function))
                    numbers[id(call.function)] = len(functions) - 1
                what = f"An argument of {name_of(call.function)}"
                pickled = table.call(numbers[id(call.function)], call.arguments, call.named, what)
            except CannotPickle as refusal:
                call.future.set_exception(refusal)
            else:
                sent.append((call, pickled))
        return table, [table.definitions(), *functions], sent


def _settle(calls: Sequence[WantedCall], part: bytes, first: int, table: ClassTable) -> None:
    for call, outcome in zip(calls, outcomes_of(part, first, table), strict=True):
        outcome.show(call.number)
        with suppress(InvalidStateError):  # it was cancelled meanwhile
            if outcome.error is not None:
                call.future.set_exception(outcome.error)
            else:
                call.future.set_result(outcome.value)


def _refuse(calls: Iterable[WantedCall], fault: BaseException) -> None:
    for call in calls:
        with suppress(InvalidStateError):  # it has a result, or was cancelled
            call.future.set_exception(fault)


def _chunks(rows: Iterator[tuple[Any, ...]], size: int) -> Iterator[list[tuple[Any, ...]]]:
    chunk: list[tuple[Any, ...]] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
