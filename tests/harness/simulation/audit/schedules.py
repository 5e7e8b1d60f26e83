"""Does a schedule fire exactly once per time, and does every verdict last?

`schedule`: each time has one lasting verdict (one that waited may become a run or a refusal), and at most one run; a
run that a schedule starts is stored together with the verdict that names it. At rest every time that was answered has
the verdict of the answer, or the one that followed from it, and every run that a verdict names exists.
`overlap`: with `skip` and `queue` no firing starts a run while another one of the schedule is open; with `replace` it
names every open one, and each of these is cancelled once the firing was answered, or had ended by itself. A firing is
skipped or queued only because of a run that was open. A paused schedule starts nothing, no firing starts later than
`startWithin` unless it was queued, and nothing is missed before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.model import inbox
from argosy.model.schedules.record import (
    FIRES,
    SCHEDULES,
    Fire,
    FireVerdict,
    Overlap,
    Schedule,
    ScheduleState,
    fire_from,
    schedule_from,
)
from argosy.model.tasks import TERMINAL
from tests.harness.simulation.audit.facts import Checker, Commit, EffectCheck, Operation, TrialFacts, TrialResults

JSON = dict[str, Any]
BLOCKED = (FireVerdict.SKIPPED, FireVerdict.QUEUED)
READ_S = 90.0  # from the api's look at the open runs until it stores its verdict


class ScheduleChecker(Checker):
    """Verdicts and runs as they are stored."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self.judged = 0
        """Firings while another run of the schedule was open."""
        self._fires: dict[str, Fire] = {}
        self._by_hand: dict[str, Fire] = {}
        """By run."""
        self._ended_at: dict[str, float] = {}
        """By run, when it ended for the first time."""
        self._reopened: set[str] = set()
        self._cancels: set[str] = set()
        """Runs of which a cancellation was stored."""
        self._answered_at: dict[str, float] = {}

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {("dynamodb", "transact_write_items"): self._written}

    def committed(self, commit: Commit) -> None:
        self._reopened |= commit.retried
        for run_id in self._started() - self._ended_at.keys() & self.facts.stored.records.keys():
            if self.facts.stored.records[run_id].has_ended:
                self._ended_at[run_id] = self.facts.world.now

    def time_passed(self) -> None:
        for time in self.facts.fires_answered:
            self._answered_at.setdefault(time, self.facts.world.now)

    def at_rest(self, rest: TrialResults) -> None:
        for time, verdict in self.facts.fires_answered.items():
            found = self._fires.get(time)
            if found is None:
                self._violated(f"the time {time} was answered with {verdict}, and no verdict is stored")
            elif verdict not in (found.verdict.value, FireVerdict.QUEUED):
                self._violated(f"the time {time} was answered with {verdict}, and {found.verdict} is stored")
        if self.facts.torn_down:
            return
        for time, fire in self._fires.items():
            if fire.verdict is FireVerdict.RAN and fire.run_id not in self.facts.stored.records:
                self._violated(f"the run {fire.run_id} of the time {time} is lost", fire.run_id)
            for run_id in fire.replaces if time in self._answered_at else ():
                if run_id not in self._cancels and self._ended_at.get(run_id, 0.0) > self._answered_at[time]:
                    self._overlaps(f"the time {time} replaces {run_id}, which was not cancelled", run_id)

    def _written(self, request: JSON, reply: JSON) -> None:
        puts = [each["Put"]["Item"] for each in request["TransactItems"] if "Put" in each]
        requests = [inbox.from_bytes(item["body"]["B"]) for item in puts if item["pk"]["S"] == inbox.INBOX]
        self._cancels |= {each.run_id for each in requests if isinstance(each, inbox.CancelRequest)}
        known = [schedule_from(item["body"]["B"]) for item in puts if item["pk"]["S"] == SCHEDULES]
        if not known:
            return
        by_hand = {each.run_id: each for each in known[0].fires if each.by_hand}
        fires = {item["sk"]["S"].partition("#")[2]: fire_from(item["body"]["B"]) for item in puts if _is_fire(item)}
        for time, fire in fires.items():
            self._judge(known[0], time, fire)
            self._decided(time, fire)
        for fire in known[0].fires:
            if fire.verdict is FireVerdict.MISSED and fire.decided_at - fire.time < known[0].start_within_s - 1.0:
                self._overlaps(f"the time {fire.time:.0f} was missed, and could still start")
        named = {fire.run_id for fire in fires.values()} | by_hand.keys() - self._by_hand.keys()
        self._by_hand |= by_hand
        for each in requests:
            if isinstance(each, inbox.SubmitRequest) and each.run_id not in named:
                self._violated(f"the run {each.run_id} is stored without a verdict", each.run_id)

    def _judge(self, schedule: Schedule, time: str, fire: Fire) -> None:
        before, others = self._fires.get(time), self._started()
        if fire.verdict in BLOCKED and not self._was_open(fire.run_id, others):
            self._overlaps(f"the time {time} is {fire.verdict} because of {fire.run_id}, which was not open")
        if fire.verdict is not FireVerdict.RAN:
            return
        never_ended = {each for each in others - self._ended_at.keys() if not self._is_complete(each)}
        self.judged += bool(never_ended)
        if schedule.state is ScheduleState.PAUSED:
            self._overlaps(f"the time {time} started {fire.run_id}, and the schedule is paused", fire.run_id)
        if before is None and fire.decided_at - fire.time > schedule.start_within_s:
            self._overlaps(f"the time {time} started {fire.run_id} {fire.decided_at - fire.time:.0f} s late")
        if schedule.overlap in (Overlap.SKIP, Overlap.QUEUE) and never_ended:
            told = f"the time {time} started {fire.run_id} while {min(never_ended)} was open, and may only"
            self._overlaps(f"{told} {schedule.overlap}", *never_ended)
        if schedule.overlap is Overlap.REPLACE and not never_ended <= {*fire.replaces}:
            told = f"the time {time} replaces {fire.replaces}, and {min(never_ended - {*fire.replaces})} was open, too"
            self._overlaps(told, *never_ended)

    def _is_complete(self, run_id: str) -> bool:
        """Its end is announced before it is stored."""
        rows = self.facts.stored.tables.get(run_id, ())
        return bool(rows) and all(row[0] in TERMINAL for row in rows)

    def _started(self) -> set[str]:
        """Its runs, of all times and by hand."""
        return {each.run_id for each in self._fires.values() if each.verdict is FireVerdict.RAN} | self._by_hand.keys()

    def _was_open(self, run_id: str, others: set[str]) -> bool:
        ended_at = self._ended_at.get(run_id, float("inf"))
        return run_id in others and (run_id in self._reopened or self.facts.world.now - ended_at <= READ_S)

    def _decided(self, time: str, fire: Fire) -> None:
        before = self._fires.get(time)
        if before is not None and before.verdict is not FireVerdict.QUEUED:
            self._violated(f"the time {time} is decided about twice: {before.verdict}, then {fire.verdict}")
        self._fires[time] = fire

    def _violated(self, sentence: str, *names: str) -> None:
        self.facts.violated("schedule", sentence, *names)

    def _overlaps(self, sentence: str, *names: str) -> None:
        self.facts.violated("overlap", sentence, *names)


def _is_fire(item: JSON) -> bool:
    return bool(item["pk"]["S"] == FIRES)
