"""Is everything as it must be, after every call? The invariants I1-I11 (reliability.md 4.2) and I12 (decision 12), on
the world's own truth.

The auditor sees each effect before the controller hears of it, reads each commit as it is stored, and knows what really
runs on the instances. What it finds it keeps; the trial stops at the next step and tells the story.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from argosy.emulator.s3 import S3Model
from argosy.messages.ecs import key_of_task
from argosy.model.attempts import AttemptKey, AttemptStatus
from argosy.model.policy import Policy
from argosy.model.tasks import TERMINAL, TaskStatus
from argosy.simulation import deserved
from argosy.simulation.job import CANARY, Job
from argosy.simulation.ledger_book import Book, Live
from argosy.simulation.mishaps import fleet_is_ours, is_ours
from argosy.simulation.money import Money
from argosy.simulation.raises import Raises
from argosy.simulation.story import Story, short
from argosy.simulation.world import World

JSON = dict[str, Any]
Index = tuple[str, int]

KNOWN_AFTER_S = 1800.0  # by then every instance has an owner record (I6)


@dataclass(frozen=True, slots=True)
class Violation:
    """names: what to look for in the story."""

    invariant: str
    sentence: str
    at: float
    names: tuple[str, ...]


class Auditor(logging.Handler):
    """Watches one trial. It is a log handler too: secrets must not get there (I11)."""

    def __init__(self, world: World, jobs: Mapping[str, Job], policy: Policy, s3: S3Model) -> None:
        super().__init__()
        self.world, self.jobs, self.policy, self.s3 = world, jobs, policy, s3
        self.story = Story()
        self.book = Book()
        self.money, self.raises = Money(), Raises()
        self.violations: list[Violation] = []
        self.launches = 0
        self.unsent: set[AttemptKey] = set()
        self.copies: defaultdict[tuple[str, int, int], list[str]] = defaultdict(list)
        self.arns: defaultdict[Index, list[str]] = defaultdict(list)
        self.blamed: Counter[Index] = Counter()
        """Attempts that really ended on the user's account."""
        self.ended_well: set[tuple[str, int, int]] = set()
        self.alone = False
        """One controller only: then its own calls are in the order of its commits."""
        self.launching = True
        """False once the deployment is torn down: nothing may start any more."""
        self.deaf_until = 0.0
        """Until then no controller worked at all."""
        self._checks: dict[tuple[str, str], Callable[[JSON, JSON], None]] = {
            ("ecs", "run_task"): self._launched,
            ("ecs", "stop_task"): self._stopped,
            ("ec2", "terminate_instances"): self._terminated,
            ("ec2", "modify_fleet"): self._steered,
            ("dynamodb", "transact_write_items"): self._committed,
        }

    def watch(self, service: str, operation: str, request: JSON, reply: JSON) -> None:
        """After each effect."""
        check = self._checks.get((service, operation))
        if check is not None:
            check(request, reply)

    def remember(self, service: str, operation: str, request: JSON, outcome: str) -> None:
        if service in ("ecs", "ec2") and not operation.startswith(("list", "describe")):
            self.story.tell(self.world.now, f"{operation} ({outcome})", request)
        elif outcome != "ok":
            self.story.tell(self.world.now, f"{service} {operation} ({outcome})", "")

    def hear(self, message: JSON) -> None:
        """A sink of the world: what really happens, before it gets lost on its way."""
        self.story.tell(self.world.now, message["detail-type"], short(message))
        detail = message["detail"]
        if message["detail-type"] != "ECS Task State Change" or detail.get("lastStatus") != "STOPPED":
            return
        key = key_of_task(detail)
        if key is not None:
            self._ended(key, detail)

    def emit(self, record: logging.LogRecord) -> None:
        if CANARY in record.getMessage():
            self.found("I11", "a secret of a task's environment is in the log", CANARY)

    def found(self, invariant: str, sentence: str, *names: str) -> None:
        self.violations.append(Violation(invariant, sentence, self.world.now, names))

    def look_around(self) -> None:
        """What needs no call to go wrong: instances that nobody knows, or too many of them."""
        ours = [each for each in self.world.ec2.ledger.instances.values() if each.alive and is_ours(self.world, each)]
        held = [each for each in ours if each.ends_at is None]
        if (
            len(held) > 2 * self.policy.max_instances
        ):  # what a fleet launched unseen before it was given up comes on top
            self.found("I7", f"{len(held)} instances, {self.policy.max_instances} are allowed")
        for instance in ours:
            if (
                self.world.now - max(instance.launched_at, self.deaf_until) > KNOWN_AFTER_S
                and instance.instance_id not in self.book.instances
            ):
                self.found("I6", f"nobody knows {instance.instance_id}", instance.instance_id)

    def really_runs(self, arn: str) -> bool:
        """Whether the task's program is alive on its instance, whatever ECS says."""
        task = self.world.ecs.ledger.clusters[self.world.cluster].tasks.get(arn)
        agent = self.world.agents.get(task.instance.ec2_instance_id) if task else None
        return agent is not None and arn in agent.tasks

    def _launched(self, request: JSON, reply: JSON) -> None:
        key = key_of_task(request)
        if key is None:
            return
        named = {"key": key, "token": request.get("clientToken"), "startedBy": request.get("startedBy")}
        named["pin"] = request["placementConstraints"]
        arns = [task["taskArn"] for task in reply["tasks"]]
        self.story.tell(
            self.world.now, "run_task starts or names", {**named, "tasks": arns, "failures": reply["failures"]}
        )
        if key not in self.book.intended:
            self.found("D4", f"{key} was sent before its intent was stored", *self._names(key))
        self._check_pin(key)
        for task in reply["tasks"]:
            arn = task["taskArn"]
            if arn in self.copies[key[:3]]:
                continue
            self.launches += 1
            if not self.launching:
                self.found("kill", f"{key} was started after the deployment was torn down", arn)
            if self.copies[key[:3]]:
                self.found("I1", f"attempt {key[:3]} was started twice", arn, *self.copies[key[:3]])
            for earlier in self.arns[key[:2]]:
                if self.really_runs(earlier):
                    self.found("I1", f"task {key[:2]} runs while an earlier attempt still does", arn, earlier)
            self.copies[key[:3]].append(arn)
            self.arns[key[:2]].append(arn)

    def _check_pin(self, key: AttemptKey) -> None:
        """An intent that was never sent is not sent to an instance that is stored as warned."""
        for live in self.book.live.values():
            if live.key == key and live.status == AttemptStatus.INTENT and key in self.unsent:
                instance = self.book.instances.get(live.instance)
                if instance is not None and instance["interrupted_at"]:
                    self.found("R12", f"{key} is sent to {live.instance}, which was warned", live.instance)
        self.unsent.discard(key)

    def _stopped(self, request: JSON, reply: JSON) -> None:
        if not str(reply["task"].get("startedBy", "")).startswith("argosy-"):
            self.found("I10", "a stranger's task was stopped", request["task"])

    def _terminated(self, request: JSON, reply: JSON) -> None:
        for instance_id in request["InstanceIds"]:
            if not is_ours(self.world, self.world.ec2.instance(instance_id)):
                self.found("I10", f"{instance_id} is not ours and was terminated", instance_id)
            known = self.book.instances.get(instance_id)
            if known is None or not known["released_at"]:
                self.found("I6", f"{instance_id} was terminated before the store knew it", instance_id)
            agent = self.world.agents.get(instance_id)
            sound = agent is not None and agent.connected and known is not None and not known["cordon"]
            for arn in [*agent.tasks] if sound and agent is not None else []:
                if self._is_wanted(arn):
                    self.found("waste", f"{instance_id} was terminated under a running task", instance_id, arn)

    def _steered(self, request: JSON, reply: JSON) -> None:
        fleet = self.world.ec2.ledger.fleet(request["FleetId"])
        if not fleet_is_ours(fleet):
            self.found("I10", f"{fleet.fleet_id} is not ours and was steered", fleet.fleet_id)
        fleets = [each for each in self.world.ec2.ledger.fleets.values() if each.is_live and fleet_is_ours(each)]
        # What a fleet launched just before it was given up comes on top, until a sweep shows it; and what is let go,
        # for targets are set before anything is ended.
        known = self.book.instances
        held = sum(name in known and not known[name]["released_at"] for each in fleets for name in each.members)
        missing = sum(max(0, each.total_target - len(each.members)) for each in fleets)
        if self.alone and fleet.total_target > len(fleet.members) and held + missing > self.policy.max_instances:
            sentence = f"{missing} more instances are ordered beside {held}, {self.policy.max_instances} are allowed"
            self.found("I7", sentence, fleet.fleet_id)
        replaced = any(not each.is_live and each.pools == fleet.pools for each in self.world.ec2.ledger.fleets.values())
        if (sentence := self.raises.unordered(self.book, fleet)) and self.alone and not replaced:
            self.found("I7", f"{fleet.fleet_id} was {sentence}", fleet.fleet_id)
        if not self.launching and fleet.total_target:
            self.found("kill", f"{fleet.fleet_id} was raised after the deployment was torn down", fleet.fleet_id)

    def _committed(self, request: JSON, reply: JSON) -> None:
        """One transaction is stored: read it as the next controller would."""
        book = self.book
        before, closed, reviving = dict(book.tables), self._over(), self._reviving()
        version, fresh = book.version, book.take(request["TransactItems"])
        if book.version not in (version, version + 1):
            self.found("I9", f"version {book.version} follows {version}")
        for live in fresh:
            self.unsent.add(live.key)
            self.story.tell(self.world.now, "intent stored", live._asdict())
            self._check_intent(live)
        again = reviving | self._reviving() | (closed - self._over())
        for run_id, table in book.tables.items():
            if table is not before.get(run_id):
                self._check_tasks(run_id, before.get(run_id), again=run_id in again)
        if fresh:
            self._check_room()
        if sentence := self.money.imbalance(book, self.world.now):
            self.found("I12", sentence)

    def _check_intent(self, live: Live) -> None:
        if sentence := deserved.launches(live.key.launch):
            self.found("liveness", f"{live.key} {sentence}", live.instance)
        instance = self.book.instances.get(live.instance)
        sick = instance is None or instance["interrupted_at"] or instance["rebalance_at"] or instance["cordon"]
        if instance is None or sick or instance["status"] != "ACTIVE" or not instance["owned"]:
            sentence = f"{live.key} is placed on {live.instance}, which takes no work"
            self.found("I10" if instance is None or not instance["owned"] else "R12", sentence, live.instance)

    def _check_room(self) -> None:
        used: Counter[tuple[str, int]] = Counter()
        for live in self.book.live.values():
            record = self.book.records.get(live.key.run_id)
            for axis, need in enumerate(record.needs if record else ()):
                used[live.instance, axis] += need
        for (instance_id, axis), amount in used.items():
            instance = self.book.instances.get(instance_id)
            if instance is not None and instance["status"] != "GONE" and amount > instance["total"][axis]:
                self.found("I5", f"{instance_id} is over-committed", instance_id)

    def _over(self) -> set[str]:
        return {run_id for run_id, record in self.book.records.items() if record.has_ended}

    def _reviving(self) -> set[str]:
        """Runs of which a user wanted more, while their tasks are made pending again."""
        return {run_id for run_id, record in self.book.records.items() if record.revives}

    def _check_tasks(self, run_id: str, before: list[tuple[int, ...]] | None, *, again: bool) -> None:
        job, record, table = self.jobs[run_id], self.book.records[run_id], self.book.tables[run_id]
        counts = [0] * len(TaskStatus)
        for index, row in enumerate(table):
            counts[row[0]] += 1
            if before is None or row != before[index]:
                self._check_task(job, index, before[index] if before else None, row, again=again)
        if tuple(counts) != record.counts:
            self.found("I4", f"{run_id} counts {[*record.counts]}, its tasks say {counts}")

    def _check_task(
        self, job: Job, index: int, before: tuple[int, ...] | None, row: tuple[int, ...], *, again: bool
    ) -> None:
        status, user_failures, losses, committed = row
        name, names = f"task {index} of {job.run_id}", self._names(AttemptKey(job.run_id, index, 0, 0))
        final = (TaskStatus.SUCCEEDED,) if again else TERMINAL
        if before is not None and before[0] in final and row != before:
            self.found(
                "I3", f"{name} had ended as {TaskStatus(before[0]).name} and is now {TaskStatus(status).name}", *names
            )
        if before is not None and before[3] not in (0, committed):
            self.found("I2", f"{name}: attempt {before[3]} was committed, now {committed}", *names)
        limit = int(job.spec.get("retryStrategy", {}).get("attempts", 1))
        if user_failures > limit or losses > self.policy.max_losses:
            self.found("I8", f"{name} used {user_failures} user attempts of {limit} and {losses} losses", *names)
        if user_failures > self.blamed[job.run_id, index]:
            self.found(
                "I8", f"{name}: {user_failures} user attempts booked, {self.blamed[job.run_id, index]} used", *names
            )
        if sentence := deserved.failure(self.book.records[job.run_id], row, limit, self.policy):
            self.found("I8", f"{name} {sentence}", *names)
        if status == TaskStatus.SUCCEEDED and (job.run_id, index, committed) not in self.ended_well:
            self.found("I2", f"{name} succeeded by attempt {committed}, which did not end well", *names)

    def _ended(self, key: AttemptKey, detail: JSON) -> None:
        """What the end of this attempt really was."""
        code = next((each["exitCode"] for each in detail.get("containers", ()) if "exitCode" in each), None)
        if code == 0:
            self.ended_well.add(key[:3])
        job = self.jobs.get(key.run_id)
        no_result = code == 0 and job is not None and job.expects_result and job.silent > 0
        own = code not in (None, 0) and detail.get("stopCode") == "EssentialContainerExited"
        if own or no_result or str(detail.get("stoppedReason")).startswith("argosy: "):
            self.blamed[key[:2]] += 1

    def _is_wanted(self, arn: str) -> bool:
        """Whether the task is the live attempt of a task that is not done."""
        return any(live.task_id and arn.endswith(live.task_id) and live.status == AttemptStatus.RUNNING
                   for live in self.book.live.values())  # fmt: skip

    def _names(self, key: AttemptKey) -> tuple[str, ...]:
        return tuple(self.arns[key[:2]]) or (f'"ARGOSY_TASK_INDEX", "value": "{key.index}"',)
