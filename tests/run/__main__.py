"""Test runs on several processes, each of which collects only the files that it runs.

    python -m tests.run [--processes N] [--by-test] [--coverage] [paths below tests/, and options of pytest]
    python -m tests.run --times

The launcher lists the test files, the longest first, and writes the numbers 0, 1, 2, ... into a pipe. Each worker, a
fork of tests/run/template.py, is a plain pytest with tests/run/worker.py as a plugin: it reads the next number,
collects and runs those files, and reads again until the pipe is empty. So each file is collected once in all, and no
process is idle while files are left. With `--by-test` each worker collects everything, and tests are identified by
number.

The output is the failures and one closing line. Times go to build/test-times.json; `--times` prints them.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TIMES = ROOT / "build/test-times.json"
RECORD_BYTES = 4  # of a number in the pipe: a read of so many bytes is atomic
RECORDS_MAX = 16_000  # a pipe holds 64 KiB
MEMORY = Path("/dev/shm")  # a file system in memory, on Linux
ROOM_BYTES = 4 << 30
PLANTED_QUICK_MAX = 8  # bugs that a run which is not deep plants
OK, NOTHING_COLLECTED = 0, 5  # exit statuses of pytest

# The longest files come first, so that all processes end at about the same time: by the times of the last run, or
# without them by this list and by size.
LONGEST_FIRST = (
    "tests/e2e/test_container_readmes.py",
    "tests/e2e/test_demo.py",
    "tests/e2e/test_main_job.py",
    "tests/e2e",
    "tests/browser",
    "tests/stacks",
    "tests/simulation",
    "tests/scenarios",
    "tests/contract",
    "tests/properties",
    "tests/unit/local",
)
# Their tests wait for processes, containers and clocks for more than half of the time.
WAITING = (
    *("tests/e2e", "tests/browser", "tests/stacks", "tests/contract"),
    *("tests/unit/local", "tests/unit/containers", "tests/unit/stacks"),
)
# Files that one process runs one after the other, by how they start. A machine has one container engine, whose images
# and containers are shared by all that use it. The CDK and its process of node take 3 s of CPU time to start.
TOGETHER = {
    "tests/contract/test_container_engines.py": "the container engine",
    "tests/e2e/test_local_engine.py": "the container engine",
    "tests/e2e/test_runner_as_init.py": "the container engine",
    "tests/e2e/test_first_deployment.py": "the CDK",
    "tests/stacks/": "the CDK",
    "tests/unit/stacks/test_boot_order.py": "the CDK",
}


# --- which files, and in what order -----------------------------------------------------------------------------------


def files_of(paths: Sequence[str]) -> dict[str, list[str]]:
    """The argument of pytest for each test file: the file, or its named tests."""
    found: dict[str, list[str]] = {}
    for path in paths:
        name = path.partition("::")[0].rstrip("/")
        if (ROOT / name).is_dir():
            inside = sorted(file.relative_to(ROOT).as_posix() for file in (ROOT / name).rglob("test_*.py"))
            found |= {file: [file] for file in inside}
        elif path not in found.get(name, []):
            found.setdefault(name, []).append(path)
    return found


def groups(files: Mapping[str, list[str]], known_s: Mapping[str, float]) -> list[list[str]]:
    """The units that one process runs as a whole, the longest first."""
    arguments: dict[str, list[str]] = {}
    seconds: Counter[str] = Counter()
    for file, given in files.items():
        group = next((group for start, group in TOGETHER.items() if file.startswith(start)), file)
        arguments.setdefault(group, []).extend(given)
        seconds[group] += known_s.get(file, 0.0)  # type: ignore[assignment]
    first = {group: _unknown(given[0].partition("::")[0]) for group, given in arguments.items()}
    ordered = sorted(arguments, key=lambda group: (-seconds[group], *first[group]))
    return [arguments[group] for group in _mixed(ordered, [arguments[group][0] for group in ordered])]


def _mixed(groups: Sequence[str], files: Sequence[str]) -> list[str]:
    """Interleave groups that wait with groups that compute, each kind in its order, so that no core is idle."""
    waits = [file.startswith(WAITING) for file in files]
    turn, of_kind = Counter[bool](), Counter(waits)
    place = []
    for kind in waits:
        turn[kind] += 1
        place.append(turn[kind] / of_kind[kind])
    return [groups[number] for number in sorted(range(len(groups)), key=place.__getitem__)]


def _unknown(file: str) -> tuple[int, int]:
    """The order of files without a known time."""
    starts = enumerate(LONGEST_FIRST)
    rank = next((number for number, start in starts if file.startswith(start)), len(LONGEST_FIRST))
    return rank, -(ROOT / file).stat().st_size if (ROOT / file).exists() else 0


# --- the workers ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """Workers and the folder of their logs and records. Every share is taken by one of them."""

    logs: Path
    shares: list[list[str]]
    by_test: bool
    coverage: bool

    def start(self, count: int, options: Sequence[str]) -> subprocess.Popen[bytes]:
        """The process that forks the workers and waits for them."""
        shares = self.logs / "shares.json"
        shares.write_text(json.dumps([[*chain(*self.shares)]] if self.by_test else self.shares))
        numbers = range(RECORDS_MAX if self.by_test else len(self.shares))
        reading, writing = os.pipe()
        os.write(writing, b"".join(number.to_bytes(RECORD_BYTES, "big") for number in numbers))
        os.close(writing)
        told = {
            "processes": count,
            "pipe": reading,
            "logs": str(self.logs),
            "shares": str(shares),
            "by_test": self.by_test,
            "coverage": self.coverage,
        }
        command = [sys.executable, "-m", "tests.run.template", *options]
        environment = os.environ | {"TEST_RUN": json.dumps(told), "TMPDIR": str(self.logs)}
        started = subprocess.Popen(command, cwd=ROOT, env=environment, pass_fds=[reading])
        os.close(reading)
        return started

    def wait(self, started: subprocess.Popen[bytes]) -> list[int]:
        """The workers' exit statuses. Ctrl-C reaches them too. A terminal shows how far they are."""
        while started.poll() is None:
            try:
                time.sleep(0.2)
            except KeyboardInterrupt:
                continue
            if sys.stdout.isatty():
                print(f"\r{len(self.records())} of {len(self.shares)} files ", end="", flush=True)
        if sys.stdout.isatty():
            print("\r" + " " * 30 + "\r", end="")
        return list(json.loads((self.logs / "statuses.json").read_text())) if started.returncode == OK else []

    def records(self) -> list[dict[str, Any]]:
        """What was run so far, a share (with `by_test`, a test) a record."""
        return [json.loads(line) for path in self.logs.glob("*.jsonl") for line in path.read_text().splitlines()]

    def said(self, number: int) -> str:
        return (self.logs / f"{number}.log").read_text(errors="replace")


# --- the outcome ------------------------------------------------------------------------------------------------------


def faults(log: str, status: int) -> str:
    """The part of a worker's output about failures, or its end if the worker did not end on its own."""
    found = re.search(r"^=+ (?:ERRORS|FAILURES|warnings summary) =+$", log, re.MULTILINE)
    if found:
        return re.sub(r"^.* in [\d.]+s(?: \([\d:]+\))?\n\Z", "", log[found.start() :], flags=re.MULTILINE)
    return "".join(f"{line}\n" for line in log.splitlines()[-60:]) if status not in (OK, NOTHING_COLLECTED) else ""


def planted(rows: Sequence[Sequence[Any]]) -> str:
    """The table of planted bugs and the checks that found them, from a deep run."""
    if len(rows) <= PLANTED_QUICK_MAX:
        return ""
    from tests.mutations.table import text

    return text({str(row[0]): row for row in rows}.values())


def closing(counts: Mapping[str, int], wall_s: float) -> str:
    """As pytest says it: `2 failed, 310 passed, 4 skipped in 61.20s`."""
    order = ("failed", "passed", "skipped", "deselected", "xfailed", "error")
    named = [
        f"{counts[each]} {each}{'s' if each == 'error' and counts[each] > 1 else ''}"
        for each in order
        if each in counts
    ]
    return f"{', '.join(named) or 'no tests ran'} in {wall_s:.2f}s"


def report(times: Mapping[str, Any], slowest: int = 25) -> str:
    """The sums of the last whole run, and the files that took most CPU time when they last ran."""
    whole = times.get("whole")
    lines = [
        f"make test: {whole['cpu_s']:.0f} s of CPU time, {whole['collection_cpu_s']:.1f} s of it for starting and"
        f" collecting; {whole['wall_s']:.0f} s, {whole['processes']} processes of at most {whole['memory_mib_max']} MiB"
        if whole
        else "There has been no complete run here yet: make test"
    ]
    files = sorted(times["files"].items(), key=lambda item: -item[1]["cpu_s"])[:slowest]
    lines += [f"{each['cpu_s']:8.1f} s processor {each['wall_s']:8.1f} s  {file}" for file, each in files]
    return "\n".join(lines)


def keep_times(ran: Sequence[Mapping[str, Any]], processes: int, wall_s: float, *, is_whole: bool) -> None:
    """Record the time of each file, and for a whole run the sums."""
    files: dict[str, dict[str, float]] = {}
    for file, took in (item for each in ran for item in each["files"].items()):
        entry = files.setdefault(file, {"cpu_s": 0.0, "wall_s": 0.0})
        for key in entry:
            entry[key] = round(entry[key] + took[key], 3)
    kept = known()
    kept["files"] |= files
    if is_whole:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        kept["whole"] = {
            "cpu_s": round(used.ru_utime + used.ru_stime, 1),
            "collection_cpu_s": round(sum(each["collection_cpu_s"] for each in ran), 1),
            "wall_s": round(wall_s, 1),
            "processes": processes,
            "memory_mib_max": max((each["memory_mib"] for each in ran), default=0),
        }
    TIMES.parent.mkdir(exist_ok=True)
    TIMES.write_text(json.dumps(kept, indent=1))


def in_memory() -> Path | None:
    """Where the tests' files go, if programs may be executed there: half of the system time of tests that write files
    is ext4's. None: to the usual place."""
    if not MEMORY.is_dir():
        return None
    found = os.statvfs(MEMORY)
    has_room = found.f_bavail * found.f_frsize >= ROOM_BYTES
    return MEMORY if has_room and not found.f_flag & os.ST_NOEXEC else None


def known() -> dict[str, Any]:
    return dict(json.loads(TIMES.read_text())) if TIMES.exists() else {"files": {}}


def main(arguments: Sequence[str]) -> int:
    if "--times" in arguments:
        print(report(known()))
        return 0
    left = list(arguments)
    count = 2
    if "--processes" in left:
        at = left.index("--processes")
        count, left = int(left[at + 1]), [*left[:at], *left[at + 2 :]]
    own = {"--by-test", "--coverage"} & set(left)
    paths = [each for each in left if each.partition("/")[0] == "tests"]
    options = [each for each in left if each not in own and each not in paths]
    shares = groups(files_of(paths or ["tests"]), {file: each["wall_s"] for file, each in known()["files"].items()})
    # A process that a test left behind may still write there. Containers may need more room than there is
    # in memory.
    within = None if "-m" in options else in_memory()
    with tempfile.TemporaryDirectory(prefix="test-run-", dir=within, ignore_cleanup_errors=True) as logs:
        run = Run(Path(logs), shares, "--by-test" in own, "--coverage" in own)
        began = time.monotonic()
        statuses = run.wait(run.start(min(count, len(shares)), options))
        wall_s = time.monotonic() - began
        ran = run.records()
        if not options and not own:
            keep_times(ran, len(statuses), wall_s, is_whole=not paths)
        return tell(ran, statuses, [run.said(number) for number in range(len(statuses))], wall_s)


def tell(ran: Sequence[Mapping[str, Any]], statuses: Sequence[int], logs: Sequence[str], wall_s: float) -> int:
    """Print the failures and the closing line. The exit status."""
    for log, status in zip(logs, statuses, strict=True):
        print(faults(log, status), end="")
    counts: Counter[str] = Counter()
    for each in ran:
        counts.update(each["counts"])
    print(planted([row for each in ran for row in each["planted"]]), end="")
    print(closing(counts, wall_s))
    failed = [status for status in statuses or [1] if status not in (OK, NOTHING_COLLECTED)]
    return failed[0] if failed else OK if OK in statuses else NOTHING_COLLECTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
