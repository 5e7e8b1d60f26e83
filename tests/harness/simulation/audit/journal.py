"""Does the journal say what every commit changed, all of it, and nothing else?

`journal`: after each commit, the fold of all lines so far is what is stored: runs' statuses, tasks' statuses, live
attempts, instances and targets. Lines come with the transaction that makes their version and in no other way, they are
numbered without a gap, each item names the one before it, and expires three days later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.model.attempts import AttemptStatus
from argosy.model.journal.stored import CHANGES, KEPT_S, JournalItem, item_from
from argosy.model.tasks import TaskStatus
from tests.harness.simulation.audit.facts import Checker, Commit, EffectCheck, Operation, TrialFacts
from tests.harness.simulation.audit.journal_fold import FoldedAttempt, JournalFold

JSON = dict[str, Any]


class JournalChecker(Checker):
    """Items of the partition CHANGES, and what they say together."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self.fold = JournalFold()
        self.sequence: list[tuple[str, JSON]] = []
        """Every line with its sequence, as it was stored."""
        self._latest = 0
        self._items: list[JournalItem] = []
        """Of the transaction that is being looked at."""

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {
            ("dynamodb", "transact_write_items"): self._stored,
            ("dynamodb", "put_item"): self._put,
            ("dynamodb", "update_item"): self._put,
        }

    def compare(self, seen: Sequence[JSON]) -> None:
        """What a reader has been shown with what was stored, line by line."""
        shown = [(each["sequence"], each["type"], each.get("runId"), each.get("tasks")) for each in seen]
        stored = [(name, line["type"], line.get("runId"), line.get("tasks")) for name, line in self.sequence]
        if shown == stored:
            return
        place = next((n for n, pair in enumerate(zip(shown, stored, strict=False)) if pair[0] != pair[1]), len(shown))
        self._violated(
            f"a reader was shown {len(shown)} lines of {len(stored)}; the first that differs is "
            f"{shown[place : place + 1]}, where {stored[place : place + 1]} is stored"
        )

    def committed(self, commit: Commit) -> None:
        items, self._items = self._items, []
        self._check_items(items)
        for item in items:
            for number, line in enumerate(item.lines, start=item.first):
                self.sequence.append((f"{item.version}.{number}", dict(line)))
                try:
                    self.fold.take(line)
                except (KeyError, IndexError) as fault:
                    self._violated(f"line {line} does not follow from the lines before it: {fault!r}")
        if self.fold.is_damaged:
            return  # as a reader would be told: it has to list everything again
        for what, said, stored in self._comparisons():
            if said != stored:
                self._violated(f"the lines say of {what}: {said}; stored is {stored}", what)

    def _stored(self, request: JSON, reply: JSON) -> None:
        for action in request["TransactItems"]:
            put = action.get("Put", {}).get("Item", {})
            if put.get("pk") == {"S": CHANGES}:
                item = item_from(put["sk"]["S"], put["body"]["B"])
                self._items.append(item)
                if put.get("expires_at") != {"N": str(int(item.at + KEPT_S))}:
                    self._violated(f"lines of version {item.version} expire at {put.get('expires_at')}")
        self._items.sort(key=lambda item: item.first)

    def _put(self, request: JSON, reply: JSON) -> None:
        key = request.get("Item") or request["Key"]
        if key["pk"] == {"S": CHANGES}:
            self._violated(f"{key['sk']} was written without a commit")

    def _check_items(self, items: list[JournalItem]) -> None:
        version, following = self.facts.stored.version, 1
        for item in items:
            if (item.version, item.first, item.previous) != (version, following, self._latest):
                self._violated(
                    f"lines from {item.first} of version {item.version} after {item.previous} come with the commit of "
                    f"{version}, where those from {following} after {self._latest} do"
                )
            following += len(item.lines)
        if items:
            self._latest = version

    def _comparisons(self) -> list[tuple[str, Any, Any]]:
        """What, as the lines tell it, and as it is stored."""
        stored, fold = self.facts.stored, self.fold
        found: list[tuple[str, Any, Any]] = []
        for run_id, record in stored.records.items():
            found.append((run_id, fold.runs.get(run_id), str(record.status)))
            if run_id in fold.tasks:
                shown = [TaskStatus(row[0]) for row in stored.tables[run_id]]
                found.append((f"tasks of {run_id}", fold.statuses(run_id), shown))
        live = {
            (each.key.run_id, each.key.index): FoldedAttempt(
                each.key.attempt, each.key.launch, each.instance, AttemptStatus(each.status)
            )
            for each in stored.live.values()
        }
        instances = {name: each["status"] for name, each in stored.instances.items() if each["owned"]}
        pools = {key: (each["spot_target"], each["on_demand_target"]) for key, each in stored.pools.items()}
        found.append(("live attempts", fold.live, live))
        found.append(("instances", fold.instances, instances))
        found.append(("targets", fold.pools, pools))
        return found

    def _violated(self, sentence: str, *names: str) -> None:
        self.facts.violated("journal", sentence[:2000], *names)
