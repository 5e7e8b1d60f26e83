"""How many mutants does the suite find, and how many do trials? A seeded sample of them, one at a time.

    python -m tests.mutations.sampled --seed 28 --mutants 150 --at /tmp/mutants                 the suite
    python -m tests.mutations.sampled --seed 28 --mutants 150 --at /tmp/mutants --trials 24     trials, over 24 of them
    python -m tests.mutations.sampled --seed 28 --mutants 150 --at /tmp/mutants --again         survivors once more

It takes hours of CPU time and is not part of CI. What is known is kept in the folder as it comes, so that it can
be stopped and started again. At the end it writes `sampled.json` next to this file, from which the page is made.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any

from tests.mutations.covering import Covering, make
from tests.mutations.mutants import ROOT, Mutant, sample

RECORD = Path(__file__).with_name("sampled.json")
EFFECTFUL = ("lifecycle", "scheduler")  # what trials judge; the rest only shows, asks or chooses
TRIALS = 200
BATCHES_S = (2.0, 15.0)  # tests of so many seconds first; the rest comes last
TESTS_S = 75.0  # of tests for a mutant at most, the quickest of those that cover it
SLOWER = 4.0  # than measured, before a test is taken for endless
FEWEST_CPU_S = 20
TRIALS_CPU_S = 600


class Copy:
    """A copy of the tree with one mutant at a time, and the process that uses it."""

    def __init__(self, folder: Path) -> None:
        self._at = folder
        shutil.rmtree(folder, ignore_errors=True)
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        for name in filter(None, listed.stdout.split("\0")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
        subprocess.run([sys.executable, "-m", "compileall", "-q", "controller"], cwd=folder, check=True)
        self._worker = subprocess.Popen(
            [sys.executable, "tests/mutations/worker.py"], cwd=folder, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip

    def check(self, covering: Covering | None) -> None:
        """No test may fail where nothing is changed."""
        order: dict[str, Any] = {"trials": TRIALS, "cpu_s": TRIALS_CPU_S}
        if covering is not None:
            tests = dict(sorted(covering.seconds.items(), key=lambda each: each[1]))
            order = {"tests": next(batches(tests)), "cpu_s": FEWEST_CPU_S}
        if found := self._order(order)["found"]:
            raise SystemExit(f"Without any mutant: {found}")

    def ask(self, mutant: Mutant, covering: Covering | None) -> dict[str, Any]:
        """covering: None asks trials."""
        if covering is None:
            return {"trials": self._ask(mutant, {"trials": TRIALS, "cpu_s": TRIALS_CPU_S})["found"]}
        tests = chosen(covering.tests_of(mutant.path, mutant.first, mutant.last))
        asked: list[dict[str, Any]] = []
        for batch in batches(tests):
            asked.append(self._ask(mutant, {"tests": batch, "cpu_s": int(FEWEST_CPU_S + SLOWER * sum(batch.values()))}))
            if asked[-1]["found"]:
                break
        seconds = round(sum(each["seconds"] for each in asked), 1)
        return {"found": asked[-1]["found"] if asked else "", "tests": len(tests), "seconds": seconds}

    def _ask(self, mutant: Mutant, order: dict[str, Any]) -> dict[str, Any]:
        path = self._at / mutant.path
        before, times = path.read_bytes(), path.stat()
        path.write_text(mutant.text, encoding="utf-8")
        os.utime(path, (times.st_atime, times.st_mtime + 3600))  # so that no compiled file is taken for it
        try:
            return self._order(order)
        finally:
            path.write_bytes(before)
            os.utime(path, (times.st_atime, times.st_mtime))

    def _order(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self._worker.stdin is not None
        assert self._worker.stdout is not None
        print(json.dumps(order), file=self._worker.stdin, flush=True)
        return dict(json.loads(self._worker.stdout.readline()))

    def close(self) -> None:
        assert self._worker.stdin is not None
        self._worker.stdin.close()
        self._worker.wait()
        shutil.rmtree(self._at, ignore_errors=True)


def chosen(tests: dict[str, float]) -> dict[str, float]:
    """The quickest, as many as may be run."""
    taken, total = {}, 0.0
    for test, seconds in tests.items():
        total += seconds
        if total > TESTS_S:
            break
        taken[test] = seconds
    return taken


def batches(tests: dict[str, float]) -> Iterator[dict[str, float]]:
    """Most mutants are found by the first quick tests, for which not all files have to be imported."""
    for limit in BATCHES_S:
        first, total = {}, 0.0
        for test, seconds in tests.items():
            total += seconds
            if total > limit:
                break
            first[test] = seconds
        tests = {test: seconds for test, seconds in tests.items() if test not in first}
        if first:
            yield first
    if tests:
        yield tests


class Results:
    """By the mutants' names, kept in a file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.of: dict[str, dict[str, Any]] = json.loads(file.read_text()) if file.exists() else {}

    def add(self, mutant: Mutant, result: dict[str, Any]) -> None:
        known = self.of.setdefault(mutant.name, {"before": mutant.before, "after": mutant.after})
        known |= result
        self._file.write_text(json.dumps(self.of, indent=1))
        print(mutant.name, result, mutant.before, "->", mutant.after, sep="  ", flush=True)


def of_suite(mutants: list[Mutant], results: Results, again: bool) -> list[Mutant]:
    """Those that have not been tried yet, or instead those that no test has found."""
    known = [(mutant, results.of.get(mutant.name)) for mutant in mutants]
    return [mutant for mutant, result in known if (result is None if not again else result and not result["found"])]


def of_trials(mutants: list[Mutant], results: Results, seed: int, count: int) -> list[Mutant]:
    """Drawn from those that trials can judge."""
    effectful = [mutant for mutant in mutants if mutant.package in EFFECTFUL]
    drawn = random.Random(seed).sample(effectful, min(count, len(effectful)))
    return [mutant for mutant in drawn if mutant.name not in results.of]


def run(mutants: Iterable[Mutant], results: Results, copies: Sequence[Copy], covering: Covering | None) -> None:
    free: Queue[Copy] = Queue()
    if not results.of:
        copies[0].check(covering)
    for copy in copies:
        free.put(copy)

    def work(mutant: Mutant) -> None:
        copy = free.get()
        try:
            results.add(mutant, copy.ask(mutant, covering))
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as pool:
        list(pool.map(work, mutants))
    for copy in copies:
        copy.close()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=28)
    parser.add_argument("--mutants", type=int, default=150)
    parser.add_argument(
        "--at", type=lambda text: Path(text).resolve(), required=True, help="a folder outside of the tree"
    )
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--trials", type=int, default=0, help="of how many mutants trials are asked, not the suite")
    parser.add_argument("--again", action="store_true", help="ask the suite for the survivors once more")
    return parser.parse_args()


def main() -> None:
    asked = arguments()
    kind = "trials" if asked.trials else "suite"
    if not asked.trials:
        make(asked.at / "map")
    mutants = sample(asked.seed, asked.mutants)
    suite, trials = (Results(asked.at / f"{name}-{asked.seed}.json") for name in ("suite", "trials"))
    copies = [Copy(asked.at / f"{kind}-copy-{number}") for number in range(asked.processes)]
    if asked.trials:
        run(of_trials(mutants, trials, asked.seed, asked.trials), trials, copies, None)
    else:
        run(of_suite(mutants, suite, asked.again), suite, copies, Covering(asked.at / "map"))
    found = {each.name: suite.of.get(each.name, {}) | trials.of.get(each.name, {}) for each in mutants}
    RECORD.write_text(json.dumps({"seed": asked.seed, "mutants": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
