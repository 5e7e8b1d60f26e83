"""Is a run whose it was when it came in, and does it stay in the queue through whose entrance it came?

`S11`: the stored owner of a run is the one who has proven it, and nobody where nobody has. What came through an
entrance is changed through it, and is of its queue for ever.
"""

from __future__ import annotations

from tests.harness.simulation.audit.facts import Checker, Commit


class MembersChecker(Checker):
    """Every stored record, against how its run came in."""

    def committed(self, commit: Commit) -> None:
        for run_id, came in self.facts.came.items():
            record = self.facts.stored.records.get(run_id)
            if record is None or not record.queue:  # not taken in yet, or nothing of it can be read
                continue
            if record.proven_owner != came.owner:
                told = f"it is of {record.proven_owner or 'nobody'}, and {came.owner or 'nobody'} has proven it"
                self.facts.violated("S11", told, run_id)
            if came.queue not in ("", record.queue):
                told = f"it came through the queue {came.queue}, and is in {record.queue}"
                self.facts.violated("S11", told, run_id)
