"""The page of planted bugs. `python -m tests.mutations.table` runs them all and prints it.

The record of the sampled mutants is below the table.

python -m tests.mutations.table > docs/reference/planted-bugs.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

HEAD = """\
# Planted bugs

Written by `make test-deep`; do not edit.

Each of these mistakes is planted in the code, one at a time, and the suite must find it: by random trials under faults
(the invariant that broke, and after how many seeds) or by a test. They are defined in `tests/mutations/`.

| bug | what is broken | found by | seeds |
|---|---|---|---|
"""


def line(row: Sequence[Any]) -> str:
    name, what, check, seeds = row
    return f"| `{name}` | {what} | {check} | {seeds or '-'} |"


def text(rows: Iterable[Sequence[Any]]) -> str:
    from tests.mutations import sampled_page

    return HEAD + "\n".join(line(row) for row in sorted(rows)) + "\n" + sampled_page.text()


def main() -> int:
    import pytest

    from tests.mutations import (
        planted,
        planted_buying,
        planted_cells,
        planted_changes,
        planted_daemons,
        planted_dependencies,
        planted_entrances,
        planted_faults,
        planted_floors,
        planted_further,
        planted_gangs,
        planted_gpus,
        planted_health,
        planted_hosts,
        planted_journal,
        planted_once_missed,
        planted_outages,
        planted_pages,
        planted_preemption,
        planted_pulls,
        planted_quiet,
        planted_readings,
        planted_refusals,
        planted_schedules,
        planted_services,
        planted_sharing,
        planted_targets,
        planted_trials,
        planted_users,
    )
    from tests.mutations.catalogue import BUGS, hunt

    rows, missed = [], []
    for name in sys.argv[1:] or sorted(BUGS):
        with pytest.MonkeyPatch.context() as patch:
            found = hunt(name, patch)
        print(name, found, file=sys.stderr, flush=True)
        if found is None:
            missed.append(name)
        else:
            rows.append((name, BUGS[name].what, found.check, found.seeds))
    print(text(rows), end="")
    assert planted.Patch is planted_buying.Patch is planted_further.Patch is planted_outages.Patch
    assert planted.Patch is planted_cells.Patch is planted_trials.Patch is planted_faults.Patch
    assert planted.Patch is planted_once_missed.Patch is planted_journal.Patch is planted_pages.Patch
    assert planted.Patch is planted_services.Patch is planted_health.Patch
    assert planted.Patch is planted_schedules.Patch is planted_dependencies.Patch
    assert planted.Patch is planted_services.Patch is planted_floors.Patch
    assert planted.Patch is planted_schedules.Patch is planted_sharing.Patch
    assert planted.Patch is planted_daemons.Patch is planted_preemption.Patch is planted_gangs.Patch
    assert planted.Patch is planted_schedules.Patch is planted_sharing.Patch is planted_quiet.Patch
    assert (
        planted.Patch
        is planted_targets.Patch
        is planted_changes.Patch
        is planted_entrances.Patch
        is planted_pulls.Patch
        is planted_refusals.Patch
        is planted_readings.Patch
        is planted_gpus.Patch
        is planted_hosts.Patch
        is planted_users.Patch
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
