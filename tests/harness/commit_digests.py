"""Digests of everything that trials write to DynamoDB: does a change leave every commit identical, byte for byte?

    .venv/bin/python -m tests.harness.commit_digests --fault-free 200 --faulty 50 > before.txt

Each line names a seed, whether faults struck, the number of writes, their digest and the number of violations. Run it
on two commits and compare the files. No hash seed of Python changes them: no order of a set reaches the stored state.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from argosy.emulator.dynamodb import Change
from tests.harness.simulation.faults import KINDS
from tests.harness.simulation.plan import TrialPlan
from tests.harness.simulation.trial import Trial

CHANCE = 0.3  # of schedules, of changes to open runs, and of entrances of queues


def digest_of(seed: int, faulty: bool) -> str:
    """The line of one trial."""
    kinds = frozenset(KINDS) if faulty else frozenset[str]()
    trial = Trial(TrialPlan(seed, kinds, schedules=CHANCE, updates=CHANCE, members=CHANCE))
    digest, writes = hashlib.sha256(), 0

    def note(changes: Sequence[Change]) -> None:
        nonlocal writes
        writes += 1
        digest.update(repr(list(changes)).encode())

    trial.services.dynamodb.on_change.append(note)
    verdict = trial.run()
    return f"{seed} {'faults' if faulty else 'none'} {writes} {digest.hexdigest()[:24]} {len(verdict.violations)}"


def main(arguments: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--fault-free", type=int, default=200, metavar="N")
    options.add_argument("--faulty", type=int, default=50, metavar="N")
    wanted = options.parse_args(arguments)
    seeds = [*range(wanted.fault_free), *range(wanted.faulty)]
    faulty = [False] * wanted.fault_free + [True] * wanted.faulty
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for line in pool.map(digest_of, seeds, faulty, chunksize=4):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
