"""What one round of a tick has taken in."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from argosy.engine.loading import load_run
from argosy.engine.steps import Fact
from argosy.model import inbox
from argosy.model.actions import Action
from argosy.model.events import (
    ClusterScaled,
    EnvironmentAsked,
    Event,
    RunCancelled,
    RunRetried,
    RunSubmitted,
    RunUpdated,
    SharingAsked,
)
from argosy.model.open_ends import OpenEnds
from argosy.model.state import State
from argosy.ports import Message, Store, Switches
from argosy.recording.tick_record import TickRecord


@dataclass(slots=True)
class Taken:
    """What one tick has taken in."""

    began_at: float = 0.0  # epoch seconds, after the wait for messages
    folded: list[str] = field(default_factory=list)  # keys of the inbox that the commit removes
    refused: dict[str, bytes] = field(default_factory=dict)  # of them, the requests that cannot be read
    requests: deque[tuple[str, bytes]] = field(default_factory=deque)  # of the inbox, not applied yet
    messages: list[Message] = field(default_factory=list)  # applied: deleted once they are committed
    facts: list[Fact] = field(default_factory=list)  # as they came
    request: str = ""  # key of the one that is taken in now
    message: Event | None = None  # the fact of the last one that was taken in
    passed_at: float = 0.0  # epoch seconds: when what follows from the time alone was judged
    decided_at: float = 0.0
    switches: Switches = field(default_factory=Switches)  # as they were then
    outcomes: list[Event] = field(default_factory=list)  # of the last tick's actions
    open_ends: OpenEnds = field(default_factory=OpenEnds)  # as they were when it began: they are not stored
    poison: int = 0  # messages that cannot be read
    repaired: int = 0  # ends of tasks and instances that a sweep showed, and no event had

    def record(self, actions: Sequence[Action], digest: str, version: int | None, *, is_whole: bool) -> TickRecord:
        """For those who ask later why. is_whole: no run is excluded, which no fact tells of."""
        return TickRecord(
            self.facts, self.passed_at, self.decided_at, self.switches, len(self.folded), actions, digest, version,
            fault="" if is_whole and not self.refused else "its own code failed at something",
        )  # fmt: skip


def event_of(store: Store, state: State, request: inbox.Request) -> Event:
    """Raises one of FAULTS when the run that is to be opened again cannot be read. If another controller commits
    meanwhile, our commit fails: what is read here belongs to our version."""
    if isinstance(request, inbox.SubmitRequest):
        return RunSubmitted(request)
    if isinstance(request, inbox.EnvironmentRequest):
        return EnvironmentAsked(request)
    if isinstance(request, inbox.ScaleRequest):
        return ClusterScaled(request)
    if isinstance(request, inbox.SharingRequest):
        return SharingAsked(request)
    if isinstance(request, inbox.UpdateRequest):
        return RunUpdated(request)
    is_open = request.run_id in state.runs or request.run_id in state.suspended
    if isinstance(request, inbox.CancelRequest):
        return RunCancelled(request, None if is_open else load_run(store, request.run_id, ended=False))
    return RunRetried(request, None if is_open else load_run(store, request.run_id))
