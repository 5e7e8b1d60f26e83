"""Test runs on several processes, each of which collects only the files that it runs.

    python -m tests.run [--processes N] [--by-test] [--coverage] [paths below tests/, and options of pytest]
    python -m tests.run --times

The launcher lists the test files, the longest first, and writes the numbers 0, 1, 2, ... into a pipe. Each worker is a
plain pytest with tests/run/worker.py as a plugin: it reads the next number, collects and runs those files, and reads
again until the pipe is empty. So each file is collected once in all, and no process is idle while files are left. With
`--by-test` each worker collects everything, and a number stands for a test.

The output is what failed and one closing line. Times go to build/test-times.json; `--times` prints them.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TIMES = ROOT / "build/test-times.json"
LOGS = ROOT / "build/test-run"
RECORD_BYTES = 4  # of a number in the pipe: a read of so many bytes is atomic
RECORDS_MAX = 16_000  # a pipe holds 64 KiB
PLANTED_QUICK_MAX = 8  # bugs that a run which is not deep plants
OK, NOTHING_COLLECTED = 0, 5  # exit statuses of pytest

# What takes longest comes first, so that all processes end at about the same time: by the times of the last run, and
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
# Files that one process runs one after the other: a machine has one container engine, whose images and containers are
# shared by all that use it.
TOGETHER = {
    "tests/contract/test_container_engines.py": "the container engine",
    "tests/e2e/test_local_engine.py": "the container engine",
    "tests/e2e/test_runner_as_init.py": "the container engine",
}


# --- which files, and in what order -----------------------------------------------------------------------------------


def test_files(paths: Sequence[str]) -> dict[str, list[str]]:
    """What pytest is given for each test file: the file, or the tests of it that were named."""
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
    """What one process runs as a whole, the longest first."""
    arguments: dict[str, list[str]] = {}
    seconds: Counter[str] = Counter()
    for file, given in files.items():
        group = TOGETHER.get(file, file)
        arguments.setdefault(group, []).extend(given)
        seconds[group] += known_s.get(file, 0.0)  # type: ignore[assignment]
    first = {group: _unknown(given[0].partition("::")[0]) for group, given in arguments.items()}
    return [arguments[group] for group in sorted(arguments, key=lambda group: (-seconds[group], *first[group]))]


def _unknown(file: str) -> tuple[int, int]:
    """The order of files of which no time is known."""
    starts = enumerate(LONGEST_FIRST)
    rank = next((number for number, start in starts if file.startswith(start)), len(LONGEST_FIRST))
    return rank, -(ROOT / file).stat().st_size if (ROOT / file).exists() else 0


# --- the workers ------------------------------------------------------------------------------------------------------


def start(count: int, shares: list[list[str]], options: Sequence[str], *, by_test: bool, coverage: bool) -> list[Any]:
    """The workers, each with its log beside the record of what it ran."""
    LOGS.mkdir(parents=True, exist_ok=True)
    for old in LOGS.iterdir():
        old.unlink()
    (LOGS / "shares.json").write_text(json.dumps([[*chain(*shares)]] if by_test else shares))
    reading, writing = os.pipe()
    numbers = range(RECORDS_MAX if by_test else len(shares))
    os.write(writing, b"".join(number.to_bytes(RECORD_BYTES, "big") for number in numbers))
    os.close(writing)
    command = [sys.executable, *(("-m", "coverage", "run", "--parallel-mode") if coverage else ()), "-m", "pytest"]
    command += ["-q", "--no-header", "-p", "tests.run.worker", "-p", "no:cacheprovider", *options]
    started = []
    for number in range(count):
        told = {"pipe": reading, "by_test": by_test, "shares": str(LOGS / "shares.json")}
        told |= {"record": str(LOGS / f"{number}.jsonl")}
        with (LOGS / f"{number}.log").open("wb") as log:
            environment = os.environ | {"TEST_RUN": json.dumps(told)}
            started.append(
                subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log, pass_fds=[reading])
            )
    os.close(reading)
    return started


def wait(workers: Sequence[Any], shares: int) -> list[int]:
    """Their exit statuses. Ctrl-C reaches them too: they end by themselves. A terminal shows how far they are."""
    while any(worker.poll() is None for worker in workers):
        try:
            time.sleep(0.2)
        except KeyboardInterrupt:
            continue
        if sys.stdout.isatty():
            ran = records()
            failed = sum(each["counts"].get("failed", 0) + each["counts"].get("error", 0) for each in ran)
            print(f"\r{len(ran)} of {shares} files, {failed} failed ", end="", flush=True)
    if sys.stdout.isatty():
        print("\r" + " " * 40 + "\r", end="")
    return [worker.returncode for worker in workers]


def records() -> list[dict[str, Any]]:
    """What was run so far, a file a record."""
    return [json.loads(line) for path in sorted(LOGS.glob("*.jsonl")) for line in path.read_text().splitlines()]


# --- the outcome ------------------------------------------------------------------------------------------------------


def faults(log: str, status: int) -> str:
    """Of a worker's output the part about failures; of a worker that did not end by itself, the end."""
    found = re.search(r"^=+ (?:ERRORS|FAILURES|warnings summary) =+$", log, re.MULTILINE)
    if found:
        return re.sub(r"^.* in [\d.]+s(?: \([\d:]+\))?\n\Z", "", log[found.start() :], flags=re.MULTILINE)
    return "\n".join(log.splitlines()[-60:]) if status not in (OK, NOTHING_COLLECTED) else ""


def planted(rows: Sequence[Sequence[Any]]) -> str:
    """The table of which check has found which planted bug, of a deep run."""
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
    lines = [
        f"{times['cpu_s']:.0f} s of processor time, of which {times['collection_cpu_s']:.1f} s for collection;"
        f" {times['wall_s']:.0f} s, {times['processes']} processes of at most {times['memory_mib_max']} MiB"
    ]
    files = sorted(times["files"].items(), key=lambda item: -item[1]["cpu_s"])[:slowest]
    lines += [f"{each['cpu_s']:8.1f} s processor {each['wall_s']:8.1f} s  {file}" for file, each in files]
    return "\n".join(lines)


def summed(ran: Sequence[Mapping[str, Any]], wall_s: float) -> dict[str, Any]:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    files: dict[str, dict[str, float]] = {}
    for file, took in (item for each in ran for item in each["files"].items()):
        entry = files.setdefault(file, {"cpu_s": 0.0, "wall_s": 0.0})
        for key in entry:
            entry[key] = round(entry[key] + took[key], 3)
    return {
        "cpu_s": round(used.ru_utime + used.ru_stime, 1),
        "collection_cpu_s": round(sum(each["collection_cpu_s"] for each in ran), 2),
        "wall_s": round(wall_s, 1),
        "processes": len(list(LOGS.glob("*.log"))),
        "memory_mib_max": max((each["memory_mib"] for each in ran), default=0),
        "files": files,
    }


def main(arguments: Sequence[str]) -> int:
    if "--times" in arguments:
        print(report(json.loads(TIMES.read_text())))
        return 0
    left = list(arguments)
    count = int(left.pop(left.index("--processes") + 1)) if "--processes" in left else 2
    own = {"--processes", "--by-test", "--coverage"} & set(left)
    paths = [each for each in left if each.partition("/")[0] == "tests"]
    known = json.loads(TIMES.read_text())["files"] if TIMES.exists() else {}
    shares = groups(test_files(paths or ["tests"]), {file: each["wall_s"] for file, each in known.items()})
    began = time.monotonic()
    options = [each for each in left if each not in own and each not in paths]
    by_test = "--by-test" in own
    workers = start(min(count, len(shares)), shares, options, by_test=by_test, coverage="--coverage" in own)
    statuses = wait(workers, len(shares))
    return ended(statuses, known, time.monotonic() - began)


def ended(statuses: Sequence[int], known: Mapping[str, Any], wall_s: float) -> int:
    for number, status in enumerate(statuses):
        print(faults((LOGS / f"{number}.log").read_text(errors="replace"), status), end="")
    ran = records()
    times = summed(ran, wall_s)
    TIMES.write_text(json.dumps(times | {"files": {**known, **times["files"]}}, indent=1))
    counts: Counter[str] = Counter()
    for each in ran:
        counts.update(each["counts"])
    print(planted([row for each in ran for row in each["planted"]]), end="")
    print(closing(counts, wall_s))
    failed = [status for status in statuses if status not in (OK, NOTHING_COLLECTED)]
    return failed[0] if failed else OK if OK in statuses else NOTHING_COLLECTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
