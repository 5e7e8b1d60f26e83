"""Everything that the controller stores, under one version (DESIGN D3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from argosy.model.arns import family_of
from argosy.model.attempts import AttemptKey, AttemptTable
from argosy.model.cluster_history import ClusterSample, PlacedOrder
from argosy.model.columns import ChangedIds
from argosy.model.costs import Costs
from argosy.model.damage import Losses
from argosy.model.ended_attempts import BYTES_PER_ROW, ROWS_PER_ITEM, EndedAttempt
from argosy.model.inbox import SubmitRequest
from argosy.model.instances import Instance, Purchase, pool_key
from argosy.model.open_ends import OpenEnds
from argosy.model.policy import Policy
from argosy.model.pools import NO_FLOOR, Floor, LastCommit, OrderNote, Pool
from argosy.model.readings import Readings
from argosy.model.resources import Resources
from argosy.model.run_record import RunRecord
from argosy.model.runs import Run
from argosy.model.series import SERIES_BYTES
from argosy.model.services.environments import Environment
from argosy.model.setbacks import LASTING, MAX_SETBACKS_STORED, Act, Setback, Subject
from argosy.model.shares.sharing import Sharing
from argosy.model.suspensions import Suspension
from argosy.model.tasks import TaskStatus

BYTES_PER_INSTANCE = 130  # as stored, compressed: measured with 5,000 and with 20,000
BYTES_PER_WRITE = 12  # of a row, in the journal's lines, compressed
BYTES_PER_ITEM = 150_000  # of the journal; lines are cut in two until none is larger than twice that


@dataclass(slots=True)
class State:
    """A snapshot. Only `lifecycle` changes it; `documents` turns it into bytes and back."""

    version: int = 0
    epoch: str = ""  # tells this state's waves from those of an earlier deployment of the same name
    lines_at: int = 0  # the last version whose commit had lines for the journal
    next_run: int = 1
    next_wave: int = 1
    runs: dict[str, Run] = field(default_factory=dict)  # not yet closed, in order of submission
    environments: dict[str, Environment] = field(default_factory=dict)  # by name
    floor: Floor = NO_FLOOR  # the least number of instances that a user wants to keep
    sharing: Sharing = field(default_factory=Sharing)
    attempts: AttemptTable = field(default_factory=AttemptTable)
    instances: dict[str, Instance] = field(default_factory=dict)  # by EC2 id
    pools: dict[str, Pool] = field(default_factory=dict)  # by Pool.key
    orphans: dict[str, str] = field(default_factory=dict)  # ARN -> cell: tasks with our mark and without a live attempt
    # families of task definitions of closed runs, the longest unused first -> when the run was closed
    unused_definitions: dict[str, float] = field(default_factory=dict)
    begun_at: float = 0.0  # when this controller loaded it; older intents are another controller's; not stored
    observed_at: float = 0.0  # the last sweep
    spent_usd: float = 0.0  # of instances that are gone
    spent_on_demand_usd: float = 0.0  # the same hours at on-demand prices
    unattributed: Costs = field(default_factory=Costs)  # of time that no run used
    interruptions: int = 0  # of spot instances, since the deployment
    sampled_at: float = 0.0  # when the last sample of the cluster was taken,
    sampled_at_rest: bool = True  # and whether the cluster was empty
    busy_since: float = 0.0  # the first sample after rest
    peak_cpu: float = 0.0  # highest allocated share of the active instances, 0..1
    peak_memory: float = 0.0
    peak_gpus: float = 0.0
    # by instance that is not known yet: what EC2 has announced about it (`lifecycle.announcements`)
    announced: dict[str, list[float]] = field(default_factory=dict)
    readings: Readings = field(default_factory=Readings)  # of AWS's contracts, as far as they were seen
    open_ends: OpenEnds = field(default_factory=OpenEnds)  # not stored
    health_looks: dict[bytes, float] = field(default_factory=dict)  # by id of a task: the latest; not stored
    setbacks: dict[Subject, Setback] = field(default_factory=dict)  # by what failed
    losses: Losses = field(default_factory=Losses)  # what could not be read
    daemons: set[int] = field(default_factory=set, compare=False)  # Run.number of every daemon's run; not stored itself
    last_order: OrderNote = field(default_factory=OrderNote)  # its patterns are not stored
    quarantined: dict[str, RunRecord] = field(default_factory=dict)  # records of runs that had to be set aside
    suspended: dict[str, Suspension] = field(default_factory=dict)  # open runs at which the controller's code failed
    left_out: list[tuple[str, Exception]] = field(default_factory=list)  # what our code failed at in this tick
    damaged: dict[str, bytes] = field(default_factory=dict)  # the stored bytes of such records

    # changes since the last commit; `documents` reads and clears them
    new_runs: set[str] = field(default_factory=set)  # whose spec is not stored yet
    changed_runs: set[str] = field(default_factory=set)
    changed_instances: ChangedIds = field(default_factory=ChangedIds)
    changed_pools: bool = False
    changed_environments: set[str] = field(default_factory=set)
    changed_sharing: bool = False
    changed_recent_use: bool = False
    gone_environments: dict[str, int] = field(default_factory=dict)  # deleted ones, and the last revision of each
    ended: dict[str, list[EndedAttempt]] = field(default_factory=dict)  # attempts that ended, by run
    sample: ClusterSample | None = None  # of the cluster
    orders: list[PlacedOrder] = field(default_factory=list)
    committed: LastCommit = field(default_factory=LastCommit)  # capacity as last committed; not stored itself

    def run_by_number(self, number: int) -> Run | None:
        return next((run for run in self.runs.values() if run.number == number), None)

    def key_of(self, row: int) -> AttemptKey | None:
        """The key of a live attempt; None when its run is closed."""
        run = self.run_by_number(int(self.attempts["run"][row]))
        if run is None:
            return None
        index, attempt, launch = (int(self.attempts[name][row]) for name in ("index", "attempt", "launch"))
        return AttemptKey(run.id, index, attempt, launch)

    def row_of(self, key: AttemptKey) -> int | None:
        """The live row of exactly this attempt and launch."""
        run = self.runs.get(key.run_id)
        row = self.attempts.row_of_task.get((run.number, key.index)) if run else None
        if row is None:
            return None
        same = self.attempts["attempt"][row] == key.attempt and self.attempts["launch"][row] == key.launch
        return row if same else None

    def instance_of(self, row: int) -> Instance | None:
        return self.instances.get(bytes(self.attempts["instance"][row]).decode())

    def suspended_numbers(self) -> set[int]:
        """Run.number of the suspended runs."""
        return {found.record.number for found in self.suspended.values()}

    def unprepared(self) -> list[Run]:
        """Runs without a task definition that will get one."""
        return [run for run in self.runs.values() if not (run.task_definition or run.halted)]

    @property
    def has_capped_runs(self) -> bool:
        """Whether a budget or an hourly cap limits an open run."""
        return any(run.terms.has_caps and not run.done for run in self.runs.values())

    @property
    def keeps_instances(self) -> bool:
        """Whether any instance is kept for one run."""
        return any(instance.yields_to for instance in self.instances.values())

    def definitions_in_use(self) -> set[str]:
        """The families of the task definitions that open and suspended runs use."""
        pinned = [run.task_definition for run in self.runs.values() if not run.done]
        pinned += [found.record.task_definition for found in self.suspended.values()]
        return {family_of(arn) for arn in pinned}

    def needs_by_number(self) -> dict[int, Resources]:
        """The needs of a task of each open run, by Run.number; tasks of suspended runs continue."""
        suspended = {found.record.number: found.record.needs for found in self.suspended.values()}
        return suspended | {run.number: run.needs for run in self.runs.values()}

    def has_work(self, instance_id: str) -> bool:
        """Whether any attempt other than a daemon's takes room there. An instance with daemons only is idle."""
        return self._is_work(self.attempts.runs_on_instance.get(instance_id.encode(), {}))

    def _is_work(self, runs: Mapping[int, int]) -> bool:
        return any(count and number not in self.daemons for number, count in runs.items())

    def working_instances(self) -> Collection[bytes]:
        """Names of the instances with such attempts."""
        here = self.attempts.runs_on_instance
        return {name for name, runs in here.items() if self._is_work(runs)} if self.daemons else here

    def open(self, run: Run) -> None:
        self.runs[run.id] = run
        self.note_daemon(run)

    def take_in(self, request: SubmitRequest, rows: int, status: TaskStatus = TaskStatus.PENDING) -> Run:
        """A new run. rows: the number of its tasks, each with that status."""
        run = Run.of_request(request, self.next_run, rows, status)
        self.open(run)
        self.next_run += 1
        self.new_runs.add(run.id)
        self.changed_runs.add(run.id)
        return run

    def suspend(self, run_id: str, found: Suspension) -> None:
        """As it was stored."""
        self.suspended[run_id] = found
        self.daemons.update([found.record.number] if found.record.is_daemon else [])

    def note_daemon(self, run: Run) -> None:
        """Add a run to the state; every run enters here."""
        if run.is_daemon:
            self.daemons.add(run.number)

    def set_task(self, run: Run, index: int, **values: Any) -> None:
        run.tasks.set(index, **values)
        if values.get("status") is TaskStatus.SUCCEEDED:
            run.note_program(int(run.tasks["program"][index]), results=1)
        self.changed_runs.add(run.id)

    def used_on(self, instance_id: str) -> Resources:
        """The resources that live attempts take on one instance."""
        needs = self.needs_by_number()
        taken = Resources()
        for number, count in self.attempts.runs_on_instance.get(instance_id.encode(), {}).items():
            taken = taken.plus(needs.get(number, Resources()), count)
        return taken

    def in_pools_fleet(self, instance: Instance) -> bool:
        """Whether its pool's own fleet launched it. Otherwise another fleet's target counts it, or none does."""
        return self._is_fleet_of(instance.pool, instance.fleet_id)

    def is_of_pool(self, instance: Instance) -> bool:
        """Whether its pool's targets count it: on demand no fleet does."""
        return instance.purchase is not Purchase.SPOT or self.in_pools_fleet(instance)

    def _is_fleet_of(self, key: str, fleet_id: str) -> bool:
        pool = self.pools.get(key)
        return pool is None or fleet_id in ("", pool.fleet_id)

    def held(self) -> Counter[tuple[str, Purchase]]:
        """Instances that count towards the targets of their (pool, purchase): alive, not warned, not released."""
        # Two passes a tick: equal instances are counted first, by keys that are quick to look up and to hash.
        alike = Counter(
            (each.cell, each.instance_type, each.zone, each.reservation, each.fleet_id, each.purchase)
            for each in self.instances.values()
            if each.counts_for_target
        )
        found: Counter[tuple[str, Purchase]] = Counter()
        for (cell, type_name, zone, reservation, fleet_id, purchase), count in alike.items():
            key = pool_key(cell, type_name, zone, reservation)
            if purchase is not Purchase.SPOT or self._is_fleet_of(key, fleet_id):
                found[key, purchase] += count
        return found

    def is_stubborn(self, instance: Instance) -> bool:
        """Whether EC2 has refused to end it."""
        return bool(self.setbacks) and Subject(Act.TERMINATE, instance.id) in self.setbacks

    def is_counted_by_fleet_alone(self, instance: Instance) -> bool:
        """Whether only its fleet counts it: it was warned, or EC2 refuses to end it, and it still lives."""
        leaves = instance.interrupted_at and not instance.released_at
        here = instance.owned and instance.alive and not instance.absent_since
        in_fleet = instance.purchase is Purchase.SPOT and self.in_pools_fleet(instance)
        return bool(here and (leaves or self.is_stubborn(instance))) and in_fleet

    def warned(self) -> Counter[tuple[str, Purchase]]:
        """Live instances that only their fleets count: they were warned, or cannot be ended."""
        return Counter(
            (instance.pool, instance.purchase)
            for instance in self.instances.values()
            if (instance.interrupted_at or self.setbacks) and self.is_counted_by_fleet_alone(instance)
        )

    def owed(self) -> Counter[tuple[str, Purchase]]:
        """Instances that the targets include and EC2 has not shown yet, by (pool, purchase)."""
        return self.owed_beyond(self.held(), self.warned())

    def owed_beyond(
        self, held: Mapping[tuple[str, Purchase], int], warned: Mapping[tuple[str, Purchase], int]
    ) -> Counter[tuple[str, Purchase]]:
        """`owed`, for known `held` and `warned`."""
        owed: Counter[tuple[str, Purchase]] = Counter()
        for pool in self.pools.values():
            for purchase, target in pool.wanted:
                key = pool.key, purchase
                if (missing := target - held[key] - warned[key]) > 0:
                    owed[key] = missing
        return owed

    def lasting_setbacks(self) -> dict[Subject, Setback]:
        """The set-backs to store: a few for each open run and, if there are very many, those with most failures."""
        found = {
            subject: setback
            for subject, setback in self.setbacks.items()
            if subject.what in LASTING and subject.id in self.runs
        }
        most = sorted(found, key=lambda subject: -found[subject].count)[:MAX_SETBACKS_STORED]
        return {subject: found[subject] for subject in most}

    def may_try(self, what: Act, name: str, now: float) -> bool:
        """Whether an action that failed before may be tried again now."""
        setback = self.setbacks.get(Subject(what, name))
        return setback is None or setback.not_before <= now

    def started_by(self, wave: int) -> str:
        """A wave's id as sent to ECS: at most 36 characters of [A-Za-z0-9-_/]."""
        return f"argosy-{self.epoch}-{wave:x}"

    def has_room(self, policy: Policy, deletions: int = 0) -> bool:
        """Whether the next commit has room for more facts, besides the tick's decisions. deletions: items that it
        removes."""
        few = self.dirty_documents + deletions < policy.max_dirty_documents
        return few and self.dirty_bytes < policy.max_dirty_bytes

    def may_settle_more(self, policy: Policy) -> bool:
        """Whether it has room for the end of one more attempt, or one more payer: one fact may bring hundreds."""
        few = self.dirty_documents < policy.max_settling_documents
        return few and self.dirty_bytes < policy.full_commit_bytes

    def has_room_for_series(self, policy: Policy, deletions: int) -> bool:
        """Whether it has room for one more series of a run. Series come last, and nothing depends on them."""
        few = self.dirty_documents + deletions < policy.full_commit_documents
        return few and self.dirty_bytes < policy.full_commit_bytes

    @property
    def dirty_bytes(self) -> int:
        """Estimated bytes of the next commit."""
        tables = [self.attempts, *(run.tasks for run in self.runs.values())]
        damaged = sum(map(len, self.damaged.values()))
        bucket = max(10_000, BYTES_PER_INSTANCE * len(self.instances) // 16)
        ended = BYTES_PER_ROW * sum(map(len, self.ended.values()))
        ended += SERIES_BYTES * sum(run.series.dirty for run in self.runs.values())
        buckets = bucket * min(len(self.changed_instances), 16)
        return sum(table.dirty_bytes for table in tables) + buckets + damaged + ended + self._journal_bytes

    @property
    def _journal_bytes(self) -> int:
        """Estimated most bytes of its lines."""
        writes = self.attempts.writes + sum(run.tasks.writes for run in self.runs.values())
        return BYTES_PER_WRITE * writes + 100 * (len(self.changed_runs) + len(self.changed_instances))

    @property
    def dirty_documents(self) -> int:
        """Estimated items of the next commit; ticks stop taking work in before this reaches the limit."""
        chunks = sum(len(run.tasks.dirty) for run in self.runs.values()) + len(self.attempts.dirty)
        instances = min(len(self.changed_instances) + len(self.losses.buckets), 16)
        records = len(self.changed_runs) + len(self.quarantined) + len(self.damaged)
        history = sum(-(-len(rows) // ROWS_PER_ITEM) for rows in self.ended.values())
        history += sum(run.series.dirty for run in self.runs.values())
        history += len(self.changed_environments | self.gone_environments.keys())
        history += self.changed_sharing + self.changed_recent_use
        journal = 1 + self._journal_bytes // BYTES_PER_ITEM
        return chunks + records + 2 * len(self.new_runs) + instances + history + journal + 2
