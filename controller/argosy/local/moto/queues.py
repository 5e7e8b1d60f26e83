"""A faster SQS in moto, for queues of several hundred events.

moto examines every message several times per call, and takes 20 us each time because it builds a datetime: receiving 10
of 600 messages took 0.5 s. Three of its private names are replaced by equal but quicker ones; tests hold their
behaviour.
"""

from __future__ import annotations

import time
from typing import Any


def quicken() -> None:
    """Replaces them; repeating it does no harm."""
    from moto.sqs.models import Message, SQSBackend

    replaced: tuple[tuple[type, str, Any], ...] = (
        (Message, "visible", property(_visible)),
        (Message, "delayed", property(_delayed)),
        (SQSBackend, "is_message_valid_based_on_retention_period", _retained),
    )
    for owner, name, quicker in replaced:
        if not hasattr(owner, name):
            raise RuntimeError(f"this version of moto has no {owner.__name__}.{name}: it is pinned for a reason")
        setattr(owner, name, quicker)


def send(account: str, region: str, name: str, body: str) -> None:
    """A message for one of moto's queues."""
    from moto.sqs.models import sqs_backends

    sqs_backends[account][region].send_message(name, body)


def _visible(message: Any) -> bool:
    return bool(time.time() * 1000 > message.visible_at)


def _delayed(message: Any) -> bool:
    return bool(time.time() * 1000 < message.delayed_until)


def _retained(backend: Any, queue_name: str, message: Any) -> bool:
    """Without asking for all attributes of the queue, which counts its messages three times."""
    kept_s = backend.get_queue(queue_name).message_retention_period
    return bool(message.sent_timestamp / 1000 + kept_s > time.time())
