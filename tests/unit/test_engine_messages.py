"""Messages that nobody can read stay in the queue, which sets them aside; their neighbours are applied and deleted."""

from __future__ import annotations

from collections.abc import Sequence

from controller.engine import Engine
from controller.ports import Message
from tests.builders import NOW, POLICY, MemoryStore
from tests.unit.test_loop import IdleHands


class Queue:
    def __init__(self, *bodies: dict[str, object] | None) -> None:
        self.bodies = {str(number): body for number, body in enumerate(bodies)}
        self.deleted: list[str] = []

    def receive(self, wait_s: float) -> list[Message]:
        return [Message(receipt, body) for receipt, body in self.bodies.items() if receipt not in self.deleted]

    def delete(self, receipts: Sequence[str]) -> None:
        self.deleted += receipts


def test_a_poison_message_is_counted_and_left_to_the_dead_letter_queue() -> None:
    kind = {"source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning"}
    good = {**kind, "detail": {"instance-id": "i-0123456789abcdef0"}}
    broken = {**kind, "detail": {"instance-id": {}}}
    foreign = {"source": "aws.s3", "detail-type": "Object Created", "detail": {}}
    queue = Queue(None, good, broken, foreign)
    report = Engine(MemoryStore(), queue, IdleHands(), {}, POLICY, lambda: NOW).tick()
    assert (report.events, report.poison) == (2, 2)
    assert queue.deleted == ["1", "3"]
