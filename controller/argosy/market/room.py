"""How many of a run's tasks does an empty instance of a pool take?"""

from __future__ import annotations

from argosy.catalogue.lookup import load_catalogue
from argosy.model.pools import Pool
from argosy.model.runs import Run


def tasks_in(pool: Pool, run: Run) -> int:
    """How many of a run's tasks an empty instance of the pool takes, by their resources."""
    kind = load_catalogue().get(pool.instance_type)
    if kind is None or (run.cells and pool.cell not in run.cells):
        return 0
    room = (kind.cpu_units, kind.registered_memory_mib, kind.gpus)
    return min((have // need for have, need in zip(room, run.needs, strict=True) if need), default=1)
