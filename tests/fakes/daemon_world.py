"""A world of ticks for a daemon's tasks under `daemons.daemon_step`, where everything happens.

No engine and no AWS: instances that come, fill up, fall silent and go, tasks that start, become healthy, crash and take
a while to stop, deployments over deployments in both orders. After each step it reports the broken rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from argosy.scheduler.services.daemons import DaemonHost, DaemonStep, DaemonTask, PendingSlot, daemon_step, least_on
from argosy.scheduler.services.rollout import SlotStatus

PERCENTAGES = (0, 25, 50, 80, 95, 100)
MOST_HOSTS = 12
LONGEST_PAUSE = 8  # ticks, after a crash
NEXT = {SlotStatus.STARTING: SlotStatus.YOUNG, SlotStatus.YOUNG: SlotStatus.HEALTHY}


@dataclass(slots=True)
class Machine:
    """An instance. matches: whether the daemon should run there."""

    id: str
    is_open: bool = True
    room: int = 2  # of the daemon's tasks
    matches: bool = True


@dataclass(slots=True)
class Row:
    """A slot of a revision's run."""

    status: str = "parked"  # parked, pending, live
    last_host: str = ""
    due: int = 0  # from which tick it may start, or its task's next status is reached
    so_far: SlotStatus = SlotStatus.STARTING
    ends_at: int = 0  # when a stopping task is gone; 0 = it was not


@dataclass(slots=True)
class DaemonWorld:
    """One daemon. Everything follows from the seed."""

    seed: int
    calm: bool = False
    now: int = 0
    revision: int = 1
    least: int = 80
    starts_first: bool = False
    is_frozen: bool = False
    made: int = 0
    machines: dict[str, Machine] = field(default_factory=dict)
    rows: dict[tuple[int, int], Row] = field(default_factory=dict)  # by revision and index
    pauses: dict[tuple[int, str], int] = field(default_factory=dict)  # (revision, host) -> until when
    broken: list[str] = field(default_factory=list)
    draw: Random = field(init=False)
    crash: float = 0.0  # chances a tick: of a task,
    loss: float = 0.0  # of an instance,
    change: float = 0.0  # and of the daemon

    def __post_init__(self) -> None:
        self.draw = Random(self.seed)
        self.crash, self.loss, self.change = (self.draw.random() * most for most in (0.15, 0.06, 0.12))
        self._redraw()

    def _redraw(self) -> None:
        self.least, self.starts_first = self.draw.choice(PERCENTAGES), self.draw.random() < 0.5

    def hosts(self) -> list[DaemonHost]:
        own = Counter(row.last_host for row in self.rows.values() if row.status == "live")
        return [
            DaemonHost(each.id, each.is_open, takes=each.room > own[each.id], takes_after=each.room > 0)
            for each in self.machines.values()
            if each.matches
        ]

    def tasks(self) -> list[DaemonTask]:
        return [
            DaemonTask(
                f"run{revision}", index, row.last_host, row.so_far, revision == self.revision, ends=bool(row.ends_at)
            )
            for (revision, index), row in self.rows.items()
            if row.status == "live"
        ]

    def pending(self) -> list[PendingSlot]:
        return [
            PendingSlot(index, row.last_host, is_due=row.due <= self.now)
            for (revision, index), row in self.rows.items()
            if revision == self.revision and row.status == "pending"
        ]

    def tick(self) -> None:
        """Something happens, and then we act."""
        self.now += 1
        if not self.calm:
            self._change_machines()
            self._change_daemon()
        for (revision, _), row in self.rows.items():
            self._live(revision, row)
        hosts, tasks, pending = self.hosts(), self.tasks(), self.pending()
        step = daemon_step(hosts, tasks, pending, self.least, starts_first=self.starts_first, is_frozen=self.is_frozen)
        self.broken += broken_laws(
            hosts, tasks, pending, step, self.least, starts_first=self.starts_first, is_frozen=self.is_frozen
        )
        self.broken += [
            f"{name} is started in its pause"
            for _, name in step.launches
            if self.pauses.get((self.revision, name), 0) > self.now
        ]
        self._act(step)

    def _act(self, step: DaemonStep) -> None:
        for index in step.parks:
            self.rows[self.revision, index].status = "parked"
        for index, name in step.launches:
            self.rows[self.revision, index] = Row("live", name, self.now + self.draw.randint(1, 4))
        for task in step.stops:
            self.rows[int(task.run_id.removeprefix("run")), task.index].ends_at = self.now + self.draw.randint(1, 3)
        for _ in range(step.starts):
            parked = (key for key, row in self.rows.items() if key[0] == self.revision and row.status == "parked")
            key = next(parked, (self.revision, sum(revision == self.revision for revision, _ in self.rows)))
            row = self.rows.setdefault(key, Row())
            row.status, row.due = "pending", 0

    def _live(self, revision: int, row: Row) -> None:
        if row.status != "live":
            return
        machine = self.machines.get(row.last_host)
        if machine is None or (row.ends_at and row.ends_at <= self.now):
            row.status, row.ends_at = "parked", 0
        elif not self.calm and self.draw.random() < self.crash and not row.ends_at:
            pause = self.draw.randint(1, LONGEST_PAUSE)
            row.status, row.due = ("pending" if revision == self.revision else "parked"), self.now + pause
            self.pauses[revision, row.last_host] = row.due
        elif row.due <= self.now and row.so_far in NEXT:
            row.so_far, row.due = NEXT[row.so_far], self.now + 1

    def _change_machines(self) -> None:
        draw = self.draw
        if draw.random() < 0.3 and len(self.machines) < MOST_HOSTS:
            self.made += 1
            self.machines[f"i-{self.made}"] = Machine(f"i-{self.made}", room=draw.choice((0, 1, 2, 2, 2)))
        for name, machine in list(self.machines.items()):
            if draw.random() < self.loss:
                del self.machines[name]
            elif draw.random() < 0.1:
                machine.is_open = not machine.is_open
            elif draw.random() < 0.05:
                machine.room = draw.choice((0, 1, 2))

    def _change_daemon(self) -> None:
        if self.draw.random() >= self.change:
            return
        self.pauses.clear()  # a task that is thawed or wanted again starts again
        what = self.draw.choice(("deploy", "deploy", "freeze", "query"))
        if what == "freeze":
            self.is_frozen = not self.is_frozen
            return
        self.revision, self.is_frozen = self.revision + (what == "deploy"), False
        self._redraw()
        for machine in self.machines.values():
            machine.matches = self.draw.random() < 0.9
        for (revision, _), row in self.rows.items():
            if revision != self.revision and row.status == "pending":
                row.status = "parked"  # the caller of the step ensures that

    def grow_calm(self) -> None:
        """From now on nothing happens except our own acts."""
        self.calm, self.is_frozen = True, False
        self.pauses.clear()
        for machine in self.machines.values():
            machine.is_open, machine.room = True, 2

    @property
    def is_settled(self) -> bool:
        """Exactly one healthy task of the target on each matching instance, and no waiting slot."""
        good = Counter(task.host for task in self.tasks() if task.is_target and task.status is SlotStatus.HEALTHY)
        wanted = Counter(host.id for host in self.hosts())
        return good == wanted and len(self.tasks()) == len(wanted) and not self.pending()


def broken_laws(
    hosts: Sequence[DaemonHost],
    tasks: Sequence[DaemonTask],
    pending: Sequence[PendingSlot],
    step: DaemonStep,
    least_percent: int,
    *,
    starts_first: bool,
    is_frozen: bool,
) -> list[str]:
    """The rules that a step breaks, whatever came before it."""
    found: list[str] = []
    by_id, here = {host.id: host for host in hosts}, Counter(task.host for task in tasks)
    due = {slot.index for slot in pending if slot.is_due}
    names = [name for _, name in step.launches]
    if is_frozen and (step.starts or step.launches or step.stops):
        found.append("what is frozen acts")
    if len({*names}) != len(names) or len({index for index, _ in step.launches}) != len(names):
        found.append("two launches are about one instance or one slot")
    for index, name in step.launches:
        host = by_id.get(name)
        if host is None or not (host.is_open and host.takes) or index not in due or index in step.parks:
            found.append(f"slot {index} cannot start on {name}")
        targets = [task for task in tasks if task.host == name and task.is_target]
        if here[name] > starts_first or targets:
            found.append(f"{name} has {here[name]} tasks already")
    found += _undercut(by_id, tasks, step, least_percent)
    if any(task.ends or not task.is_sent for task in step.stops) or len({*step.stops}) != len(step.stops):
        found.append("a stop is of no use")
    taken = {task.host for task in tasks if task.is_target and not task.ends}
    free = sum(host.id not in taken for host in hosts)
    if not is_frozen and len(pending) - len(step.parks) + step.starts > free:
        found.append("more slots wait than instances are without a task")
    return found


def _undercut(
    by_id: dict[str, DaemonHost], tasks: Sequence[DaemonTask], step: DaemonStep, least_percent: int
) -> list[str]:
    stopped = {*step.stops}

    def healthy(without: set[DaemonTask]) -> int:
        serving = [task for task in tasks if task.status is SlotStatus.HEALTHY and not task.ends]
        return len({task.host for task in serving if task not in without} & by_id.keys())

    before, after = healthy(set()), healthy(stopped)
    return ["fewer are healthy than the least"] if after < min(before, least_on(len(by_id), least_percent)) else []
