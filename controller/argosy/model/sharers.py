"""The sharers and their use: queues, and owners within a queue that is shared by owners."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from argosy.model.run_terms import DEFAULT_QUEUE
from argosy.model.runs import Run
from argosy.model.shares.recent_use import Sharer
from argosy.model.shares.sharing import ShareQueue
from argosy.model.state import State


def queue_of_run(run: Run, queues: Mapping[str, ShareQueue]) -> str:
    """The run's queue, or the default queue if a later document left its queue out."""
    return run.terms.queue if run.terms.queue in queues else DEFAULT_QUEUE


def sharer_of(run: Run, queues: Mapping[str, ShareQueue]) -> Sharer:
    """The sharer of this run. Unproven owners share one place, so that an invented name gains nothing."""
    name = queue_of_run(run, queues)
    return name, run.proven_owner if queues[name].by_owner else ""


def live_by_number(state: State) -> dict[int, int]:
    """By Run.number, how many live attempts have a place."""
    numbers, counts = np.unique(state.attempts["run"][state.attempts.placed()], return_counts=True)
    return dict(zip(numbers.tolist(), counts.tolist(), strict=True))


def taken_by_sharer(state: State, live: Mapping[int, int]) -> dict[Sharer, list[int]]:
    """Use by each sharer with open runs: cpu units, MiB, GPUs; daemons count for none. live: from `live_by_number`."""
    queues = state.sharing.queues()
    found: dict[Sharer, list[int]] = {}
    for run in state.runs.values():
        its = found.setdefault(sharer_of(run, queues), [0, 0, 0])
        for axis, need in enumerate(run.needs.cpu_memory_gpus if not run.is_daemon else ()):
            its[axis] += live.get(run.number, 0) * need
    for suspended in state.suspended.values():  # its tasks continue; its owner is not known
        taken = found.get((suspended.record.queue, ""))
        if taken is not None and not suspended.record.is_daemon:
            for axis, need in enumerate(suspended.record.needs.cpu_memory_gpus):
                taken[axis] += live.get(suspended.record.number, 0) * need
    return found
