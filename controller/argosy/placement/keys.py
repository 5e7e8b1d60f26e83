"""The keys by which a step of a chain orders instances: plain functions of columns; the smallest comes first.

A key is a whole number, so that every way of computing a plan agrees bit for bit. A user's fitness (`fitness.py`)
becomes a key by its sign.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import numpy as np

from argosy.placement.arrays import BoolArray, IntArray
from argosy.placement.demand import Batch
from argosy.placement.fitness import AXES, CPU, GPU, MEMORY, Candidates, Fitness
from argosy.placement.stranded import THOUSANDTHS, StrandedGpus

# best-fit's weights per cpu unit, MiB and GPU: a vCPU counts like 8 GiB and a GPU like 256 GiB, roughly what they cost.
BEST_FIT_WEIGHTS: Final = (8, 1, 1 << 18)
_WASTE_STEPS: Final = 16  # the waste is compared in sixteenths; best fit decides among equals
SHARE: Final = 1 << 20  # shares of an instance are counted in 2^-20
_SCORE: Final = 1 << 30  # a fitness of 1 as a whole number
_KEY_LIMIT: Final = 1 << 40  # keys that a user's function answers are cut to +-2^40
_LONGEST_S: Final = 1 << 20  # differences of times are cut to 2^20 s, twelve days: more makes no difference


class Trend(Enum):
    """The change of one instance's key while equal tasks are placed on it one after the other."""

    STILL = "never"
    DROPS = "falls every time"
    FALLS = "never rises"
    RISES = "never falls"
    ANY = "may rise and fall"


@dataclass(frozen=True, slots=True)
class Key:
    """A step of a chain that orders instances by a number of each: the smallest comes first."""

    name: str
    of: Callable[[Candidates], IntArray]
    trend: Trend
    high: Callable[[tuple[int, int, int]], int]
    """Keys are in [-high, high], given cpu units, MiB and GPUs of the largest instance."""
    weights: tuple[int, int, int] | None = None
    """The weights, if the key is a weighted sum of what stays free."""
    by_size: bool = False
    """Whether it depends only on the size of the instance and the task, so that it can be kept."""
    bends: Callable[[Candidates], BoolArray] | None = None
    """For the trend ANY: (n,) bool, the candidates whose keys may rise at all; None = all."""

    def trend_for(self, batch: Batch) -> Trend:
        """The trend for tasks of this size: a weighted sum over axes that the task does not use stays constant."""
        if self.weights is None:
            return self.trend
        if _dot(self.weights, batch.need):
            return Trend.DROPS
        return Trend.FALLS if batch.gpu_share_mib else Trend.STILL


def linear(name: str, weights: tuple[int, int, int]) -> Key:
    """The weighted sum left after placing (best fit; Panigrahy et al. 2011 compare such weightings)."""

    def of(c: Candidates) -> IntArray:
        terms = [
            c.left(axis) if weight == 1 else weight * c.left(axis) for axis, weight in enumerate(weights) if weight
        ]
        return sum(terms[1:], start=terms[0])

    return Key(name, of, Trend.FALLS, lambda top: _dot(weights, top), weights)


def mixed(name: str, weights: tuple[int, int, int]) -> Key:
    """The weighted sum of the shares left free, like Fenzo's weighted average of bin packers.

    An axis that the instance lacks counts as full.
    """

    def of(c: Candidates) -> IntArray:
        terms = [weight * _share(c.left(axis), c.total(axis)) for axis, weight in enumerate(weights) if weight]
        return sum(terms[1:], start=terms[0])

    return Key(name, of, Trend.FALLS, lambda _: sum(weights) * SHARE)


def least_allocated(c: Candidates) -> IntArray:
    """Minus the sum of the free shares: kube-scheduler's LeastAllocated, Fenzo's spreading."""
    return -sum((_share(c.left(axis), c.total(axis)) for axis in AXES.values()), start=np.int64(0))  # type: ignore[return-value]


def dot_product(c: Candidates) -> IntArray:
    """Minus the alignment: the sum over axes of (need / total) * (free / total), free as before placing.

    Tetris, SIGCOMM'14.
    """
    score: Any = np.int64(0)
    for axis in AXES.values():
        need, total = c.need(axis), c.total(axis)
        free = c.left(axis) + need
        score = score + (_share(need, total) * (_share(free, total) >> 2) >> 18)
    return -score  # type: ignore[no-any-return]


def least_waste(c: Candidates) -> IntArray:
    """The share of the instance, in sixteenths, that would stay unused if it were filled with tasks of this size alone.

    Amounts count by best-fit's weights. So memory-heavy tasks go to instances with much memory, and cpu is not stranded
    next to memory that is used up. For tasks with GPUs it is 0: on their instances best fit strands least.
    After the alignment of Tetris (SIGCOMM'14), but of whole instances, so that placing a task changes no key.
    """
    value: Any = np.int64(0)
    total_value: Any = np.int64(0)
    most: Any = np.int64(_KEY_LIMIT)  # tasks of this size that the empty instance holds
    for axis, weight in zip(AXES.values(), BEST_FIT_WEIGHTS, strict=True):
        need, total = c.need(axis), c.total(axis)
        most = np.where(need > 0, np.minimum(most, total // np.maximum(need, 1)), most)
        value, total_value = value + weight * need, total_value + weight * total
    unused = (total_value - most * value) * _WASTE_STEPS // np.maximum(total_value, 1)
    return np.where(c.need(GPU) > 0, 0, unused)


def cheapest(c: Candidates) -> IntArray:
    """The price, in millionths of a USD per hour."""
    return np.rint(np.clip(c.price_usd_per_hour, 0, 1e6) * 1e6).astype(np.int64)


def least_interrupted(c: Candidates) -> IntArray:
    """Expected interruptions in a million instance-hours, at most a million."""
    return np.rint(np.clip(c.interruption_rate, 0, 1) * 1e6).astype(np.int64)


def finish_together(c: Candidates) -> IntArray:
    """The seconds that the instance must live longer for the task, then the seconds that it outlives the task.

    Scale-in then frees whole instances. A task of unknown length is placed where work ends last, so that instances
    whose work ends earlier become empty. After Netflix's Titus agent packing.
    """
    late = np.clip(np.rint(c.task_finish_at), 0, _KEY_LIMIT).astype(np.int64)
    until = np.clip(np.rint(c.finish_at), 0, _KEY_LIMIT).astype(np.int64)
    longer, outlives = np.clip(late - until, 0, _LONGEST_S), np.clip(until - late, 0, _LONGEST_S)
    return np.where(late > 0, longer * (_LONGEST_S + 1) + outlives, -until)


def busy_first(c: Candidates) -> IntArray:
    """0 if a task runs already, else 1: idle instances stay idle and can be released."""
    idle: IntArray = (c.running_tasks == 0).astype(np.int64)
    return idle


def image_first(c: Candidates) -> IntArray:
    """0 if the instance has pulled the task's image, else 1."""
    lacks: IntArray = 1 - c.has_image.astype(np.int64)
    return lacks


def gpus_last(c: Candidates) -> IntArray:
    """1 if a task that needs no GPU would sit on an instance that has some, else 0."""
    misused: IntArray = ((c.need(GPU) == 0) & (c.total(GPU) > 0)).astype(np.int64)
    return misused


def shared_first(c: Candidates) -> IntArray:
    """1 if a share may open an idle GPU, else 0: tasks that take whole GPUs keep theirs. The idea of FGD (ATC'23)."""
    return c.opens_gpus


def fragmentation(c: Candidates) -> IntArray:
    """The growth of stranded GPUs, in thousandths of a GPU per task of the typical mix (`stranded`). Ties go to best
    fit, which always follows this step."""
    left, has_gpus = tuple(c.left(axis) for axis in AXES.values()), c.total(GPU) > 0
    size, is_one_row = left[GPU].shape, has_gpus.shape != left[GPU].shape
    if not (c.mix.weights.size and has_gpus.any()):
        return np.zeros(size, dtype=np.int64)
    rows: Any = slice(None) if has_gpus.all() else has_gpus.nonzero()[0]
    now = slice(1) if is_one_row else rows  # what is free before does not depend on the kind of task
    cpu, memory_mib = ((left[axis] + c.need(axis))[now] for axis in (CPU, MEMORY))
    free = cpu, memory_mib, (left[GPU] + c.need(GPU) + c.opens_gpus)[now]
    rests, memory = (each[..., rows] for each in c.shared_gpus)
    idle, rests_after = left[GPU][rows], rests
    if c.gpu_share_mib.any():
        opens, rests_after = _shared(free[GPU], rests, memory, c.gpu_share_mib)
        idle = np.where(c.gpu_share_mib > 0, free[GPU] - opens, idle)
    after = left[CPU][rows], left[MEMORY][rows], idle
    growth = StrandedGpus.of(c.mix).growth(free, after, (rests, rests_after), memory)
    if growth.shape == size:
        return growth
    key = np.zeros(size, dtype=np.int64)
    key[rows] = growth
    return key


def _shared(idle: IntArray, rests: IntArray, memory: IntArray, share_mib: IntArray) -> tuple[BoolArray, IntArray]:
    """(r,) whether one more share takes an idle GPU, because no shared one has room, and (d + 1, r) the rests after it,
    on the fullest GPU with room. share_mib: (r,) or (1,), as all others; 0 = the task shares none."""
    places = np.where(rests >= share_mib, rests, _KEY_LIMIT)
    fullest = places == places.min(axis=0, initial=_KEY_LIMIT)
    fullest &= (rests >= share_mib) & (fullest.cumsum(axis=0) == 1)
    opens = ~fullest.any(axis=0) & (idle > 0) & (share_mib > 0)
    opened = np.where(opens, np.maximum(memory - share_mib, 0), 0)
    return opens, np.concatenate((rests - fullest * share_mib, opened[None]))


def _can_strand(c: Candidates) -> BoolArray:
    """Without GPUs, or without tasks that need some, nothing can be stranded and the key is always 0."""
    return (c.total(GPU) > 0) & bool(c.mix.weights.size)


def as_key(name: str, fitness: Fitness) -> Key:
    """A user's function as a step of a chain: floats are a fitness, integers are keys."""

    def of(c: Candidates) -> IntArray:
        score = np.asarray(fitness(c))
        if score.dtype.kind in "iub":
            whole: IntArray = np.clip(score, -_KEY_LIMIT, _KEY_LIMIT).astype(np.int64)
            return whole
        kept = np.clip(np.nan_to_num(score.astype(np.float64), nan=0.0), 0, 1)
        return -np.rint(kept * _SCORE).astype(np.int64)

    return Key(name, of, Trend.ANY, lambda _: _KEY_LIMIT)


def _share(part: IntArray, total: IntArray) -> IntArray:
    """part / total in 2^-20, rounded down; 0 if the instance has none of it."""
    return part * SHARE // np.maximum(total, 1)


def _dot(weights: tuple[int, int, int], top: tuple[int, int, int]) -> int:
    return sum(weight * amount for weight, amount in zip(weights, top, strict=True))


BEST_FIT: Final = linear("best-fit", BEST_FIT_WEIGHTS)
BUSY_FIRST: Final = Key("busy-first", busy_first, Trend.FALLS, lambda _: 1)
IMAGE_FIRST: Final = Key("image-first", image_first, Trend.STILL, lambda _: 1)
GPUS_LAST: Final = Key("keep-gpus-free", gpus_last, Trend.STILL, lambda _: 1, by_size=True)
SHARED_FIRST: Final = Key("shared-gpus-first", shared_first, Trend.FALLS, lambda _: 1)
LEAST_WASTE: Final = Key("least-waste", least_waste, Trend.STILL, lambda _: _WASTE_STEPS, by_size=True)
FRAGMENTATION: Final = Key(
    "fragmentation", fragmentation, Trend.ANY, lambda top: THOUSANDTHS * (top[GPU] + 1), bends=_can_strand
)
BUILT_IN: Final[Mapping[str, tuple[Key, ...]]] = {
    "least-waste": (LEAST_WASTE,),
    "best-fit": (BEST_FIT,),
    "cpu-memory": (mixed("cpu-memory", (1, 1, 0)),),
    "cpu-memory-gpu": (mixed("cpu-memory-gpu", (1, 1, 1)),),
    "least-allocated": (Key("least-allocated", least_allocated, Trend.RISES, lambda _: 3 * SHARE),),
    "dot-product": (Key("dot-product", dot_product, Trend.RISES, lambda _: 3 * SHARE),),
    "fragmentation": (FRAGMENTATION, BEST_FIT),
    "cheapest": (Key("cheapest", cheapest, Trend.STILL, lambda _: 1 << 40),),
    "least-interrupted": (Key("least-interrupted", least_interrupted, Trend.STILL, lambda _: 1 << 20),),
    "finish-together": (Key("finish-together", finish_together, Trend.STILL, lambda _: 1 << 41),),
    "keep-gpus-free": (GPUS_LAST,),
    "busy-first": (BUSY_FIRST,),
    "image-first": (IMAGE_FIRST,),
}
