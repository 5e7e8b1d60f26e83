"""A model of SQS: a standard queue with at-least-once delivery, visibility time-outs and dead letters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from argosy.emulator.operations import EmulatedService, Refusal, operation

JSON = dict[str, Any]

MAX_BATCH = 10
LONGEST_WAIT_S = 20


@dataclass(slots=True)
class _Message:
    """A message in the queue."""

    body: str
    visible_at: float
    receipt: str = ""
    receives: int = 0


class SqsModel(EmulatedService):
    """One queue whatever the URL. A receive does not wait: in virtual time the caller lets time pass.

    `visibility_s`: how long a received message stays hidden; after `max_receives` it goes to `dead`.
    """

    def __init__(self, now: Callable[[], float], *, visibility_s: float = 120.0, max_receives: int = 5) -> None:
        super().__init__()
        self.now, self.visibility_s, self.max_receives = now, visibility_s, max_receives
        self.messages: dict[str, _Message] = {}
        self.dead: list[str] = []
        """Bodies of messages that were received too often."""
        self._receipts: dict[str, str] = {}
        self._count = 0

    @operation
    def send_message(self, request: JSON) -> JSON:
        """DelaySeconds hides it at first."""
        self._count += 1
        name = f"message-{self._count:08d}"
        self.messages[name] = _Message(request["MessageBody"], self.now() + float(request.get("DelaySeconds") or 0))
        return {"MessageId": name}

    @operation
    def receive_message(self, request: JSON) -> JSON:
        most = request.get("MaxNumberOfMessages") or 1
        if not 1 <= most <= MAX_BATCH or not 0 <= (request.get("WaitTimeSeconds") or 0) <= LONGEST_WAIT_S:
            raise Refusal("InvalidParameterValue", "MaxNumberOfMessages is 1 to 10, WaitTimeSeconds 0 to 20.")
        found: list[JSON] = []
        for name, held in list(self.messages.items()):
            if held.visible_at > self.now():
                continue
            if held.receives >= self.max_receives:
                self.dead.append(self.messages.pop(name).body)
                continue
            self._count += 1
            held.receives, held.receipt = held.receives + 1, f"{name}/{self._count}"
            held.visible_at = self.now() + self.visibility_s
            self._receipts[held.receipt] = name
            found.append({"MessageId": name, "ReceiptHandle": held.receipt, "Body": held.body})
            if len(found) == most:
                break
        return {"Messages": found} if found else {}

    @operation
    def delete_message_batch(self, request: JSON) -> JSON:
        """An old receipt still deletes, as in a standard queue; a missing message counts as deleted."""
        entries = request["Entries"]
        if not 1 <= len(entries) <= MAX_BATCH:
            code = "TooManyEntriesInBatchRequest" if entries else "EmptyBatchRequest"
            raise Refusal(f"AWS.SimpleQueueService.{code}", "A batch has 1 to 10 entries.")
        for entry in entries:
            self.messages.pop(self._receipts.pop(entry["ReceiptHandle"], ""), None)
        return {"Successful": [{"Id": entry["Id"]} for entry in entries], "Failed": []}
