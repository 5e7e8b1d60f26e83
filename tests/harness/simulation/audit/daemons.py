"""Does a daemon have one task on each matching instance?

It has no influence on which instances exist. N1: at most one of its tasks is on an instance; during an update that
starts first, two. N2: none is started on an instance that does not match. N3: once faults have ended, a matching
instance that can be reached has a task of the target within two minutes after both exist, unless a reason is given. N4:
no stop of ours leaves fewer instances with a healthy task than the minimum. N5: a frozen daemon starts nothing. N6: no
work takes its room, unless the controller's code fails on the daemon. N7: nothing is ordered while only daemons are
open. N8: a deployment completes with a healthy task on every instance. `idle` and `awake` check that daemons alone keep
neither an instance nor a working controller.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from argosy.model.attempts import AttemptKey, AttemptStatus
from argosy.model.resources import Resources
from argosy.model.run_terms import ServiceTerms
from argosy.model.services.environments import DeploymentStatus, Environment
from tests.harness.simulation.audit.facts import Checker, Commit, EffectCheck, Operation, TrialFacts
from tests.harness.simulation.audit.stored_state import StoredAttempt

JSON = dict[str, Any]

FOLLOWED_S = 120.0
PAUSE_S = 400.0  # after the faults and after a change: pauses after crashes are over by then
A_TICK_S = 60.0  # from the moment that a tick decides for until its commit


class DaemonChecker(Checker):
    """Daemons as they are stored, and orders of instances."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self._before: dict[AttemptKey, StoredAttempt] = {}
        self._frozen: dict[str, str] = {}
        self._deployments: dict[str, tuple[int, bool]] = {}
        """By environment, its latest deployment and whether it had ended, as of the latest commit."""
        self._changed_at: dict[str, tuple[Any, float]] = {}
        self._lacking_since: dict[tuple[str, str], float] = {}
        self._targets: dict[str, int] = {}
        self._open_at = 0.0
        """When anything but daemons was last open."""

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {("ec2", "modify_fleet"): self._ordered, ("ec2", "create_fleet"): self._bought}

    def committed(self, commit: Commit) -> None:
        stored = self.facts.stored
        if (
            any(not (record.has_ended or record.is_daemon) for record in stored.records.values())
            or stored.floor.instances
        ):
            self._open_at = self.facts.world.now
        before, self._before = self._before, {each.key: each for each in stored.live.values()}
        if stored.version == commit.version_before:
            return
        for env in self._daemons():
            self._check_places(env, commit)
            self._check_stops(env, before)
            self._check_frozen(env, commit)
            self._check_completion(env)
        self._check_room(commit)
        self._frozen = {env.name: env.frozen_reason for env in self._daemons()}

    def time_passed(self) -> None:
        for env in self._daemons() if self.facts.faults_ended_at and not self.facts.torn_down else ():
            self._check_following(env)

    def _daemons(self) -> Iterator[Environment]:
        """Those with a target."""
        for env in self.facts.stored.environments.values():
            if env.is_daemon and env.target is not None and env.target.run_id in self.facts.jobs:
                yield env

    def _check_places(self, env: Environment, commit: Commit) -> None:
        live = [each for each in self.facts.stored.live.values() if each.key.run_id in env.runs() and each.instance]
        here = Counter(each.instance for each in live)
        both = any(self._order(each.key.run_id) == "start-first" for each in live)
        for name, count in here.items():
            if count > 1 + both:
                self._violated("N1", env, f"has {count} tasks on {name}", name)
        for run_id, name in Counter((each.key.run_id, each.instance) for each in live if not each.stop_cause):
            of_run = [e for e in live if (e.key.run_id, e.instance) == (run_id, name) and not e.stop_cause]
            if len(of_run) > 1:
                self._violated("N1", env, f"has two tasks of {run_id} on {name}", name)
        for intent in commit.intents:
            if intent.key.run_id in env.runs():
                instance = self.facts.stored.instances.get(intent.instance)
                if instance is None or not self._is_wanted(intent.key.run_id, instance) or not instance["owned"]:
                    self._violated("N2", env, f"starts {intent.key} on {intent.instance}", intent.instance)

    def _check_stops(self, env: Environment, before: Mapping[AttemptKey, StoredAttempt]) -> None:
        """A task that is certainly healthy is stopped only while enough other instances may have a healthy task. One
        that has ended by itself does not count."""
        if env.deleting or env.target is None:
            return
        hosts = {name for name, each in self.facts.stored.instances.items() if self._stays(env.target.run_id, each)}
        live = [each for each in self.facts.stored.live.values() if each.key.run_id in env.runs()]
        late_s = A_TICK_S + self.facts.stands_still_s + self.facts.clocks_differ_s
        left = {each.instance for each in live if not each.stop_cause and self._healthy_s(each) >= -late_s} & hosts
        hurt = [
            each for each in live if each.was_replaced_since(before.get(each.key)) and each.instance in hosts - left
        ]
        hurt = [each for each in hurt if self._healthy_s(each) >= late_s and not self.facts.has_ended(each)]
        percent = self._terms(env.target.run_id).min_healthy_percent
        least = min(math.ceil(len(hosts) * percent / 100), len(hosts) - 1)
        if hurt and len(left) < least:
            names = [each.instance for each in hurt]
            self._violated(
                "N4", env, f"stops on {names}: {len(left)} of {len(hosts)} are left, {least} at least", *names
            )

    def _check_frozen(self, env: Environment, commit: Commit) -> None:
        launched = [each.key for each in commit.intents if each.key.run_id in env.runs()]
        if env.frozen_reason and self._frozen.get(env.name) == env.frozen_reason and launched:
            self._violated("N5", env, f"is frozen ({env.frozen_reason}), and launches {launched}")

    def _check_completion(self, env: Environment) -> None:
        deployment = env.deployment
        if deployment is None or env.target is None:
            return
        before = self._deployments.get(env.name)
        self._deployments[env.name] = deployment.number, deployment.has_ended
        is_new = before != (deployment.number, True)
        if not is_new or deployment.status is not DeploymentStatus.COMPLETED:
            return
        live = [each for each in self.facts.stored.live.values() if each.key.run_id == env.target.run_id]
        late_s = A_TICK_S + self.facts.stands_still_s + self.facts.clocks_differ_s
        healthy = {each.instance for each in live if not each.stop_cause and self._healthy_s(each) >= -late_s}
        for name, each in self.facts.stored.instances.items():
            if self._stays(env.target.run_id, each) and name not in healthy:
                self._violated("N8", env, f"deployment {deployment.number} is complete without {name}", name)

    def _check_following(self, env: Environment) -> None:
        facts, now = self.facts, self.facts.world.now
        assert env.target is not None
        run_id = env.target.run_id
        record = facts.stored.records[run_id]
        about = (env.target.number, env.frozen_reason, env.deleting, env.deployment and env.deployment.number)
        if self._changed_at.get(env.name, (None, 0.0))[0] != about:
            self._changed_at[env.name] = about, now
        has_reason = env.deleting or env.frozen_reason or record.halted or record.waiting or not record.task_definition
        settled_at = max(facts.faults_ended_at, self._changed_at[env.name][1]) + PAUSE_S + facts.stands_still_s
        has = {each.instance for each in facts.stored.live.values() if each.key.run_id == run_id}
        others = {each.instance for each in facts.stored.live.values() if each.key.run_id in env.runs()} - has
        for name, each in facts.stored.instances.items():
            excused = has_reason or not self._stays(run_id, each) or not self._is_reached(each) or now < settled_at
            if name in has | others or excused:
                self._lacking_since.pop((env.name, name), None)
                continue
            since = self._lacking_since.setdefault((env.name, name), now)
            if now - since > FOLLOWED_S:
                self._violated("N3", env, f"has no task on {name} for {now - since:.0f} s", name)

    def _check_room(self, commit: Commit) -> None:
        """The room left on each instance that was given work by this commit."""
        stored = self.facts.stored
        worked_on = {each.instance for each in commit.intents if not self._is_daemon(each.key.run_id)}
        for name in worked_on & stored.instances.keys():
            here = [each for each in stored.live.values() if each.instance == name]
            instance = stored.instances[name]
            free = Resources(*instance["total"]).minus(Resources(*instance["foreign"]))
            for each in here:
                free = free.minus(self._needs(each.key.run_id)._replace(gpu_share_mib=0))
            for env in self._daemons():
                assert env.target is not None
                run_id = env.target.run_id
                mine = [each.key.run_id for each in here if each.key.run_id in env.runs()]
                record = self.facts.stored.records[run_id]
                is_there = run_id in mine or env.deleting or record.halted
                if is_there or record.suspended_at or not self._stays(run_id, instance):
                    continue
                old = max((self._needs(each) for each in mine), default=Resources())
                back = old if self._order(run_id) == "stop-first" else Resources()
                if not self._needs(run_id).fits_in(free.plus(back)):
                    self._violated("N6", env, f"has no room on {name}, which was given work: {free} is free", name)

    def _ordered(self, request: JSON, reply: JSON) -> None:
        """Until the tick after the last other run has ended, an order may be for that run."""
        fleet = self.facts.regions.fleet(request["FleetId"])
        before, self._targets[fleet.fleet_id] = self._targets.get(fleet.fleet_id, 0), fleet.total_target
        quiet_s = self.facts.world.now - self._open_at - A_TICK_S - self.facts.stands_still_s
        if fleet.total_target > before and quiet_s > 0 and self.facts.one_controller:
            self.facts.violated("N7", "instances are ordered, and only daemons are open", fleet.fleet_id)

    def _bought(self, request: JSON, reply: JSON) -> None:
        """The same for an on-demand order. A repeated call launches nothing."""
        is_new = self.facts.regions.fleet(reply["FleetId"]).created_at == self.facts.world.now
        quiet_s = self.facts.world.now - self._open_at - A_TICK_S - self.facts.stands_still_s
        if is_new and reply["Instances"] and quiet_s > 0 and self.facts.one_controller:
            self.facts.violated("N7", "instances are bought, and only daemons are open", reply["FleetId"])

    def _stays(self, run_id: str, instance: JSON) -> bool:
        leaves = instance["status"] != "ACTIVE" or instance["interrupted_at"] or instance["rebalance_at"]
        return not leaves and bool(instance["owned"] and instance["arn"]) and self._is_wanted(run_id, instance)

    def _is_reached(self, instance: JSON) -> bool:
        """Whether ECS would start a task there now, as far as is known."""
        paused = instance["paused_until"] > self.facts.world.now or instance["refusals"]
        return bool(instance["agent_connected"]) and not (instance["absent_since"] or instance["cordon"] or paused)

    def _is_wanted(self, run_id: str, instance: JSON) -> bool:
        query = str(self.facts.jobs[run_id].spec["daemon"].get("instances") or "")
        zone = query.rpartition(" ")[2]
        return zone in ("", instance["zone"]) and self._needs(run_id).fits_in(Resources(*instance["total"]))

    def _is_daemon(self, run_id: str) -> bool:
        return run_id in self.facts.jobs and self.facts.jobs[run_id].is_daemon

    def _needs(self, run_id: str) -> Resources:
        job = self.facts.jobs.get(run_id)
        record = self.facts.stored.records.get(run_id)
        if record is not None and record.task_definition:
            return record.needs
        return job.terms.needs if job is not None and not job.terms.task_definition else Resources()

    def _order(self, run_id: str) -> str:
        return str(self.facts.jobs[run_id].spec["daemon"]["update"]["order"])

    def _terms(self, run_id: str) -> ServiceTerms:
        service = self.facts.jobs[run_id].terms.service
        assert service is not None
        return service

    def _healthy_s(self, each: StoredAttempt) -> float:
        """Negative = it is not healthy yet, by the world's clock."""
        if each.status != AttemptStatus.RUNNING:
            return float("-inf")
        return self.facts.world.now - each.started_at - self._terms(each.key.run_id).healthy_s

    def _violated(self, invariant: str, env: Environment, sentence: str, *names: str) -> None:
        self.facts.violated(invariant, f"daemon {env.name} {sentence}", *env.runs(), *names)
