"""Does a task start in reserved room only if it will be gone in time?

S12, judged by the stored state: a task that starts on an instance reserved for another run is gone before that run
could start there. The latest time at which it is gone: its time-out plus two minutes to react, or one and a half times
the longest of at least five tasks of its run; plus a minute to start. The earliest time at which the other run could
start: when enough of the earlier tasks have ended (all of them if that is never enough), each no sooner than the
shortest task of its run. It is unknown for a run of which fewer than five tasks have ended. A daemon's task is no guest
and never ends: it has its room on every instance.
"""

from __future__ import annotations

import math
from typing import Any

from argosy.model.attempts import AttemptKey, StopCause
from argosy.model.tasks import TaskStatus
from tests.harness.simulation.audit.facts import Checker, Commit, TrialFacts
from tests.harness.simulation.audit.stored_state import StoredAttempt

JSON = dict[str, Any]
Place = tuple[int, int]
SEEN, LONGER, STOPPING_S, STARTING_S = 5, 1.5, 120.0, 60.0
COMMITTED_S = 30.0  # a tick may take this long, from its decision to its commit


def kept_for(facts: TrialFacts, instance: JSON) -> str:
    """The waiting run that the instance is reserved for now; "" = none."""
    stored = facts.stored
    if facts.world.now >= float(instance.get("yields_until", 0.0)) or not instance.get("yields_to"):
        return ""
    run_id = stored.name_of(int(instance["yields_to"]))
    table = stored.task_tables.get(run_id)
    is_open = run_id in stored.root.get("runs", ()) and table is not None and not stored.records[run_id].halted
    return run_id if is_open and table is not None and (table["status"] == TaskStatus.PENDING.value).any() else ""


class BackfillChecker(Checker):
    """Intents on reserved instances, judged by the state stored before, while the clocks of controllers agree."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self.judged = 0
        """Intents in room that was reserved for others."""
        self._live: dict[Place, StoredAttempt] = {}
        self._instances: dict[str, JSON] = {}
        self._guests: set[AttemptKey] = set()

    def committed(self, commit: Commit) -> None:
        stored = self.facts.stored
        if stored.version == commit.version_before:
            return
        for intent in commit.intents:
            instance = self._instances.get(intent.instance, {})
            holder = kept_for(self.facts, instance)
            if holder and holder != intent.key.run_id and not stored.records[intent.key.run_id].is_daemon:
                self._guests.add(intent.key)
                if not self.facts.clocks_differ_s:
                    self._judge(intent, instance, holder)
        self._live, self._instances = dict(stored.live), dict(stored.instances)

    def _judge(self, intent: StoredAttempt, instance: JSON, holder: str) -> None:
        self.judged += 1
        now = self.facts.world.now
        stays_s, free_s = self._stays_s(intent.key.run_id), self._needed_at(instance, holder) - now
        if stays_s > free_s + COMMITTED_S:
            told = f"{intent.key} may stay for {stays_s:.0f} s on {intent.instance}, where {holder} may start in"
            self.facts.violated("S12", f"{told} {max(0.0, free_s):.0f} s", holder, intent.key.run_id)

    def _stays_s(self, run_id: str) -> float:
        record = self.facts.stored.records[run_id]
        limit_s = record.attempt_timeout_s + STOPPING_S if record.attempt_timeout_s else math.inf
        seen_s = LONGER * record.longest_s if record.ended >= SEEN else math.inf
        return min(limit_s, seen_s) + STARTING_S

    def _needed_at(self, instance: JSON, holder: str) -> float:
        needs = self.facts.stored.records[holder].needs[:3]
        total, foreign = instance["total"], instance.get("foreign") or (0, 0, 0)
        free = [all_ - other for all_, other in zip(total, foreign, strict=True)]
        there = [each for each in self._live.values() if each.instance == instance["id"]]
        there = [
            each for each in there if each.key not in self._guests and each.key.run_id in self.facts.stored.records
        ]
        ends = []
        for each in there:
            taken = self.facts.stored.records[each.key.run_id].needs[:3]
            free = [has - need for has, need in zip(free, taken, strict=True)]
            if not self.facts.stored.records[each.key.run_id].is_daemon:
                ends.append((self._ends_at(each), taken))
        at = self.facts.world.now
        for ended_at, taken in sorted(ends):
            if all(has >= need for has, need in zip(free, needs, strict=True)):
                return at
            free, at = [has + more for has, more in zip(free, taken, strict=True)], max(at, ended_at)
        return at

    def _ends_at(self, live: StoredAttempt) -> float:
        now, record = self.facts.world.now, self.facts.stored.records[live.key.run_id]
        if live.stop_cause != StopCause.NONE or record.ended < SEEN or self._serves(live.key.run_id):
            return now
        return max(now, (live.started_at or now) + record.shortest_s)

    def _serves(self, run_id: str) -> bool:
        return run_id not in self.facts.jobs or self.facts.jobs[run_id].serves
