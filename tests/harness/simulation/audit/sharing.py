"""Is the sharer furthest below its share always served first?

S1: where an intent of one sharer is stored, no other sharer that is lower by more than a task waits with a task
that would have fitted in its place. It is judged by the stored state, while nothing fails, nothing is incoming and the
open runs are few and of one shape: then the live attempts show the level of each, every task fits where another does,
and a commit holds all launches. A sharer with a guarantee may come first, and one with a cap may have to wait (`caps`).
Recent usage counts as it is stored. S13, in the same cases: nothing that is not guaranteed starts while a queue that
uses less than its guarantee waits with a task. S10, in the same cases: within a queue, or an owner's part of it, no run
starts a task while a run of higher priority, or an older one of the same priority, waits with one. Runs with deadlines
are left out: no commit says how long tasks last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from argosy.model.run_record import RunRecord
from argosy.model.shares.recent_use import UNIT
from argosy.model.shares.sharing import ShareQueue
from argosy.model.tasks import TaskStatus
from tests.harness.simulation.audit.facts import Checker, Commit, TrialFacts
from tests.harness.simulation.audit.stored_state import StoredAttempt
from tests.harness.simulation.world.members import UNNAMED

JSON = dict[str, Any]
Party = tuple[str, str]  # queue, and the owner where it is shared by owners

ONE = 64  # of a factor
MOST_OPEN = 6  # runs: with more of them a commit may not hold all that is begun
SETTLED_S = 120.0  # seconds after which a task that may start waits; a run waits if the previous commit prepared it
STARTED = ("resources", "placement", "capacity", "run", "container")  # spec fields that decide where tasks fit


class SharingChecker(Checker):
    """Intents while tasks waited."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self.judged = 0
        """Intents while a run of another queue waited."""
        self.within = 0
        """Intents while a run of the same queue waited."""
        self.guaranteed = 0
        """Intents while a run of a queue with a guarantee waited."""
        self.remembered = 0
        """Those of them where one used more lately than the other."""
        self._parties: set[Party] = set()
        self._quiet_since: dict[str, float] = {}
        """By run: since when it has waited with everything that it needs and no launch under way."""

    def committed(self, commit: Commit) -> None:
        stored = self.facts.stored
        if stored.version == commit.version_before:
            return
        queues = stored.sharing.queues()
        waiting = self._waiting()
        parties = {run_id: self._party(run_id, queues) for run_id in self._open()}
        decided_with, self._parties = self._parties, {*parties.values()}
        if len(queues) < 2 or not commit.intents or self._is_unclear():
            return
        if stored.sharing.recent.at and decided_with != self._parties:
            return  # the sharers of the cluster had other parts then
        fresh = {intent.key for intent in commit.intents}
        before = self._live(parties, (each for each in stored.live.values() if each.key not in fresh))
        after = self._live(parties, stored.live.values())
        for run_id in sorted({key.run_id for key in fresh} & parties.keys()):
            for other in sorted(waiting & parties.keys()):
                if parties[run_id] == parties[other]:
                    self._is_in_order(run_id, other)
                if parties[run_id][0] != parties[other][0]:
                    self._is_guaranteed(run_id, other, parties, after)
                bound = queues[parties[run_id][0]].guarantee or queues[parties[other][0]].cap.is_any
                if parties[run_id] != parties[other] and not bound:
                    self.judged += 1
                    self.remembered += self._factor(parties[run_id], parties) != self._factor(parties[other], parties)
                    first, second = self._height(parties, run_id, before), self._height(parties, other, after, more=1)
                    if second is not None and (first is None or first > second):
                        told = f"a task of {run_id} is started while one of {other} waits, whose queue is lower"
                        self.facts.violated("S1", told, run_id, other)

    def _is_guaranteed(self, run_id: str, other: str, parties: Mapping[str, Party], live: Counter[Party]) -> None:
        """Whether what other's queue is guaranteed comes first. All tasks are alike."""
        stored, queues = self.facts.stored, self.facts.stored.sharing.queues()
        first, second = queues[parties[run_id][0]], queues[parties[other][0]]
        promised, needs = second.guarantee, stored.records[other].needs
        each = {"vcpus": needs.cpu_units / 1024, "gpus": needs.gpus}.get(promised.unit, 0.0) if promised else 0.0
        if promised is None or not each or first.guarantee or second.cap.is_any:
            return
        used = each * sum(count for party, count in live.items() if party[0] == parties[other][0])
        self.guaranteed += 1
        if used + each <= promised.amount:
            told = f"a task of {run_id} is started while one of {other} waits, which its queue is guaranteed"
            self.facts.violated("S13", told, run_id, other)

    def _is_in_order(self, run_id: str, other: str) -> None:
        """Within a queue, or an owner's part of it; the order of runs with deadlines is in no commit."""
        if any("deadline" in self.facts.spec_of(each).get("capacity", {}) for each in (run_id, other)):
            return
        self.within += 1
        if self._place(other) < self._place(run_id):
            told = f"a task of {run_id} is started while one of {other} waits, which comes first in their queue"
            self.facts.violated("S10", told, run_id, other)

    def _place(self, run_id: str) -> tuple[int, int]:
        record = self.facts.stored.records[run_id]
        return -record.priority, record.number

    def _height(self, parties: dict[str, Party], run_id: str, live: Counter[Party], more: int = 0) -> Fraction | None:
        """The height of the run's sharer with that many more tasks; None if it has no share."""
        party = parties[run_id]
        weight = self.facts.stored.sharing.queues()[party[0]].weight
        parts = sum(each[0] == party[0] for each in {*parties.values()})
        if not weight:
            return None
        return Fraction((live[party] + more) * parts * ONE, weight * self._factor(party, parties))

    def _factor(self, party: Party, parties: dict[str, Party]) -> int:
        """The factor of its weight for recent usage, in parts of ONE: its part by weight over the part that it used,
        of the supply or of all usage together. Read from the store, not computed as the scheduler does.
        """
        recent, queues = self.facts.stored.sharing.recent, self.facts.stored.sharing.queues()
        if not recent.at:
            return ONE
        due = Fraction(
            queues[party[0]].weight, max(1, sum(queues[name].weight for name in {each[0] for each in parties.values()}))
        )
        due /= sum(each[0] == party[0] for each in {*parties.values()})
        there = [
            max(all_ * UNIT, sum(each[axis] for each in recent.means.values()))
            for axis, all_ in enumerate(recent.whole)
        ]
        used = [Fraction(mean, of) for mean, of in zip(recent.means.get(party, ()), there, strict=False) if mean]
        return max(ONE // 4, min(4 * ONE, int(ONE * due / max(used)) if used else 4 * ONE))

    def _is_unclear(self) -> bool:
        """Whether something else may decide which run starts."""
        facts, stored, runs = self.facts, self.facts.stored, self._open()
        if not facts.faults_ended_at or len(runs) > MOST_OPEN or stored.environments or stored.floor.instances:
            return True
        shapes = [self._shape(run_id) for run_id in runs]
        if any(shape != shapes[0] for shape in shapes):
            return True
        if any(each.get("yields_to") for each in stored.instances.values()):
            return True  # room is reserved for the run that took it (`audit.preemption`)
        alive = [each for each in stored.instances.values() if each["status"] != "GONE" and each["owned"]]
        targets = sum(max(0, each["spot_target"]) + max(0, each["on_demand_target"]) for each in stored.pools.values())
        return targets > len(alive) or any(each["status"] != "ACTIVE" for each in alive)

    def _open(self) -> list[str]:
        return [run_id for run_id in self.facts.stored.root.get("runs", ()) if run_id in self.facts.jobs]

    def _waiting(self) -> set[str]:
        """Runs that could have started a task for two minutes and more."""
        now, stored = self.facts.world.now, self.facts.stored
        able = set()
        for run_id in self._open():
            record, table = stored.records.get(run_id), stored.task_tables.get(run_id)
            if record is None or table is None or not _may_start(record, now):
                continue
            pending = table["status"] == TaskStatus.PENDING.value
            if bool((pending & (table["not_before"] <= now - SETTLED_S)).any()):
                able.add(run_id)
        self._quiet_since = {run_id: self._quiet_since.get(run_id, now) for run_id in able}
        return {run_id for run_id, since in self._quiet_since.items() if now - since >= SETTLED_S}

    def _party(self, run_id: str, queues: Mapping[str, ShareQueue]) -> Party:
        return party_of(self.facts, run_id, queues)

    def _live(self, parties: dict[str, Party], live: Iterable[StoredAttempt]) -> Counter[Party]:
        """By sharer, its live attempts."""
        return Counter(parties[each.key.run_id] for each in live if each.key.run_id in parties)

    def _shape(self, run_id: str) -> list[Any]:
        spec = self.facts.spec_of(run_id)
        return [spec.get(name) for name in STARTED]


def party_of(facts: TrialFacts, run_id: str, queues: Mapping[str, ShareQueue]) -> Party:
    """The sharers of the cluster as far as a run is concerned. Runs without a proven owner are one sharer."""
    name = facts.spec_of(run_id).get("queue", "default")
    name = name if name in queues else "default"
    return name, facts.came.get(run_id, UNNAMED).owner if queues[name].by_owner else ""


def _may_start(record: RunRecord, now: float) -> bool:
    stopped = record.halted or record.cancelled or record.suspended_at or record.capped_at or record.has_ended
    waits = record.not_before > now or record.unmet  # for its time, or for other runs
    return bool(record.task_definition and not stopped and not waits and not record.revives)
