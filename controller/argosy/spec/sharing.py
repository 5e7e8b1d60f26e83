"""The sharing document: the queues, and the share of each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, Field, ValidationError, model_validator

from argosy.model.entrances import QUEUE_NAME
from argosy.model.run_terms import duration_of
from argosy.model.shares.sharing import DRAIN, MOST_QUEUES, MOST_WEIGHT, UNITS
from argosy.spec.faults import Fault, SpecError, from_pydantic
from argosy.spec.fields import Strict, Version, refused

MOST_BYTES = 64 * 1024
ROUNDING = 1e-9  # amounts that are added up
SHORTEST_HALF_LIFE_S, LONGEST_HALF_LIFE_S = 600.0, 90 * 86_400.0  # what is used is noted every five minutes
_CALLED = dict(zip(UNITS, ("USD an hour", "vCPUs", "GPUs", "instances"), strict=True))


class CapSpec(Strict):
    """The most that a queue may use."""

    usd_per_hour: float | None = Field(
        default=None,
        ge=0,
        le=80_000,
        description="US dollars an hour: its share of each instance's price, by what its tasks reserve there.",
    )
    vcpus: float | None = Field(default=None, ge=0, le=1_000_000, description="vCPUs that its tasks reserve.")
    gpus: int | None = Field(default=None, ge=0, le=1_000_000, description="GPUs that its tasks reserve.")
    instances: float | None = Field(
        default=None,
        ge=0,
        le=30_000,
        description="Instances: its share of each instance, by what its tasks reserve there.",
    )


class QueueSpec(Strict):
    """One queue."""

    weight: int = Field(
        default=1,
        ge=0,
        le=MOST_WEIGHT,
        description="Its share relative to the other queues; 0 gets only capacity that no other queue needs.",
    )
    within: Literal["owners"] | None = Field(
        default=None, description="owners: its weight is divided among the owners with open runs in it."
    )
    guarantee: CapSpec | None = Field(
        default=None, description="The amount that it gets before shares by weight are served: one of these amounts."
    )
    lend: bool = Field(default=True, description="false: the unused part of its guarantee is not lent.")
    cap: CapSpec | None = Field(default=None, description="The most that its tasks may use, even if more is free.")
    preempts: bool = Field(
        default=False, description="true: its runs may take room from runs that are preemptible, as reclaim says."
    )
    preemptible: bool | None = Field(
        default=None,
        description="Whether its tasks may be stopped for such a queue: true unless the run says false, false never. "
        "Default: those of runs that say preemptible: true.",
    )

    @model_validator(mode="after")
    def _amounts_say_something(self) -> QueueSpec:
        promised = [] if self.guarantee is None else [*self.guarantee.model_dump(exclude_none=True, by_alias=True)]
        if self.guarantee is not None and len(promised) != 1:
            raise refused(f"a guarantee has one unit: give one of {', '.join(UNITS)}")
        if not self.lend and promised not in (["usdPerHour"], ["instances"]):
            raise refused("lend: false needs a guarantee in instances or usdPerHour, which can be reserved")
        if self.cap is not None and not self.cap.model_dump(exclude_none=True):
            raise refused(f"an empty cap has no effect: give one of {', '.join(UNITS)}")
        return self

    @model_validator(mode="after")
    def _has_something_to_take(self) -> QueueSpec:
        if self.preempts and not self.weight:
            raise refused("a queue of weight 0 gets only unneeded capacity: give it a weight, or drop preempts")
        return self


class ReclaimSpec(Strict):
    """How a queue with preempts: true takes room from others."""

    after_seconds: float = Field(default=120, ge=0, le=86_400, description="How long a run must wait first.")
    by: Literal["drain", "preempt"] = Field(
        default=DRAIN,
        description="drain: instances take no other tasks until they are empty. preempt: tasks are stopped.",
    )
    per_task: int = Field(default=3, ge=0, le=100, description="The most times that a task is stopped.")
    per_hour_of_spend: float = Field(
        default=0.02, ge=0, le=1, description="The most work lost per hour, as a fraction of what the instances cost."
    )


def _half_life(text: str) -> str:
    seconds = duration_of(text)
    if seconds is None or (seconds and not SHORTEST_HALF_LIFE_S <= seconds <= LONGEST_HALF_LIFE_S):
        raise refused("must be a duration from 10m to 90d, such as 24h; 0s means that recent use does not count")
    return text


class LimitSpec(Strict):
    """The most that the whole deployment may use."""

    usd_per_hour: float = Field(
        ge=0, le=80_000, description="The most that all instances together may cost, in US dollars an hour."
    )


class SharingSpec(Strict):
    """How the cluster is shared where a limit is reached."""

    version: Version = Field(description="Version of this format.")
    limits: LimitSpec | None = Field(default=None, description="Limits of the deployment in addition to its settings.")
    queues: Annotated[
        dict[Annotated[str, Field(pattern=QUEUE_NAME)], QueueSpec], Field(min_length=1, max_length=MOST_QUEUES)
    ] = Field(description="Queues by name. A queue named default of weight 1 always exists, listed or not.")
    half_life: Annotated[str, AfterValidator(_half_life)] | None = Field(
        default=None,
        description="Age at which a queue's past use counts half as much as its present use (24h, 90m, 7d; "
        "0s: not at all). Default: only present use counts.",
    )
    reclaim: ReclaimSpec | None = Field(
        default=None, description="How queues with preempts: true take room. Default: they do not."
    )

    @model_validator(mode="after")
    def _what_takes_room_says_how(self) -> SharingSpec:
        takers = sorted(name for name, each in self.queues.items() if each.preempts)
        if takers and self.reclaim is None:
            raise refused(f"queue {takers[0]} has preempts: true, but there is no reclaim: add it, with by: preempt")
        if self.reclaim is not None and not takers:
            raise refused("there is a reclaim, but no queue may take room: give one of them preempts: true")
        return self

    @model_validator(mode="after")
    def _somebody_has_a_share(self) -> SharingSpec:
        if "default" in self.queues and not any(each.weight for each in self.queues.values()):
            raise refused("every queue has weight 0: give one of them a weight")
        return self


class Limit(NamedTuple):
    """The most that a deployment may use of one unit."""

    amount: float
    told: str  # the end of a sentence about guarantees that are more


def parse_sharing(data: Any, limits: Mapping[str, Limit] | None = None) -> dict[str, Any]:
    """The document in its JSON form, without defaults. Raises SpecError with every fault.

    limits: by unit, those of the deployment that are known.
    """
    size = len(json.dumps(data, default=str).encode())
    if size > MOST_BYTES:
        raise SpecError([Fault("", f"the document takes {size} bytes; the limit is {MOST_BYTES}")])
    if not isinstance(data, dict):
        raise SpecError([Fault("", "must be a mapping with version and queues")])
    try:
        parsed = SharingSpec.model_validate(data)
    except ValidationError as refusal:
        raise SpecError(from_pydantic(refusal.errors(), _fields_at)) from refusal
    document = {"version": 1, **parsed.model_dump(by_alias=True, exclude_defaults=True, exclude={"version"})}
    if faults := list(promised_too_much(document, limits or {})):
        raise SpecError(faults)
    return document


_PARTS: dict[str, type[Strict]] = {"queues": QueueSpec, "reclaim": ReclaimSpec}


def promised_too_much(document: Mapping[str, Any], limits: Mapping[str, Limit]) -> Iterator[Fault]:
    """Guarantees above the queue's own cap, and all of them above what the deployment may use.

    document: in its JSON form. limits: by unit, those of the deployment that are known.
    """
    sums = dict.fromkeys(UNITS, 0.0)
    for name, queue in document["queues"].items():
        most = queue.get("cap", {})
        for unit, amount in queue.get("guarantee", {}).items():
            sums[unit] += amount
            if amount > most.get(unit, amount):
                told = f"{amount:g} {unit} are guaranteed, and its cap is {most[unit]:g}"
                yield Fault(f"queues.{name}.guarantee", told)
    dollars = document.get("limits", {}).get("usdPerHour")
    if dollars is not None:
        limits = {**limits, "usdPerHour": Limit(dollars, f"the deployment may use {dollars:g}")}
    for unit, limit in limits.items():
        if sums[unit] > limit.amount * (1 + ROUNDING):
            path = "limits.usdPerHour" if unit == "usdPerHour" else "queues"
            yield Fault(path, f"the guarantees add up to {sums[unit]:g} {_CALLED[unit]}, and {limit.told}")


def _fields_at(path: str) -> Sequence[str]:
    if path == "limits":
        return [field.alias or name for name, field in LimitSpec.model_fields.items()]
    model = next((each for part, each in _PARTS.items() if path.startswith(part)), SharingSpec)
    model = CapSpec if path.endswith((".cap", ".guarantee")) else model
    return [field.alias or name for name, field in model.model_fields.items()]
