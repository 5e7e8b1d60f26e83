"""Is nothing begun above what a run may have by now, however often its users change that?

`S9`: where the intent of an attempt is stored, its run has no more live attempts than the `maxConcurrentTasks` that is
stored with it allows, works on no further instance above `maxInstances`, and has money left of its budget. What was
begun under earlier terms may go on. And a change is kept: it is in every later record.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from argosy.model.run_record import RunRecord
from argosy.model.run_terms import RunTerms
from tests.harness.simulation.audit.facts import Checker, Commit, TrialFacts
from tests.harness.simulation.audit.stored_state import StoredAttempt


class UpdateChecker(Checker):
    """Every commit with an intent, against the run's record of the same commit."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self.judged = 0
        """Intents of runs that a user had changed."""
        self._seen: dict[str, set[str]] = {}
        """By run, the fields that were changed."""

    def committed(self, commit: Commit) -> None:
        self._look_at_changes()
        fresh = {intent.key for intent in commit.intents}
        before: defaultdict[str, list[StoredAttempt]] = defaultdict(list)
        after: defaultdict[str, list[StoredAttempt]] = defaultdict(list)
        for each in self.facts.stored.live.values():
            if not each.instance:
                continue  # it has ended, and what became of it is found out later
            after[each.key.run_id].append(each)
            if each.key not in fresh:
                before[each.key.run_id].append(each)
        for run_id in sorted({key.run_id for key in fresh}):
            record = self.facts.stored.records[run_id]
            self.judged += bool(record.changes)
            if run_id in self.facts.jobs:
                self._check(record, before[run_id], after[run_id])

    def _check(self, record: RunRecord, before: list[StoredAttempt], after: list[StoredAttempt]) -> None:
        terms = RunTerms.of(self.facts.spec_of(record.id))
        if terms.max_concurrent is not None and len(after) > terms.max_concurrent:
            told = f"{len(after)} of its tasks are alive, {terms.max_concurrent} may be"
            self.facts.violated("S9", told, record.id)
        most = terms.max_instances
        used = _instances(after)
        if most is not None and len(used) > most and used > _instances(before):
            self.facts.violated("S9", f"it begins to work on {len(used)} instances, {most} are allowed", record.id)
        if terms.budget_usd is not None and record.cost_usd > terms.budget_usd:
            told = f"a task is begun, and {record.cost_usd:.4f} USD of {terms.budget_usd} are spent"
            self.facts.violated("S9", told, record.id)

    def _look_at_changes(self) -> None:
        for run_id, record in self.facts.stored.records.items():
            seen = self._seen.setdefault(run_id, set())
            if seen - record.changes.keys():
                self.facts.violated("S9", f"its change of {min(seen - record.changes.keys())} is lost", run_id)
            seen.update(record.changes)


def _instances(live: Iterable[StoredAttempt]) -> set[str]:
    return {each.instance for each in live if each.instance}
