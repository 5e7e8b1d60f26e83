"""The attempts of a run, and of one task.

All of it is read from what commits have appended; the controller is not involved.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from argosy import layout
from argosy.api import reading
from argosy.api.views import iso, reason_of
from argosy.model import ended_attempts
from argosy.model.arns import arn_of, cell_of
from argosy.model.attempts import AttemptStatus
from argosy.model.ended_attempts import TENTHS, EndedAttempt, EndedAttempts, Outcome
from argosy.model.history_parts import ROWS_PER_PART, NoPart, from_npz
from argosy.model.instances import Instance
from argosy.model.packing import Unreadable
from argosy.model.run_record import RunRecord
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.tasks import NO_EXIT_CODE
from argosy.ports import DefinitionReader, ItemsUnreadable, ObjectReader, Store

JSON = dict[str, Any]
logger = logging.getLogger(__name__)
MOST_ROWS = ROWS_PER_PART  # of a page; 4.3 MB in base64, and Lambda answers with 6 MB at most
MOST_ATTEMPTS = 2_000  # of a task, the last ones: 1,200 bytes each at most
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
    ("pulled", "<u4", "pulled"),
    ("program", "<u1", "program"),
    ("amends", "<u1", "amends"),
)


class AttemptPage(NamedTuple):
    """end: the place after its last row that has ended. left_out: live attempts that do not fit."""

    rows: EndedAttempts
    end: str | None
    is_last: bool
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class History:
    """Where a run's rows are: in parts next to its results, the later ones in items of the store. damaged: the items
    that could not be read so far."""

    store: Store
    objects: ObjectReader
    record: RunRecord
    damaged: set[str] = field(default_factory=set)

    def page(self, after: str | None) -> AttemptPage:
        """The rows after a place, at most MOST_ROWS."""
        parts = self.record.history
        for number, part in enumerate(parts):
            if after is None or part.to > after:
                folded = self._part(number, after or "")
                if number < len(parts) - 1:
                    return AttemptPage(folded, part.to, is_last=False)
                rest = self._appended(part.to, MOST_ROWS - len(folded))
                return rest._replace(rows=ended_attempts.joined([folded, rest.rows]))
        return self._appended(after, MOST_ROWS)

    def of_task(self, index: int) -> EndedAttempts:
        """In the order of their ends. Parts that have no row of the task are not read."""
        parts, after = self.record.history, None
        found = [self._part(number) for number, part in enumerate(parts) if part.low <= index <= part.high]
        after = parts[-1].to if parts else None
        while True:
            page = self._appended(after, MOST_ROWS)
            found.append(page.rows)
            if page.is_last:
                return ended_attempts.joined(each.where(each.columns["index"] == index) for each in found)
            after = page.end

    def _part(self, number: int, after: str = "") -> EndedAttempts:
        """The part of it after a place. From the items themselves, as long as they exist, if the object is gone or
        damaged, or if the place is within the part because that was not folded yet when the previous page was read."""
        part, begin = self.record.history[number], self.record.history[number - 1].to if number else ""
        self.damaged.update(f"item {row} of part {part.to}" for row in range(part.damaged))
        if after > begin:
            return self._appended(after, MOST_ROWS, part.to).rows
        try:
            return from_npz(self.objects.fetch(layout.history_part_uri(self.record.output, begin, part.to)))
        except (ItemsUnreadable, NoPart):
            found = self._appended(begin or None, MOST_ROWS, part.to).rows
            if len(found) < part.rows:
                self.damaged.add(f"part {part.to}")
            return found

    def _appended(self, after: str | None, most: int, until: str = "~") -> AttemptPage:
        """The rows of the items after one place and up to another, at most that many, but of at least one item."""
        parts: list[EndedAttempts] = []
        partition = documents.history_partition(self.record.id)
        while True:
            items, following = self.store.page(partition, reading.ITEMS_AT_ONCE, after, oldest_first=True)
            for key, body in items:
                if key > until:
                    return AttemptPage(ended_attempts.joined(parts), after, is_last=True)
                part = self._rows_of(key, body)
                is_first = not parts and most == MOST_ROWS
                if sum(map(len, parts)) + len(part) > most and not is_first:
                    return AttemptPage(ended_attempts.joined(parts), after, is_last=False)
                parts.append(part)
                after = key
            if following is None:
                return AttemptPage(ended_attempts.joined(parts), after, is_last=True)

    def _rows_of(self, key: str, body: bytes) -> EndedAttempts:
        """None from an item that cannot be read: the rest of the run is still shown."""
        try:
            return ended_attempts.from_bytes(body)
        except Unreadable as fault:
            logger.error("item %s of the history of run %s cannot be read: %s", key, self.record.id, fault)
            self.damaged.add(f"item {key}")
            return ended_attempts.from_rows([])


def attempts_page(past: History, after: str | None, most: int = MOST_ROWS) -> AttemptPage:
    """Live attempts are on the last page, after all ended ones: the cluster is read before the last ended ones, so that
    no attempt is missing from both. If both do not fit, the live ones have a page to themselves. most: rows, including
    the live ones."""
    record, ended = past.record, past.page(after)
    if not ended.is_last or record.has_ended or not record.number:
        return ended
    live = live_attempts(reading.cluster(past.store)[0], record)
    ended = past.page(after)
    columns = ended.rows.columns
    known = set(zip(columns["index"].tolist(), columns["attempt"].tolist(), strict=True))
    live = [row for row in live if row[:2] not in known]
    if not ended.is_last or (known and len(ended.rows) + len(live) > most):
        return ended._replace(is_last=False)
    rows = ended_attempts.joined([ended.rows, ended_attempts.from_rows(live[:most])])
    return ended._replace(rows=rows, left_out=max(0, len(live) - most))


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
            pull_s=table.pull_s(row),
            program=int(table["program"][row]),
        )
        for row in rows.tolist()
    ]


def attempts_view(record: RunRecord, version: int, page: AttemptPage, damaged: int) -> JSON:
    """ListAttempts' body, without the token. Times are tenths of a second after `origin`, 0 = not known."""
    origin, ended = record.submitted_at, page.rows
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
        "leftOut": page.left_out,
        "damaged": damaged,
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
        "reason": reason_of(record, row.reason),
        "gpus": [bit for bit in range(32) if row.gpu_mask >> bit & 1],
        "gpuIds": _gpu_ids(instance, row.gpu_mask),
        "startUp": _start_up(record, row, instance),
        "region": region or None,
        "program": row.program + 1 if record.programs else None,
        "logGroup": log["group"],
        "logStream": stream,
    }


def _start_up(record: RunRecord, row: EndedAttempt, instance: Instance | None) -> JSON:
    """The parts of its start as in PlanRun's `startUp`; None = not known, or not over yet. usd: its part of its
    instance while it pulled and started. bootSeconds: of its instance, whether or not it waited for that."""
    started = row.launched_at and row.started_at
    waited_s = max(row.pull_s, row.started_at - row.launched_at) if started else None
    booted = instance is not None and instance.registered_at > instance.launched_at > 0
    usd_per_s = None if instance is None else instance.price_usd_per_hour * record.needs.share_of(instance.size) / 3600
    return {
        "bootSeconds": instance.registered_at - instance.launched_at if instance is not None and booted else None,
        "pullSeconds": row.pull_s if started and row.pull_s else None,
        "startSeconds": None if waited_s is None else waited_s - row.pull_s,
        "usd": None if waited_s is None or usd_per_s is None else waited_s * usd_per_s,
    }


def log_of(record: RunRecord, definitions: DefinitionReader) -> dict[str, str | None]:
    """Group and prefix of the streams of the run's attempts. A user's own definition sets it; for one that Argosy
    registered it is the deployment's group, None."""
    if record.image or not record.task_definition:
        return {"group": None, "prefix": layout.LOG_PREFIX}
    name = record.task_definition.rsplit("/", 1)[-1]
    found = definitions.describe(name) or {}
    for container in found.get("containerDefinitions", ()):
        if container["name"] == record.container:
            options = container.get("logConfiguration", {}).get("options", {})
            return {"group": options.get("awslogs-group"), "prefix": options.get("awslogs-stream-prefix")}
    return {"group": None, "prefix": layout.LOG_PREFIX}


def _gpu_ids(instance: Instance | None, mask: int) -> list[str]:
    return [gpu for bit, gpu in enumerate(instance.gpu_ids if instance else ()) if mask >> bit & 1]
