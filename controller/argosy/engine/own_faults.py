"""Faults of the controller's own code: their cause, and what the next round of a tick leaves out.

One tick works for all runs, in one process and with one commit. An exception that one run causes must not keep the
others from their commit. So an exception before the commit excludes its cause, and the tick begins again without it:

- A fact is being taken in, and it names an open run: that run is excluded.
- The fact is a message or a request that names none: it is excluded. The message moves to the dead letters.
- Anything else, such as a decision for all runs together: a search finds the run to exclude (`culprit`).

An exception that none of these explains is raised. For example, `decide` fails at run b of a, b and c. The search finds
b. The next round suspends b and commits its decisions for a and c. The record of b says why it waits.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from argosy.lifecycle.suspension import bare_record, suspend
from argosy.model.arns import name_of
from argosy.model.damage import FAULTS, NewerFormat, OlderFormat, UnreadableState
from argosy.model.events import Event, TaskSeen
from argosy.model.run_record import RunRecord
from argosy.model.state import State
from argosy.model.suspensions import SURVIVED_S, Suspension, reason_of
from argosy.ports import StaleState

P = TypeVar("P")

MEANT = (StaleState, UnreadableState, NewerFormat, OlderFormat)  # exceptions that loading raises on purpose
MOST_MESSAGES = 1_000  # that are remembered: the queue delivers a message again for ten minutes


class TickFailed(Exception):
    """The controller's own code raised `error` before a tick's commit. `fact`: the fact it was taking in, if any."""

    def __init__(self, error: Exception, fact: Event | None = None) -> None:
        super().__init__(str(error))
        self.error, self.fact = error, fact


class PortFailed(Exception):
    """A port raised `error`: AWS did not answer, or another controller has committed."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class _MarkedPort:
    """The port, whose exceptions become PortFailed."""

    def __init__(self, port: Any) -> None:
        self._port = port

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)

        def call(*args: Any, **options: Any) -> Any:
            try:
                return method(*args, **options)
            except Exception as error:
                raise PortFailed(error) from error

        return call


def marked(port: P) -> P:
    """The port, with its exceptions marked apart from those of the controller's own code."""
    return cast(P, _MarkedPort(port))


@contextmanager
def ours(fact: Event | None = None) -> Iterator[None]:
    """Exceptions become TickFailed, except those of a port and those of loading. `fact`: the fact being taken in."""
    try:
        yield
    except (PortFailed, TickFailed, *MEANT):
        raise
    except Exception as error:
        raise TickFailed(error, fact) from error


def run_of(state: State, fact: Event) -> str:
    """The id of the run that a fact names; "" if none. Some facts name a task by its ARN alone."""
    if isinstance(fact, TaskSeen) and fact.key is None:
        row = state.attempts.row_of_task_id.get(name_of(fact.arn).encode())
        run = None if row is None else state.run_by_number(int(state.attempts["run"][row]))
        return run.id if run else ""
    about = getattr(fact, "key", None) or getattr(fact, "request", None) or fact
    return str(getattr(about, "run_id", ""))


@dataclass(frozen=True, slots=True)
class OwnFailure:
    """The failure of the controller's own code, in words, and its place; for the log."""

    what: str
    reason: str
    trace: str = ""


@dataclass(slots=True)
class Exclusions:
    """The runs and messages that one controller process leaves out. The next commit stores the runs as suspended."""

    runs: dict[str, str] = field(default_factory=dict)  # id -> reason; not stored yet
    requests: set[str] = field(default_factory=set)  # keys of the inbox, until the commit that refuses them
    messages: deque[Event] = field(default_factory=lambda: deque(maxlen=MOST_MESSAGES))
    earlier: dict[str, Suspension] = field(default_factory=dict)  # of runs that are tried again
    tried_at: dict[str, float] = field(default_factory=dict)  # by run id: since when
    troubles: list[OwnFailure] = field(default_factory=list)  # not reported yet

    @property
    def is_in_use(self) -> bool:
        """Whether a run is excluded and not yet stored as suspended."""
        return bool(self.runs)

    def apply(self, state: State, now: float, record_of: Callable[[str], RunRecord]) -> None:
        """Suspend the excluded runs of a state that was just loaded. record_of: the stored record of a run."""
        for run_id, reason in self.runs.items():
            if run_id in state.suspended:  # it was tried again without success
                found = state.suspended[run_id]
                suspend(state, found.record, reason, now, found)
            elif run_id in state.runs:
                worked_s = now - self.tried_at.get(run_id, now)
                recent = self.earlier.get(run_id) if worked_s < SURVIVED_S else None
                try:
                    record = record_of(run_id)
                except FAULTS:
                    record = bare_record(state.runs[run_id])
                suspend(state, record, reason, now, recent)

    def refuses(self, state: State, key: str, run_id: str) -> bool:
        """Whether to refuse a request: the code fails on it, or on the run that it would open."""
        is_open = run_id in state.runs or run_id in state.suspended
        return key in self.requests or (run_id in self.runs and not is_open)

    def committed(self) -> None:
        """The exclusions are stored."""
        self.runs.clear()
        self.requests.clear()

    def note(self, what: str, error: Exception) -> None:
        """Note a fault of the controller's own code for the next report."""
        self.troubles.append(OwnFailure(what, reason_of(error), "".join(traceback.format_exception(error))))

    def note_left_out(self, state: State) -> None:
        """Report what `lifecycle` left out."""
        for what, error in state.left_out:
            self.note(what, error)
        state.left_out.clear()

    @contextmanager
    def tolerating(self, what: str) -> Iterator[None]:
        """Note an exception raised in here; the tick continues."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever it is
            self.note(what, error)

    def reported(self) -> tuple[OwnFailure, ...]:
        """Faults since the last report."""
        troubles = tuple(self.troubles)
        self.troubles.clear()
        return troubles
