"""Is what EC2 announced known from then on, to whoever works next?

R12: once the message of an interruption or of advice to leave is deleted from the queue, it is stored, and no attempt
is placed on that instance any more. The message is gone: a controller that starts then has nothing else to know it by.
That holds for an instance that the state does not know yet as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.harness.simulation.audit.facts import Checker, Commit, EffectCheck, Operation, TrialFacts

JSON = dict[str, Any]

KINDS = {  # of messages -> the member of a stored instance that they set; in the order of what is kept of others
    "EC2 Spot Instance Interruption Warning": "interrupted_at",
    "EC2 Instance Rebalance Recommendation": "rebalance_at",
}


class WarningChecker(Checker):
    """Messages that were received and deleted, and intents that are stored afterwards."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self._received: dict[str, tuple[str, str]] = {}
        """Receipt -> detail type and instance id."""
        self._announced: dict[str, str] = {}
        """Instance id -> detail type of a message that is deleted."""

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {("sqs", "receive_message"): self._receive, ("sqs", "delete_message_batch"): self._deleted}

    def committed(self, commit: Commit) -> None:
        for intent in commit.intents:
            if intent.instance in self._announced:
                sentence = f"{intent.key} is placed on {intent.instance} after: {self._announced[intent.instance]}"
                self.facts.violated("R12", sentence, intent.instance)

    def _receive(self, request: JSON, reply: JSON) -> None:
        for message in reply.get("Messages", ()):
            found = _announcement(message["Body"])
            if found is not None:
                self._received[message["ReceiptHandle"]] = found

    def _deleted(self, request: JSON, reply: JSON) -> None:
        for entry in request["Entries"]:
            found = self._received.pop(entry["ReceiptHandle"], None)
            if found is not None:
                self._check_stored(*found)

    def _check_stored(self, kind: str, instance_id: str) -> None:
        self._announced[instance_id] = kind
        instance = self.facts.regions.find(instance_id)
        if instance is not None and instance.alive and not self._is_stored(kind, instance_id):
            sentence = f"the message about {instance_id} is deleted, and nothing of it is stored: {kind}"
            self.facts.violated("R12", sentence, instance_id)

    def _is_stored(self, kind: str, instance_id: str) -> bool:
        stored = self.facts.stored
        known = stored.instances.get(instance_id)
        if known is None:
            return bool(stored.root.get("announced", {}).get(instance_id, (0, 0))[list(KINDS).index(kind)])
        return known["status"] == "GONE" or bool(known[KINDS[kind]] or known["interrupted_at"])


def _announcement(body: str) -> tuple[str, str] | None:
    """Detail type and instance id, of a message that is whole."""
    if not any(kind in body for kind in KINDS):
        return None
    try:
        message = json.loads(body)
        kind, instance_id = message["detail-type"], message["detail"]["instance-id"]
    except (ValueError, KeyError, TypeError):
        return None
    return (kind, instance_id) if kind in KINDS and isinstance(instance_id, str) else None
