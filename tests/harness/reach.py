"""What do random trials reach? Branch coverage of each room of the controller, and the functions that no trial entered.

    .venv/bin/python -m tests.harness.reach --trials 500

Trials find only faults of code that they run: draw more of what decides a room's branches until this table is even.
Coverage makes a trial about three times slower.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import coverage

# Rooms that trials are there for; of `api` and `aws`, what the controller itself calls.
ROOMS = ("api", "aws", "engine", "lifecycle", "market", "messages", "model", "placement", "scheduler", "sharing")
CHANCE, CROWDED = 0.3, 0.1  # of schedules, changes to open runs, and entrances; of crowds, as `simulate` draws them


class Reach(NamedTuple):
    branches: int
    taken: int
    never: list[str]  # functions that no trial entered
    decisions: list[str]  # by file, the lines of entered functions after which no trial took one of the branches


def trials(folder: str, seeds: Sequence[int], kinds: Sequence[str], crowd: float) -> int:
    """Runs the trials under coverage, whose data go to the folder; the number of violations."""
    measured = _coverage(folder)
    measured.start()
    from tests.harness.simulation.plan import TrialPlan
    from tests.harness.simulation.trial import Trial

    plan = TrialPlan(0, frozenset(kinds), schedules=CHANCE, updates=CHANCE, members=CHANCE, crowd=crowd)
    plans = (replace(plan, seed=seed) for seed in seeds)
    violations = sum(len(Trial(plan).run().violations) for plan in plans)
    measured.stop()
    measured.save()
    return violations


def _coverage(folder: str) -> coverage.Coverage:
    return coverage.Coverage(
        data_file=f"{folder}/reach", data_suffix=True, branch=True, source_pkgs=["argosy"], config_file=False
    )


def reached(folder: str) -> dict[str, Reach]:
    """By room, over all the data in the folder."""
    whole = coverage.Coverage(data_file=f"{folder}/reach", branch=True, source_pkgs=["argosy"], config_file=False)
    whole.combine([folder])
    report = Path(folder, "report.json")
    whole.json_report(outfile=str(report))
    found: dict[str, list[Any]] = defaultdict(list)
    for path, file in json.loads(report.read_text())["files"].items():
        found[_room(path)].append((path, file))
    return {room: _of_files(found[room]) for room in ROOMS if found[room]}


def _room(path: str) -> str:
    """controller/argosy/ROOM/..."""
    parts = Path(path).parts
    return parts[parts.index("argosy") + 1]


def _of_files(files: list[tuple[str, dict[str, Any]]]) -> Reach:
    summaries = [file["summary"] for _, file in files]
    return Reach(
        sum(each["num_branches"] for each in summaries),
        sum(each["covered_branches"] for each in summaries),
        sorted(name for path, file in files for name in _never(path, file)),
        sorted(line for path, file in files for line in _decisions(path, file)),
    )


def _never(path: str, file: dict[str, Any]) -> Iterator[str]:
    for name, function in file["functions"].items():
        if name and function["missing_lines"] and not function["executed_lines"]:
            yield f"{'.'.join(Path(path).with_suffix('').parts[-2:])}.{name}"


def _decisions(path: str, file: dict[str, Any]) -> Iterator[str]:
    executed = {*file["executed_lines"]}
    lines = sorted({first for first, _ in file["missing_branches"] if first in executed})
    if lines:
        yield f"{'/'.join(Path(path).parts[-2:])}: {', '.join(map(str, lines))}"


def main(arguments: Sequence[str] | None = None) -> int:
    from tests.harness.simulation.faults import kinds_of

    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--trials", type=int, default=500, metavar="N")
    options.add_argument("--seed", type=int, default=0, metavar="FIRST")
    options.add_argument("--faults", default="all", metavar="LIST")
    options.add_argument("--jobs", type=int, default=2, metavar="N")
    options.add_argument("--crowd", type=float, default=CROWDED, metavar="CHANCE", help="of a crowd of users")
    options.add_argument("--names", action="store_true", help="name the functions that no trial entered")
    options.add_argument("--lines", action="store_true", help="and the decisions that always went the same way")
    wanted = options.parse_args(arguments)
    seeds = range(wanted.seed, wanted.seed + wanted.trials)
    parts, kinds = [seeds[first :: wanted.jobs] for first in range(wanted.jobs)], sorted(kinds_of(wanted.faults))
    with tempfile.TemporaryDirectory() as folder:
        with ProcessPoolExecutor(wanted.jobs, get_context("spawn")) as pool:
            given = [folder] * wanted.jobs, parts, [kinds] * wanted.jobs, [wanted.crowd] * wanted.jobs
            violations = sum(pool.map(trials, *given))
        print(f"{wanted.trials} trials from seed {wanted.seed}, {violations} violations")
        for room, reach in reached(folder).items():
            share = reach.taken / max(1, reach.branches)
            print(
                f"{room:10} {share:6.1%} of {reach.branches:5,} branches, {len(reach.never):3} functions never entered"
            )
            for name in (*(reach.never if wanted.names else ()), *(reach.decisions if wanted.lines else ())):
                print(f"           {name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
