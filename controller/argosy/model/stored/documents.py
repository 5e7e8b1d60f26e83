"""How is the state stored as items, and read back?

Partitions: `STATE` (root, pools, instances in 16 buckets, attempt chunks), `RUNS` (one small record per run, sort key
by time, also shown to users), `RUN#<id>` (the spec once, task chunks that were ever touched, the run's series),
`HISTORY#<id>` (attempts that ended, by version: only appended to), `COURSE` (the cluster's history, the same).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass, fields, replace
from typing import Any

from argosy.model import cluster_history, ended_attempts
from argosy.model.cluster_history import ClusterHistoryPiece, cluster_history_key
from argosy.model.costs import NO_WORK, Costs
from argosy.model.damage import FORMAT, Damage, UnreadableState, check_format, tried
from argosy.model.host_care import SELDOM
from argosy.model.instances import Instance, InstanceStatus, Purchase
from argosy.model.packing import Unreadable
from argosy.model.pools import Floor, OrderNote, Pool
from argosy.model.readings import Readings
from argosy.model.resources import Resources, as_stored
from argosy.model.run_record import RunRecord
from argosy.model.run_terms import spec_and_terms, with_terms
from argosy.model.runs import Run, sort_key
from argosy.model.series import Series
from argosy.model.setbacks import Setback, Subject
from argosy.model.shares.recent_use import RECENT_USE
from argosy.model.shares.sharing import SHARING, Sharing
from argosy.model.state import State
from argosy.model.stored.environments import ENVIRONMENT, environment_records, environments_in
from argosy.model.stored.sharing import all_sharing_in, sharing_bodies
from argosy.model.suspensions import Suspension
from argosy.model.tasks import TaskTable

STATE, RUNS = "STATE", "RUNS"
DAMAGED = "DAMAGED"  # partition of unreadable records, byte for byte: kept for a person to restore
ROOT, POOLS = "ROOT", "POOLS"
SPEC, SERIES = "SPEC", "SERIES"  # of a run's partition
INSTANCE_BUCKETS = 16
Documents = dict[tuple[str, str], bytes]


def encode(document: Any) -> bytes:
    """Compressed JSON."""
    return zlib.compress(json.dumps(document, separators=(",", ":")).encode(), 6)


def decode(body: bytes) -> Any:
    """Raises one of `damage.FAULTS` for bytes that `encode` did not write."""
    return json.loads(zlib.decompress(body))


def record_from(body: bytes) -> RunRecord:
    """A run's record in its stored form. Raises one of `damage.FAULTS`."""
    return RunRecord.from_json(decode(body))


def run_from(record: RunRecord, partition: Mapping[str, bytes]) -> Run:
    """A run from its record and its partition (`SPEC` and `TASKS#...`). Raises one of `damage.FAULTS`."""
    tasks = TaskTable(record.task_count, record.halted)
    for key, body in partition.items():
        if key.startswith("TASKS#"):
            tasks.unpack(int(key.split("#")[1]), body)
    run = record.to_run(*spec_and_terms(decode(partition[SPEC])), tasks)
    with suppress(Unreadable):  # it only shows the past: the run continues without it
        run.series = Series.unpack(partition[SERIES]) if SERIES in partition else run.series
    return run


def partition_of(run: Run) -> dict[str, bytes]:
    """The input of `run_from`, for a run in the store."""
    chunks = {task_chunk(number): run.tasks.pack(number) for number in sorted(run.tasks.packed_bytes)}
    series = {SERIES: run.series.pack()} if run.series.samples else {}
    return {SPEC: _spec_of(run), **series, **chunks}


def _spec_of(run: Run) -> bytes:
    return encode(with_terms(run.spec, run.submitted_terms))


def run_partition(run_id: str) -> str:
    return f"RUN#{run_id}"


def partition_keys(record: RunRecord) -> list[tuple[str, str]]:
    """Every document that a run's partition may have. Chunks of tasks that were never touched do not exist."""
    partition = run_partition(record.id)
    chunks = range(-(-record.task_count // TaskTable.chunk_rows))
    return [(partition, SPEC), (partition, SERIES), *((partition, task_chunk(number)) for number in chunks)]


def history_partition(run_id: str) -> str:
    return f"HISTORY#{run_id}"


def history_key(version: int, number: int = 0) -> str:
    """The sort key of the documents that the commit of this version appends; it sorts like versions."""
    return f"{version:012d}" + (f"#{number}" if number else "")


def task_chunk(number: int) -> str:
    return f"TASKS#{number:05d}"


_ROOT_FIELDS = [
    "epoch",
    "lines_at",
    "next_run",
    "next_wave",
    "orphans",
    "unused_definitions",
    "observed_at",
    "spent_usd",
    "spent_on_demand_usd",
    "interruptions",
    "sampled_at",
    "sampled_at_rest",
    "busy_since",
    "peak_cpu",
    "peak_memory",
    "peak_gpus",
    "announced",
]


def changed(state: State) -> Documents:
    """Every document that differs from the last commit. The root is always among them: it names the active runs."""
    documents: Documents = {(STATE, ROOT): encode(_root(state))}
    if state.changed_pools:
        documents[STATE, POOLS] = encode([_record_of(pool, _POOL_FIELDS) for pool in state.pools.values()])
    for bucket, members in _changed_buckets(state).items():
        documents[STATE, f"INSTANCES#{bucket:02d}"] = encode(members)
    for chunk in sorted(state.attempts.dirty):
        documents[STATE, f"ATTEMPTS#{chunk:04d}"] = state.attempts.pack(chunk)
    for run_id in sorted(state.new_runs):
        documents[run_partition(run_id), SPEC] = _spec_of(state.runs[run_id])
    for run_id, record in state.quarantined.items():
        documents[RUNS, sort_key(run_id)] = encode(record.to_json())
    for name, body in state.damaged.items():
        documents[DAMAGED, name] = body
    if state.changed_environments or state.gone_environments:
        documents |= {(STATE, key): encode(record) for key, record in environment_records(state)}
    if state.changed_sharing or state.changed_recent_use:
        documents |= {(STATE, key): body for key, body in sharing_bodies(state)}
    return documents | _changed_runs(state) | _history(state) | _cluster_history(state)


def _changed_runs(state: State) -> Documents:
    """Records and chunks of tasks."""
    documents: Documents = {}
    for run_id, run in state.runs.items():
        if run_id in state.changed_runs or run.tasks.dirty:
            documents[RUNS, sort_key(run_id)] = encode(RunRecord.of(run).to_json())
        for chunk in sorted(run.tasks.dirty):
            documents[run_partition(run_id), task_chunk(chunk)] = run.tasks.pack(chunk)
        if run.series.dirty:
            documents[run_partition(run_id), SERIES] = run.series.pack()
    return documents


def _history(state: State) -> Documents:
    """The appended documents: each commit has its own keys."""
    return {
        (history_partition(run_id), history_key(state.version + 1, number)): body
        for run_id, rows in state.ended.items()
        for number, body in enumerate(ended_attempts.pack(rows))
    }


def _cluster_history(state: State) -> Documents:
    """The commit's records about the cluster."""
    piece = ClusterHistoryPiece(state.sample, state.orders)
    times = [order.at for order in state.orders] + ([state.sample.at] if state.sample else [])
    if not times:
        return {}
    return {(cluster_history.PARTITION, cluster_history_key(max(times), state.version + 1)): encode(piece.to_json())}


def _changed_buckets(state: State) -> dict[int, list[dict[str, Any]]]:
    """By bucket with a changed instance, the records of all its instances. One pass over thousands of instances."""
    buckets = {_bucket(instance_id) for instance_id in state.changed_instances} | state.losses.buckets
    members: dict[int, list[dict[str, Any]]] = {bucket: [] for bucket in sorted(buckets)}
    for instance in state.instances.values() if buckets else ():
        if (bucket := _bucket(instance.id)) in members:
            members[bucket].append(_record_of(instance, _INSTANCE_FIELDS))
    return members


def committed(state: State) -> None:
    """Clear the marks of changes, and drop the closed runs: all of it is stored now."""
    state.version += 1
    state.committed.note_instances(state.instances, state.changed_instances)
    state.committed.note_orders(state.pools, state.last_order, state.floor)
    for run_id in state.changed_runs & state.runs.keys():
        state.runs[run_id].committed = state.runs[run_id].facts()
    state.attempts.committed()
    for run in state.runs.values():
        run.tasks.committed()
        run.series.dirty = False
    for run_id in [run.id for run in state.runs.values() if run.done]:
        del state.runs[run_id]
    state.new_runs.clear()
    state.changed_runs.clear()
    state.changed_instances.clear()
    state.changed_pools = state.changed_sharing = state.changed_recent_use = False
    for env in state.environments.values():
        env.committed = env.facts()
    state.changed_environments.clear()
    state.gone_environments.clear()
    state.ended.clear()
    state.orders.clear()
    state.sample = None
    state.quarantined.clear()
    state.damaged.clear()
    state.losses.buckets.clear()


@dataclass(frozen=True, slots=True)
class StoredItems:
    """The state in the store. runs: by id, the stored record and partition of each active run."""

    version: int
    items: Mapping[str, bytes]
    runs: Mapping[str, tuple[bytes, Mapping[str, bytes]]]

    def state(self) -> State:
        """A new state at each call. Raises NewerFormat, OlderFormat, UnreadableState."""
        return restore(self.version, self.items, self.runs)


def restore(
    version: int, items: Mapping[str, bytes], read_run: Mapping[str, tuple[bytes, Mapping[str, bytes]]]
) -> State:
    """The state of a version from the `STATE` partition and, for each active run, its record and partition.

    Unreadable documents are left out and named in `losses`. Raises NewerFormat, OlderFormat; UnreadableState when the
    root itself cannot be read.
    """
    state = State(version=version, lines_at=version)  # where the root does not say: earlier versions had no lines
    root = _read_root(items)
    for name in root.keys() & {*_ROOT_FIELDS}:
        setattr(state, name, root[name])
    state.unattributed = Costs(*root.get("unattributed", ()))
    state.last_order = OrderNote.from_json(root.get("last_order", {}))
    state.floor = Floor.from_json(root.get("floor", {}))
    state.readings = Readings.from_json(root.get("readings", {}))
    state.setbacks = {
        subject: Setback(*setback)
        for text, setback in root.get("setbacks", {}).items()
        if (subject := Subject.from_text(text)) is not None
    }
    _restore_capacity(state, items)
    environments = environments_in(items) if any(key.startswith(ENVIRONMENT) for key in items) else ()
    sharing = all_sharing_in(items) if items.keys() & {SHARING, RECENT_USE} else ()
    for each in (*environments, *sharing):
        if isinstance(each, Damage):
            state.losses.found.append(each)
            state.losses.kept.add(each.document)
        elif isinstance(each, Sharing):
            state.sharing = each
        else:
            state.environments[each.name] = each
    state.committed.note_instances(state.instances, state.instances)
    state.committed.note_orders(state.pools, state.last_order, state.floor)
    for run_id in root["runs"]:
        found = _restored_run(run_id, read_run.get(run_id), root.get("suspended", {}).get(run_id))
        if isinstance(found, Suspension):
            state.suspend(run_id, found)
        elif isinstance(found, Damage):
            state.losses.found.append(found)
            state.losses.runs.append(found)
            state.losses.attempts = True
        else:
            state.open(found)
    _restore_attempts(state, items)
    return state


def active_runs(items: Mapping[str, bytes]) -> list[str]:
    """Raises UnreadableState, NewerFormat, OlderFormat."""
    return list(_read_root(items)["runs"])


def _read_root(items: Mapping[str, bytes]) -> dict[str, Any]:
    if not items.keys() & {ROOT, POOLS}:  # the api's documents may be there before the first commit
        return {"format": FORMAT, "runs": []}
    root = tried("root of the state", lambda: {"runs": [], **decode(items[ROOT])})
    if isinstance(root, Damage) or not isinstance(root.get("format"), int):
        why = root.sentence if isinstance(root, Damage) else "the root of the state names no format"
        raise UnreadableState(f"{why}; nothing is changed until it is restored (docs/guides/operations.md)")
    check_format(root["format"])
    return root


def _root(state: State) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "runs": [
            *(run.id for run in state.runs.values() if not run.done),
            *(damage.run_id for damage in state.losses.runs),
            *state.suspended,
        ],
        "suspended": {
            run_id: [found.reason, found.since, found.again_at, found.times]
            for run_id, found in state.suspended.items()
        },
        **{name: getattr(state, name) for name in _ROOT_FIELDS},
        "unattributed": state.unattributed.to_list(),
        "last_order": state.last_order.to_json(),
        "floor": state.floor.to_json(),
        "readings": state.readings.to_json(),
        "setbacks": {subject.to_text(): astuple(setback) for subject, setback in state.lasting_setbacks().items()},
    }


def _restored_run(
    run_id: str, stored: tuple[bytes, Mapping[str, bytes]] | None, suspended: list[Any] | None
) -> Run | Suspension | Damage:
    """suspended: the members of its `Suspension` next to the record. Nothing else of such a run is read."""
    if stored is None:
        return Damage(f"record of {run_id}", "it is missing", run_id)
    record = tried(f"record of {run_id}", lambda: record_from(stored[0]), run_id)
    if isinstance(record, Damage):
        return replace(record, body=stored[0])
    if suspended is not None:
        return Suspension(record, *suspended)
    return tried(f"state of {run_id}", lambda: run_from(record, stored[1]), run_id, record)


def _bucket(instance_id: str) -> int:
    return zlib.crc32(instance_id.encode()) % INSTANCE_BUCKETS


_INSTANCE_FIELDS = dict.fromkeys(field.name for field in fields(Instance))
_POOL_FIELDS = dict.fromkeys(field.name for field in fields(Pool))


def _record_of(thing: Instance | Pool, names: Iterable[str]) -> dict[str, Any]:
    return as_stored((name, value) for name in names if (value := getattr(thing, name)) or name not in SELDOM)


def _instance_from(record: Mapping[str, Any]) -> Instance:
    values = {name: value for name, value in record.items() if name in _INSTANCE_FIELDS}
    values["status"] = InstanceStatus(values["status"])
    values["purchase"] = Purchase(values["purchase"])
    for name in ("total", "foreign", "foreign_seen"):
        values[name] = Resources(*values.get(name, ()))
    values["gpu_ids"] = tuple(values["gpu_ids"])
    values["foreign_shares"] = tuple(values.get("foreign_shares", ()))
    for name, least in (("work", NO_WORK), ("waiting", ())):  # it may be from before the last kind of work existed
        values[name] = {int(run): [*each, *least[len(each) :]] for run, each in values.get(name, {}).items()}
    return Instance(**values)


def _restore_capacity(state: State, items: Mapping[str, bytes]) -> None:
    """Leave out unreadable instances and fleets: EC2 and ECS show them again in the next sweep."""
    pools = tried("list of fleets", lambda: _pools_from(items))
    if isinstance(pools, Damage):
        state.losses.found.append(pools)
        state.losses.blind = state.changed_pools = True
    else:
        state.pools = pools
    for key in sorted(items):
        if key.startswith("INSTANCES#"):
            _restore_bucket(state, key, items[key])


def _pools_from(items: Mapping[str, bytes]) -> dict[str, Pool]:
    known = {field.name for field in fields(Pool)}
    stored = decode(items[POOLS]) if POOLS in items else []
    pools = [Pool(**{name: value for name, value in record.items() if name in known}) for record in stored]
    return {pool.key: pool for pool in pools}


def _restore_bucket(state: State, key: str, body: bytes) -> None:
    instances = tried(key, lambda: [_instance_from(record) for record in decode(body)])
    if isinstance(instances, Damage):
        state.losses.found.append(instances)
        state.losses.buckets.add(int(key.split("#")[1]))
        state.losses.blind = True
    else:
        state.instances |= {instance.id: instance for instance in instances}


def _restore_attempts(state: State, items: Mapping[str, bytes]) -> None:
    chunks = {int(key.split("#")[1]): body for key, body in items.items() if key.startswith("ATTEMPTS#")}
    if chunks:
        state.attempts.grow((max(chunks) + 1) * state.attempts.chunk_rows)
    for chunk, body in chunks.items():
        damage = tried(f"ATTEMPTS#{chunk:04d}", lambda chunk=chunk, body=body: state.attempts.unpack(chunk, body))  # type: ignore[misc]
        if damage is not None:  # its rows read as free; `lifecycle.quarantine` finds what they named missing
            state.losses.found.append(damage)
            state.losses.attempts = True
            state.attempts.touch(chunk)
    state.attempts.reindex()
