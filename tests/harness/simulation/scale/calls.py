"""The direct, timed path of millions of calls and events to the models and the controller.

Shapes are not checked, calls meet no faults, and events are not turned into JSON. What is simulated stays the same.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

from argosy.aws.cell import THREADS
from argosy.aws.sqs import ENOUGH
from argosy.messages.eventbridge import MESSAGE_KINDS
from argosy.ports import Message
from tests.harness.simulation.world.timeline import Timeline

JSON = dict[str, Any]

CALL_S = 0.032  # seconds of virtual time; most calls wait for the previous one
LAUNCH_S = 0.1  # RunTask and StopTask, as many at a time as the executor has threads
IN_THREADS = frozenset({"run_task", "stop_task"})
TOGETHER = frozenset({"modify_fleet"})  # those of all cells at once
_LISTENED_TO = frozenset((kind.source, kind.detail_type) for kind in MESSAGE_KINDS)


class TimedCalls:
    """All calls to the simulated AWS, with the CPU time that they took, which is not the controller's."""

    def __init__(self, timeline: Timeline, cells: int) -> None:
        self.timeline, self.cells = timeline, cells
        self.seconds = 0.0
        self.calls: Counter[tuple[str, str]] = Counter()

    def pass_time(self, seconds: float) -> None:
        began = time.process_time()
        self.timeline.run_for(seconds)
        self.seconds += time.process_time() - began

    def client(self, service: str, model: Any) -> TimedClient:
        return TimedClient(self, service, model)


class TimedClient:
    """A boto3-like client over a model."""

    def __init__(self, timed: TimedCalls, service: str, model: Any) -> None:
        self._timed, self._service, self._model = timed, service, model

    def __getattr__(self, name: str) -> Callable[..., JSON]:
        method, timed, key = getattr(self._model, name), self._timed, (self._service, name)
        takes_s = LAUNCH_S / (THREADS * timed.cells) if name in IN_THREADS else CALL_S
        takes_s /= timed.cells if name in TOGETHER else 1

        def call(**request: Any) -> JSON:
            began = time.process_time()
            timed.calls[key] += 1
            timed.timeline.run_for(takes_s)
            try:
                return dict(method(**request))
            finally:
                timed.seconds += time.process_time() - began

        setattr(self, name, call)
        return call


class DirectQueue:
    """`ports.EventQueue` that takes the world's events directly; a sink of every world."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[int, JSON]] = deque()
        self.received = 0
        self.longest = 0  # backlog
        self._count = 0
        self._in_flight: dict[str, JSON] = {}  # received, and not deleted yet

    def __call__(self, message: JSON) -> None:
        if (message["source"], message["detail-type"]) in _LISTENED_TO:
            self._count += 1
            self.waiting.append((self._count, message))

    def receive(self, wait_s: float) -> list[Message]:
        self.longest = max(self.longest, len(self.waiting))
        taken = [self.waiting.popleft() for _ in range(min(ENOUGH, len(self.waiting)))]
        self.received += len(taken)
        self._in_flight |= {str(number): body for number, body in taken}
        return [Message(str(number), body) for number, body in taken]

    def delete(self, receipts: Sequence[str]) -> None:
        for receipt in receipts:
            self._in_flight.pop(receipt, None)

    def give_back(self) -> None:
        """Messages that a controller has received and not deleted are received again, first of all."""
        self.waiting.extendleft((int(receipt), body) for receipt, body in reversed(self._in_flight.items()))
        self._in_flight.clear()
