"""Does a huge run over several cells end exactly, and is the launch rate of AWS used up while there is work and room?

Floor (DESIGN section 6): 98 %. `make bench` runs 20,000 tasks; the full million is
`argosy simulate --cells 8 --faults interruptions`, and here with ARGOSY_BENCH_TASKS=1000000.
"""

from __future__ import annotations

import os

import pytest

from argosy.cli.here.simulation import views as simulate_views
from argosy.simulation.scale.report import report_of
from argosy.simulation.scale.run import ScaleRun, Size

TASKS = int(os.environ.get("ARGOSY_BENCH_TASKS", "20000"))
INSTANCES = 5_000 if TASKS >= 500_000 else 1_500
RATE_USED, DESCRIBES_PER_TASK = 0.98, 0.05


@pytest.mark.benchmark
def test_a_huge_run_ends_exactly_and_uses_the_launch_rate(capsys: pytest.CaptureFixture[str]) -> None:
    run = ScaleRun(Size(tasks=TASKS, instances=INSTANCES, cells=8 if TASKS >= 500_000 else 2))
    run.run()
    report = report_of(run)
    with capsys.disabled():
        print(f"\n{simulate_views.at_size(report)}")
    assert not report["found"]
    assert report["launchRateUsed"] >= RATE_USED
    assert report["describeCallsPerTask"] <= DESCRIBES_PER_TASK
