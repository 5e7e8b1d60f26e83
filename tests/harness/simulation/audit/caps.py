"""Caps of queues, changed terms of runs, and the owners of runs.

S8: a transaction with a new intent of a queue leaves the queue within its caps; each task counts with its part of its
instance. If nothing was incoming, an order is no larger than the caps allow for all waiting runs.
S12: no run says for minutes that its queue is at its cap while the queue uses nothing and nothing is coming: it would
wait behind one that cannot start.
S9: when the intent of an attempt is stored, its run has no more live attempts than the `maxConcurrentTasks` stored
with it allows, begins on no further instance above `maxInstances`, and has money left of its budget. Tasks that began
under earlier terms may continue. A change is permanent: every later record contains it. S11: the stored owner of a run
is the member that has proven it, and empty if none has. A run that came through the entrance of a queue is changed
through that entrance, and stays in that queue.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from argosy.model.instances import pool_key
from argosy.model.run_record import RunRecord
from argosy.model.run_terms import Changes, RunTerms
from argosy.model.shares.sharing import Cap, ShareQueue
from argosy.model.tasks import TaskStatus
from argosy.scheduler.buying.reasons import HELD_BY
from argosy.spec.terms import terms_of_form
from tests.harness.simulation.audit.facts import Checker, Commit, TrialFacts
from tests.harness.simulation.audit.stored_state import StoredAttempt

JSON = dict[str, Any]


Targets = Mapping[tuple[str, str], int]  # pool, and which of its two targets

AT_CAP, AT_CAP_S = "queue {} is at its cap of ", 240.0  # some ticks pass until a freed cap is used
ABOUT = 1.01  # amounts are kept in whole units
AT_CAP_COMMITS = 10  # controllers that crash before they decide leave the words of an earlier tick
_TARGETS = {"spot_target": "spot", "on_demand_target": "on-demand"}


class CapChecker(Checker):
    """The use of each queue after every transaction that begins something for it."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self.judged = 0
        """Intents and orders of queues that have caps."""
        self._targets: Targets = {}
        self._was_quiet = False
        self._idle_since: dict[str, tuple[float, int]] = {}
        """By run that says it waits at the cap of a queue that uses nothing: since when, and in how many commits."""

    def committed(self, commit: Commit) -> None:
        stored = self.facts.stored
        if stored.version == commit.version_before:
            return
        queues = stored.sharing.queues()
        self._judge_idle(queues)
        before, was_quiet = self._targets, self._was_quiet
        self._targets = self._targets_now()
        self._was_quiet = self._nothing_is_coming()
        self._judge_all(before)
        if self.facts.damaged or not any(queue.cap.is_any for queue in queues.values()):
            return
        use = self._use(queues)
        taken: defaultdict[str, set[str]] = defaultdict(set)
        for run_id in {each.key.run_id for each in commit.intents}:
            if name := self._queue(run_id, queues):
                taken[name] |= {*Cap._fields} if stored.records[run_id].needs.gpus else {*Cap._fields} - {"gpus"}
        for name, units in sorted(taken.items()):
            self._judge(name, use[name], queues[name].cap, units)
        if was_quiet:
            self._judge_order(before, use, queues)

    def _judge(self, name: str, use: Cap, cap: Cap, taken: Collection[str]) -> None:
        """Of units that the intents take: one that they do not take may have been above a cap that came later."""
        self.judged += cap.is_any
        for unit, (used, most) in zip(Cap._fields, zip(use, cap, strict=True), strict=True):
            if unit in taken and used > most * ABOUT + 1e-9:
                self.facts.violated("S8", f"queue {name} uses {used:g} {unit}, and its cap is {most:g}", name)

    def _judge_idle(self, queues: Mapping[str, ShareQueue]) -> None:
        """Whether a run waited for long, until this commit, at the cap of a queue that used nothing."""
        now, facts = self.facts.world.now, self.facts
        long_s = AT_CAP_S + facts.stands_still_s + facts.clocks_differ_s
        for run_id, (since, commits) in self._idle_since.items():
            if now - since > long_s and commits >= AT_CAP_COMMITS and facts.faults_ended_at:
                facts.violated("S12", f"{run_id} waits at the cap of its queue, which uses nothing", run_id)
        busy = {self._queue(each.key.run_id, queues) for each in facts.stored.live.values()}
        said = {run_id: facts.stored.records[run_id].waiting for run_id in self._waiting()}
        idle = {run_id for run_id, why in said.items() if why.startswith(AT_CAP.format(self._queue(run_id, queues)))}
        # A run ahead of it may have the rest of the cap coming to it, while another limit holds that run back.
        busy |= {self._queue(run_id, queues) for run_id, why in said.items() if why.startswith(HELD_BY)}
        idle = {run_id for run_id in idle if self._queue(run_id, queues) not in busy}
        if not idle or not self._nothing_is_coming() or not facts.faults_ended_at:
            idle = set()
        before = {run_id: self._idle_since.get(run_id, (now, 0)) for run_id in idle}
        self._idle_since = {run_id: (since, commits + 1) for run_id, (since, commits) in before.items()}

    def _judge_all(self, before: Targets) -> None:
        """After an order, all instances that are alive or owed cost no more than the deployment allows."""
        stored, most = self.facts.stored, self.facts.stored.sharing.usd_per_hour
        alive = [each for each in stored.instances.values() if each["status"] != "GONE"]
        if (
            not self._ordered_since(before)
            or most == float("inf")
            or self.facts.damaged
            or any(each.get("interrupted_at") for each in alive)
        ):
            return
        usd = sum(each.get("price_usd_per_hour", 0.0) for each in alive)
        held = Counter(
            pool_key(each["cell"], each["instance_type"], each["zone"], each.get("reservation", "")) for each in alive
        )
        for key, pool in stored.pools.items():
            owed = sum(self._targets[key, name] for name in _TARGETS) - held[key]
            usd += max(0, owed) * float(pool["spot_usd_per_hour"])
        self.judged += 1
        if usd > most * ABOUT:
            told = f"what is alive and ordered costs {usd:.4f} USD an hour, and the deployment's limit is {most:g}"
            self.facts.violated("S8", told)

    def _judge_order(self, before: Targets, use: Mapping[str, Cap], queues: Mapping[str, ShareQueue]) -> None:
        """Orders are for waiting runs: together these may have no more than their caps allow."""
        grown = self._ordered_since(before)
        waiting = {self._queue(run_id, queues) for run_id in self._waiting()} - {""}
        if not grown or not waiting or self._others_may_order():
            return
        self._judge_kept(sum(grown.values()), waiting, use, queues)
        for unit, price in ((3, lambda key: 1.0), (0, self._price)):
            if all(queues[name].cap[unit] < float("inf") for name in waiting):
                left = sum(max(0.0, queues[name].cap[unit] - use[name][unit]) for name in waiting)
                ordered = sum(price(key) * count for key, count in grown.items())
                self.judged += 1
                if ordered > left * ABOUT + 1e-9:
                    told = f"{ordered:g} {Cap._fields[unit]} are ordered where the caps leave {left:g} to waiting runs"
                    self.facts.violated("S8", told, *sorted(waiting))

    def _ordered_since(self, before: Targets) -> dict[tuple[str, str], int]:
        """By target, how many instances it orders. A target also follows instances that are there: EC2 replaced one
        that had ended before the target fell, or they came after their order was given up."""
        there = Counter(
            (pool_key(each["cell"], each["instance_type"], each["zone"], each.get("reservation", "")), each["purchase"])
            for each in self.facts.stored.instances.values()
            if each["owned"] and each["status"] not in ("GONE", "RELEASING")
        )
        known = {key: max(before.get(key, 0), there[key[0], _TARGETS[key[1]]]) for key in self._targets}
        return {key: count - known[key] for key, count in self._targets.items() if count > known[key]}

    def _judge_kept(
        self, ordered: int, waiting: set[str], use: Mapping[str, Cap], queues: Mapping[str, ShareQueue]
    ) -> None:
        """Instances guaranteed to a queue that does not lend are not ordered for others."""
        promised = {
            name: each.guarantee.amount
            for name, each in queues.items()
            if each.guarantee and not each.lend and each.guarantee.unit == "instances"
        }
        kept = sum(max(0.0, amount - use[name].instances) for name, amount in promised.items())
        alive = sum(each["status"] != "GONE" for each in self.facts.stored.instances.values())
        if kept and not waiting & promised.keys() and alive + ordered > self.facts.policy.max_instances - kept + 1e-3:
            told = (
                f"{ordered} instances are ordered besides {alive}, and {kept:g} are guaranteed to others and not lent"
            )
            self.facts.violated("S8", told, *sorted(promised))

    def _others_may_order(self) -> bool:
        """Tasks that belong to no run of a queue, or replacements of instances with a warning."""
        stored = self.facts.stored
        warned = any(each.get("interrupted_at") for each in stored.instances.values())
        policy = self.facts.policy
        kept = stored.floor.instances or policy.min_instances or policy.headroom
        return bool(stored.environments or kept or warned)

    def _use(self, queues: Mapping[str, ShareQueue]) -> dict[str, Cap]:
        stored, use = self.facts.stored, defaultdict[str, list[float]](lambda: [0.0] * 4)
        for (run_id, name), count in self._on_instances(stored.live.values()).items():
            its = use[self._queue(run_id, queues)]
            needs, instance = stored.records[run_id].needs, stored.instances.get(name, {})
            part = max(
                (n / total for n, total in zip(needs, instance.get("total", ()), strict=False) if total), default=0
            )
            each = part * instance.get("price_usd_per_hour", 0.0), needs.cpu_units / 1024, needs.gpus, part
            for unit, amount in enumerate(each):
                its[unit] += count * amount
        return {name: Cap(*use[name]) for name in queues}

    def _on_instances(self, live: Iterable[StoredAttempt]) -> Counter[tuple[str, str]]:
        known = self.facts.stored.records
        return Counter((each.key.run_id, each.instance) for each in live if each.instance and each.key.run_id in known)

    def _queue(self, run_id: str, queues: Mapping[str, ShareQueue]) -> str:
        """The queue; "" = none."""
        job = self.facts.jobs.get(run_id)
        if job is None or job.is_daemon:
            return ""
        name = str(self.facts.spec_of(run_id).get("queue", "default"))
        return name if name in queues else "default"

    def _waiting(self) -> list[str]:
        stored = self.facts.stored
        tables = ((run_id, stored.task_tables.get(run_id)) for run_id in stored.root.get("runs", ()))
        return [
            run_id for run_id, table in tables if table and bool((table["status"] == TaskStatus.PENDING.value).any())
        ]

    def _nothing_is_coming(self) -> bool:
        stored = self.facts.stored
        alive = [each for each in stored.instances.values() if each["status"] != "GONE" and each["owned"]]
        return sum(self._targets.values()) <= len(alive) and all(each["status"] == "ACTIVE" for each in alive)

    def _targets_now(self) -> Targets:
        return {(key, name): max(0, each[name]) for key, each in self.facts.stored.pools.items() for name in _TARGETS}

    def _price(self, key: tuple[str, str]) -> float:
        """The minimum price of an hour: EC2's spot price."""
        return float(self.facts.stored.pools[key[0]]["spot_usd_per_hour"])


class UpdateChecker(Checker):
    """Every commit with an intent, against the run's record of the same commit."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self.judged = 0
        """Intents of runs that a user had changed."""
        self._terms: dict[str, tuple[Changes, RunTerms]] = {}
        self._seen: dict[str, set[str]] = {}
        """By run, the fields that were changed."""

    def committed(self, commit: Commit) -> None:
        self._look_at_changes()
        fresh = {intent.key for intent in commit.intents}
        before: defaultdict[str, list[StoredAttempt]] = defaultdict(list)
        after: defaultdict[str, list[StoredAttempt]] = defaultdict(list)
        for each in self.facts.stored.live.values():
            if not each.instance:
                continue  # it has ended, and its outcome is found out later
            after[each.key.run_id].append(each)
            if each.key not in fresh:
                before[each.key.run_id].append(each)
        for run_id in sorted({key.run_id for key in fresh}):
            record = self.facts.stored.records[run_id]
            self.judged += bool(record.changes)
            if run_id in self.facts.jobs:
                self._check(record, before[run_id], after[run_id])

    def _terms_of(self, record: RunRecord) -> RunTerms:
        """Its current terms, read again when its users have changed them."""
        if record.id not in self._terms or self._terms[record.id][0] != record.changes:
            self._terms[record.id] = record.changes, terms_of_form(self.facts.spec_of(record.id))
        return self._terms[record.id][1]

    def _check(self, record: RunRecord, before: list[StoredAttempt], after: list[StoredAttempt]) -> None:
        terms = self._terms_of(record)
        if terms.max_concurrent is not None and len(after) > terms.max_concurrent:
            told = f"{len(after)} of its tasks are alive, {terms.max_concurrent} may be"
            self.facts.violated("S9", told, record.id)
        most = terms.max_instances
        used = _instances(after)
        if most is not None and len(used) > most and used > _instances(before):
            self.facts.violated("S9", f"it begins to work on {len(used)} instances, {most} are allowed", record.id)
        if terms.budget_usd is not None and record.cost_usd > terms.budget_usd:
            told = f"a task is begun, and {record.cost_usd:.4f} USD of {terms.budget_usd} are spent"
            self.facts.violated("S9", told, record.id)

    def _look_at_changes(self) -> None:
        for run_id, record in self.facts.stored.records.items():
            seen = self._seen.setdefault(run_id, set())
            if seen - record.changes.keys():
                self.facts.violated("S9", f"its change of {min(seen - record.changes.keys())} is lost", run_id)
            seen.update(record.changes)


def _instances(live: Iterable[StoredAttempt]) -> set[str]:
    return {each.instance for each in live if each.instance}


class MembersChecker(Checker):
    """Every stored record, against how its run came in."""

    def committed(self, commit: Commit) -> None:
        for run_id, came in self.facts.came.items():
            record = self.facts.stored.records.get(run_id)
            if record is None or not record.queue:  # not taken in yet, or nothing of it can be read
                continue
            if record.proven_owner != came.owner:
                told = f"it is of {record.proven_owner or 'no member'}, and {came.owner or 'no member'} has proven it"
                self.facts.violated("S11", told, run_id)
            if came.queue not in ("", record.queue):
                told = f"it came through the queue {came.queue}, and is in {record.queue}"
                self.facts.violated("S11", told, run_id)
