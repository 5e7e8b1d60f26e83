"""The errors of Argosy as a library.

All are `ArgosyError`: one sentence, and in `next_step` what would help, which a traceback shows as a note.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from argosy.client.access import Access
from argosy.client.api import ApiError
from argosy.client.errors import ArgosyError, InvalidInput, from_aws, is_from_aws
from argosy.client.extras import installing
from argosy.client.failures import kinds_of, with_last_lines

if TYPE_CHECKING:
    from argosy.spec.faults import Fault

CAUSES_NAMED = 3


class InvalidSpec(InvalidInput):
    """A run spec with faults; nothing was submitted. `faults` are all of them, each with its path and, if the spec came
    from a
    file, its line.
    """

    def __init__(self, name: str, faults: Sequence[Fault]) -> None:
        lines = [each.text(name) for each in faults]
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        super().__init__("\n  ".join([f"{name or 'the spec'} has {count}; nothing was submitted.", *lines]))
        self.faults = list(faults)


class RunFailed(ArgosyError):
    """A run has ended without all of its results. `run` is that run, an `argosy.Run`; the message lists the
    failures."""

    def __init__(self, run: Any, missing: str = "") -> None:
        """missing: the items without a result, in place of the number of succeeded tasks."""
        lines = [_ended(run.view, missing), *_causes(run.access, run.view)]
        step = f"`argosy logs {run.id} --failed` shows what failed last"
        super().__init__("\n  ".join(lines), next_step=step)
        self.run = run
        _note(self)


class MissingPackage(ArgosyError):
    """Something needs a package that Argosy without extras leaves out."""

    def __init__(self, what: str, package: str, extra: str) -> None:
        said = f"{what} needs {package}, which is not installed."
        super().__init__(said, next_step=installing(extra), is_users_fault=True)
        _note(self)


def _ended(view: Mapping[str, Any], missing: str) -> str:
    tasks, how = view["tasks"], f"{view['runId']} ended {view['status']}"
    if missing:
        return f"{how} without a result for {missing}."
    reason = f" ({view['statusReason']})" if view.get("statusReason") else ""
    return f"{how}{reason}: {tasks['succeeded']:,} of {tasks['total']:,} tasks succeeded."


def _causes(access: Access, view: Mapping[str, Any]) -> Iterator[str]:
    """The most frequent ones, each with the last output of one of its attempts."""
    for kind in with_last_lines(access, view["runId"], kinds_of(view)[:CAUSES_NAMED]):
        yield f"{kind.places}: {kind.cause}" + (f"; its last output: {kind.said}" if kind.said else "")


@contextmanager
def explained() -> Iterator[None]:
    """Turns errors of AWS and the api into an ArgosyError whose traceback says what would help."""
    try:
        yield
    except ArgosyError as error:
        _note(error)
        raise
    except Exception as fault:
        if not is_from_aws(fault):
            raise
        refusal = from_aws(fault)
        _note(refusal)
        raise refusal from fault


def _note(error: ArgosyError) -> None:
    note = f"next: {error.next_step}"
    if error.next_step and note not in getattr(error, "__notes__", ()):
        error.add_note(note)


@contextmanager
def faults_of(name: str) -> Iterator[None]:
    """Turns the api's refusal of a spec into InvalidSpec. name: of the file, or empty."""
    from argosy.spec.faults import Fault

    try:
        yield
    except ApiError as error:
        if error.code != "ValidationException" or not error.faults:
            raise
        raise InvalidSpec(name, [Fault(path, message) for path, message in error.faults]) from error
