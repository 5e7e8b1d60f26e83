"""Does every waiting sharer have its share, or a reason?

Judged under the conditions of S1 (`sharing`): the open runs are alike, nothing fails and nothing is incoming, so live
attempts show the level of each sharer, and only places are short. S2: no task waits for minutes while an instance has
room for it, and a run that waits says why. S3: a waiting sharer below its share gets a place soon after the longest
attempt could have ended. S4: where the same sharers have waited for two of the longest attempts, none of them has more
than a task above another one, by weight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from argosy.engine.report import TickReport
from tests.harness.simulation.audit.facts import Commit, TrialFacts
from tests.harness.simulation.audit.sharing import SETTLED_S, Party, SharingChecker
from tests.harness.simulation.audit.stored_state import StoredAttempt

JSON = dict[str, Any]
TROUBLE = (
    "paused_until",
    "cordon",
    "rebalance_at",
    "interrupted_at",
    "disconnected_at",
    "draining_since",
    "foreign_since",
)
LIMITED = ("capacity", "placement", "timeout", "run", "dependsOn", "notBefore")  # what a spec may say of its own limits
ROUNDS = 2  # longest attempts after which shares are even
LATE_S = 180.0  # from the end of a task until another one has its place: late events, ticks once a minute


class ShareChecker(SharingChecker):
    """Tasks that wait while others run."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self.waited = 0
        """Checks of a waiting sharer while all places are taken."""
        self.compared = 0
        """Pairs of sharers that had waited for long enough."""
        self._free_since: dict[str, float] = {}
        self._under_since: dict[Party, float] = {}
        self._same_since: tuple[float, Any] = (0.0, None)

    def committed(self, commit: Commit) -> None:
        if self.facts.stored.version != commit.version_before:
            self._look(commit.intents)

    def ticked(self, report: TickReport, version: int | None) -> None:
        if version == self.facts.stored.version:
            self._look([])

    def _look(self, intents: list[StoredAttempt]) -> None:
        stored = self.facts.stored
        queues = stored.sharing.queues()
        waiting = self._waiting()
        bound = any(each.guarantee or each.cap.is_any for each in queues.values())
        if len(queues) < 2 or self._is_unclear() or bound or stored.sharing.recent.at or not self._is_plain():
            self._free_since, self._under_since, self._same_since = {}, {}, (0.0, None)
            return
        parties = {run_id: self._party(run_id, queues) for run_id in self._open()}
        live = self._live(parties, stored.live.values())
        free = self._free(waiting)
        self._nobody_waits_beside_room(waiting, free)
        heirs = {parties[run_id] for run_id in waiting & parties.keys() if queues[parties[run_id][0]].weight}
        self._starves_nobody(heirs, parties, live, {intent.key.run_id for intent in intents})
        if not free:
            self._is_even(heirs, parties, live)

    def _is_plain(self) -> bool:
        """Whether none of the open runs' own limits keeps their tasks from a place, and their tasks succeed."""
        for run_id in self._open():
            spec, job = self.facts.spec_of(run_id), self.facts.jobs[run_id]
            if any(spec.get(name) for name in LIMITED) or any((job.failing, job.hanging, job.unpullable, job.silent)):
                return False
        return True

    def _free(self, waiting: set[str]) -> list[str]:
        """Ids of the healthy instances with room for a task; all are alike."""
        stored, used = self.facts.stored, Counter[tuple[str, int]]()
        needs = next((stored.records[run_id].needs for run_id in sorted(waiting)), None)
        if needs is None:
            return []
        for each in stored.live.values():
            if each.key.run_id in stored.records:
                for axis, need in enumerate(stored.records[each.key.run_id].needs[:3]):
                    used[each.instance, axis] += need
        return [
            name
            for name, each in stored.instances.items()
            if each["status"] == "ACTIVE" and each["owned"] and not any(each.get(trouble) for trouble in TROUBLE)
            if all(total - used[name, axis] >= needs[axis] for axis, total in enumerate(each["total"]))
        ]

    def _nobody_waits_beside_room(self, waiting: set[str], free: list[str]) -> None:
        now = self.facts.world.now
        self._free_since = {name: self._free_since.get(name, now) for name in free} if waiting else {}
        for run_id in sorted(waiting):
            self.waited += not free
            for name, since in self._free_since.items():
                if now - since > SETTLED_S:
                    self.facts.violated("S2", f"a task of {run_id} waits while {name} has room for it", run_id, name)
            if not free and not self.facts.stored.records[run_id].waiting:
                self.facts.violated("S2", f"{run_id} waits, and does not say for what", run_id)

    def _starves_nobody(
        self, heirs: set[Party], parties: Mapping[str, Party], live: Counter[Party], started: set[str]
    ) -> None:
        now, queues = self.facts.world.now, self.facts.stored.sharing.queues()
        served = {parties[run_id] for run_id in started & parties.keys()}
        sharers = {*parties.values()}
        weights = sum(queues[name].weight for name in {queue for queue, _ in sharers})
        under = set()
        for party in heirs - served:
            parts = sum(each[0] == party[0] for each in sharers)
            if (live[party] + 1) * weights * parts <= queues[party[0]].weight * live.total():
                under.add(party)
        self._under_since = {party: self._under_since.get(party, now) for party in under}
        most = self._longest_s() + LATE_S
        for party, since in self._under_since.items():
            if now - since > most:
                told = (
                    f"{party} has less than its share and has waited for {now - since:.0f} s; {most:.0f} s are enough"
                )
                self.facts.violated("S3", told)

    def _is_even(self, heirs: set[Party], parties: dict[str, Party], live: Counter[Party]) -> None:
        now, case = (
            self.facts.world.now,
            (frozenset(heirs), frozenset(parties.values()), self.facts.stored.sharing.revision),
        )
        since, before = self._same_since
        if case != before:
            self._same_since = now, case
            return
        if now - since < ROUNDS * self._longest_s():
            return
        of = {parties[run_id]: run_id for run_id in sorted(parties)}
        for first in sorted(heirs):
            for second in sorted(heirs - {first}):
                self.compared += 1
                above = self._height(parties, of[first], live, more=-1)
                below = self._height(parties, of[second], live, more=2)
                if above is not None and below is not None and above > below:
                    told = f"{first} has {live[first]} tasks and {second} {live[second]}, and both have waited long"
                    self.facts.violated("S4", told)

    def _longest_s(self) -> float:
        return max((self.facts.jobs[run_id].longest_attempt_s for run_id in self._open()), default=0.0)
