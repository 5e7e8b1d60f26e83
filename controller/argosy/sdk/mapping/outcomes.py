"""The results of calls: a part's pickles become values, and exceptions that show where they were raised."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from argosy.client.errors import ArgosyError
from argosy.sdk.mapping.worker import VALUE, ClassTable, Unsuitable, check_versions, unframed


class RemoteTraceback(Exception):
    """Where an exception was raised: the traceback of the task, as text. It is the exception's `__cause__`."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


class RemoteError(ArgosyError):
    """An exception of a task that cannot be raised itself: it does not pickle, or would end this program, as SystemExit
    does. `kind` is its name.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}" if text else kind)
        self.kind = kind


class UnreadableResult(ArgosyError):
    """The result of a call cannot be unpickled here; the message names the call and the reason."""


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """Of one call: a value, or the error that is raised in its place. printed: the text that it printed."""

    value: Any = None
    error: Exception | None = None
    index: int = 0
    printed: str = ""

    def show(self, index: int) -> None:
        """Print the call's text here, each line behind the index."""
        for line in self.printed.splitlines():
            print(f"[{index}] {line}")

    def taken(self) -> Any:
        """The value. Raises the error."""
        if self.error is not None:
            raise self.error
        return self.value


def outcomes_of(part: bytes, first: int, table: ClassTable) -> list[CallOutcome]:
    """Of all calls of a task, in their order. first: the index of its first call. table: of the run's classes.

    Raises UnreadableResult for a part that is not of argosy.map, or of another Python.
    """
    from argosy.sdk.mapping.pickling import cloudpickle_module

    try:
        head, pickles = unframed(part)
        check_versions(head, cloudpickle_module().__version__)
    except Unsuitable as why:
        raise UnreadableResult(f"The results from item {first} on cannot be read: {why}.") from why
    outcomes = [_outcome(pickled, first + place, table) for place, pickled in enumerate(pickles)]
    for place, text in head.get("printed", {}).items():
        outcomes[int(place)] = replace(outcomes[int(place)], index=first + int(place), printed=text)
    return outcomes


def _outcome(pickled: bytes, index: int, table: ClassTable) -> CallOutcome:
    try:
        kind, *rest = table.loads(pickled)  # writers of results are trusted: docs/concepts/scope.md
        if kind == VALUE:
            return CallOutcome(value=rest[0])
        exception, name, text, trace = rest
        error: Any = None if exception is None else table.loads(exception)
        if not isinstance(error, Exception):  # sys.exit() of a task must not end this program
            error = RemoteError(name, text)
        return CallOutcome(error=_with_cause(error, trace))
    except Exception as fault:  # noqa: BLE001 - whatever the user's own __setstate__ raises
        error = UnreadableResult(
            f"The result of item {index} cannot be unpickled here: {type(fault).__name__}: {fault}"
        )
        error.__cause__ = fault
        return CallOutcome(error=error)


def _with_cause(error: Exception, trace: str) -> Exception:
    error.__cause__ = RemoteTraceback(trace)
    return error
