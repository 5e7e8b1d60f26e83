"""What has happened to a run: its attempts, one task's attempts, its course, its instances and its failures?

All of it is read from what commits have appended; the controller is never asked.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy import layout
from argosy.api import reading
from argosy.api.views import iso
from argosy.model import documents, ended_attempts
from argosy.model.arns import arn_of, cell_of
from argosy.model.attempts import AttemptStatus
from argosy.model.ended_attempts import TENTHS, EndedAttempt, EndedAttempts, Outcome
from argosy.model.failure_groups import FailureGroup
from argosy.model.history_parts import ROWS_PER_PART, NoPart, from_npz, instance_facts
from argosy.model.instances import Instance
from argosy.model.packing import Unreadable
from argosy.model.run_record import RunRecord
from argosy.model.series import Sample, Series
from argosy.model.state import State
from argosy.model.tasks import NO_EXIT_CODE
from argosy.ports import DefinitionReader, ItemsUnreadable, ObjectReader, Store

JSON = dict[str, Any]
logger = logging.getLogger(__name__)
MOST_ROWS = ROWS_PER_PART  # of a page; 4.3 MB in base64, and Lambda answers with 6 MB at most
OTHER_REASONS = "(other reasons)"
LOG_PREFIX, OWN_CONTAINER = "argosy", "main"  # of the definitions that Argosy registers
ALIVE = 0  # in place of an Outcome
_COLUMNS = (  # of a reply: name, dtype, column of `EndedAttempts`
    ("index", "<u4", "index"),
    ("attempt", "<u2", "attempt"),
    ("instance", "<u4", "instance"),
    ("launched", "<u4", "launched"),
    ("started", "<u4", "started"),
    ("stopped", "<u4", "stopped"),
    ("outcome", "<u1", "outcome"),
    ("exitCode", "<i2", "exit_code"),
    ("reason", "<u2", "reason"),
    ("gpuMask", "<u4", "gpu_mask"),
    ("amends", "<u1", "amends"),
)
_COUNTS = ("queued", "starting", "running", "succeeded", "failed", "cancelled", "instances")
_SPENT = {"useful": "useful", "boot": "boot", "idle": "idle", "redone": "redone", "failed": "failed_usd"}


class _NoObjects:
    def fetch(self, uri: str) -> bytes:
        raise ItemsUnreadable(f"{uri} is out of reach")


NO_OBJECTS = _NoObjects()


@dataclass(frozen=True, slots=True)
class History:
    """Where a run's rows are: in parts beside its results, the later ones in items of the store."""

    store: Store
    objects: ObjectReader
    record: RunRecord

    def page(self, after: str | None) -> tuple[EndedAttempts, str | None]:
        """The rows after a place, at most MOST_ROWS, and the place where the next page starts; None = that was all."""
        parts = self.record.history
        for number, part in enumerate(parts):
            if after is None or part.to > after:
                folded = self._part(number, after or "")
                if number < len(parts) - 1:
                    return folded, part.to
                rest, following = self._appended(part.to, MOST_ROWS - len(folded))
                return ended_attempts.joined([folded, rest]), following
        return self._appended(after, MOST_ROWS)

    def of_task(self, index: int) -> EndedAttempts:
        """In the order of their ends. Parts that have no row of the task are not read."""
        parts, after = self.record.history, None
        found = [self._part(number) for number, part in enumerate(parts) if part.low <= index <= part.high]
        after = parts[-1].to if parts else None
        while True:
            page, following = self._appended(after, MOST_ROWS)
            found.append(page)
            if following is None:
                return ended_attempts.joined(each.where(each.columns["index"] == index) for each in found)
            after = following

    def _part(self, number: int, after: str = "") -> EndedAttempts:
        """What of it follows a place. From the items themselves, as long as there are any, where the object is gone or
        damaged; or where the place lies within, because the part was not folded yet when the page before was read."""
        begin = self.record.history[number - 1].to if number else ""
        end = self.record.history[number].to
        if after > begin:
            return self._appended(after, MOST_ROWS, end)[0]
        try:
            return from_npz(self.objects.fetch(layout.history_part_uri(self.record.output, begin, end)))
        except (ItemsUnreadable, NoPart):
            return self._appended(begin or None, MOST_ROWS, end)[0]

    def _appended(self, after: str | None, most: int, until: str = "~") -> tuple[EndedAttempts, str | None]:
        """The rows of items after one and up to another, at most so many; of a whole page one item in any case."""
        parts: list[EndedAttempts] = []
        partition = documents.history_partition(self.record.id)
        while True:
            items, following = self.store.page(partition, reading.ITEMS_AT_ONCE, after, oldest_first=True)
            for key, body in items:
                if key > until:
                    return ended_attempts.joined(parts), None
                part = _rows_of(self.record.id, key, body)
                is_first = not parts and most == MOST_ROWS
                if sum(map(len, parts)) + len(part) > most and not is_first:
                    return ended_attempts.joined(parts), after
                parts.append(part)
                after = key
            if following is None:
                return ended_attempts.joined(parts), None


def _rows_of(run_id: str, key: str, body: bytes) -> EndedAttempts:
    """None from an item that cannot be read: what else is known of the run is shown all the same."""
    try:
        return ended_attempts.from_bytes(body)
    except Unreadable as fault:
        logger.error("item %s of the history of run %s cannot be read: %s", key, run_id, fault)
        return ended_attempts.from_rows([])


def attempts_page(past: History, after: str | None) -> tuple[EndedAttempts, str | None]:
    """With those that are alive, after all that have ended: the cluster is read before the last of the ended ones, so
    that none is missing from both."""
    record = past.record
    ended, following = past.page(after)
    if following is not None or record.has_ended or not record.number:
        return ended, following
    live = live_attempts(reading.cluster(past.store)[0], record)
    ended, following = past.page(after)
    if following is not None:
        return ended, following
    known = set(zip(ended.columns["index"].tolist(), ended.columns["attempt"].tolist(), strict=True))
    return ended_attempts.joined([ended, ended_attempts.from_rows([row for row in live if row[:2] not in known])]), None


def live_attempts(state: State, record: RunRecord) -> list[EndedAttempt]:
    """Attempts that ECS has a task for and that have not ended, as rows without an end."""
    table = state.attempts
    rows = table.of_run(record.number)
    rows = rows[table.has_status(AttemptStatus.LAUNCHED, AttemptStatus.RUNNING)[rows]]
    return [
        EndedAttempt(
            index=int(table["index"][row]),
            attempt=int(table["attempt"][row]),
            outcome=ALIVE,  # type: ignore[arg-type]
            instance=bytes(table["instance"][row]).decode(),
            cell=instance.cell if (instance := state.instance_of(row)) else "",
            task_id=bytes(table["task_id"][row]).decode(),
            launched_at=float(table["launched_at"][row]),
            started_at=float(table["started_at"][row]),
            gpu_mask=int(table["gpu_mask"][row]),
        )
        for row in rows.tolist()
    ]


def attempts_view(record: RunRecord, version: int, ended: EndedAttempts) -> JSON:
    """ListAttempts' body, without the token. Times are tenths of a second after `origin`, 0 = not known."""
    origin = record.submitted_at
    shift = round((ended.origin - origin) * TENTHS)
    columns = {}
    for name, dtype, source in _COLUMNS:
        values = ended.columns[source].astype("i8")
        if name in ("launched", "started", "stopped"):
            values = np.where(values > 0, np.maximum(1, values + shift), 0)
        limits = np.iinfo(dtype)
        data = np.clip(values, limits.min, limits.max).astype(dtype).tobytes()
        columns[name] = {"dtype": dtype, "data": base64.b64encode(data).decode()}
    return {
        "runId": record.id,
        "asOf": version,
        "origin": origin,
        "rows": len(ended),
        "columns": columns,
        "instances": [instance for instance, _ in ended.places],
        "reasons": list(record.reasons),
    }


def attempts_of_task(past: History, index: int) -> list[EndedAttempt]:
    """Oldest first, the one that is alive last."""
    record = past.record
    live = [row for row in live_attempts(reading.cluster(past.store)[0], record) if row.index == index]
    ended = sorted(past.of_task(index).rows(), key=lambda row: row.attempt)
    return [*ended, *(row for row in live if all(row.attempt != each.attempt for each in ended))]


def task_view(record: RunRecord, row: EndedAttempt, cluster: str, log: Mapping[str, str | None], state: State) -> JSON:
    """One of `attempts` of DescribeTask's body. logGroup null = the deployment's own."""
    account = record.task_definition.split(":")[4] if cell_of(record.task_definition) else ""
    region = row.cell or cell_of(record.task_definition)
    arn = arn_of("ecs", region, account, f"task/{cluster}/{row.task_id}") if row.task_id and account else None
    instance = state.instances.get(row.instance)
    stream = f"{log['prefix']}/{record.container}/{row.task_id}" if row.task_id and log["prefix"] else None
    return {
        "attempt": row.attempt,
        "taskArn": arn,
        "taskId": row.task_id or None,
        "instance": row.instance or None,
        "launchedAt": iso(row.launched_at),
        "startedAt": iso(row.started_at),
        "stoppedAt": iso(row.stopped_at),
        "outcome": None if row.outcome == ALIVE else Outcome(row.outcome).name,
        "exitCode": None if row.exit_code == NO_EXIT_CODE else row.exit_code,
        "reason": _reason(record, row.reason),
        "gpus": [bit for bit in range(32) if row.gpu_mask >> bit & 1],
        "gpuIds": _gpu_ids(instance, row.gpu_mask),
        "region": region or None,
        "logGroup": log["group"],
        "logStream": stream,
    }


def log_of(record: RunRecord, definitions: DefinitionReader) -> dict[str, str | None]:
    """Group and prefix of the streams of the run's attempts. A definition of the user's own says it; of one that
    Argosy registered the group is the deployment's, None."""
    if record.image or not record.task_definition:
        return {"group": None, "prefix": LOG_PREFIX}
    name = record.task_definition.rsplit("/", 1)[-1]
    found = definitions.describe(name) or {}
    for container in found.get("containerDefinitions", ()):
        if container["name"] == record.container:
            options = container.get("logConfiguration", {}).get("options", {})
            return {"group": options.get("awslogs-group"), "prefix": options.get("awslogs-stream-prefix")}
    return {"group": None, "prefix": LOG_PREFIX}


def _gpu_ids(instance: Instance | None, mask: int) -> list[str]:
    return [gpu for bit, gpu in enumerate(instance.gpu_ids if instance else ()) if mask >> bit & 1]


def _reason(record: RunRecord, row: int) -> str | None:
    return (record.reasons[row] if 0 <= row < len(record.reasons) else OTHER_REASONS) or None


def series_of(store: Store, run_id: str) -> Series:
    """Empty where there is none, or none that can be read."""
    body = store.read((documents.run_partition(run_id), documents.SERIES))
    try:
        return Series() if body is None else Series.unpack(body)
    except Unreadable:
        return Series()


def history_view(record: RunRecord, version: int, series: Series, instances: Iterable[JSON]) -> JSON:
    """DescribeHistory's body."""
    return {
        "runId": record.id,
        "asOf": version,
        "origin": record.submitted_at,
        "series": _series_view(series),
        "instances": list(instances),
        "orders": [],
        "failures": [_group_view(record, group) for group in sorted(record.failure_groups, key=lambda each: -each[2])],
    }


def _series_view(series: Series) -> JSON:
    """Lists of one length; `at` in epoch seconds, money in USD spent until then."""
    columns = dict(zip(Sample._fields, map(list, zip(*series.samples, strict=True)), strict=False))
    columns = {name: columns.get(name, []) for name in Sample._fields}
    return {
        "intervalSeconds": series.interval_s,
        "at": columns["at"],
        **{name: columns[name] for name in _COUNTS},
        "usdPerHour": columns["usd_per_hour"],
        "onDemandUsd": columns["on_demand"],
        "cost": {kind: columns[name] for kind, name in _SPENT.items()},
    }


def instances_of(store: Store, objects: ObjectReader, record: RunRecord) -> list[JSON]:
    """Those that the run has used: as the cluster knows them, and those that it has forgotten as they were noted when
    the run was closed."""
    state = reading.cluster(store)[0]
    found = {name: instance_facts(state.instances[name]) for name in record.instances if name in state.instances}
    if len(found) < len(record.instances) and (record.has_ended or record.retries):
        with suppress(ItemsUnreadable, ValueError, KeyError, TypeError):
            noted = json.loads(objects.fetch(layout.instances_uri(record.output)))["instances"]
            found = {each["id"]: each for each in noted} | found
    return [_instance_view(each) for _, each in sorted(found.items())]


def _instance_view(facts: Mapping[str, Any]) -> JSON:
    """One of `instances` of DescribeHistory's body."""
    return {**facts, **{name: iso(facts[name]) for name in ("launchedAt", "registeredAt", "warnedAt", "endedAt")}}


def _group_view(record: RunRecord, group: FailureGroup) -> JSON:
    return {
        "reason": _reason(record, group.reason),
        "exitCode": None if group.exit_code == NO_EXIT_CODE or group.reason < 0 else group.exit_code,
        "count": group.count,
        "firstIndex": group.first_index,
        "lastIndex": group.last_index,
        "firstAt": iso(group.first_at),
        "lastAt": iso(group.last_at),
    }
