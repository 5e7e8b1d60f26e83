"""How soon is a burst of 15,000 interruption warnings handled? Anchor: Karpenter's benchmark of 15,000 messages.

Floor (reliability.md R12): 60 s of the controller's own time until nothing more is placed on any of the instances.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import pytest

from argosy.aws.sqs import ENOUGH
from argosy.catalogue.lookup import load_catalogue
from argosy.engine.tick import Engine
from argosy.model.attempts import AttemptKey, AttemptStatus
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.ports import Message
from tests.builders import NOW, POLICY, RUN_ID, MemoryStore, container_instance, fleet, host, prepared, submitted, told
from tests.fakes.engine import IdleExecutor, TickingClock

WARNINGS = 15_000
FLOOR_S = 60.0


class Burst:
    """A queue that holds all warnings at once."""

    def __init__(self, messages: Sequence[dict[str, Any]]) -> None:
        self.waiting = deque(Message(str(number), body) for number, body in enumerate(messages))

    def receive(self, wait_s: float) -> list[Message]:
        return [self.waiting.popleft() for _ in range(min(ENOUGH, len(self.waiting)))]

    def delete(self, receipts: Sequence[str]) -> None:
        """They are gone already."""


def crowded_state(instances: int) -> State:
    state = told(State(epoch="bench"), submitted(tasks=2 * instances), prepared(), fleet(spot_target=instances))
    run = state.runs[RUN_ID]
    for number in range(instances):
        told(state, host(number), container_instance(number))
        name = f"i-{number:017x}"
        row = state.attempts.add(run.number, AttemptKey(RUN_ID, number, 1, 0), 1 + number // 100, name, NOW)
        state.attempts.name_task(row, f"{number:032x}")
        state.attempts.set(row, status=AttemptStatus.RUNNING, launched_at=NOW, started_at=NOW)
        run.tasks.set(number, status=TaskStatus.RUNNING, attempts=1)
        state.instances[name].idle_since = 0.0
    state.observed_at, state.next_wave = NOW, 2 + instances // 100
    return state


def warning(number: int) -> dict[str, Any]:
    return {
        "source": "aws.ec2",
        "detail-type": "EC2 Spot Instance Interruption Warning",
        "time": "2026-11-21T06:00:00Z",
        "detail": {"instance-id": f"i-{number:017x}", "instance-action": "terminate"},
    }


def heeded(warnings: int) -> tuple[int, float]:
    """Warn each of `warnings` instances. Returns the ticks and seconds until none of them is given tasks."""
    state = crowded_state(warnings)
    queue = Burst([warning(number) for number in range(warnings)])
    engine = Engine(MemoryStore(), queue, IdleExecutor(), load_catalogue(), POLICY, TickingClock(), state=state)
    began, ticks = time.perf_counter(), 0
    while queue.waiting or engine.backlog:
        engine.tick()
        ticks += 1
    assert not any(instance.placeable for instance in state.instances.values())
    return ticks, time.perf_counter() - began


@pytest.mark.benchmark
def test_fifteen_thousand_warnings_at_once_are_heeded_within_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    ticks, seconds = heeded(WARNINGS)
    with capsys.disabled():
        print(f"\n{WARNINGS:,} interruption warnings: {seconds:.1f} s in {ticks} ticks")
    assert seconds < FLOOR_S


def test_the_benchmark_works_in_small() -> None:
    """So that it cannot become outdated unnoticed."""
    assert heeded(30)[0] >= 1
