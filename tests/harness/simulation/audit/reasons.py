"""Is every reason that users see true at the time?

`reason`: the stated reason for a run's wait exists (an order, a limit that is reached, a short pool, a cap), and the
stated reason for its end has happened. What has ended waits for nothing. Sentences about AWS's answers are judged only
for that: they appear where something fails.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from argosy.model import inbox
from argosy.model.inbox import INBOX, CancelRequest
from argosy.model.instances import InstanceStatus, Purchase, pool_key
from argosy.model.run_record import RunRecord
from argosy.model.run_terms import DEFAULT_QUEUE
from argosy.model.runs import RunStatus
from argosy.model.shares.sharing import ShareQueue
from argosy.model.tasks import TERMINAL, TaskStatus
from tests.harness.simulation.audit.facts import Checker, Commit, EffectCheck, Operation, TrialFacts

JSON = dict[str, Any]
Truth = Callable[[RunRecord], bool]

A_TICK_S = 60.0  # from the moment that a tick decides for until its commit
ORDERED = 1  # instances of an order that takes the last room, and by which its fleet is not raised in the same commit
TROUBLE = (
    "no task can be started: ",
    "the run could not be prepared: ",
    "not closed: ",
    "run ",  # "... could not be closed"
    "the history of run ",  # "... could not be compacted"
    "nothing more is started or bought: ",
)
EARLY, EARLY_S = "waiting for ordered instances", 180.0  # a fleet that is not seen yet, or is gone, is set next time
_TARGETS = {
    Purchase.SPOT: ("spot_target", "confirmed_spot"),
    Purchase.ON_DEMAND: ("on_demand_target", "on_demand_target"),
}
TO_REGISTER = "waits for its turn to register"
NUMBERS = re.compile(r"^a task needs (\d+(?:\.\d+)?) (vCPU|GPU)s?, the cap of queue \S+ is (\d+(?:\.\d+)?)")
AT_WORK = (TaskStatus.STARTING, TaskStatus.RUNNING)


class ReasonChecker(Checker):
    """The sentences in the records of runs, compared with the stored state and users' requests."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self._cancelled: set[str] = set()
        self._requests: dict[str, CancelRequest] = {}
        """Cancellations that were stored, by their place in the inbox."""
        self._with_dependents: defaultdict[str, set[str]] = defaultdict(set)
        """By run that was cancelled with its dependents, of which queues; "" = of any."""
        self._judged: dict[str, str] = {}
        self._untrue_since: dict[tuple[str, str], float] = {}
        self._was_full = False
        """Before the latest commit, in which the same tick may have withdrawn an order."""
        self._pools: Mapping[str, Any] = {}
        """Before the latest commit, in which the same tick may have seen instances for the first time."""
        self._targets: Counter[str] = Counter()
        """By pool, before the latest commit."""
        waits: Mapping[str, Truth] = {
            "waiting for ordered instances": lambda run: self._are_any_on_their_way(),
            "waits before a retry after": self._backs_off,
            "held back by its budget": lambda run: "budgetUsd" in self._capacity(run),
            "held back by the run's budget": lambda run: bool(
                {"budgetUsd", "maxHourlyCost"} & self._capacity(run).keys()
            ),
            "held back by capacity.maxHourlyCost": lambda run: "maxHourlyCost" in self._capacity(run),
            "capacity.maxHourlyCost": lambda run: "maxHourlyCost" in self._capacity(run),
            "held back by capacity.maxInstances": lambda run: "maxInstances" in self._capacity(run),
            "held back by maxInstances of the deployment": lambda run: self._is_or_was_full(),
            "held back by a limit on instances": lambda run: self._is_or_was_full(),
            "held back by the vCPU quota": lambda run: bool(self.facts.policy.vcpu_quotas),
            "the pools that could hold it are short": lambda run: self._is_any_pool_short(),
            "no pool that could hold it can launch": lambda run: self._is_any_pool_short(),
            "only closed cells": lambda run: any(pool["closed"] for pool in self.facts.stored.pools.values()),
            "the price caps": lambda run: not math.isinf(self.facts.policy.max_usd_per_hour),
            "this deployment has no fleets": lambda run: not any(map(_can_launch, self.facts.stored.pools.values())),
            "its results are being listed": _never,
            "suspended: ": lambda run: run.suspended_at > 0,
            "waits for ": lambda run: bool(run.unmet) or run.waiting.startswith("waits for its turn"),
            "each of its pending tasks waits": lambda run: bool(run.unmet),
            "does not start before": lambda run: run.not_before > 0,
            TO_REGISTER: lambda run: run.status == RunStatus.SUBMITTED,
            "a task needs ": self._exceeds_a_limit,
        }
        ends: Mapping[str, Truth] = {
            "cancelled": lambda run: run.id in self._cancelled or self._goes_with_another(run),
            "a task needs ": self._exceeds_a_limit,
            "its budget of": lambda run: "budgetUsd" in self._capacity(run),
            "the rest of its budget": lambda run: "budgetUsd" in self._capacity(run),
            "capacity.maxHourlyCost": lambda run: "maxHourlyCost" in self._capacity(run),
            "the run took longer than": self._is_over_time,
            "stopped early": self._failed_alike,
            "its dependency": lambda run: bool(run.unmet),
            "set aside": lambda run: run.id in self.facts.damaged,
        }
        trouble = dict.fromkeys(TROUBLE, lambda run: not self.facts.nothing_goes_wrong)
        self._waits, self._ends = {**waits, **trouble}, {**ends, **trouble}
        of_tasks = waits.keys() - {"its results are being listed", "suspended: "}
        told_last = {**trouble, "its results are being listed": _always}
        told_last |= dict.fromkeys(("waits for ", TO_REGISTER), _gets_a_definition)
        self._said_at_the_end = {**waits, **dict.fromkeys(of_tasks, _never), **told_last}

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {("dynamodb", "transact_write_items"): self._asked}

    def committed(self, commit: Commit) -> None:
        if self.facts.stored.version == commit.version_before:
            return
        for record in self.facts.stored.records.values():
            if not record.has_ended:
                self._check(record, record.waiting, self._said_at_the_end if self._is_complete(record) else self._waits)
            elif record.waiting:
                self.facts.violated("reason", f"{record.id} has ended, and waits: {record.waiting}", record.id)
            if record.status_reason != self._judged.get(record.id):
                self._judged[record.id] = record.status_reason  # true at the time: a retry may change the rest
                self._check(record, record.status_reason, self._ends)
        self._was_full, self._targets = self._is_full(), self._wanted()
        self._pools = self.facts.stored.pools

    def _check(self, record: RunRecord, said: str, truths: Mapping[str, Truth]) -> None:
        judged = [is_true(record) for begins, is_true in truths.items() if said.startswith(begins)]
        if all(judged):  # a sentence that matches none of them is not judged
            self._untrue_since.pop((record.id, said), None)
            return
        since = self._untrue_since.setdefault((record.id, said), self.facts.world.now)
        if not said.startswith(EARLY) or self.facts.world.now - since > EARLY_S + self.facts.stands_still_s:
            self.facts.violated("reason", f"{record.id} is said to be so, and is not: {said}", record.id)

    def _asked(self, request: JSON, reply: JSON) -> None:
        """The cancellations that the commit takes out of the inbox: each is named after its run."""
        keys = [action["Delete"]["Key"] for action in request["TransactItems"] if "Delete" in action]
        taken = [key["sk"]["S"] for key in keys if key["pk"] == {"S": INBOX} and "#cancel" in key["sk"]["S"]]
        self._cancelled |= {run_id for run_id in self.facts.jobs for name in taken if run_id in name}
        for name in taken:
            if (cancel := self._requests.get(name)) is not None and cancel.dependents:
                self._with_dependents[cancel.run_id].add(cancel.queue)
        for action in request["TransactItems"]:
            item = action.get("Put", {}).get("Item", {})
            asked = inbox.from_bytes(item["body"]["B"]) if item.get("pk") == {"S": INBOX} else None
            if isinstance(asked, CancelRequest):
                self._requests[item["sk"]["S"]] = asked

    def _goes_with_another(self, record: RunRecord) -> bool:
        """Whether it depends on the cancelled run that its reason names, perhaps through others, and was to go too: a
        request through the entrance of a queue takes no run of another queue with it.
        """
        others, pending = set[str](), [record.id]
        while pending:
            job = self.facts.jobs.get(pending.pop())
            found = {each["run"] for each in job.spec.get("dependsOn", ())} - others if job else set()
            others |= found
            pending += found
        queues = self.facts.stored.sharing.queues()
        its = {"", record.queue, record.queue if record.queue in queues else DEFAULT_QUEUE}
        went = [other for other in others & self._with_dependents.keys() if its & self._with_dependents[other]]
        named = (f"cancelled with {other}, which it depends on" for other in went)
        return record.status_reason in named

    def _capacity(self, record: RunRecord) -> Mapping[str, Any]:
        capacity: Mapping[str, Any] = self.facts.spec_of(record.id).get("capacity", {})
        return capacity

    def _are_any_on_their_way(self) -> bool:
        booting = any(each["status"] == InstanceStatus.BOOTING for each in self.facts.stored.instances.values())
        return booting or self._promised() > 0 or self._raised() > 0

    def _promised(self, stored: Mapping[str, Any] | None = None) -> int:
        """The instances that fleets may still launch, as far as EC2 has acknowledged the targets. Spot and on-demand
        are counted apart, because an instance of one market does not serve the other.
        """
        pools = self.facts.stored.pools if stored is None else stored
        held = Counter(
            (key, each["purchase"])
            for each in self.facts.stored.instances.values()
            if each["owned"]
            and each["status"] == InstanceStatus.ACTIVE
            and not (each["interrupted_at"] or each["absent_since"])
            if (key := pool_key(each["cell"], each["instance_type"], each["zone"], each.get("reservation", "")))
            in pools
            and each["fleet_id"] in ("", pools[key]["fleet_id"])
        )
        return sum(max(0, _most(pool, each) - held[key, each]) for key, pool in pools.items() for each in _TARGETS)

    def _is_or_was_full(self) -> bool:
        return self._was_full or self._is_full() or self._is_filled_by(self._promised(self._pools))

    def _is_full(self) -> bool:
        return self._is_filled_by(self._promised() + self._raised())

    def _is_filled_by(self, coming: int) -> bool:
        alive: int = sum(each["status"] != InstanceStatus.GONE for each in self.facts.stored.instances.values())
        return alive + coming >= self.facts.policy.max_instances - ORDERED

    def _raised(self) -> int:
        """Instances that the latest commit orders, plus those that were given up before and may still arrive."""
        return sum((self._wanted() - self._targets).values())

    def _wanted(self) -> Counter[str]:
        pools = self.facts.stored.pools.items()
        return Counter({key: pool["spot_target"] + pool["on_demand_target"] for key, pool in pools})

    def _is_any_pool_short(self) -> bool:
        since = self.facts.world.now - A_TICK_S - self.facts.stands_still_s - self.facts.clocks_differ_s
        pools = self.facts.stored.pools.values()
        return any(max(pool["short_until"], pool["on_demand_short_until"]) > since for pool in pools)

    def _statuses(self, record: RunRecord) -> list[int]:
        return [row[0] for row in self.facts.stored.tables[record.id]]

    def _backs_off(self, record: RunRecord) -> bool:
        statuses = self._statuses(record)
        return TaskStatus.PENDING in statuses and not any(each in statuses for each in AT_WORK)

    def _is_complete(self, record: RunRecord) -> bool:
        return all(each in TERMINAL for each in self._statuses(record))

    def _is_over_time(self, record: RunRecord) -> bool:
        limit = self.facts.jobs[record.id].spec.get("timeout", {}).get("runDurationSeconds")
        began = record.reopened_at or record.submitted_at
        return limit is not None and self.facts.world.now - began >= float(limit) - self.facts.clocks_differ_s

    def _exceeds_a_limit(self, record: RunRecord) -> bool:
        """Both numbers of the sentence are those of the run and of the document in force, as far as they are known."""
        said = NUMBERS.search(record.waiting or record.status_reason)
        cap = self.facts.stored.sharing.queues().get(record.queue, ShareQueue()).cap
        if said is None:
            return True  # about prices, which the auditor does not know
        need, unit, most = float(said[1]), said[2], float(said[3])
        vcpus, gpus = record.needs.cpu_units / 1024, record.needs.gpus
        return most < need and (need, most) == ((vcpus, cap.vcpus) if unit == "vCPU" else (gpus, cap.gpus))

    def _failed_alike(self, record: RunRecord) -> bool:
        statuses = Counter(self._statuses(record))
        return statuses[TaskStatus.FAILED] >= self.facts.policy.alike_failures and not statuses[TaskStatus.SUCCEEDED]


def _never(record: RunRecord) -> bool:
    return False


def _always(record: RunRecord) -> bool:
    return True


def _gets_a_definition(record: RunRecord) -> bool:
    """Whether its turn has not come yet: a service or daemon without desired tasks is prepared nevertheless."""
    is_to_serve = record.healthy_s is not None and not record.halted
    return is_to_serve and record.status == RunStatus.SUBMITTED and record.waiting.startswith(TO_REGISTER)


def _can_launch(pool: Mapping[str, Any]) -> bool:
    """A pool outlives its fleet: a pool of a cell that the deployment no longer names has none."""
    return bool(pool["fleet_id"]) and not pool["closed"]


def _most(pool: Mapping[str, Any], purchase: Purchase) -> int:
    """The maximum of instances of the kind in its fleet, by the requested and the last acknowledged target."""
    wanted, told = _TARGETS[purchase]
    return int(max(pool[wanted], pool[told]))
