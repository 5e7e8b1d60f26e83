"""A run's history, copied next to its results in parts that each fit into a tick. At the close, the instances
follow."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from typing import Any

from argosy.aws.cell import Appended
from argosy.aws.errors import AWS_ERRORS, FailureKind, classify
from argosy.layout import history_part_uri, instances_uri, split_s3
from argosy.model import ended_attempts
from argosy.model.ended_attempts import EndedAttempts
from argosy.model.events import HistoryPartWritten
from argosy.model.history_parts import HistoryPart, instance_facts, to_npz
from argosy.model.packing import Unreadable
from argosy.model.runs import Run
from argosy.model.state import State

log = logging.getLogger(__name__)


class HistoryWriter:
    """Writes the parts. Raises AWS_ERRORS."""

    def __init__(self, s3: Any, appended: Appended) -> None:
        self._s3, self._appended = s3, appended

    def fold(self, run: Run) -> HistoryPartWritten | None:
        """Write the next part; None when there is nothing to write. Written twice, it is the same object."""
        items = self._appended(run.id, run.history_to)
        parts = [part for key, body in items if (part := _read(run.id, key, body)) is not None]
        if not items:
            return None
        whole, to = ended_attempts.joined(parts), items[-1][0]
        index = whole.columns["index"]
        low, high = (int(index.min()), int(index.max())) if len(whole) else (0, 0)
        self._put(history_part_uri(run.output, run.history_to, to), to_npz(whole, run.reasons))
        return HistoryPartWritten(
            run.id, run.history_to, HistoryPart(to, len(whole), low, high, len(items) - len(parts))
        )

    def note_instances(self, run: Run, state: State) -> None:
        """The instances that the run has used, as far as they are known, with those of earlier tries."""
        uri = instances_uri(run.output)
        found = {each["id"]: each for each in self._noted(uri)} if run.retries else {}
        for name in sorted(run.instances & state.instances.keys()):
            try:
                found[name] = instance_facts(state.instances[name])
            except Exception as error:  # noqa: BLE001 - our own fault: it is noted, and the run is still closed
                state.left_out.append((f"instance {name} in the history of run {run.id}", error))
        self._put(uri, json.dumps({"instances": list(found.values())}).encode())

    def _noted(self, uri: str) -> list[dict[str, Any]]:
        bucket, key = split_s3(uri)
        try:
            body = self._s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        except AWS_ERRORS as error:
            if classify(error).kind is FailureKind.NOT_FOUND:
                return []
            raise
        with suppress(ValueError, KeyError, TypeError):
            return list(json.loads(body)["instances"])
        return []

    def _put(self, uri: str, body: bytes) -> None:
        bucket, key = split_s3(uri)
        self._s3.put_object(Bucket=bucket, Key=key, Body=body)


def _read(run_id: str, key: str, body: bytes) -> EndedAttempts | None:
    """None for an item that cannot be read: the run is closed without it."""
    try:
        return ended_attempts.from_bytes(body)
    except Unreadable as fault:
        log.error("item %s of the history of run %s cannot be read: %s", key, run_id, fault)
        return None
