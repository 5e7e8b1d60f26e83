"""Does a schedule fire exactly once per time, and does every verdict last?

`schedule`: each time has one lasting verdict (one that waited may become a run or a refusal), and at most one run; a
run that a schedule starts is stored together with the verdict that names it. At rest every time that was answered has
the verdict of the answer, or the one that followed from it, and every run that a verdict names exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.model import inbox
from argosy.model.schedules.record import FIRES, SCHEDULES, Fire, FireVerdict, fire_from
from tests.harness.simulation.audit.facts import Checker, EffectCheck, Operation, Rest, TrialFacts

JSON = dict[str, Any]


class ScheduleChecker(Checker):
    """Verdicts and runs as they are stored."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self._fires: dict[str, Fire] = {}

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {("dynamodb", "transact_write_items"): self._written}

    def at_rest(self, rest: Rest) -> None:
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

    def _written(self, request: JSON, reply: JSON) -> None:
        puts = [each["Put"]["Item"] for each in request["TransactItems"] if "Put" in each]
        if not any(item["pk"]["S"] == SCHEDULES for item in puts):
            return
        fires = {item["sk"]["S"].partition("#")[2]: fire_from(item["body"]["B"]) for item in puts if _is_fire(item)}
        for time, fire in fires.items():
            self._decided(time, fire)
        named = {fire.run_id for fire in fires.values()}
        for item in puts:
            body = inbox.from_bytes(item["body"]["B"]) if item["pk"]["S"] == inbox.INBOX else None
            if isinstance(body, inbox.SubmitRequest) and body.run_id not in named:
                self._violated(f"the run {body.run_id} is stored without a verdict", body.run_id)

    def _decided(self, time: str, fire: Fire) -> None:
        before = self._fires.get(time)
        if before is not None and before.verdict is not FireVerdict.QUEUED:
            self._violated(f"the time {time} is decided about twice: {before.verdict}, then {fire.verdict}")
        self._fires[time] = fire

    def _violated(self, sentence: str, *names: str) -> None:
        self.facts.violated("schedule", sentence, *names)


def _is_fire(item: JSON) -> bool:
    return bool(item["pk"]["S"] == FIRES)
