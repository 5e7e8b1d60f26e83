"""EventBridge and Lambda for the controller: its announcements, and its invocations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argosy.emulator.operations import EmulatedService, Refusal, operation

JSON = dict[str, Any]
MAX_ENTRIES = 10


class BusModel(EmulatedService):
    """EventBridge: the announcements, and which rules are enabled."""

    def __init__(self) -> None:
        super().__init__()
        self.announced: list[JSON] = []
        self.enabled: set[str] = set()

    @operation
    def put_events(self, request: JSON) -> JSON:
        if not 1 <= len(request["Entries"]) <= MAX_ENTRIES:
            raise Refusal("ValidationException", f"1 to {MAX_ENTRIES} entries, please")
        first = len(self.announced)
        self.announced += request["Entries"]
        made = [{"EventId": f"event-{number}"} for number in range(first, len(self.announced))]
        return {"FailedEntryCount": 0, "Entries": made}

    @operation
    def enable_rule(self, request: JSON) -> JSON:
        self.enabled.add(request["Name"])
        return {}

    @operation
    def disable_rule(self, request: JSON) -> JSON:
        self.enabled.discard(request["Name"])
        return {}


class LambdaModel(EmulatedService):
    """Lambda: how often each function was invoked. The composer of the simulation runs it."""

    def __init__(self) -> None:
        super().__init__()
        self.invoked: list[str] = []
        self.on_invoke: list[Callable[[str, bytes], None]] = []  # called with the name of the function and its payload

    @operation
    def invoke(self, request: JSON) -> JSON:
        self.invoked.append(request["FunctionName"])
        for tell in self.on_invoke:
            tell(request["FunctionName"], bytes(request.get("Payload", b"")))
        return {"StatusCode": 202 if request.get("InvocationType") == "Event" else 200}
