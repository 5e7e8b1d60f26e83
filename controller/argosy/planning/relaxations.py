"""Small changes of the request that save money: "7,500 MiB instead of 7,680 fits one more per instance: -21 %"."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from argosy.model.instance_types import InstanceType
from argosy.model.purchases import PurchaseMode
from argosy.model.resources import CPU_UNITS_PER_VCPU, Resources, said_vcpus
from argosy.model.run_terms import RunTerms
from argosy.placement.strategy import spread_attribute
from argosy.planning.forecast import Forecast
from argosy.planning.question import PlanQuestion
from argosy.planning.schedule import Completion

LARGEST_CUT = 0.25  # of a task's memory or cpu: more is another program, not a relaxation
LEAST_SAVING = 0.03
_TRIED_TYPES = 12  # cheapest for the work
_SHOWN = 5
_STEPS = {"memory_mib": 4, "cpu_units": CPU_UNITS_PER_VCPU // 16}


@dataclass(frozen=True, slots=True)
class _Change:
    kind: str  # of several changes of a kind, the one that saves most is shown
    sentence: str
    terms: RunTerms
    needs: Resources | None = None


def relaxations(question: PlanQuestion, found: Forecast) -> list[dict[str, Any]]:
    """`sentence`, `saves` (0..1 of the expected cost), `costUsd` and `seconds`, both expected, of the changes that save
    most, at most five."""
    best: dict[str, tuple[float, str, Completion]] = {}
    for change in _changes(question):
        other = question.forecast(change.terms, change.needs)
        saves = _saving(found, other)
        if saves >= LEAST_SAVING and (change.kind not in best or saves > best[change.kind][0]):
            best[change.kind] = saves, change.sentence, other.expected
    shown = sorted(best.values(), key=lambda row: row[:2], reverse=True)[:_SHOWN]
    return [
        {
            "sentence": sentence,
            "saves": saves if found.possible else None,
            "costUsd": expected.cost_usd,
            "seconds": expected.seconds,
        }
        for saves, sentence, expected in shown
    ]


def _saving(found: Forecast, other: Forecast) -> float:
    """Share of the expected cost; 1 if only the other one is possible."""
    if not (found.possible and other.possible):
        return 1.0 if other.possible else 0.0
    return 1 - other.expected.cost_usd / found.expected.cost_usd if found.expected.cost_usd else 0.0


def _changes(question: PlanQuestion) -> Iterator[_Change]:
    terms, kinds = question.terms, _kinds(question)
    yield from _cuts(question, kinds, "memory_mib", lambda amount: f"{amount:,} MiB")
    yield from _cuts(question, kinds, "cpu_units", said_vcpus)
    for number, constraint in enumerate(terms.constraints):
        rest = tuple(each for place, each in enumerate(terms.constraints) if place != number)
        yield _Change(f"constraint {number}", f"without the constraint {constraint}", replace(terms, constraints=rest))
    if (attribute := spread_attribute(terms.strategy)) is not None:
        yield _Change("spread", f"without spreading over {attribute}", replace(terms, strategy=terms.strategy[1:]))
    if terms.purchase is not PurchaseMode.SPOT:
        yield _Change("purchase", "with purchase: spot", replace(terms, purchase=PurchaseMode.SPOT))
    if terms.gpu_model is not None:
        yield _Change("gpuModel", "with any model of GPU", replace(terms, gpu_model=None))
    if terms.gpu_memory_mib:
        yield _Change("gpuMemoryMib", "with GPUs of any memory", replace(terms, gpu_memory_mib=0))
    if terms.cells:
        yield _Change("cells", "in any cell", replace(terms, cells=()))


def _kinds(question: PlanQuestion) -> list[InstanceType]:
    """The types of this deployment that could hold a task, those with the cheapest vCPUs first."""
    pools, catalogue = question.moment.state.pools.values(), question.moment.catalogue
    names = {pool.instance_type for pool in pools} | {name for _, name, _ in question.fleets}
    kinds = [kind for name, kind in catalogue.items() if name in names]
    fitting = [kind for kind in kinds if question.needs.fits_in(kind.resources)]
    return sorted(fitting, key=lambda kind: kind.typical_spot_usd_per_hour / kind.vcpus)[:_TRIED_TYPES]


def _cuts(
    question: PlanQuestion, kinds: Sequence[InstanceType], axis: str, shown: Callable[[int], str]
) -> Iterator[_Change]:
    """For each type, the smallest cut of a task's needs with which one more task fits on an instance."""
    asked = int(getattr(question.needs, axis))
    for size in sorted({_next_size(kind, axis, asked) for kind in kinds if asked}, reverse=True):
        if size >= asked * (1 - LARGEST_CUT):
            sentence = f"{shown(size)} instead of {shown(asked)} lets one more task fit on an instance"
            yield _Change(axis, sentence, question.terms, question.needs._replace(**{axis: size}))


def _next_size(kind: InstanceType, axis: str, asked: int) -> int:
    """The size of a task at which one more fits, if only this axis is short."""
    total = int(getattr(kind.resources, axis))
    size = total // (total // asked + 1)
    step = _STEPS[axis]  # 0.888672 vCPUs would not be a useful suggestion
    return size // step * step if size >= step else size
