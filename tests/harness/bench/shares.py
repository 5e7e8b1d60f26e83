"""How much of a cluster's GPUs is in use once its tasks no longer fit (`bench shares`)?

Problem: tasks that share GPUs leave rests on them, and rests in different GPUs serve no task that takes whole ones.
Idea, as in FGD (ATC'23): tasks are drawn from a trace in random order and none ends, until they ask for more GPUs than
there are. What counts is the part of all GPUs that is taken then. Memory is left out there, and is here.

Placement names the instance only: ECS chooses the GPU, and says later which it is. So each pass is followed by ECS's
choices, by the rule that `device` names, and by reading them back.

Example: 2 GPUs, tasks of 0.6, 0.6, 0.4 and 1. The third fits beside one of the first, the fourth nowhere: 1.6 of 2 GPUs
are taken, 80 %.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from argosy.cli.outside_text import say
from argosy.cli.session import Session
from argosy.placement.arrays import MAX_GPUS
from argosy.placement.candidates import mix_of
from argosy.placement.demand import Batch, Queue
from argosy.placement.gpu_shares import GpuUse
from argosy.placement.kept_supply import KeptSupply
from argosy.placement.pass_state import PassState
from argosy.placement.place import place_further
from argosy.placement.supply import InstanceRow
from tests.harness.bench.csv_file import CsvFile, Record
from tests.harness.bench.placement_files import chain_of

NODE_COLUMNS, TASK_COLUMNS = ("sn", "cpu_milli", "gpu"), ("cpu_milli", "num_gpu", "gpu_milli")
THOUSANDTHS = 1_000  # of a GPU; each counts as MIB_EACH of its memory
MIB_EACH = 16
MEMORY_MIB = 1 << 30  # of every node: it never limits


class Device(StrEnum):
    """Which GPU ECS gives a share: of those where it fits, the one with the least or the most memory left, or any."""

    FULLEST = "fullest"
    EMPTIEST = "emptiest"
    ANY = "any"


@dataclass(frozen=True)
class SharesInput:
    """The trace, and how it is drawn from."""

    nodes: Annotated[Path, typer.Option(metavar="FILE", help="CSV of nodes: sn,cpu_milli,gpu")]
    tasks: Annotated[Path, typer.Option(metavar="FILE", help="CSV of tasks: cpu_milli,num_gpu,gpu_milli")]
    arrivals: Annotated[int, typer.Option(min=1, max=1_000, help="GPUs asked for, in % of all.")] = 130
    strategy: Annotated[str, typer.Option(metavar="CHAIN", help="The default chain unless given.")] = ""
    mix: Annotated[bool, typer.Option(help="Let placement know the trace's typical tasks, as a tick does.")] = False
    seeds: Annotated[int, typer.Option(min=1, max=1_000, help="Orders of arrival; their mean counts.")] = 10
    device: Annotated[Device, typer.Option(help="Which GPU ECS gives a share.")] = Device.ANY
    together: Annotated[int, typer.Option(min=1, max=100_000, help="Tasks in a pass.")] = 1


@dataclass(frozen=True, slots=True)
class Task:
    """cpu_units: 1024 = 1 vCPU; gpus: taken whole; share: thousandths of one GPU, 0 = none."""

    cpu_units: int
    gpus: int
    share: int

    @property
    def thousandths(self) -> int:
        return self.gpus * THOUSANDTHS + self.share

    def batch(self, chain: tuple[str, ...]) -> Batch:
        return Batch(self.cpu_units, 0, self.gpus, 1, strategy=chain, gpu_share_mib=self.share * MIB_EACH)


@dataclass(slots=True)
class Node:
    """An instance. taken: thousandths of each of its GPUs; whole: those that a task takes whole."""

    name: str
    total_cpu_units: int
    taken: list[int]
    cpu_units: int = 0
    whole: set[int] = field(default_factory=set)

    def start(self, task: Task, device: Device, chance: random.Random) -> bool:
        """What ECS does with the task: False if it fits on none of the GPUs."""
        free = [gpu for gpu, taken in enumerate(self.taken) if not taken and gpu not in self.whole]
        room = [
            gpu for gpu, taken in enumerate(self.taken) if gpu not in self.whole and taken + task.share <= THOUSANDTHS
        ]
        if len(free) < task.gpus or (task.share and not room) or self.cpu_units + task.cpu_units > self.total_cpu_units:
            return False
        self.cpu_units += task.cpu_units
        self.whole.update(free[: task.gpus])
        if task.share:
            chance.shuffle(room)
            order = {Device.FULLEST: -1, Device.EMPTIEST: 1, Device.ANY: 0}[device]
            self.taken[min(room, key=lambda gpu: order * self.taken[gpu])] += task.share
        return True

    @property
    def row(self) -> InstanceRow:
        """As placement sees it once ECS has said which tasks have which GPUs."""
        use = GpuUse(known_mib=tuple(taken * MIB_EACH for taken in self.taken if taken))
        gpus = len(self.taken), len(self.taken) - len(self.whole)
        total = self.total_cpu_units, MEMORY_MIB, gpus[0]
        free = self.total_cpu_units - self.cpu_units, MEMORY_MIB, gpus[1]
        return InstanceRow(self.name, *free, *total, {}, gpu_memory_mib=THOUSANDTHS * MIB_EACH, gpu_use=use)


def arrivals(kinds: Sequence[Task], gpus: float, chance: random.Random) -> Iterator[Task]:
    """Each task of the trace once in random order, then any of them, until they ask for that many GPUs."""
    asked, order = 0, chance.sample(kinds, len(kinds))
    while asked < gpus * THOUSANDTHS:
        task = order.pop() if order else chance.choice(kinds)
        asked += task.thousandths
        yield task


def filled(
    nodes: Sequence[Node], tasks: Sequence[Task], options: SharesInput, chance: random.Random
) -> tuple[int, int, float]:
    """Place the tasks, `together` of them in a pass. How many ECS started, how many it refused, which should be none,
    and the seconds of processor time that placement took."""
    chain = chain_of(options.strategy) if options.strategy else ()
    mix = mix_of(Queue.of([task.batch(()) for task in tasks])) if options.mix else None
    supply, by_name = KeptSupply(), {node.name: (number, node) for number, node in enumerate(nodes)}
    supply.change({node.name: ((number,), node.row) for number, node in enumerate(nodes)})
    started = refused = 0
    seconds = 0.0
    for begin in range(0, len(tasks), options.together):
        batch = tasks[begin : begin + options.together]
        queue = Queue.of([task.batch(chain) for task in batch])
        began = time.process_time()
        found = place_further(queue, PassState(replace(supply.supply, mix=mix), queue), is_last=True)
        seconds += time.process_time() - began
        moved = {}
        for position, row in zip(found.batch.tolist(), found.row.tolist(), strict=True):
            number, node = by_name[supply.supply.ids[row]]
            begun = node.start(batch[position], options.device, chance)
            started, refused = started + begun, refused + (not begun)
            moved[node.name] = (number,), node.row
        supply.change(moved)
    return started, refused, seconds


def shares(session: Session, options: SharesInput) -> None:
    """Fill a cluster with tasks that take and share GPUs, and measure what is in use."""
    kinds = [_task(record) for record in CsvFile(options.tasks, TASK_COLUMNS).records()]
    allocated, counts, offered = [], [], 0
    for seed in range(options.seeds):
        chance = random.Random(seed)
        nodes = [_node(record) for record in CsvFile(options.nodes, NODE_COLUMNS).records()]
        gpus = sum(len(node.taken) for node in nodes)
        tasks = list(arrivals(kinds, gpus * options.arrivals / 100, chance))
        counts.append(filled(nodes, tasks, options, chance))
        taken = sum(sum(node.taken) + THOUSANDTHS * len(node.whole) for node in nodes)
        allocated.append(100 * taken / THOUSANDTHS / gpus)
        offered += len(tasks)
    report = {
        "gpusAllocatedPct": round(sum(allocated) / len(allocated), 2),
        "offered": offered,
        "started": [started for started, _, _ in counts],
        "refusedByEcs": sum(refused for _, refused, _ in counts),
        "decisionsPerSecond": round(offered / sum(seconds for _, _, seconds in counts), 1),
    }
    if session.wants_json:
        session.print_json(report)
    else:
        say("\n".join(f"{name:20} {value}" for name, value in report.items()))


def _task(record: Record) -> Task:
    cpu_milli, gpus = record.whole("cpu_milli", 1 << 40), record.whole("num_gpu", MAX_GPUS)
    share = record.whole("gpu_milli", 1 << 40) if gpus == 1 else 0
    whole = share >= THOUSANDTHS or gpus > 1
    return Task(-(-cpu_milli * 1024 // 1000), gpus if whole else 0, 0 if whole else share)


def _node(record: Record) -> Node:
    gpus = record.whole("gpu", MAX_GPUS)
    return Node(record.new_id("sn"), record.whole("cpu_milli", 1 << 40) * 1024 // 1000, [0] * gpus)
