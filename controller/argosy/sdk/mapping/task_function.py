"""`argosy.task`: a function that remembers what its calls need."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import cached_property, update_wrapper
from operator import itemgetter
from typing import Any, Generic, ParamSpec, TypeVar, Unpack

from argosy.sdk.mapping.executor import RemoteExecutor
from argosy.sdk.mapping.map_runs import MappedResults, map_items, starmap
from argosy.sdk.mapping.options import MapOptions, TaskTerms, divided, names_of

P = ParamSpec("P")
R = TypeVar("R")


def task(**options: Unpack[MapOptions]) -> Callable[[Callable[P, R]], TaskFunction[P, R]]:
    """A decorator, such as `@argosy.task(gpus=1, packages=["torch"])`. options: those of `argosy.map`.

    A plain call stays a call on this machine. `map`, `starmap` and `submit` make calls on others. Raises TypeError for
    an unknown option, and InvalidInput.
    """
    divided(options)
    return lambda function: TaskFunction(function, options)


class TaskFunction(Generic[P, R]):
    """The function, to be called here or on other machines. Sent to a task, it is the plain function."""

    def __init__(self, function: Callable[P, R], options: MapOptions) -> None:
        update_wrapper(self, function)
        self.local, self._options = function, options

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.local(*args, **kwargs)

    def map(self, items: Iterable[Any], *more: Iterable[Any], **options: Unpack[MapOptions]) -> MappedResults[R]:
        """As `argosy.map`. options: in place of the decorator's."""
        return map_items(self.local, items, *more, **self._with(options))

    def starmap(self, rows: Iterable[Iterable[Any]], **options: Unpack[MapOptions]) -> MappedResults[R]:
        """As `argosy.starmap`."""
        return starmap(self.local, rows, **self._with(options))

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """A future of one call. Calls of the same second share a run."""
        return self._executor.submit(self.local, *args, **kwargs)  # type: ignore[arg-type]

    def _with(self, options: MapOptions) -> MapOptions:
        return {**self._options, **options}

    @cached_property
    def _executor(self) -> RemoteExecutor:
        tasks, terms = divided(self._options)
        named = {name: getattr(tasks, name) for name in names_of(TaskTerms)}
        return RemoteExecutor(batch=terms.batch, client=terms.client, **named)

    def __reduce__(self) -> tuple[Any, ...]:
        """No image has this class, and a call in a task is plain."""
        return itemgetter(0), ((self.local,),)
