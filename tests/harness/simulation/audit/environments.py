"""Does a service keep the healthy tasks that its update policy promises, and reach its target?

E1: no stop of ours leaves fewer healthy tasks than the minimum, and none is sent before it is stored. E2: no start of
ours leads to more active tasks than the maximum. E3: once faults have ended, exactly the desired tasks of the target
revision run, with as many as its base off spot, unless a reason is given. E4: a frozen service
starts and replaces nothing. E5: tasks of a service are never removed, renumbered or done. E6: only failures of its own
tasks count against a deployment. E7: a deleted service leaves no record and no task. E8: a deployment completes with
its tasks healthy and no other alive. E9: a revision whose content already runs gets no new run. E10: the cost of an
environment counts every run that it ever had. E11: with a health command, a task counts as healthy only after the
command succeeded, and is stopped as unhealthy only after it failed. E12: failures outside of a deployment are counted,
only those of its own tasks are, and the service is healthy again when all tasks are. E13: an environment that a user
has frozen, daemons included, stays frozen until a user thaws or deletes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from argosy.emulator.ec2.records import Ec2Instance
from argosy.emulator.ec2.reservations import INTERRUPTIBLE
from argosy.messages.ecs import key_of_task
from argosy.model.arns import name_of
from argosy.model.attempts import AttemptKey, AttemptStatus, StopCause, TaskHealth
from argosy.model.run_terms import ServiceTerms
from argosy.model.services.environments import DeploymentStatus, Environment
from argosy.model.tasks import TaskStatus
from argosy.spec.terms import content_of
from tests.harness.simulation.audit.facts import Checker, Commit, EffectCheck, Operation, TrialFacts, TrialResults
from tests.harness.simulation.audit.stored_state import StoredAttempt

JSON = dict[str, Any]

WANTED = (TaskStatus.PENDING, TaskStatus.STARTING, TaskStatus.RUNNING)
REPLACED = "argosy: the service no longer needs this task"  # the reason that our own stops give to ECS
UNHEALTHY = "argosy: the health command of the task's container kept failing"
A_TICK_S = 60.0  # from the moment that a tick decides for until its commit
SETTLED_S = 3600.0  # by then a service has reached its target: pauses after crashes grow to five minutes
ROUNDING_USD = 0.0001
FROZEN_S = 300.0  # seconds for which it is observed while it is frozen


@dataclass(frozen=True, slots=True)
class _StoredEnvironment:
    """The stored record of an environment."""

    env: Environment
    live: Mapping[AttemptKey, StoredAttempt]


class EnvironmentChecker(Checker):
    """Environments as they are stored, our own acts, and the tasks that really run."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self._before: dict[str, _StoredEnvironment] = {}
        """By name, as of the latest commit."""
        self._running_since: dict[str, float] = {}
        """By ARN of a task that really runs."""
        self._own_ends: Counter[str] = Counter()
        """By run, the tasks that ended or could not start by themselves, on healthy hosts."""
        self._waits_since: dict[str, tuple[Any, float]] = {}
        """By name of the environment: its state at that time."""
        self._had: dict[str, set[str]] = {}
        """By name of the environment, the runs that it ever had."""
        self._frozen: dict[str, float] = {}
        """By name of an environment that a user has frozen, when it was made."""
        self._thawed: Counter[str] = Counter()
        """By name, how often it was thawed."""
        self.deployments: Counter[str] = Counter()
        """By status, the deployments that were seen to end."""

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {("ecs", "stop_task"): self._stopped}

    def heard(self, message: JSON) -> None:
        detail = message["detail"]
        if message["detail-type"] != "ECS Task State Change":
            return
        key, arn = key_of_task(detail), detail["taskArn"]
        if key is None or not self._is_of_service(key.run_id):
            return
        if detail["lastStatus"] == "RUNNING":
            self._running_since.setdefault(arn, self.facts.world.now)
        elif detail["lastStatus"] == "STOPPED":
            self._running_since.pop(arn, None)
            by_itself = detail.get("stopCode") in ("EssentialContainerExited", "TaskFailedToStart")
            by_itself |= detail.get("stoppedReason") == UNHEALTHY
            self._own_ends[key.run_id] += by_itself and self._stands(detail)

    def committed(self, commit: Commit) -> None:
        stored = self.facts.stored
        for run_id, table in stored.tables.items():
            before = commit.tables_before.get(run_id)
            if before is not table and self._is_of_service(run_id):
                self._check_rows(run_id, before or [])
        known, self._before = self._before, {}
        self._had = {name: self._had.get(name, set()) | {*env.all_runs()} for name, env in stored.environments.items()}
        self._check_thaws()
        for name, env in self._services():
            of_env = {each.key: each for each in stored.live.values() if each.key.run_id in env.runs()}
            now = self._before[name] = _StoredEnvironment(env, of_env)
            if stored.version != commit.version_before:
                self._check(known.get(name, _StoredEnvironment(env, {})), now, commit)

    def time_passed(self) -> None:
        for name, env in self._services() if self.facts.faults_ended_at else ():
            about = (env.desired, env.target, env.deleting)
            if self._waits_since.get(name, (None, 0.0))[0] != about or self._has_reason(env) or self.is_settled(name):
                self._waits_since[name] = about, self.facts.world.now
            waited_s = self.facts.world.now - self._waits_since[name][1]
            if waited_s > SETTLED_S:
                self._violated("E3", env, f"runs {self._really_healthy(env)} after {waited_s:.0f} s without faults")

    def _services(self) -> list[tuple[str, Environment]]:
        """`DaemonChecker` judges daemons."""
        return [(name, env) for name, env in self.facts.stored.environments.items() if not env.is_daemon]

    def at_rest(self, rest: TrialResults) -> None:
        if self.facts.torn_down:
            return
        for env in self.facts.stored.environments.values():
            self._violated("E7", env, "is still there at rest")
        for (run_id, index), arns in self.facts.arns.items():
            if self._is_of_service(run_id) and any(self._really_runs(arn) for arn in arns):
                self.facts.violated("E7", f"task {index} of {run_id} runs at rest", *arns)

    def is_settled(self, name: str) -> bool:
        """Whether the real tasks are the desired ones, or a user froze it a while ago."""
        env = self.facts.stored.environments.get(name)
        if env is None or env.target is None:
            return True
        if env.frozen_reason:
            return self.facts.world.now - self.facts.faults_ended_at > FROZEN_S
        done = env.deployment is not None and env.deployment.has_ended
        as_desired = self._really_healthy(env) == ({env.target.run_id: env.desired} if env.desired else {})
        return done and as_desired and self._on_demand(env.target.run_id) >= min(self._base(env), env.desired)

    def _base(self, env: Environment) -> int:
        """The number of its tasks that have to run off spot."""
        job = self.facts.jobs.get(env.target.run_id) if env.target else None
        return int(job.spec.get("capacity", {}).get("onDemandBase", 0)) if job else 0

    def _on_demand(self, run_id: str) -> int:
        """Its tasks that really run on on-demand instances."""
        found = 0
        for (of_run, _), arns in self.facts.arns.items():
            for arn in arns if of_run == run_id else ():
                task = self.facts.regions.task(arn)
                host = self.facts.regions.find(task.instance.ec2_instance_id) if task else None
                found += host is not None and _stays(host) and self._really_runs(arn)
        return found

    def _has_reason(self, env: Environment) -> bool:
        """Why it has not reached its target, as users see it."""
        record = self.facts.stored.records.get(env.target.run_id) if env.target else None
        is_held = any(self._is_suspended(run_id) for run_id in env.runs())
        return env.deleting or record is None or is_held or bool(env.frozen_reason or record.halted or record.waiting)

    def _really_healthy(self, env: Environment) -> dict[str, int]:
        """By run, the tasks that have run on instances for long enough; younger ones are listed under a name of their
        own.
        """
        found: Counter[str] = Counter()
        runs = set(env.runs())
        for (run_id, _), arns in self.facts.arns.items():
            for arn in arns if run_id in runs else ():
                if self._really_runs(arn):
                    since = self._running_since.get(arn, self.facts.world.now)
                    is_healthy = self.facts.world.now - since >= self._terms(run_id).healthy_s
                    if self._has_command(run_id):
                        is_healthy &= self._says_it_is_well(arn)
                    found[run_id if is_healthy else f"young {run_id}"] += 1
        return dict(found)

    def _check(self, before: _StoredEnvironment, now: _StoredEnvironment, commit: Commit) -> None:
        """One commit of a controller."""
        env, target = now.env, now.env.target
        if target is None or target.run_id not in self.facts.jobs:
            return
        terms, desired = self._terms(target.run_id), 0 if env.deleting else env.desired
        acts = [each for key, each in now.live.items() if each.was_replaced_since(before.live.get(key))]
        starts = sum(self._starts(run_id, commit) for run_id in env.runs())
        self._check_stops(env, now, acts, _least(terms, desired))
        self._check_health(env, before, now)
        active = self._active(now)
        if starts and active > _most(terms, desired):
            self._violated("E2", env, f"{starts} more start, {active} are active, {_most(terms, desired)} may be")
        if env.frozen_reason and (before.env.frozen_reason or "failed:" not in env.frozen_reason):
            launched = [each.key[1:] for each in commit.intents if each.key in now.live]
            changed = env.frozen_reason == before.env.frozen_reason and (starts or acts)
            if launched or changed:
                done = f"launched {launched}, {starts} wanted again, {len(acts)} replaced"
                self._violated("E4", env, f"is frozen ({env.frozen_reason}), and yet: {done}")
        self._check_deployment(before.env, now)
        self._check_failures(before.env, now, commit)
        self._check_adoption(before.env, env)
        self._check_costs(env)

    def _check_thaws(self) -> None:
        environments = self.facts.stored.environments
        frozen = {name: env.created_at for name, env in environments.items() if env.frozen_by_user}
        for name in self._frozen.keys() - frozen.keys() & environments.keys():
            env = environments[name]
            is_the_same = env.created_at == self._frozen[name] and not (env.deleting or env.left)
            self._thawed[name] += is_the_same
            if is_the_same and self._thawed[name] > self.facts.thaws_asked[name]:
                self._violated("E13", env, "was frozen by a user, and is not any more, although no user has thawed it")
        self._frozen = frozen

    def _check_adoption(self, before: Environment, env: Environment) -> None:
        jobs, records = self.facts.jobs, self.facts.stored.records
        adoptable = [run_id for run_id in before.runs() if not (records[run_id].halted or records[run_id].suspended_at)]
        for run_id in set(env.runs()) - set(before.all_runs()):
            for other in adoptable:
                if content_of(jobs[run_id].spec) == content_of(jobs[other].spec):
                    self._violated("E9", env, f"starts {run_id} although {other} has the same content")

    def _check_costs(self, env: Environment) -> None:
        facts, runs = self.facts, self._had[env.name]
        if facts.ledger_is_lost or runs & facts.damaged:
            return
        records = [facts.stored.records[run_id] for run_id in runs]
        closed = sum(record.cost_usd for record in records if record.has_ended)
        if abs(env.past_usd - closed) > ROUNDING_USD:
            self._violated("E10", env, f"has cost {env.past_usd} by its closed runs, which have cost {closed}")

    def _check_stops(self, env: Environment, now: _StoredEnvironment, acts: list[StoredAttempt], least: int) -> None:
        """A task that is certainly healthy is stopped only while enough others may be healthy. One that has
        ended by itself does not count."""
        facts = self.facts
        late_s = A_TICK_S + facts.stands_still_s + facts.clocks_differ_s
        hurt = [each for each in acts if self._healthy_for_s(each) >= late_s and not facts.has_ended(each)]
        left = [each for each in now.live.values() if not each.stop_cause and self._may_be_healthy(each)]
        if hurt and len(left) < least:
            stopped = [each.key[1:] for each in hurt]
            self._violated("E1", env, f"{stopped} are stopped, {len(left)} healthy tasks are left of {least}")

    def _check_health(self, env: Environment, before: _StoredEnvironment, now: _StoredEnvironment) -> None:
        """The stored health of a task is one that its agent has reported at some time."""
        for key, each in now.live.items():
            was, told = before.live.get(key), self._told_of(each)
            if told is None:
                continue
            claimed = {TaskHealth.HEALTHY: "HEALTHY", TaskHealth.UNHEALTHY: "UNHEALTHY"}.get(TaskHealth(each.health))
            is_stopped = each.stop_cause == StopCause.UNHEALTHY and (was is None or was.stop_cause != each.stop_cause)
            if (claimed and claimed not in told) or (is_stopped and "UNHEALTHY" not in told):
                did = "is stopped as unhealthy" if is_stopped else f"is {claimed}"
                self._violated("E11", env, f"{key} {did}, and its health command only ever said {sorted(told)}")

    def _told_of(self, each: StoredAttempt) -> set[str] | None:
        """Everything that the health command of its main container ever reported; None if ECS has forgotten the
        task.
        """
        task = self.facts.regions.task_by_id(each.task_id) if each.task_id else None
        return None if task is None else task.containers[0].healths

    def _check_deployment(self, before: Environment, now: _StoredEnvironment) -> None:
        env, deployment, target = now.env, now.env.deployment, now.env.target
        if deployment is None or target is None:
            return
        earlier = next((each for each in before.deployments if each.number == deployment.number), None)
        if deployment.failures > self._own_ends[target.run_id]:
            ends = self._own_ends[target.run_id]
            self._violated("E6", env, f"{deployment.failures} failures are counted, {ends} tasks ended by themselves")
        for each in env.deployments:
            was = next((other for other in before.deployments if other.number == each.number), None)
            self.deployments[each.status] += each.has_ended and not (was and was.has_ended)
        if deployment.status is not DeploymentStatus.COMPLETED or (earlier and earlier.has_ended):
            return
        healthy = sum(
            each.key.run_id == target.run_id and not each.stop_cause and self._may_be_healthy(each)
            and (not self._has_command(target.run_id) or "HEALTHY" in (self._told_of(each) or {"HEALTHY"}))
            for each in now.live.values()
        )  # fmt: skip
        others = [key for key in now.live if key.run_id != target.run_id]
        if healthy < env.desired or others:
            sentence = f"deployment {deployment.number} is complete with {healthy} healthy tasks of {env.desired}"
            self._violated("E8", env, f"{sentence}, and {others[:5]} are alive")

    def _check_failures(self, before: Environment, now: _StoredEnvironment, commit: Commit) -> None:
        """Outside of a deployment. Counts beyond 1 in a task's row happened soon after its start."""
        env, deployment, target = now.env, now.env.deployment, now.env.target
        if deployment is None or target is None or deployment != before.deployment or not deployment.has_ended:
            return
        own = self._own_ends[target.run_id]
        if env.failures > own:
            self._violated("E12", env, f"{env.failures} failures are counted, {own} tasks ended by themselves")
        rows = commit.tables_before.get(target.run_id, []), self.facts.stored.tables.get(target.run_id, [])
        has_failed = any(after[1] > max(1, was[1]) for was, after in zip(*rows, strict=False))
        if has_failed and not (before.frozen_reason or env.frozen_reason) and env.failed_at <= before.failed_at:
            self._violated("E12", env, "has a task that failed again, and does not count it")
        healthy = sum(self._may_be_healthy(each) for each in now.live.values())
        if before.is_failing and not env.is_failing and before.desired == env.desired > healthy:
            self._violated("E12", env, f"is well again with {healthy} healthy tasks of {env.desired}")

    def _check_rows(self, run_id: str, before: list[tuple[int, ...]]) -> None:
        stored = self.facts.stored
        after, attempts = stored.tables[run_id], stored.attempts_of(run_id)
        if len(after) < len(before):
            self.facts.violated("E5", f"{run_id} had {len(before)} tasks and has {len(after)}", run_id)
        done = {TaskStatus(row[0]).name for row in after} - {status.name for status in (*WANTED, TaskStatus.CANCELLED)}
        if done:
            self.facts.violated("E5", f"tasks of {run_id} are {done}, and a service's are never done", run_id)
        for each in stored.intended:
            if each.run_id == run_id and (each.index >= len(attempts) or attempts[each.index] < each.attempt - 1):
                sentence = f"task {each.index} of {run_id} had attempt {each.attempt}, and is numbered again"
                self.facts.violated("E5", sentence, run_id)

    def _starts(self, run_id: str, commit: Commit) -> int:
        """Tasks that are wanted since this commit."""
        before, after = commit.tables_before.get(run_id, []), self.facts.stored.tables.get(run_id, [])
        was = [row[0] for row in before] + [TaskStatus.CANCELLED] * (len(after) - len(before))
        return sum(old == TaskStatus.CANCELLED and row[0] in WANTED for old, row in zip(was, after, strict=False))

    def _active(self, now: _StoredEnvironment) -> int:
        """Wanted tasks that were not asked to stop."""
        known = [run_id for run_id in now.env.runs() if not self._is_suspended(run_id)]
        wanted = sum(row[0] in WANTED for run_id in known for row in self.facts.stored.tables.get(run_id, []))
        ending = sum(bool(each.stop_cause) for each in now.live.values() if each.key.run_id in known)
        return wanted - ending + sum(each.key.run_id not in known and each.instance != "" for each in now.live.values())

    def _is_suspended(self, run_id: str) -> bool:
        """Then only the places of its tasks are known."""
        record = self.facts.stored.records.get(run_id)
        return record is not None and bool(record.suspended_at)

    def _healthy_for_s(self, each: StoredAttempt) -> float:
        """Negative = it is not healthy yet, by the world's clock."""
        if each.status != AttemptStatus.RUNNING:
            return float("-inf")
        since = each.started_at
        if self._has_command(each.key.run_id):
            if each.health != TaskHealth.HEALTHY:
                return float("-inf")
            since = each.health_since
        return self.facts.world.now - since - self._terms(each.key.run_id).healthy_s

    def _may_be_healthy(self, each: StoredAttempt) -> bool:
        return self._healthy_for_s(each) >= -self.facts.clocks_differ_s

    def _stopped(self, request: JSON, reply: JSON) -> None:
        """A stop of ours is stored before it is sent."""
        if request.get("reason") != REPLACED:
            return
        task_id = name_of(request["task"])
        live = next((each for each in self.facts.stored.live.values() if each.task_id == task_id), None)
        if live is not None and live.stop_cause == StopCause.NONE:
            self.facts.violated("E1", f"{live.key} is stopped before that is stored", request["task"])

    def _stands(self, detail: JSON) -> bool:
        host = self.facts.regions.host_of(str(detail.get("containerInstanceArn")))
        return host is not None and host.state == "running"

    def _really_runs(self, arn: str) -> bool:
        task = self.facts.regions.task(arn)
        agent = self.facts.regions.agent(task.instance.ec2_instance_id) if task else None
        return agent is not None and arn in agent.tasks

    def _says_it_is_well(self, arn: str) -> bool:
        task = self.facts.regions.task(arn)
        return task is not None and task.containers[0].health == "HEALTHY"

    def _has_command(self, run_id: str) -> bool:
        return self.facts.jobs[run_id].has_health

    def _is_of_service(self, run_id: str) -> bool:
        job = self.facts.jobs.get(run_id)
        return job is not None and job.serves

    def _terms(self, run_id: str) -> ServiceTerms:
        service = self.facts.jobs[run_id].terms.service
        assert service is not None
        return service

    def _violated(self, invariant: str, env: Environment, sentence: str) -> None:
        """Its runs are named, so that a violation of a damaged run does not count."""
        self.facts.violated(invariant, f"environment {env.name} {sentence}", *env.runs())


def _least(terms: ServiceTerms, desired: int) -> int:
    """Healthy tasks that our own acts must leave: the percentage rounded up, or one less if no task could move
    otherwise.
    """
    least = -(-desired * terms.min_healthy_percent // 100)
    return least if _most(terms, desired) > desired else max(0, min(least, desired - 1))


def _most(terms: ServiceTerms, desired: int) -> int:
    """Active tasks that our own acts may lead to."""
    return desired - (-desired * terms.max_over_percent // 100)


def _stays(host: Ec2Instance) -> bool:
    """Whether EC2 does not take it back."""
    return host.lifecycle not in ("spot", INTERRUPTIBLE)
