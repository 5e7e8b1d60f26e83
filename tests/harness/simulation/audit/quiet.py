"""Does the controller leave only when idle, and come back in time?

Q1: an urgent event brings a controller back within seconds, if calls are not lost. Q2: without a call one comes back
with the schedule's next minute. Q3: none leaves while stored work has to continue: a closing run that does not wait
for a
time or another run, a deployment that is not frozen, an attempt that begins or is to stop. Q4: none reports rest while
a run is open.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.engine.report import TickReport
from argosy.messages.urgent import rule_of
from argosy.model.attempts import AttemptStatus, StopCause
from tests.harness.simulation.audit.facts import Checker, EffectCheck, Operation, TrialFacts

JSON = dict[str, Any]

CALLED_S = 10.0  # from an urgent event to the end of the first tick after it
MINUTE_S = 75.0  # between two ticks while there is nothing to do: a minute, plus a tick with a sweep
SETTLED_S = 200.0  # after the faults: the lease of a lost controller has expired, and crashes are over


class QuietChecker(Checker):
    """When controllers are away, and the events in the meantime."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self._unheard: list[float] = []
        """When something urgent happened that no tick has followed yet."""
        self._ticked_at = 0.0
        self.lateness: list[float] = []
        """Seconds from each of those to the end of the tick that followed."""
        self.seconds = 0.0
        """How long controllers were away, as seen at the steps of the trial."""
        self._looked_at = 0.0

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {("dynamodb", "put_item"): self._stored}

    def heard(self, message: JSON) -> None:
        if self.facts.is_quiet() and rule_of(message):
            self._unheard.append(self.facts.world.now)

    def ticked(self, report: TickReport, version: int | None) -> None:
        self._check_unheard()
        self.lateness += [self.facts.world.now - at for at in self._unheard]
        self._unheard.clear()
        self._ticked_at = self.facts.world.now

    def time_passed(self) -> None:
        now = self.facts.world.now
        before, self._looked_at = self._looked_at, now
        if not self.facts.is_quiet():
            return
        self.seconds += now - max(before, self._ticked_at) if before else 0.0
        self._check_unheard()
        if self._nothing_delays and now - self._ticked_at > MINUTE_S:
            self.facts.violated("Q2", f"no controller has come back for {now - self._ticked_at:.0f} s")
        if self.facts.one_controller:
            self._check_left()

    @property
    def _nothing_delays(self) -> bool:
        facts = self.facts
        return bool(facts.faults_ended_at) and facts.world.now - facts.faults_ended_at > SETTLED_S

    def _check_unheard(self) -> None:
        late = [self.facts.world.now - at for at in self._unheard]
        if self._nothing_delays and max(late, default=0.0) > CALLED_S:
            self.facts.violated("Q1", f"what is urgent was heard {max(late):.0f} s late")
            self._unheard.clear()

    def _check_left(self) -> None:
        stored, jobs = self.facts.stored, self.facts.jobs
        for run_id, record in stored.records.items():
            waits = record.has_ended or record.unmet or record.not_before
            if not waits and run_id in jobs and not jobs[run_id].serves:
                self.facts.violated("Q3", f"the controller has left, and {run_id} is {record.status}", run_id)
        for name, env in stored.environments.items():
            goes_on = env.deployment is not None and not (env.deployment.has_ended or env.frozen_reason)
            if env.deleting or goes_on:
                self.facts.violated("Q3", f"the controller has left, and a deployment of {name} continues")
        for each in stored.live.values():
            if each.status != AttemptStatus.RUNNING or each.stop_cause != StopCause.NONE:
                self.facts.violated("Q3", f"the controller has left, and {each.key} is {each.status}", each.instance)

    def _stored(self, request: JSON, reply: JSON) -> None:
        item = request["Item"]
        if item["sk"] != {"S": "HEARTBEAT"} or item.get("works") != {"N": "0"} or not self.facts.one_controller:
            return
        serving = {run_id for env in self.facts.stored.environments.values() for run_id in env.runs()}
        for run_id, record in self.facts.stored.records.items():
            if not record.has_ended and run_id not in serving:  # a service that is to have no task may sleep
                self.facts.violated("Q4", f"the controller says that all is at rest, and {run_id} is {record.status}")
