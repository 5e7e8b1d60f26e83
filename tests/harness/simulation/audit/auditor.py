"""The auditor of a trial: it observes every effect and passes it to the checkers.

It sees each effect before the controller does, reads each commit as it is stored, and knows what really runs on the
instances. There is one checker per family of invariants; the auditor keeps what they find. It checks I11 itself: no
secret is in the log.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

from argosy.engine.report import TickReport
from argosy.model.inbox import INBOX
from argosy.model.policy import Policy
from tests.harness.simulation.audit.backfill import BackfillChecker
from tests.harness.simulation.audit.caps import CapChecker, MembersChecker, UpdateChecker
from tests.harness.simulation.audit.cells import CellChecker
from tests.harness.simulation.audit.checkpoints import CheckpointChecker
from tests.harness.simulation.audit.cluster_history import ClusterHistoryChecker, FigureChecker
from tests.harness.simulation.audit.daemons import DaemonChecker
from tests.harness.simulation.audit.dependencies import DependencyChecker
from tests.harness.simulation.audit.deployments import DeploymentChecker
from tests.harness.simulation.audit.efficiency import EfficiencyChecker
from tests.harness.simulation.audit.environments import EnvironmentChecker
from tests.harness.simulation.audit.facts import (
    AuditTrail,
    Checker,
    Commit,
    EffectCheck,
    Operation,
    TrialFacts,
    TrialResults,
    Violation,
    short,
)
from tests.harness.simulation.audit.fleets import FleetChecker, ImageChecker
from tests.harness.simulation.audit.floors import FloorChecker
from tests.harness.simulation.audit.gangs import GangChecker
from tests.harness.simulation.audit.gpus import GpuChecker
from tests.harness.simulation.audit.history import HistoryChecker
from tests.harness.simulation.audit.instances import InstanceChecker, WarningChecker
from tests.harness.simulation.audit.journal import JournalChecker
from tests.harness.simulation.audit.launches import DefinitionChecker, LaunchChecker
from tests.harness.simulation.audit.money import MoneyChecker
from tests.harness.simulation.audit.preemption import PreemptionChecker
from tests.harness.simulation.audit.progress import MarkerChecker, ProgressChecker
from tests.harness.simulation.audit.quiet import QuietChecker
from tests.harness.simulation.audit.readings import ReadingChecker
from tests.harness.simulation.audit.reasons import ReasonChecker
from tests.harness.simulation.audit.reservations import ReservationChecker
from tests.harness.simulation.audit.schedules import ScheduleChecker
from tests.harness.simulation.audit.shares import ShareChecker
from tests.harness.simulation.audit.sharing import SharingChecker
from tests.harness.simulation.audit.stored_state import StoredState
from tests.harness.simulation.audit.targets import TargetChecker
from tests.harness.simulation.injection.boundary import Call
from tests.harness.simulation.world.regions import Regions
from tests.harness.simulation.world.workload import CANARY, SimulatedJob

JSON = dict[str, Any]


class Auditor:
    """Watches one trial: the observer of its calls, and a sink of its world."""

    def __init__(
        self,
        regions: Regions,
        jobs: MutableMapping[str, SimulatedJob],
        policy: Policy,
        *,
        one_controller: bool = False,
        nothing_goes_wrong: bool = False,
        stands_still_s: float = 0.0,
        clocks_differ_s: float = 0.0,
    ) -> None:
        self.facts = facts = TrialFacts(
            regions, jobs, policy, one_controller, nothing_goes_wrong, stands_still_s, clocks_differ_s
        )
        self._launches = LaunchChecker(facts)
        self.journal = JournalChecker(facts)
        self.environments, self.deployments = EnvironmentChecker(facts), DeploymentChecker(facts)
        self.schedules = ScheduleChecker(facts)
        self.sharing, self.shares = SharingChecker(facts), ShareChecker(facts)
        self.caps, self.updates = CapChecker(facts), UpdateChecker(facts)
        self.members = MembersChecker(facts)
        self.preemption = PreemptionChecker(facts)
        self.backfill = BackfillChecker(facts)
        self.quiet = QuietChecker(facts)
        self.gangs = GangChecker(facts)
        self._checkers: tuple[Checker, ...] = (
            self._launches,
            GpuChecker(facts),
            InstanceChecker(facts),
            FleetChecker(facts),
            ReservationChecker(facts),
            ReadingChecker(facts),
            FloorChecker(facts),
            ProgressChecker(facts),
            CheckpointChecker(facts),
            self.gangs,
            MoneyChecker(facts),
            CellChecker(facts),
            EfficiencyChecker(facts),
            WarningChecker(facts),
            DefinitionChecker(facts),
            DependencyChecker(facts),
            ImageChecker(facts),
            HistoryChecker(facts),
            ClusterHistoryChecker(facts),
            ReasonChecker(facts),
            FigureChecker(facts),
            MarkerChecker(facts),
            self.environments,
            self.deployments,
            DaemonChecker(facts),
            TargetChecker(facts),
            self.quiet,
            self.schedules,
            self.sharing,
            self.shares,
            self.caps,
            self.updates,
            self.members,
            self.preemption,
            self.backfill,
            self.journal,
        )
        self._effects: defaultdict[Operation, list[EffectCheck]] = defaultdict(list)
        for checker in self._checkers:
            for operation, check in checker.effects().items():
                self._effects[operation].append(check)
        self._effects["dynamodb", "transact_write_items"].append(self._committed)

    @property
    def violations(self) -> list[Violation]:
        return self.facts.violations

    @property
    def stored(self) -> StoredState:
        return self.facts.stored

    @property
    def trail(self) -> AuditTrail:
        return self.facts.trail

    @property
    def launches(self) -> int:
        """ECS tasks that were started."""
        return self._launches.launches

    def took_effect(self, call: Call, reply: JSON) -> None:
        for check in self._effects.get((call.service, call.operation), ()):
            check(call.request, reply)

    def ended(self, call: Call, outcome: str) -> None:
        if call.service in ("ecs", "ec2") and not call.operation.startswith(("list", "describe")):
            self.trail.add(self.facts.world.now, f"{call.operation} ({outcome})", call.request)
        elif outcome != "ok":
            self.trail.add(self.facts.world.now, f"{call.service} {call.operation} ({outcome})", "")

    def hear(self, message: JSON) -> None:
        """A sink of the world: it receives the real events, before messages can be lost."""
        self.trail.add(self.facts.world.now, message["detail-type"], short(message))
        for checker in self._checkers:
            checker.heard(message)

    def time_passed(self) -> None:
        for checker in self._checkers:
            checker.time_passed()

    def ticked(self, report: TickReport, version: int | None) -> None:
        for checker in self._checkers:
            checker.ticked(report, version)

    def at_rest(self, rest: TrialResults) -> None:
        for checker in self._checkers:
            checker.at_rest(rest)

    def not_over(self, sentence: str) -> None:
        """The trial does not end: report the open work.
        The report counts even if it names a damaged run, because a run that was set aside has ended.
        """
        stored, instances = self.stored, self.facts.regions.instances()
        runs = {name: (each.status, each.counts, each.waiting) for name, each in stored.records.items()}
        live = [f"{each.key[1:]} on {each.instance} is {each.status}" for each in stored.live.values()]
        alive = [each.instance_id for each in instances if each.alive]
        names = tuple(each.instance for each in stored.live.values())[:3]
        sentence = f"{sentence}: {runs}; live: {live[:5]}; instances: {alive[:5]}"
        self.facts.violations.append(Violation("liveness", sentence, self.facts.world.now, names))

    def nobody_worked(self) -> None:
        """No controller has worked for hours until now."""
        self.facts.unattended_until = self.facts.world.now

    def faults_ended(self) -> None:
        """From now on nothing fails any more."""
        self.facts.faults_ended_at = self.facts.world.now

    def teardown_begun(self) -> None:
        """From now on every instance is released."""
        self.facts.is_tearing_down = True

    def torn_down(self) -> None:
        """From now on nothing may start."""
        self.facts.torn_down, self.facts.torn_down_at = True, self.facts.world.now

    def cell_closed(self, region: str) -> None:
        """From now on nothing may start in this cell, and its instances have to go."""
        self.facts.closed[region] = self.facts.world.now

    def cell_opened(self, region: str) -> None:
        self.facts.closed.pop(region, None)

    @contextmanager
    def listening_to_the_log(self) -> Iterator[None]:
        """The log of the package is only checked: it holds thousands of expected warnings."""
        log, handler = logging.getLogger("argosy"), _SecretsInLog(self.facts)
        before = log.propagate
        log.addHandler(handler)
        log.propagate = False
        try:
            yield
        finally:
            log.removeHandler(handler)
            log.propagate = before

    def _committed(self, request: JSON, reply: JSON) -> None:
        """One transaction is stored: read it as the next controller would."""
        stored = self.stored
        version, tables, retried = stored.version, dict(stored.tables), self._retried()
        intents = stored.take(request["TransactItems"])
        self.facts.take_jobs()
        again = retried | self._retried() | _retries_taken(request)
        commit = Commit(version, tables, intents, frozenset(again))
        for checker in self._checkers:
            checker.committed(commit)

    def _retried(self) -> set[str]:
        return {run_id for run_id, record in self.stored.records.items() if record.revives}


def _retries_taken(request: JSON) -> set[str]:
    """Runs of which the commit takes a user's retry out of the inbox. Many a run ends and begins in one commit."""
    keys = [action["Delete"]["Key"] for action in request["TransactItems"] if "Delete" in action]
    places = [key["sk"]["S"].split("#") for key in keys if key["pk"] == {"S": INBOX}]
    return {run_id for _, run_id, *kind in places if kind[:1] == ["retry"]}


class _SecretsInLog(logging.Handler):
    """I11."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__()
        self._facts = facts

    def emit(self, record: logging.LogRecord) -> None:
        if CANARY in record.getMessage():
            self._facts.violated("I11", "a secret of a task's environment is in the log", CANARY)
