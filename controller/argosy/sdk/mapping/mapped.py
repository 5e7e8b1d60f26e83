"""`argosy.map`: a function called with every item, in the tasks of one run, with the results in order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Generic, Literal, TypeVar

from argosy.sdk.client import Client
from argosy.sdk.errors import RunFailed
from argosy.sdk.mapping.calls import (
    NOT_AWAITED,
    TaskTerms,
    batch_size,
    batches,
    check_batch,
    cores_of,
    finished_parts,
    run_name,
    start,
)
from argosy.sdk.mapping.outcomes import CallOutcome, outcomes_of
from argosy.sdk.mapping.pickling import OwnClasses, name_of, own_modules_by_value, pickled_function
from argosy.sdk.mapping.worker import ClassTable
from argosy.sdk.run import RunHandle

T = TypeVar("T")
R = TypeVar("R")


def map_items(  # noqa: PLR0913 - users name them
    function: Callable[[T], R],
    items: Iterable[T],
    *,
    batch: int | None = None,
    vcpus: float = 1,
    memory: int = 1024,
    gpus: float | Literal["ALL"] = 0,
    gpu_share: int = 0,
    image: str | None = None,
    attempts: int = 3,
    budget: float | None = None,
    packages: Sequence[str] | None = None,
    return_exceptions: bool = False,
    client: Client | None = None,
) -> MappedResults[R]:
    """Call `function` with every item on other machines; an iterator over the results, in the order of the items.

    The run is submitted at once. An exception of the function is raised when its turn comes, with the traceback of the
    task as its `__cause__`; return_exceptions=True gives it in place of the result. The call is not tried again; a task
    that crashes is, `attempts` times. Closing the iterator, or an exception that it raises, cancels the run.
    batch: items of a task; None = about the square root of their number. vcpus, memory (MiB), gpus: of a task.
    gpu_share: MiB of a GPU that a task shares with others, in place of gpus. image: None = Argosy's, of this Python's
    version. budget: US dollars that the run may cost. packages: requirements that the function imports, such as
    `["pandas"]`. client: None = `argosy.Client()`.
    Raises `argosy.CannotPickle` for a function or an item that cannot be sent, and ArgosyError.
    """
    check_batch(batch)
    terms = TaskTerms(
        vcpus=vcpus,
        memory=memory,
        gpus=gpus,
        gpu_share=gpu_share,
        image=image,
        attempts=attempts,
        budget=budget,
        packages=packages,
    )
    with own_modules_by_value():
        table = OwnClasses()
        pickled = pickled_function(function)
        calls = [
            table.call(0, (item,), {}, f"Item {index}, a {type(item).__qualname__},")
            for index, item in enumerate(items)
        ]
        functions = [table.definitions(), pickled]
    if not calls:
        return MappedResults(None, iter(()), return_exceptions)
    client = client or Client()
    size = batch_size(len(calls), batch, cores_of(client))
    run = start(client, run_name(name_of(function)), functions, batches(calls, size), terms)
    return MappedResults(run, in_order(run, len(calls), size, table), return_exceptions)


class MappedResults(Generic[R]):
    """The results of a map, in the order of its items. run: the run that makes them; None if there are no items."""

    def __init__(self, run: RunHandle | None, outcomes: Iterator[CallOutcome], return_exceptions: bool) -> None:
        self.run = run
        self._results = self._given(outcomes, return_exceptions)

    def __iter__(self) -> Iterator[R]:
        return self

    def __next__(self) -> R:
        return next(self._results)

    def close(self) -> None:
        """Take no more of them. The run is cancelled if it is open."""
        self._results.close()
        self._cancel()

    def _given(self, outcomes: Iterator[CallOutcome], return_exceptions: bool) -> Generator[R, None, None]:
        complete = False
        try:
            for outcome in outcomes:
                if return_exceptions and isinstance(outcome.error, Exception):
                    yield outcome.error  # type: ignore[misc]  # the caller has asked for it
                else:
                    yield outcome.taken()
            complete = True
        finally:
            if not complete:
                self._cancel()

    def _cancel(self) -> None:
        if self.run is not None and not self.run.has_ended:
            self.run.cancel(NOT_AWAITED)

    def __repr__(self) -> str:
        return f"<results of {self.run!r}>"


def in_order(run: RunHandle, count: int, batch: int, table: ClassTable) -> Iterator[CallOutcome]:
    """The result of each item, as soon as all before it are there."""
    parts: dict[int, bytes] = {}
    due = 0  # the first item that has not been given
    for found in finished_parts(run):
        parts |= found
        while (part := parts.pop(due // batch, None)) is not None:
            yield from outcomes_of(part, due, table)
            due = min(due + batch, count)
        if due == count:
            return
    while due < count:
        part = parts.pop(due // batch, None)
        size = min(batch, count - due)
        yield from _without(run, due, size) if part is None else outcomes_of(part, due, table)
        due += size


def _without(run: RunHandle, first: int, size: int) -> Iterator[CallOutcome]:
    what = f"item {first}" if size == 1 else f"items {first} to {first + size - 1}"
    error = RunFailed(run, what)
    for _ in range(size):
        yield CallOutcome(error=error)
