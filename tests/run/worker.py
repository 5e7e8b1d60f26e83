"""A pytest plugin that takes its files from the launcher's pipe, one share after the other."""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import time
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest

from tests.run.__main__ import RECORD_BYTES

# Taken out of the environment: a pytest that a test starts is none of these workers.
_TOLD = json.loads(os.environ.pop("TEST_RUN"))
_SHARES: list[list[str]] = json.loads(Path(_TOLD["shares"]).read_text())
os.set_inheritable(_TOLD["pipe"], False)
FORKS: int = _TOLD["forks"]  # the socket of the server of forks that all workers share

counts: Counter[str] = Counter()
_folders: dict[tuple[Path, pytest.Collector], Folder] = {}
_ERRORS = os.dup(2)  # as it is before pytest captures it
planted: list[object] = []  # rows of the table of planted bugs


class Folder(pytest.Dir):
    """Lists what is in it once: the shares go through the same folders hundreds of times."""

    _listed: list[Any] | None = None

    def collect(self) -> list[Any]:
        if self._listed is None:
            self._listed = [*super().collect()]
        return self._listed


def taken() -> int | None:
    """The next number, which no other worker has."""
    record = os.read(_TOLD["pipe"], RECORD_BYTES)
    return int.from_bytes(record, "big") if record else None


def cpu_s() -> float:
    """For this process and those that it waited for."""
    return sum(os.times()[:4])


def collect(session: pytest.Session, arguments: list[str]) -> float:
    """Seconds of CPU time that it took."""
    before = cpu_s()
    session.config.args = arguments
    session.config.hook.pytest_collection(session=session)
    return cpu_s() - before


def record(files: dict[str, dict[str, float]], collection_cpu_s: float) -> None:
    memory_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    line = {
        "files": files,
        "collection_cpu_s": collection_cpu_s,
        "counts": counts,
        "planted": planted,
        "memory_mib": memory_mib,
    }
    with Path(_TOLD["record"]).open("a") as to:
        to.write(json.dumps(line) + "\n")
    counts.clear()
    planted.clear()


# --- pytest's hooks ---------------------------------------------------------------------------------------------------


def pytest_cmdline_main(config: pytest.Config) -> None:
    config.args = []
    # It starts a thread for each test, which is a tenth of the time that pytest itself takes.
    config.pluginmanager.unregister(name="faulthandler")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> bool | None:
    """Nothing is collected before the loop, which collects a share at a time."""
    return None if session.config.args else True


@pytest.hookimpl(tryfirst=True)
def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector:
    """A folder stays the same node from one share to the next: the fixtures of its conftest.py are bound to it."""
    if (path, parent) not in _folders:
        _folders[path, parent] = Folder.from_parent(parent, path=path)
    return _folders[path, parent]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    started_cpu_s, collected = cpu_s(), 0
    if _TOLD["by_test"]:
        collection_cpu_s = started_cpu_s + collect(session, _SHARES[0])
        while (number := taken()) is not None and number < len(session.items):
            run(session, [session.items[number]], collection_cpu_s)
            collection_cpu_s = 0.0
        return True
    while (number := taken()) is not None:
        collection_cpu_s = started_cpu_s + collect(session, _SHARES[number])
        run(session, list(session.items), collection_cpu_s)
        started_cpu_s = 0.0
        collected += session.testscollected
    session.testscollected = collected  # pytest's exit status says whether there was any
    return True


def run(session: pytest.Session, items: list[pytest.Item], collection_cpu_s: float) -> None:
    """The tests of one share. After the last one the fixtures of the session stay: its "next item" is the session."""
    files: dict[str, dict[str, float]] = {}
    if hangs_after_s := float(session.config.getini("faulthandler_timeout")):
        faulthandler.dump_traceback_later(hangs_after_s, exit=True, file=_ERRORS)
    following = [*items, cast(pytest.Item, session)][1:]
    for item, after in zip(items, following, strict=True):
        cpu, wall = cpu_s(), time.monotonic()
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        took = files.setdefault(item.nodeid.partition("::")[0], {"cpu_s": 0.0, "wall_s": 0.0})
        took["cpu_s"] += cpu_s() - cpu
        took["wall_s"] += time.monotonic() - wall
        if session.shouldfail or session.shouldstop:
            break
    faulthandler.cancel_dump_traceback_later()
    record(files, collection_cpu_s)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if hasattr(report, "wasxfail"):
        counts["xfailed"] += 1
    elif report.failed:
        counts["failed" if report.when == "call" else "error"] += 1
    elif report.skipped:
        counts["skipped"] += 1
    elif report.when == "call":
        counts["passed"] += 1
        planted.extend(value for name, value in report.user_properties if name == "planted")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        counts["error"] += 1


def pytest_deselected(items: list[Any]) -> None:
    counts["deselected"] += len(items)
