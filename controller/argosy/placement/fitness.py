"""How well does an instance suit a task? Plain functions of columns: the smaller their integer, the better the
instance.

A built-in key is a whole number, so that every way of computing a plan agrees bit for bit. A user's own function may
return floats instead: 0..1, higher is better; they are rounded to 2^-30.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol

import numpy as np

from argosy.placement.arrays import AnyArray, BoolArray, FloatArray, IntArray

CPU, MEMORY, GPU = 0, 1, 2
AXES: Final = {"cpu": CPU, "memory": MEMORY, "gpu": GPU}
# best-fit's weights per cpu unit, MiB and GPU: a vCPU counts like 8 GiB and a GPU like 256 GiB, roughly what they cost.
BEST_FIT_WEIGHTS: Final = (8, 1, 1 << 18)
SHARE: Final = 1 << 20  # shares of an instance are counted in 2^-20
_SCORE: Final = 1 << 30  # 0..1 of a user's function in whole numbers
_KEY_LIMIT: Final = 1 << 40  # a user's integer keys are cut to +-2^40


class Candidates(Protocol):
    """What a fitness may look at: columns over n candidates, (n,) each unless said, all to be read only."""

    def left(self, axis: int) -> IntArray:
        """Free after one more task is placed; axis 0 cpu units, 1 MiB, 2 GPUs."""

    def total(self, axis: int) -> IntArray:
        """Registered on the instance."""

    def need(self, axis: int) -> IntArray:
        """Of one task; (n,) or (1,)."""

    @property
    def running_tasks(self) -> IntArray:
        """LiveTasks tasks on the instance, of every group."""

    @property
    def price_usd_per_hour(self) -> FloatArray: ...
    @property
    def interruption_rate(self) -> FloatArray: ...
    @property
    def finish_at(self) -> FloatArray:
        """When the instance's last running work should end, epoch seconds; 0 = idle or unknown."""

    @property
    def task_finish_at(self) -> FloatArray:
        """When the task should end; 0 = unknown. (n,) or (1,)."""

    @property
    def mix(self) -> Mix: ...


@dataclass(frozen=True, slots=True, eq=False)
class Mix:
    """The typical GPU tasks of a queue, for `fragmentation`: `needs` (3, t) int64 and how many of each, `weights`
    (t,) int64.
    """

    needs: IntArray
    weights: IntArray


Fitness = Callable[[Candidates], AnyArray]
"""(n,) integers, smaller is better, or (n,) floats in 0..1, higher is better (Fenzo's convention; NaN is worst)."""


class Trend(Enum):
    """How the key of one instance changes while equal tasks are put on it, one after the other."""

    STILL = "never"
    DROPS = "falls every time"
    FALLS = "never rises"
    RISES = "never falls"
    ANY = "may rise and fall"


@dataclass(frozen=True, slots=True)
class Key:
    """A step of a chain that compares instances one by one."""

    name: str
    of: Callable[[Candidates], IntArray]
    trend: Trend
    high: Callable[[tuple[int, int, int]], int]
    """Keys lie in [-high, high], given cpu units, MiB and GPUs of the largest instance."""
    weights: tuple[int, int, int] | None = None
    """If the key is a weighted sum of what is left: those weights."""
    bends: Callable[[Candidates], BoolArray] | None = None
    """For the trend ANY: the candidates (n,) whose keys may rise at all; None = every one."""

    def trend_for(self, need: tuple[int, int, int]) -> Trend:
        """The trend for tasks of this size: a weighted sum of axes that the task does not use stands still."""
        if self.weights is None:
            return self.trend
        return Trend.DROPS if _dot(self.weights, need) else Trend.STILL


def linear(name: str, weights: tuple[int, int, int]) -> Key:
    """Least weighted sum left after placing (best fit; Panigrahy et al. 2011 compare such weightings)."""

    def of(c: Candidates) -> IntArray:
        terms = [
            c.left(axis) if weight == 1 else weight * c.left(axis) for axis, weight in enumerate(weights) if weight
        ]
        return sum(terms[1:], start=terms[0])

    return Key(name, of, Trend.FALLS, lambda top: _dot(weights, top), weights)


def mixed(name: str, weights: tuple[int, int, int]) -> Key:
    """Least weighted sum of the shares left free, as Fenzo's weighted average of bin packers; an axis the instance
    lacks is full.
    """

    def of(c: Candidates) -> IntArray:
        terms = [weight * _share(c.left(axis), c.total(axis)) for axis, weight in enumerate(weights) if weight]
        return sum(terms[1:], start=terms[0])

    return Key(name, of, Trend.FALLS, lambda _: sum(weights) * SHARE)


def least_allocated(c: Candidates) -> IntArray:
    """Most free share, all three axes alike: kube-scheduler's LeastAllocated, Fenzo's spreading fitness."""
    return -sum((_share(c.left(axis), c.total(axis)) for axis in AXES.values()), start=np.int64(0))  # type: ignore[return-value]


def dot_product(c: Candidates) -> IntArray:
    """Largest alignment: sum over axes of (need / total) * (free / total), free as before placing (Tetris,
    SIGCOMM'14).
    """
    score: Any = np.int64(0)
    for axis in AXES.values():
        need, total = c.need(axis), c.total(axis)
        free = c.left(axis) + need
        score = score + (_share(need, total) * (_share(free, total) >> 2) >> 18)
    return -score  # type: ignore[no-any-return]


def cheapest(c: Candidates) -> IntArray:
    """Lowest price, in millionths of a USD per hour."""
    return np.rint(np.clip(c.price_usd_per_hour, 0, 1e6) * 1e6).astype(np.int64)


def least_interrupted(c: Candidates) -> IntArray:
    """Lowest expected share of interruptions, in millionths."""
    return np.rint(np.clip(c.interruption_rate, 0, 1) * 1e6).astype(np.int64)


def finish_together(c: Candidates) -> IntArray:
    """Fewest seconds that the instance must live longer, then fewest that it outlives the task: scale-in frees whole
    instances.

    A task of unknown end goes where work ends last, so that what ends earlier can empty. As in Netflix's Titus agent
    packing.
    """
    late = np.clip(np.rint(c.task_finish_at), 0, _KEY_LIMIT).astype(np.int64)
    until = np.clip(np.rint(c.finish_at), 0, _KEY_LIMIT).astype(np.int64)
    longer, outlives = np.clip(late - until, 0, _DAY), np.clip(until - late, 0, _DAY)
    return np.where(late > 0, longer * (_DAY + 1) + outlives, -until)


_DAY: Final = 1 << 20  # differences are cut to 2^20 s, twelve days: more makes no difference


def busy_first(c: Candidates) -> IntArray:
    """0 where something runs already, else 1: an idle instance is left to be let go."""
    idle: IntArray = (c.running_tasks == 0).astype(np.int64)
    return idle


def gpus_last(c: Candidates) -> IntArray:
    """1 where a task that needs no GPU would sit on an instance that has some, else 0."""
    misused: IntArray = ((c.need(GPU) == 0) & (c.total(GPU) > 0)).astype(np.int64)
    return misused


def fragmentation(c: Candidates) -> IntArray:
    """Least growth of stranded GPUs, in hundredths of a GPU per task of the typical mix.

    FGD (ATC'23) on whole GPUs: an instance's free GPUs are stranded for a task type that it has too little cpu, memory
    or GPUs for; the sum over types is weighted by their frequency. Ties go to best fit: the step that always follows
    this one.
    """
    left = tuple(c.left(axis) for axis in AXES.values())
    before = tuple(c.left(axis) + c.need(axis) for axis in AXES.values())
    rows = np.flatnonzero(np.broadcast_to(c.total(GPU) > 0, left[GPU].shape))
    key = np.zeros(left[GPU].shape, dtype=np.int64)
    if not c.mix.weights.size or not rows.size:
        return key
    growth = _stranded(left, rows, c.mix) - _stranded(before, rows, c.mix)
    key[rows] = growth * 100 // int(c.mix.weights.sum())
    return key


def _can_strand(c: Candidates) -> BoolArray:
    """Without GPUs, or without tasks that want some, nothing can be stranded and the key is 0 throughout."""
    return (c.total(GPU) > 0) & bool(c.mix.weights.size)


def _stranded(free: tuple[IntArray, ...], rows: IntArray, mix: Mix) -> IntArray:
    """(r,) int64: free GPUs times the number of tasks of the mix that could not use them."""
    columns = [np.broadcast_to(free[axis], free[GPU].shape)[rows, None] for axis in AXES.values()]
    short = (columns[CPU] < mix.needs[CPU]) | (columns[MEMORY] < mix.needs[MEMORY]) | (columns[GPU] < mix.needs[GPU])
    return columns[GPU][:, 0] * (short @ mix.weights)  # type: ignore[no-any-return]


def as_key(name: str, fitness: Fitness) -> Key:
    """A user's function as a step of a chain."""

    def of(c: Candidates) -> IntArray:
        score = np.asarray(fitness(c))
        if score.dtype.kind in "iub":
            whole: IntArray = np.clip(score, -_KEY_LIMIT, _KEY_LIMIT).astype(np.int64)
            return whole
        kept = np.clip(np.nan_to_num(score.astype(np.float64), nan=0.0), 0, 1)
        return -np.rint(kept * _SCORE).astype(np.int64)

    return Key(name, of, Trend.ANY, lambda _: _KEY_LIMIT)


def _share(part: IntArray, total: IntArray) -> IntArray:
    """part / total in 2^-20, rounded down; 0 where the instance has none of it."""
    return part * SHARE // np.maximum(total, 1)


def _dot(weights: tuple[int, int, int], top: tuple[int, int, int]) -> int:
    return sum(weight * amount for weight, amount in zip(weights, top, strict=True))


BEST_FIT: Final = linear("best-fit", BEST_FIT_WEIGHTS)
GPUS_LAST: Final = Key("keep-gpus-free", gpus_last, Trend.STILL, lambda _: 1)
FRAGMENTATION: Final = Key(
    "fragmentation", fragmentation, Trend.ANY, lambda top: 100 * (top[GPU] + 1), bends=_can_strand
)
BUILT_IN: Final[Mapping[str, tuple[Key, ...]]] = {
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
    "busy-first": (Key("busy-first", busy_first, Trend.FALLS, lambda _: 1),),
}
