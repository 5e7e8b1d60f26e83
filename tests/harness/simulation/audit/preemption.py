"""Is room taken only from runs that may be stopped, and from none that ends up below the taker?

S5, judged by the stored state when attempts are stopped for a run: the run's queue may take room, and their queue may
give it. No queue that gives is below the run's queue afterwards. None of the tasks was stopped too often before. No
more work is lost in an hour than is allowed. The run has waited for room as long as the document says. A stopped
attempt counts neither as a failure nor as a loss.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from argosy.model.attempts import StopCause
from argosy.model.resources import Resources
from argosy.model.shares.sharing import Reclaim, ShareQueue
from tests.harness.simulation.audit.backfill import kept_for
from tests.harness.simulation.audit.facts import Checker, Commit, TrialFacts
from tests.harness.simulation.audit.sharing import Party, party_of
from tests.harness.simulation.audit.stored_state import StoredAttempt

JSON = dict[str, Any]
HOUR_S = 3600.0
MOST_STOPPED = 50
ROUNDING = 1e-9
Place = tuple[int, int]


class PreemptionChecker(Checker):
    """Stops, reserved room, and the outcome of both."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self.stopped = 0
        """Attempts that were asked to stop for other runs."""
        self.guarded = 0
        """Those of them where the order of the sharers could be judged."""
        self._live: dict[Place, StoredAttempt] = {}
        self._preempted: dict[tuple[str, int], int] = {}
        self._held_since: Mapping[str, float] = {}
        """By run, since when it has waited for room that it may take, as stored before."""
        self._displaced: tuple[tuple[float, float], ...] = ()

    def committed(self, commit: Commit) -> None:
        stored = self.facts.stored
        if stored.version == commit.version_before:
            return
        fresh = [each for place, each in stored.live.items() if self._is_new(place, each)]
        for each in fresh:
            self.stopped += 1
            self._may_be_stopped(each)
            self._has_waited(each)
        self._are_few(fresh)
        if fresh and self._is_clear():
            self._is_just(fresh)
        self._is_within_the_hour()
        self._counts_for_nothing(commit)
        self._live = dict(stored.live)
        self._displaced, self._held_since = stored.sharing.displaced, stored.sharing.held_since
        self._preempted = {
            (each.key.run_id, each.key.index): int(stored.task_tables[each.key.run_id]["preempted"][each.key.index])
            for each in stored.live.values()
            if each.key.run_id in stored.task_tables
        }

    def _is_new(self, place: Place, live: StoredAttempt) -> bool:
        before = self._live.get(place)
        was = before is not None and before.key == live.key and before.stop_cause == StopCause.PREEMPTED
        return live.stop_cause == StopCause.PREEMPTED and not was

    def _may_be_stopped(self, live: StoredAttempt) -> None:
        facts, sharing = self.facts, self.facts.stored.sharing
        reclaim, taker = sharing.reclaim, self._name(live.for_run)
        if reclaim is None or not reclaim.stops:
            facts.violated("S5", f"{live.key} is stopped for others, and no document says so", live.key.run_id)
            return
        if taker not in facts.jobs or live.key.run_id not in facts.jobs:
            return
        if not self._queue(taker).preempts:
            facts.violated("S5", f"{live.key} is stopped for {taker}, whose queue may not take room", taker)
        job = facts.jobs[live.key.run_id]
        if job.serves or not self._gives_up(live.key.run_id, facts.spec_of(live.key.run_id).get("preemptible")):
            facts.violated("S5", f"{live.key} is stopped for {taker}, and may not be", live.key.run_id)
        if self._times(live) >= reclaim.per_task:
            facts.violated("S5", f"{live.key} is stopped more than {reclaim.per_task} times", live.key.run_id)

    def _has_waited(self, live: StoredAttempt) -> None:
        reclaim, taker = self.facts.stored.sharing.reclaim, self._name(live.for_run)
        now = self.facts.world.now + self.facts.clocks_differ_s
        waited_s = now - self._held_since.get(taker, now)
        if reclaim is not None and waited_s < reclaim.after_s:
            told = f"{live.key} is stopped for {taker}, which has waited for {waited_s:.0f} s of {reclaim.after_s:.0f}"
            self.facts.violated("S5", told, taker, live.key.run_id)

    def _are_few(self, fresh: list[StoredAttempt]) -> None:
        """Each exchange stops tasks on a different instance, and the last one may exceed the limit."""
        on_each = Counter(each.instance for each in fresh)
        before_last = len(fresh) - max(on_each.values(), default=0)
        most = max(1, min(MOST_STOPPED, len(self.facts.stored.live) // 100))
        if before_last >= most:
            told = f"{len(fresh)} attempts on {len(on_each)} instances are stopped at once; {most} may be"
            self.facts.violated("S5", told, *(each.key.run_id for each in fresh))

    def _times(self, live: StoredAttempt) -> int:
        return self._preempted.get((live.key.run_id, live.key.index), 0)

    def _is_clear(self) -> bool:
        """Whether all sharers of the cluster are known: a run that is set aside holds places, and is not a sharer. With
        a limit in dollars these are shared instead, each task at its cheapest price, which depends on the offers. Where
        tasks share GPUs, a level counts the memory of these, which the stored sizes of instances do not show."""
        stored = self.facts.stored
        latest = stored.sharing.latest
        if latest is not None and "usdPerHour" in latest.document.get("limits", {}):
            return False
        open_runs = set(stored.root.get("runs", ()))
        known = open_runs <= self.facts.jobs.keys() & stored.records.keys()
        records = [stored.records[run_id] for run_id in open_runs] if known else []
        return known and not any(each.suspended_at or each.needs.gpu_share_mib for each in records)

    def _is_just(self, fresh: Iterable[StoredAttempt]) -> None:
        use, parts = self._use()
        for each in fresh:
            taker = self._name(each.for_run)
            if taker not in self.facts.stored.root.get("runs", ()):
                continue
            first, second = self._party(taker), self._party(each.key.run_id)
            self.guarded += 1
            if first == second or self._level(first, use, parts) > self._level(second, use, parts):
                sentence = f"{each.key} is stopped for {taker}, and its queue is lower afterwards"
                self.facts.violated("S5", sentence, taker, each.key.run_id)

    def _use(self) -> tuple[dict[Party, list[int]], Counter[str]]:
        """The usage of all sharers after the decision, and the number that divides the weight of a queue."""
        stored = self.facts.stored
        use: dict[Party, list[int]] = {}
        for live in stored.live.values():
            if live.key.run_id in stored.root.get("runs", ()) and live.stop_cause != StopCause.PREEMPTED:
                self._add(use, live.key.run_id, 1)
        for instance in stored.instances.values():
            run_id = kept_for(self.facts, instance)
            if run_id:
                self._add(use, run_id, int(instance["yields_tasks"]))
        parties = {self._party(run_id) for run_id in stored.root.get("runs", ())}
        return use, Counter(queue for queue, _ in parties)

    def _add(self, use: dict[Party, list[int]], run_id: str, tasks: int) -> None:
        needs: Resources = self.facts.stored.records[run_id].needs
        sums = use.setdefault(self._party(run_id), [0, 0, 0])
        for axis, need in enumerate(needs[:3]):
            sums[axis] += tasks * need

    def _level(self, party: Party, use: Mapping[Party, list[int]], parts: Mapping[str, int]) -> tuple[bool, Fraction]:
        """A sharer without weight is above all others."""
        weight = self.facts.stored.sharing.queues()[party[0]].weight
        alive = [each["total"] for each in self.facts.stored.instances.values() if each["status"] != "GONE"]
        whole = [sum(total[axis] for total in alive if total) for axis in range(3)]
        used = use.get(party, [0, 0, 0])
        part = max((Fraction(each, all_) for each, all_ in zip(used, whole, strict=True) if all_), default=Fraction(0))
        return weight == 0, part * parts[party[0]] / max(1, weight)

    def _is_within_the_hour(self) -> None:
        sharing = self.facts.stored.sharing
        reclaim: Reclaim | None = sharing.reclaim
        if reclaim is None or sharing.displaced == self._displaced or not sharing.displaced:
            return
        at = sharing.displaced[-1][0]
        lost = sum(usd for then, usd in sharing.displaced if then > at - HOUR_S)
        alive = [each for each in self.facts.stored.instances.values() if each["status"] != "GONE"]
        most = reclaim.per_hour_of_spend * sum(each["price_usd_per_hour"] for each in alive)
        if lost > most + ROUNDING:
            self.facts.violated("S5", f"work worth {lost:.6f} USD is lost in an hour; {most:.6f} may be")

    def _counts_for_nothing(self, commit: Commit) -> None:
        stored = self.facts.stored
        live = {each.key for each in stored.live.values()}
        for each in self._live.values():
            run_id, index = each.key.run_id, each.key.index
            before, after = commit.tables_before.get(run_id), stored.tables.get(run_id)
            if each.stop_cause != StopCause.PREEMPTED or each.key in live or before is None or after is None:
                continue
            if after[index][1:3] != before[index][1:3]:
                self.facts.violated("S5", f"{each.key} was stopped for others, and that counts as a failure", run_id)

    def _name(self, number: int) -> str:
        return self.facts.stored.name_of(number) if number else ""

    def _queue(self, run_id: str) -> ShareQueue:
        return self.facts.stored.sharing.queues()[self._party(run_id)[0]]

    def _gives_up(self, run_id: str, run_says: bool | None) -> bool:
        """According to the document and the run's spec."""
        latest = self.facts.stored.sharing.latest
        queues = latest.document["queues"] if latest is not None else {}
        queue_says = queues.get(self._party(run_id)[0], {}).get("preemptible")
        return (run_says is True and queue_says is not False) or (queue_says is True and run_says is not False)

    def _party(self, run_id: str) -> Party:
        return party_of(self.facts, run_id, self.facts.stored.sharing.queues())
