"""The context of every action: the store, the clock, the limits of the deployment, and shared reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from argosy.api import reading, views
from argosy.api.admission.specs import DeploymentLimits, Sources
from argosy.api.admission.spending_caps import market_of
from argosy.api.refusals import not_found, throttled
from argosy.engine.loading import load
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.run_record import RunRecord
from argosy.model.schedules.record import Schedule
from argosy.model.state import State
from argosy.ports import Identities, ItemsUnreadable, ObjectReader, ScheduleClock, StaleState, Store, Wake
from argosy.spec.fields import Strict

READ_TRIES = 5


class NoClock:
    """Of a deployment that fires no schedules."""

    def set(self, schedule: Schedule) -> None:
        """Does nothing."""

    def remove(self, name: str) -> None:
        """Does nothing."""


class NoObjects:
    """Of a deployment without results buckets."""

    def fetch(self, uri: str) -> bytes:
        """Raises ItemsUnreadable."""
        raise ItemsUnreadable(f"{uri} cannot be reached")


@dataclass(slots=True)
class RequestContext:
    """Of one deployment. `now` returns epoch seconds."""

    store: Store
    wake: Wake
    sources: Sources
    limits: DeploymentLimits
    cluster: str
    cells: Sequence[str]
    now: Callable[[], float]
    policy: Policy = field(default_factory=Policy)
    pause: Callable[[float], None] | None = None  # waits for that many seconds; None = never wait
    objects: ObjectReader = field(default_factory=NoObjects)  # of the results buckets
    fleets: Sequence[tuple[str, str, str]] = ()  # (cell, instance type, zone) of every fleet that exists
    clock: ScheduleClock = field(default_factory=NoClock)
    announce: Callable[[str, dict[str, Any]], None] = lambda what, detail: None  # sends an event: detail-type, detail
    identities: Identities | None = None  # finds the sender of a request; None = no request is proven
    # Of the request that is being answered.
    queue: str = ""  # whose entrance it came through; "" = it may change the whole deployment
    owner: str = ""  # the sender, as AWS says; "" = unproven

    def record(self, run_id: str) -> RunRecord:
        """Raises RequestRefused for a run that does not exist."""
        record = reading.run(self.store, run_id)
        if record is None:
            raise not_found(f"there is no run {run_id[:100]!r}")
        return record

    def full_view(self, run_id: str) -> dict[str, Any]:
        """A run as DescribeRun shows it."""
        return views.full_run_view(self.record(run_id))

    def whole_state(self) -> State:
        """The state of the last commit. Raises RequestRefused if the controller commits faster than this reads."""
        for _ in range(READ_TRIES):
            with suppress(StaleState):  # the controller committed while we were reading
                return load(self.store)
        raise throttled("the controller is busy: try again")

    def market(self) -> Moment:
        """The current offers."""
        return market_of(reading.cluster(self.store)[0], self.fleets, self.now(), self.policy)


Act = Callable[[RequestContext, Any, str], dict[str, Any]]
"""One action: from a valid request and the invocation's id to the reply's body."""
Actions = dict[type[Strict], Act]
"""The actions of one subject, by the model of their requests."""
