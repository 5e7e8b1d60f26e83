"""What does a controller of the version before store and read? State format 1, and nothing that came after it.

While a new version is deployed, controllers of both work for a while. What the old one stores lacks everything that it
does not know; what the new one has stored it must refuse to read, loudly, and leave alone.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from argosy.aws.dynamodb import DynamoStore
from argosy.model import documents, packing
from argosy.model.attempts import AttemptTable
from argosy.model.tasks import TaskTable
from argosy.ports import Key

FORMER = documents.FORMAT - 1
ROOT_FIELDS = "format runs epoch next_run next_plan orphans observed_at spent_usd spent_on_demand_usd peak_cpu " \
    "peak_memory peak_gpus"  # fmt: skip
POOL_FIELDS = "cell instance_type zone fleet_id spot_target on_demand_target confirmed_spot confirmed_on_demand " \
    "spot_usd_per_hour ordered_since short_until"  # fmt: skip
INSTANCE_FIELDS = "id cell instance_type zone purchase status arn total gpu_ids attributes owned agent_connected " \
    "version price_usd_per_hour on_demand_usd_per_hour launched_at registered_at interrupted_at rebalance_at " \
    "released_at stopped_at idle_since disconnected_at strikes absent_since cordon"  # fmt: skip
RUN_FIELDS = "id number submitted_at task_count image output expects_result status_reason task_definition container " \
    "prepare_after prepare_tries cancelled started_at stopped_at attempts interruptions cost_usd on_demand_cost_usd " \
    "reasons waiting name status needs host_ports halted counts instances failures"  # fmt: skip
COLUMNS = "status run index attempt launch plan instance task_id version intended_at launched_at started_at stop_at " \
    "stop_cause gpu_mask absent_since attempts user_failures losses exit_code reason not_before committed seconds " \
    "bytes"  # fmt: skip


class FormerStore(DynamoStore):
    """The table as a controller of the version before uses it. `noticed` is called when that shows."""

    def __init__(self, client: Any, table: str, noticed: Callable[[], None]) -> None:
        super().__init__(client, table)
        self._noticed = noticed

    def read_partition(self, partition: str) -> dict[str, bytes]:
        """Raises NewerFormat, as that version's `documents.restore` does."""
        items = super().read_partition(partition)
        if partition == documents.STATE and documents.ROOT in items:
            stored = documents.decode(items[documents.ROOT])["format"]
            if stored > FORMER:
                self._noticed()
                raise documents.NewerFormat(f"state format {stored} is newer than {FORMER}")
        return items

    def commit(self, version: int, puts: Mapping[Key, bytes], deletes: Iterable[Key]) -> None:
        translated = {key: former(key, body) for key, body in puts.items()}
        super().commit(version, {key: body for key, body in translated.items() if body is not None}, deletes)
        self._noticed()


def former(key: Key, body: bytes) -> bytes | None:
    """The document as the version before writes it; None if it has no such document."""
    partition, name = key
    kind = name.partition("#")[0]
    if partition == documents.STATE and kind == documents.ROOT:
        return documents.encode({**_only(ROOT_FIELDS, documents.decode(body)), "format": FORMER})
    if partition == documents.STATE and kind in (documents.POOLS, "INSTANCES"):
        fields = POOL_FIELDS if kind == documents.POOLS else INSTANCE_FIELDS
        return documents.encode([_only(fields, record) for record in documents.decode(body)])
    if partition == documents.RUNS:
        return documents.encode(_only(RUN_FIELDS, documents.decode(body)))
    if kind in ("ATTEMPTS", "TASKS"):
        return archive(body)
    return body if partition != documents.STATE else None


def archive(chunk: bytes) -> bytes:
    """A chunk of columns as an .npz archive behind its checksum, as state format 1 has it. No column is cut short."""
    rows, columns = packing.unpack(chunk)
    known = {name: values for name, values in columns.items() if name in COLUMNS.split()}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **{name: _whole(name, known[name], rows) for name in known})
    return zlib.crc32(buffer.getvalue()).to_bytes(4, "big") + buffer.getvalue()


def _whole(name: str, values: Any, rows: int) -> Any:
    """All rows; the last ones are defaults, which both tables agree on."""
    _, default = {**TaskTable.schema, **AttemptTable.schema}[name]
    return np.concatenate([values, np.full(rows - len(values), default, values.dtype)])


def _only(fields: str, record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: record[name] for name in fields.split() if name in record}
