"""An engine on its own: a queue without messages, an executor without work, a wake that is recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from argosy.engine.loop import Loop
from argosy.engine.tick import Engine
from argosy.model.actions import Action
from argosy.model.events import Event, Observed
from argosy.model.state import State
from argosy.ports import Message
from tests.builders import NOW, POLICY, MemoryStore


@dataclass
class TickingClock:
    """A clock that advances a tenth of a second at each reading."""

    at: float = NOW

    def __call__(self) -> float:
        self.at += 0.1
        return self.at


class EmptyQueue:
    def receive(self, wait_s: float) -> list[Message]:
        return []

    def delete(self, receipts: Sequence[str]) -> None:
        assert not receipts


class Queue:
    """Shows these messages until they are deleted."""

    def __init__(self, *bodies: dict[str, object] | None) -> None:
        self.bodies = {str(number): body for number, body in enumerate(bodies)}
        self.deleted: list[str] = []

    def receive(self, wait_s: float) -> list[Message]:
        return [Message(receipt, body) for receipt, body in self.bodies.items() if receipt not in self.deleted]

    def delete(self, receipts: Sequence[str]) -> None:
        self.deleted += receipts


class IdleExecutor:
    def carry_out(self, actions: Sequence[Action], state: State, deadline: float) -> list[Event]:
        return []

    def observe(self, now: float, state: State) -> Event:
        return Observed(now)


@dataclass
class RecordingWake:
    calls: list[str] = field(default_factory=list)
    when_resting: Callable[[], None] = lambda: None

    def controller(self) -> None:
        self.calls.append("controller")

    def rest(self) -> None:
        self.calls.append("rest")
        self.when_resting()

    def stay(self) -> None:
        self.calls.append("stay")


def loop_with(store: MemoryStore, wake: RecordingWake, **overrides: Any) -> Loop:
    clock = TickingClock()
    engine = Engine(store, EmptyQueue(), IdleExecutor(), {}, POLICY, clock)
    return Loop(engine, store, wake, "me", clock, **overrides)
