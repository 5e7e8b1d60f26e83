"""Did a run at full size end exactly, and what did it cost?"""

from __future__ import annotations

import resource
import statistics
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from typing import Any

from argosy.client.errors import ArgosyError
from argosy.client.results.manifest import Manifest
from argosy.layout import manifest_uri, marker_uri, split_s3
from argosy.model.run_record import RunRecord
from argosy.model.runs import sort_key
from argosy.model.stored import documents
from tests.harness.simulation.controllers.deployment import TABLE
from tests.harness.simulation.scale.run import ScaleRun
from tests.harness.simulation.world.rate_limits import FAMILIES

JSON = dict[str, Any]
DESCRIBES = ("describe_tasks", "describe_container_instances")
RECORDS = ("CHANGES", "HISTORY", "RUN SERIES", "COURSE")  # writes that only record what happened
SHOWN = 5


def faults_of(run: ScaleRun) -> Iterator[str]:
    """All faults at rest, each as a sentence."""
    census, tasks = run.census, run.size.tasks
    yield from census.twice[:SHOWN]
    if never := int((census.ended_well == 0).sum()):
        yield f"{never} tasks never ended well"
    if again := int((census.ended_well > 1).sum()):
        yield f"{again} tasks ended well more than once"
    alive = sum(each.alive for world in run.worlds for each in world.ec2.ledger.instances.values())
    targets = sum(fleet.total_target for world in run.worlds for fleet in world.ec2.ledger.fleets.values())
    if alive or targets:
        yield f"{alive} instances live at rest, the targets are {targets}"
    yield from _faults_of_manifest(run, tasks)


def _faults_of_manifest(run: ScaleRun, tasks: int) -> Iterator[str]:
    objects, output = run.s3.objects, run.job.output
    if split_s3(marker_uri(output, True)) not in objects:
        yield "there is no _SUCCESS"
    manifest = objects.get(split_s3(manifest_uri(output)))
    if manifest is None:
        yield "there is no manifest"
        return
    try:
        said = Manifest(BytesIO(manifest.body), lambda name: BytesIO(objects[split_s3(output + name)].body))
        succeeded = [entry["status"] == "SUCCEEDED" for entry in said.entries()]  # in order, or it is refused
    except ArgosyError:
        succeeded = []
    if len(succeeded) != tasks or not all(succeeded):
        yield "the manifest does not name every task once as SUCCEEDED"


def report_of(run: ScaleRun) -> JSON:
    """All figures. `measured` differs between machines, the rest follows from the seed."""
    tasks, calls = run.size.tasks, run.aws_calls.calls
    found = list(faults_of(run))
    record = _record(run)
    usd, useful = sum(bill.usd() for bill in run.bills), record.cost_usd
    _, rate_per_s, _ = FAMILIES["launches"]
    allowed = run.busy_s * rate_per_s
    return {
        "tasks": tasks,
        "cells": run.size.cells,
        "violations": len(found),
        "found": found,
        "succeeded": int((run.census.ended_well == 1).sum()),
        "launches": run.census.launches.total(),
        "launchesPerTask": round(run.census.launches.total() / tasks, 4),
        "launchRateUsed": round(run.busy_launches / allowed, 4) if allowed else 0.0,
        "busyCellSeconds": round(run.busy_s, 1),
        "interruptions": run.warned,
        "messages": run.queue.received,
        "longestBacklog": run.queue.longest,
        "apiCalls": sum(calls.values()),
        "apiCallsPerTask": round(sum(calls.values()) / tasks, 4),
        "describeCallsPerTask": round(sum(calls["ecs", name] for name in DESCRIBES) / tasks, 4),
        "writeUnitsPerTask": round(run.dynamodb.write_units / tasks, 3),
        "recordWriteUnitsPerTask": round(sum(run.dynamodb.units[kind] for kind in RECORDS) / tasks, 3),
        "virtualHours": round((run.timeline.now - run.began_at) / 3600, 2),
        "makespanSeconds": round(record.stopped_at - record.submitted_at, 1),
        "costUsd": round(usd, 2),
        "instanceHours": round(sum(bill.hours() for bill in run.bills), 1),
        "waste": round(1 - useful / usd, 4) if usd else 0.0,
        "instancesBought": dict(sorted(_bought(run).items())),
        "ticks": len(run.tick_s),
        "measured": {
            "seconds": round(run.took_s, 1),
            "cpuSeconds": round(run.cpu_s, 1),
            "controllerSeconds": round(sum(run.tick_s), 1),
            "tickMedianSeconds": round(statistics.median(run.tick_s), 3),
            "tickP99Seconds": round(sorted(run.tick_s)[len(run.tick_s) * 99 // 100], 3),
            "tickWorstSeconds": round(max(run.tick_s), 3),
            "peakMib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        },
    }


def _bought(run: ScaleRun) -> Counter[str]:
    return Counter(
        f"{world.region}/{each.pool.name}" for world in run.worlds for each in world.ec2.ledger.instances.values()
    )


def _record(run: ScaleRun) -> RunRecord:
    """The run's record as it is stored."""
    key = documents.RUNS, sort_key(run.job.run_id)
    return documents.record_from(run.dynamodb.tables[TABLE][key[0]][key[1]]["body"]["B"])
