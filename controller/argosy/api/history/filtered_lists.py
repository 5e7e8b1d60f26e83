"""Tasks and instances that match all of a user's filters, in pages.

All of it is read from the store; the controller is not involved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argosy.api import reading, views
from argosy.api.cluster.gpu_devices import show_devices
from argosy.api.cluster.views import instance_view, used_by_instance
from argosy.api.history.attempts import History
from argosy.api.history.run_history import instances_of
from argosy.api.requests import ListInstances, ListTasks, place_of, place_of_task, token_of
from argosy.engine.loading import records_of
from argosy.model.instances import Instance
from argosy.model.policy import Policy
from argosy.model.run_record import RunRecord
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.tasks import TaskStatus, TaskTable
from argosy.placement.query import matching, parse
from argosy.placement.supply import InstanceRow, Supply
from argosy.ports import ObjectReader, Store
from argosy.scheduler.supply.rows import TaskUse, row_of, uses_by_number

JSON = dict[str, Any]
MOST_CHUNKS = 128  # of tasks that one request reads, a million tasks: a filter without a match must end, too


def list_tasks(store: Store, objects: ObjectReader, request: ListTasks, record: RunRecord | None, now: float) -> JSON:
    """ListTasks' body. record: of the requested run; None = all open runs, in the order of their ids."""
    version = store.version()
    state, open_runs = reading.cluster(store)
    records = [record] if record else _records(store, sorted(open_runs))
    found, following = _fitting_tasks(store, objects, request, records, state)
    # A record that is read after the chunks holds every reason that they refer to by number.
    ids = {each.record.id: each.record for each in found}
    later = {run_id: reading.run(store, run_id) or record for run_id, record in ids.items()}
    rows = [
        {"runId": each.record.id, **row}
        for each in found
        for row in views.task_rows(replace(each, record=later[each.record.id]), state, now)
    ]
    return {"tasks": rows, "asOf": version, "nextToken": following and token_of(request, following)}


def _records(store: Store, run_ids: Sequence[str]) -> list[RunRecord]:
    return [documents.record_from(body) for body in records_of(store, run_ids).values()]


def _fitting_tasks(
    store: Store, objects: ObjectReader, request: ListTasks, records: Sequence[RunRecord], state: State
) -> tuple[list[views.ChosenTasks], str | None]:
    """At most a page of them, and where the next page starts."""
    begin_run, begin = place_of_task(request)
    found: list[views.ChosenTasks] = []
    room, looked_at = request.max_results, 0
    for record in records:
        if record.id < begin_run:
            continue
        start = begin if record.id == begin_run else 0
        fits = _task_filter(store, objects, request, record, state)
        for first, chunk in reading.task_chunks(store, record, start, record.task_count):
            if looked_at == MOST_CHUNKS:
                return found, f"{record.id} {first}"
            looked_at += 1
            rows = np.flatnonzero(fits(first, chunk))
            rows = rows[rows + first >= start]
            if rows[:room].size:
                found.append(views.ChosenTasks(record, first, chunk, rows[:room].tolist()))
            if rows.size > room:
                return found, f"{record.id} {first + int(rows[room])}"
            room -= rows.size
    return found, None


def _task_filter(
    store: Store, objects: ObjectReader, request: ListTasks, record: RunRecord, state: State
) -> Callable[[int, TaskTable], NDArray[np.bool_]]:
    """(index of its first task, chunk) -> which of its rows fit; shape (rows,)."""
    wanted = [TaskStatus[name] for name in request.status]
    places = [request.instance] if request.instance else None
    if request.cell is not None:
        there = _instances_in(store, objects, request.cell, record, state)
        places = sorted(there if places is None else there.intersection(places))

    live_indexes, live_instances = _live(record, state)

    def fits(first: int, chunk: TaskTable) -> NDArray[np.bool_]:
        fitting = np.ones(chunk.rows, dtype=np.bool_)
        if wanted:
            fitting &= np.isin(chunk.statuses(), wanted)
        if request.exit_code is not None:
            fitting &= chunk["exit_code"] == request.exit_code
        if request.failed is not None:
            fitting &= (chunk["user_failures"] > 0) == request.failed
        if places is not None:
            instance = chunk["instance"].copy()
            here = (live_indexes >= first) & (live_indexes < first + chunk.rows)
            instance[live_indexes[here] - first] = live_instances[here]
            fitting &= np.isin(instance, np.array(places, dtype="S19"))
        return fitting

    return fits


def _instances_in(store: Store, objects: ObjectReader, cell: str, record: RunRecord, state: State) -> set[str]:
    """Includes instances that the cluster has forgotten, as they were recorded when the run was closed."""
    known = {each.id for each in state.instances.values() if each.cell == cell}
    noted = instances_of(History(store, objects, record))
    return known | {name for name, each in noted.items() if each["cell"] == cell}


def _live(record: RunRecord, state: State) -> tuple[NDArray[np.int64], NDArray[np.bytes_]]:
    """Index and instance of each attempt of the run that is alive."""
    live = [(index, row) for (number, index), row in state.attempts.row_of_task.items() if number == record.number]
    indexes, rows = np.array(live, dtype="i8").reshape(-1, 2).T
    return indexes, state.attempts["instance"][rows]


def list_instances(store: Store, request: ListInstances, whole: Callable[[], State], policy: Policy) -> JSON:
    """ListInstances' body, in the order of the ids. whole: reads the state with all its runs; only a query for task
    groups needs that."""
    version = store.version()
    state, run_ids = reading.cluster(store)
    fitting = [each for _, each in sorted(state.instances.items()) if _fits(each, request)]
    if request.where is not None:
        fitting = _matching(request.where, fitting, state, _uses(store, request.where, run_ids, whole), policy)
    after = place_of(request) or ""
    fitting = [each for each in fitting if each.id > after]
    shown = fitting[: request.max_results]
    needs = reading.needs_by_number(store, run_ids)
    used, tasks = used_by_instance(state, needs)
    instances = [instance_view(each, used.get(each.id), tasks.get(each.id, 0)) for each in shown]
    show_devices(instances, state, needs)
    return {
        "instances": instances,
        "asOf": version,
        "nextToken": token_of(request, shown[-1].id) if len(fitting) > len(shown) else None,
    }


def _fits(instance: Instance, request: ListInstances) -> bool:
    return (
        (not request.status or instance.status.value in request.status)
        and (request.purchase is None or instance.purchase.value == request.purchase)
        and request.cell in (None, instance.cell)
        and request.zone in (None, instance.zone)
        and (request.type is None or fnmatchcase(instance.instance_type, request.type))
    )


def _uses(store: Store, query: str, run_ids: Sequence[str], whole: Callable[[], State]) -> Mapping[int, TaskUse]:
    if parse(query).asks_groups:
        return uses_by_number(whole())
    return {number: TaskUse(needs) for number, needs in reading.needs_by_number(store, run_ids).items()}


def _matching(
    query: str, instances: Sequence[Instance], state: State, uses: Mapping[int, TaskUse], policy: Policy
) -> list[Instance]:
    """Only registered instances: ECS has no attributes of the others."""
    there = [each for each in instances if each.arn and each.alive]
    live: dict[str, Counter[int]] = {}
    for row in state.attempts.placed().tolist():
        name = bytes(state.attempts["instance"][row]).decode()
        live.setdefault(name, Counter())[int(state.attempts["run"][row])] += 1
    chosen = matching(parse(query), Supply.of([_row(each, live.get(each.id, {}), uses, policy) for each in there]))
    return [each for each, is_chosen in zip(there, chosen.tolist(), strict=True) if is_chosen]


def _row(instance: Instance, runs: Mapping[int, int], uses: Mapping[int, TaskUse], policy: Policy) -> InstanceRow:
    return replace(row_of(instance, runs, uses, policy), agent_connected=instance.agent_connected)
