"""How do the controller's calls reach the models when there are millions of them? Directly, and timed.

No check of shapes, no faults, no JSON on the way of events: what is simulated stays the same, what watches it is gone.
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
from argosy.simulation.timeline import Timeline

JSON = dict[str, Any]

CALL_S = 0.032  # of virtual time; most calls wait for the one before
LAUNCH_S = 0.1  # RunTask and StopTask, as many at a time as the executor has threads
IN_THREADS = frozenset({"run_task", "stop_task"})
TOGETHER = frozenset({"modify_fleet"})  # those of all cells at once
_LISTENED_TO = frozenset((kind.source, kind.detail_type) for kind in MESSAGE_KINDS)


class Outside:
    """Processor time spent in the simulated AWS, which is none of the controller's."""

    def __init__(self, timeline: Timeline, cells: int) -> None:
        self.timeline, self.cells = timeline, cells
        self.seconds = 0.0
        self.calls: Counter[tuple[str, str]] = Counter()

    def pass_time(self, seconds: float) -> None:
        began = time.process_time()
        self.timeline.run_for(seconds)
        self.seconds += time.process_time() - began

    def client(self, service: str, model: Any) -> LeanClient:
        return LeanClient(self, service, model)


class LeanClient:
    """A boto3-like client over a model."""

    def __init__(self, outside: Outside, service: str, model: Any) -> None:
        self._outside, self._service, self._model = outside, service, model

    def __getattr__(self, name: str) -> Callable[..., JSON]:
        method, outside, key = getattr(self._model, name), self._outside, (self._service, name)
        takes_s = LAUNCH_S / (THREADS * outside.cells) if name in IN_THREADS else CALL_S
        takes_s /= outside.cells if name in TOGETHER else 1

        def call(**request: Any) -> JSON:
            began = time.process_time()
            outside.calls[key] += 1
            outside.timeline.run_for(takes_s)
            try:
                return dict(method(**request))
            finally:
                outside.seconds += time.process_time() - began

        setattr(self, name, call)
        return call


class DirectQueue:
    """`ports.EventQueue` that is handed the world's events; a sink of every world."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[int, JSON]] = deque()
        self.received = 0
        self.longest = 0  # backlog
        self._count = 0

    def __call__(self, message: JSON) -> None:
        if (message["source"], message["detail-type"]) in _LISTENED_TO:
            self._count += 1
            self.waiting.append((self._count, message))

    def receive(self, wait_s: float) -> list[Message]:
        self.longest = max(self.longest, len(self.waiting))
        taken = [self.waiting.popleft() for _ in range(min(ENOUGH, len(self.waiting)))]
        self.received += len(taken)
        return [Message(str(number), body) for number, body in taken]

    def delete(self, receipts: Sequence[str]) -> None:
        """What was received is gone already: nothing gets lost here."""
