"""How is a run stored: its record, which is also what users are shown, and the chunks of its tasks?"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any

from argosy.model.costs import Costs
from argosy.model.policy import Policy
from argosy.model.resources import Resources
from argosy.model.runs import Failure, Run, RunStatus
from argosy.model.stance import Stance, Steering
from argosy.model.tasks import TaskTable


def encode(record: Any) -> bytes:
    return zlib.compress(json.dumps(record, separators=(",", ":")).encode(), 6)


def decode(body: bytes) -> Any:
    return json.loads(zlib.decompress(body))


_RUN_FIELDS = [
    "id",
    "number",
    "submitted_at",
    "task_count",
    "image",
    "output",
    "expects_result",
    "status_reason",
    "task_definition",
    "container",
    "prepare_after",
    "prepare_tries",
    "cancelled",
    "started_at",
    "stopped_at",
    "attempts",
    "interruptions",
    "cost_usd",
    "on_demand_cost_usd",
    "ended",
    "ended_seconds",
    "shortest_s",
    "longest_s",
    "capped_at",
    "reasons",
    "waiting",
    "reopened_at",
    "retries",
    "retried",
    "revives",
    "revived_to",
]


def run_record(run: Run) -> dict[str, Any]:
    """What is stored of a run besides its spec and tasks; also what the api shows."""
    return {
        **{name: getattr(run, name) for name in _RUN_FIELDS},
        "name": run.name,
        "status": run.status.value,
        "needs": list(run.needs),
        "host_ports": run.host_ports,
        "halted": run.halted,
        "shard_size": run.spec.get("array", {}).get("shardSize"),  # what its tasks' seconds are for
        "counts": run.tasks.counts().tolist(),
        "instances": sorted(run.instances),
        "costs": {market: costs.to_list() for market, costs in run.costs.items()},
        "budget_usd": run.budget_usd,
        "max_hourly_usd": run.max_hourly_usd,
        "drains_at_cap": run.drains_at_cap,
        "expected_s": run.expected_seconds(Policy().attempt_s),
        "purchase": run.purchase,
        "deadline_at": run.deadline_at,
        "steering": asdict(run.steering),
        "failures": [asdict(failure) for failure in run.failures],
    }


def run_from(record: Mapping[str, Any], partition: Mapping[str, bytes]) -> Run:
    """A run from its record and its partition (`SPEC` and `TASKS#...`). Raises CorruptChunk."""
    tasks = TaskTable(record["task_count"], record["halted"])
    for chunk, body in task_chunks(partition):
        tasks.unpack(chunk, body)
    return Run(
        spec=decode(partition["SPEC"]),
        tasks=tasks,
        status=RunStatus(record["status"]),
        needs=Resources(*record["needs"]),
        host_ports=tuple((number, protocol) for number, protocol in record.get("host_ports", ())),
        instances=set(record["instances"]),
        steering=_steering_from(record.get("steering", {})),
        costs={market: Costs(*row) for market, row in record.get("costs", {}).items()},
        failures=[Failure(**failure) for failure in record["failures"]],
        **{name: record[name] for name in _RUN_FIELDS if name in record},
    )


def _steering_from(record: Mapping[str, Any]) -> Steering:
    known = {field.name for field in fields(Steering)}
    values = {name: value for name, value in record.items() if name in known}
    return Steering(**{**values, "stance": Stance(values.get("stance", Stance.SPOT))})


def task_chunks(partition: Mapping[str, bytes]) -> Iterator[tuple[int, bytes]]:
    for key, body in partition.items():
        if key.startswith("TASKS#"):
            yield int(key.split("#")[1]), body
