"""The facts and states that one round of a tick takes in."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argosy.engine.loading import load_run, records_of
from argosy.engine.steps import Fact
from argosy.lifecycle.dependencies import pack_statuses
from argosy.model import inbox
from argosy.model.actions import Action
from argosy.model.damage import FAULTS
from argosy.model.events import (
    ClusterScaled,
    DependencyEnded,
    EnvironmentAsked,
    Event,
    RunCancelled,
    RunRetried,
    RunSubmitted,
    RunUpdated,
    SharingAsked,
    TasksCancelled,
)
from argosy.model.host_care import DrainAsked, DrainRequest
from argosy.model.open_ends import OpenEnds
from argosy.model.run_record import RunRecord
from argosy.model.runs import RunStatus
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.tasks import TaskStatus
from argosy.ports import Message, Store, Switches
from argosy.recording.recorder import TickRecord


def ended_dependencies(store: Store, state: State) -> Iterator[DependencyEnded]:
    """An awaited run. If its record cannot be read, the runs that depend on it wait until a person has restored it."""
    wanted = _awaited(state)
    for run_id, body in records_of(store, wanted).items() if wanted else ():
        with suppress(*FAULTS):
            record = documents.record_from(body)
            if not record.has_ended:
                continue
            statuses = pack_statuses(_statuses(store, record)) if wanted[run_id] else ""
            yield DependencyEnded(run_id, record.status, record.counts, statuses)


def _statuses(store: Store, record: RunRecord) -> NDArray[np.uint8]:
    """Statuses of its tasks, uint8 [tasks]. If they cannot be read, as for a run that was set aside, it is unknown
    which of them succeeded, unless all did. The others then count as cancelled, as they do if a whole run is
    awaited."""
    with suppress(*FAULTS):
        if (run := load_run(store, record.id)) is not None:
            return run.tasks.statuses()
    whole = record.status is RunStatus.SUCCEEDED
    return np.full(record.task_count, TaskStatus.SUCCEEDED if whole else TaskStatus.CANCELLED, dtype=np.uint8)


def _awaited(state: State) -> dict[str, bool]:
    """Ended runs that open runs wait for: id -> whether one of these waits task by task."""
    found: dict[str, bool] = {}
    for run in state.runs.values():
        for each in run.terms.depends_on if run.unmet and not run.halted else ():
            if each.run_id in run.unmet and not (each.run_id in state.runs or each.run_id in state.suspended):
                found[each.run_id] = found.get(each.run_id, False) or each.one_to_one
    return found


@dataclass(slots=True)
class TickIntake:
    """The intake of one tick."""

    began_at: float = 0.0  # epoch seconds, after the wait for messages
    folded: list[str] = field(default_factory=list)  # keys of the inbox that the commit removes
    refused: dict[str, bytes] = field(default_factory=dict)  # of them, the requests that cannot be read
    requests: deque[tuple[str, bytes]] = field(default_factory=deque)  # requests that are not applied yet
    messages: list[Message] = field(default_factory=list)  # applied: deleted once they are committed
    facts: list[Fact] = field(default_factory=list)  # in order of arrival
    request: str = ""  # inbox key of the fact being taken in
    message: Event | None = None  # the last fact that was taken in
    passed_at: float = 0.0  # epoch seconds: when the effects of time alone were judged
    decided_at: float = 0.0
    switches: Switches = field(default_factory=Switches)  # as they were then
    outcomes: list[Fact] = field(default_factory=list)  # of the last tick's actions
    open_ends: OpenEnds = field(default_factory=OpenEnds)  # as they were at the start: they are not stored
    poison: int = 0  # messages that cannot be read
    repaired: int = 0  # ends of tasks and instances that a sweep showed and no event reported

    def record(self, actions: Sequence[Action], digest: str, version: int | None, *, is_whole: bool) -> TickRecord:
        """The record for later questions. is_whole: no run is excluded, since no fact tells of an exclusion."""
        return TickRecord(
            self.facts, self.passed_at, self.decided_at, self.switches, len(self.folded), actions, digest, version,
            fault="" if is_whole and not self.refused else "its own code failed at something",
        )  # fmt: skip


_ALONE: Mapping[type[inbox.Request], Callable[[Any], Event]] = {
    inbox.SubmitRequest: RunSubmitted,
    inbox.CancelTasksRequest: TasksCancelled,
    inbox.EnvironmentRequest: EnvironmentAsked,
    inbox.ScaleRequest: ClusterScaled,
    DrainRequest: DrainAsked,
    inbox.SharingRequest: SharingAsked,
    inbox.UpdateRequest: RunUpdated,
}  # requests for which nothing is read


def event_of(store: Store, state: State, request: inbox.Request) -> Event:
    """Raises one of FAULTS when the run to reopen cannot be read. If another controller commits in the meantime, this
    commit fails: the values read here belong to this controller's version."""
    if not isinstance(request, inbox.CancelRequest | inbox.RetryRequest):
        return _ALONE[type(request)](request)
    is_open = request.run_id in state.runs or request.run_id in state.suspended
    if isinstance(request, inbox.CancelRequest):
        return RunCancelled(request, None if is_open else load_run(store, request.run_id, ended=False))
    return RunRetried(request, None if is_open else load_run(store, request.run_id))
