"""How do the models' events reach the rules, and through them the queue? By PutEvents, in order, from one thread."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

MAX_ENTRIES = 10  # of one PutEvents


class EventForwarder:
    """Takes EventBridge messages from under the models' locks; never blocks.

    Home's go onto the default bus, as AWS puts them there; those of other Regions onto the deployment's own bus, as the
    rules of further cells send them. complain: told of lost events.
    """

    def __init__(self, events: Any, home: str, bus: str, complain: Callable[[str], None]) -> None:
        self._events, self._home, self._bus = events, home, bus
        self._complain = complain
        self._queue: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="argosy-events")
        self._thread.start()

    def __call__(self, message: dict[str, Any]) -> None:
        """Take one message."""
        self._queue.put(message)

    def close(self) -> None:
        """Send the remaining events and end."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        going_on = True
        while going_on:
            batch = [self._queue.get()]
            while len(batch) < MAX_ENTRIES and not self._queue.empty():
                batch.append(self._queue.get())
            going_on = None not in batch
            entries = [self._entry(message) for message in batch if message is not None]
            if entries:
                self._send(entries)

    def _send(self, entries: list[dict[str, Any]]) -> None:
        try:
            reply = self._events.put_events(Entries=entries)
        except (ClientError, BotoCoreError) as fault:
            self._complain(f"{len(entries)} events lost: {fault}")
            return
        for entry, result in zip(entries, reply["Entries"], strict=True):
            if "ErrorCode" in result:
                self._complain(f"event lost: {result} for {entry}")

    def _entry(self, message: dict[str, Any]) -> dict[str, Any]:
        bus = {} if message["region"] == self._home else {"EventBusName": self._bus}
        return {
            "Source": message["source"],
            "DetailType": message["detail-type"],
            "Detail": json.dumps(message["detail"]),
            "Resources": message["resources"],
            "Time": datetime.fromisoformat(message["time"]),
            **bus,
        }
