"""Finds out whether a test finds the mutant in this copy of the tree. Tests or trials, each order in a forked process.

    cd COPY && python tests/mutations/worker.py     orders and answers are lines of JSON

It imports third-party modules once, and none of ours: the forked process imports the copy as it is. CPU time limits an
order, so that a busy machine changes no verdict.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import runpy
import select
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PRELOADED = ("boto3", "botocore.session", "highspy", "hypothesis", "numpy", "pydantic", "pytest", "ruamel.yaml", "re2")
TIME_OUT = "it did not end"
UNKNOWN = "the tests are not those that coverage was measured with"
LONGEST = 2000  # bytes of an answer: they are written at once


def run_tests(tests: dict[str, float]) -> str:
    """The first test that fails; the quickest come first (seconds by id), those of a file together."""
    import pytest

    files: dict[str, float] = {}
    for test, seconds in tests.items():
        file = test.partition("::")[0]
        files[file] = files.get(file, 0.0) + seconds

    class Watcher:
        failed = ""

        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(self, items: list[Any]) -> None:
            items.sort(key=lambda item: (files[item.nodeid.partition("::")[0]], item.nodeid.partition("::")[0]))

        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.failed:
                self.failed = self.failed or report.nodeid

        def pytest_collectreport(self, report: Any) -> None:
            if report.failed:
                self.failed = self.failed or report.nodeid

    watcher = Watcher()
    words = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    ended = pytest.main([*words, *tests], plugins=[watcher])
    if ended == pytest.ExitCode.USAGE_ERROR and not watcher.failed:
        return broken_fixtures(files) or UNKNOWN
    return watcher.failed or ("" if ended == pytest.ExitCode.OK else f"pytest ended with {ended!r}")


def broken_fixtures(files: Iterable[str]) -> str:
    """The first conftest.py of these test files that cannot be imported; pytest calls that a wrong usage."""
    for file in sorted({parent / "conftest.py" for each in files for parent in Path(each).parents}):
        try:
            if file.exists():
                runpy.run_path(str(file))
        except Exception as fault:  # noqa: BLE001 - whatever it is, a mutant has caused it
            return f"{file}: {type(fault).__name__}"
    return ""


def run_trials(count: int) -> str:
    """The first of some seeds whose trial breaks an invariant, or whose controller falls over."""
    from tests.harness.simulate import CROWDED, MEMBERS, SCHEDULED, UPDATED
    from tests.harness.simulation.campaign import run_trial
    from tests.harness.simulation.plan import TrialPlan

    for seed in range(count):
        try:
            plan = TrialPlan(seed, schedules=SCHEDULED, updates=UPDATED, members=MEMBERS, crowd=CROWDED)
            verdict = run_trial(plan)
        except Exception as fault:  # noqa: BLE001 - a controller that falls over is found as well
            return f"trial {seed}: {type(fault).__name__}"
        if not verdict.ok:
            return f"trial {seed}: {verdict.violations[0].invariant}"
    return ""


def carry_out(order: dict[str, Any], answer: int) -> None:
    """In the forked process, which never comes back."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (order["cpu_s"], order["cpu_s"]))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    sys.path[:0] = [os.path.join(os.getcwd(), "controller"), os.getcwd()]
    try:
        found = run_tests(order["tests"]) if "tests" in order else run_trials(order["trials"])
    except BaseException as fault:  # noqa: BLE001 - what breaks even pytest is found
        found = f"{type(fault).__name__}: {fault}"
    os.write(answer, (found or "-").encode()[:LONGEST])
    os._exit(0)


def ask(order: dict[str, Any]) -> str:
    """The test that found the mutant; "" = none. The time limit is generous: tests may wait, and machines are busy."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        carry_out(order, writing)
    os.close(writing)
    ready, _, _ = select.select([reading], [], [], 10 * order["cpu_s"])
    said = os.read(reading, LONGEST).decode(errors="replace") if ready else ""
    os.close(reading)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return said.removeprefix("-") if said else TIME_OUT


def main() -> None:
    sys.path[:] = [path for path in sys.path if path != os.path.dirname(os.path.abspath(__file__))]
    for name in PRELOADED:
        importlib.import_module(name)
    for line in sys.stdin:
        begun, found = time.monotonic(), ask(json.loads(line))
        if found == UNKNOWN:
            raise SystemExit(UNKNOWN)
        print(json.dumps({"found": found, "seconds": round(time.monotonic() - begun, 1)}), flush=True)


if __name__ == "__main__":
    main()
