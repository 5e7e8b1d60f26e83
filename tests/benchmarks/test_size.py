"""Does a huge run over several cells end exactly, is AWS's launch rate fully used while there is work and room, and
what does recording cost?

Floors: 98 % of the rate (DESIGN section 6); journal and history together 0.25 write units a task at a million tasks,
and the record reproduces every commit. `make bench` runs 20,000 tasks, where a run's course takes a greater share: it
is stored about a hundred times, however many tasks there are. The full million is `argosy simulate --cells 8 --faults
interruptions`, and here with BENCH_TASKS=1000000 and `-o faulthandler_timeout=0`.
"""

from __future__ import annotations

import os
import time

import pytest

from tests.harness import trial_summary
from tests.harness.simulation.controllers.recorded import RecordedTrial
from tests.harness.simulation.scale.report import RECORDS, report_of
from tests.harness.simulation.scale.run import ScaleRun, Size

TASKS = int(os.environ.get("BENCH_TASKS", "20000"))
IS_FULL = TASKS >= 500_000
INSTANCES = 5_000 if IS_FULL else 1_500
RATE_USED, DESCRIBES_PER_TASK = 0.98, 0.05
RECORD_UNITS = 0.25 if IS_FULL else 0.2  # a task
RECORDED_BYTES = 400  # a task
USD_PER_WRITE_UNIT, USD_PER_S3_PUT = 0.625e-6, 5e-6  # on demand, us-east-1

pytestmark = pytest.mark.benchmark


@pytest.fixture(scope="module")
def run() -> ScaleRun:
    run = ScaleRun(Size(tasks=TASKS, instances=INSTANCES, cells=8 if IS_FULL else 2), RecordedTrial())
    run.run()
    return run


def test_a_huge_run_ends_exactly_and_uses_the_launch_rate(run: ScaleRun) -> None:
    report = report_of(run)
    print(f"\n{trial_summary.at_size(report)}")
    assert not report["found"]
    assert report["launchRateUsed"] >= RATE_USED
    assert report["describeCallsPerTask"] <= DESCRIBES_PER_TASK


def test_to_tell_what_happened_costs_little(run: ScaleRun) -> None:
    assert run.recorded is not None
    files = run.recorded.files
    units = {kind: run.dynamodb.units[kind] / TASKS for kind in RECORDS}
    of_history = [len(each.body) for (_, key), each in run.s3.objects.items() if "/history/attempts-" in key]
    usd = sum(units.values()) * TASKS * USD_PER_WRITE_UNIT + (len(files) + len(of_history)) * USD_PER_S3_PUT
    recorded = sum(map(len, files.values()))
    print(
        f"\njournal and history of {TASKS:,} tasks: {sum(units.values()):.3f} write units a task ("
        + ", ".join(f"{kind} {each:.3f}" for kind, each in units.items())
        + f"), ${usd:.3f} with {len(files) + len(of_history)} objects put; {sum(of_history) / TASKS:.1f} bytes a task"
        f" next to the results; recorded: {recorded / TASKS:.0f} bytes a task in {len(files)} segments, the largest"
        f" {max(map(len, files.values())) / 1e6:.1f} MB"
    )
    assert sum(units.values()) <= RECORD_UNITS
    assert recorded / TASKS <= RECORDED_BYTES


def test_what_is_recorded_of_a_huge_run_gives_every_commit_again(run: ScaleRun) -> None:
    assert run.recorded is not None
    began = time.process_time()
    found = run.recorded.faults()
    took = time.process_time() - began
    print(f"\nreplay of {TASKS:,} tasks: {took:.0f} s of processor time; the ticks took {sum(run.tick_s):.0f} s")
    assert not found
