"""What did an instance's time cost, which run pays for it, and what was it used for?

This is the arithmetic for one instance. Uncharged time belongs to the runs that worked there, in proportion to their
work: share of the instance (dominant share) x seconds. Time without work is idle; time before registration is boot. The
time of an instance without any work belongs to the run that it was bought for, or to no run (0). Idle time before a run
arrived is recorded as belonging to the others (`Instance.waiting`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import NamedTuple

from argosy.model.instances import Instance

NO_RUN = 0  # Run.number counts from 1


class Work(IntEnum):
    """The use of an attempt's time: the index of its share-seconds in `Instance.work`."""

    USEFUL = 0  # it succeeded
    REDONE = 1  # it was lost to infrastructure or stopped by us, and done again
    FAILED = 2  # it failed, was stopped, or was lost for good
    DISPLACED = 3  # it was another run's and was stopped for this one, which pays for the work to be repeated


NO_WORK = (0.0,) * len(Work)


class TimeSpent(NamedTuple):
    """Seconds of one instance."""

    useful: float = 0.0
    boot: float = 0.0
    idle: float = 0.0
    redone: float = 0.0
    failed: float = 0.0
    displaced: float = 0.0

    @property
    def seconds(self) -> float:
        return sum(self)


@dataclass(slots=True)
class Costs:
    """USD by use, and the cost of the same time on demand. `disks` and `addresses` are the parts of the total for
    volumes and public addresses. The rest is EC2's price."""

    useful: float = 0.0
    boot: float = 0.0
    idle: float = 0.0
    redone: float = 0.0
    failed: float = 0.0
    on_demand: float = 0.0
    instance_seconds: float = 0.0
    disks: float = 0.0
    addresses: float = 0.0
    displaced: float = 0.0  # last, since ledgers are stored as rows: older rows lack them

    @property
    def instances(self) -> float:
        """EC2's price alone."""
        return self.total - self.disks - self.addresses

    @property
    def total(self) -> float:
        return self.useful + self.boot + self.idle + self.redone + self.failed + self.displaced

    def add(self, other: Costs) -> None:
        for name in _NAMES:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def to_list(self) -> list[float]:
        return [getattr(self, name) for name in _NAMES]


_NAMES = tuple(field.name for field in fields(Costs))


def costs_of(spent: TimeSpent, instance: Instance) -> Costs:
    """The cost of the time at the instance's purchase price, with its disk and its address."""
    usd_per_s = instance.price_usd_per_hour / 3600
    return Costs(
        useful=spent.useful * usd_per_s,
        boot=spent.boot * usd_per_s,
        idle=spent.idle * usd_per_s,
        redone=spent.redone * usd_per_s,
        failed=spent.failed * usd_per_s,
        displaced=spent.displaced * usd_per_s,
        on_demand=spent.seconds * instance.on_demand_usd_per_hour / 3600,
        instance_seconds=spent.seconds,
        disks=spent.seconds * instance.disk_usd_per_hour / 3600,
        addresses=spent.seconds * instance.address_usd_per_hour / 3600,
    )


def summed(every: Iterable[Costs]) -> Costs:
    total = Costs()
    for costs in every:
        total.add(costs)
    return total


def market_of(instance: Instance) -> str:
    """Where and how it was bought: its row in a ledger."""
    return f"{instance.pool}|{instance.purchase.value}"


def split(instance: Instance, at: float, running: Mapping[int, float] | None = None) -> dict[int, TimeSpent]:
    """The uncharged time until `at`, by the Run.number that owes it. `running`: share-seconds of live attempts, which
    count as useful until more is known."""
    left = max(0.0, instance.billed_s(at) - instance.charged_s)
    boot = min(left, max(0.0, instance.boot_s(at) - instance.charged_boot_s))
    work = _with_running(instance.work, running) if running else instance.work
    noted = _noted(instance, left, boot)
    noted_boot, noted_idle = sum(each.boot for each in noted.values()), sum(each.idle for each in noted.values())
    found = _shared(instance.bought_for, work, max(0.0, left - noted_boot - noted_idle), max(0.0, boot - noted_boot))
    for number, waiting in noted.items():
        spent = found.get(number, TimeSpent())
        found[number] = spent._replace(boot=spent.boot + waiting.boot, idle=spent.idle + waiting.idle)
    return found


def _noted(instance: Instance, left: float, boot: float) -> dict[int, TimeSpent]:
    """`Instance.waiting` by Run.number, scaled down if the instance turns out to have ended before it was recorded."""
    boots, idles = (sum(each[place] for each in instance.waiting.values()) for place in (0, 1))
    boot_part = min(1.0, boot / boots) if boots else 0.0
    idle_part = min(1.0, (left - boot) / idles) if idles else 0.0
    return {
        number: TimeSpent(boot=boot_s * boot_part, idle=idle_s * idle_part)
        for number, (boot_s, idle_s) in instance.waiting.items()
    }


def _shared(bought_for: int, work: Mapping[int, Sequence[float]], left: float, boot: float) -> dict[int, TimeSpent]:
    """left, boot: seconds of the instance; boot is part of left."""
    boot = min(left, boot)
    done = {number: sum(each) for number, each in work.items()}
    all_done = sum(done.values())
    if all_done <= 0:
        return {bought_for: TimeSpent(boot=boot, idle=left - boot)}
    scale = min(1.0, (left - boot) / all_done)  # dominant shares may add up to more than one instance
    idle = max(0.0, left - boot - all_done * scale)
    return {
        number: TimeSpent(
            useful=work[number][Work.USEFUL] * scale,
            boot=boot * mine / all_done,
            idle=idle * mine / all_done,
            redone=work[number][Work.REDONE] * scale,
            failed=work[number][Work.FAILED] * scale,
            displaced=work[number][Work.DISPLACED] * scale,
        )
        for number, mine in done.items()
    }


def _with_running(work: Mapping[int, Sequence[float]], running: Mapping[int, float]) -> dict[int, Sequence[float]]:
    merged: dict[int, Sequence[float]] = dict(work)
    for number, seconds in running.items():
        useful, *others = merged.get(number, NO_WORK)
        merged[number] = (useful + seconds, *others)
    return merged
