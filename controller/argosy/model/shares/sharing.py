"""How the cluster is shared: the queues of the sharing document in force, and the documents before it."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

from argosy.model.run_terms import DEFAULT_QUEUE, duration_of
from argosy.model.shares.recent_use import RecentUse

SHARING = "SHARING"  # of the partition STATE
MOST_EARLIER = 10  # documents that are kept besides the one in force
MOST_QUEUES, MOST_WEIGHT = 200, 1_000
DRAIN: Final = "drain"
PREEMPT: Final = "preempt"  # how room is taken
UNITS = ("usdPerHour", "vcpus", "gpus", "instances")  # units of caps, in the order of `Cap`


class Cap(NamedTuple):
    """The most that a queue may use; infinite = any number."""

    usd_per_hour: float = math.inf
    vcpus: float = math.inf
    gpus: float = math.inf
    instances: float = math.inf

    @property
    def is_any(self) -> bool:
        """Whether there is a cap."""
        return any(each < math.inf for each in self)


class Guarantee(NamedTuple):
    """The amount that a queue gets before sharing by weight."""

    unit: str  # one of `UNITS`
    amount: float


class ShareQueue(NamedTuple):
    """One queue. weight: its share relative to the others'; 0 = gets only capacity that the others leave."""

    weight: int = 1
    by_owner: bool = False  # whether its weight is divided among the owners with open runs in it
    cap: Cap = Cap()
    guarantee: Guarantee | None = None
    lend: bool = True  # whether others may use the unused part of its guarantee
    preempts: bool = False  # whether its runs may take room from others (`Reclaim`)
    preemptible: bool | None = None
    """Whether tasks of its runs may be stopped for others. None: only of runs that allow it; True: of all runs but
    those that refuse; False: of none."""

    def gives_up(self, run_says: bool | None) -> bool:
        """Whether tasks of a run of this queue may be stopped. run_says: its spec; None = unset."""
        if self.preemptible is None:
            return run_says is True
        return self.preemptible and run_says is not False


class Reclaim(NamedTuple):
    """How a queue with `preempts` takes room from others."""

    after_s: float = 120.0  # how long a run waits first
    stops: bool = False  # False: instances take no new work of others; True: tasks are stopped
    per_task: int = 3  # how often one task may be stopped
    per_hour_of_spend: float = 0.02  # most work lost in an hour, as a part of the hourly cost of instances


class SharingDocument(NamedTuple):
    """A document as applied. document: the validated JSON form."""

    revision: int
    applied_at: float  # epoch seconds
    document: Mapping[str, Any]


@dataclass(frozen=True)
class Sharing:
    """latest: None = no document was ever applied: there is one queue."""

    latest: SharingDocument | None = None
    earlier: tuple[SharingDocument, ...] = ()  # the latest of them first
    held_since: Mapping[str, float] = field(
        default_factory=dict
    )  # by id of the run: when it first found no room to take
    displaced: tuple[tuple[float, float], ...] = ()
    """(epoch seconds, USD): the work lost in the last hour for runs that took room."""
    recent: RecentUse = field(default_factory=RecentUse)  # stored apart: it changes every few minutes

    @property
    def revision(self) -> int:
        """0 = no document was ever applied."""
        return self.latest.revision if self.latest else 0

    def queues(self) -> Mapping[str, ShareQueue]:
        """By name, in the order of the document. `default` is always there."""
        return self._queues

    @cached_property
    def _queues(self) -> Mapping[str, ShareQueue]:
        listed = self.latest.document["queues"] if self.latest else {}
        found = {name: _queue(each) for name, each in listed.items()}
        return found if DEFAULT_QUEUE in found else {DEFAULT_QUEUE: ShareQueue(), **found}

    @property
    def limits_queues(self) -> bool:
        """Whether any queue has a cap or a guarantee."""
        return any(queue.cap.is_any or queue.guarantee for queue in self.queues().values())

    @property
    def usd_per_hour(self) -> float:
        """The most that all instances together may cost; infinite = no limit."""
        limits = self.latest.document.get("limits", {}) if self.latest else {}
        return float(limits.get("usdPerHour", math.inf))

    @property
    def half_life_s(self) -> float:
        """The age at which past use counts half as much as present use; 0 = only present use counts."""
        said = self.latest.document.get("halfLife") if self.latest else None
        return (duration_of(said) or 0.0) if said is not None else 0.0

    @property
    def counts_past_use(self) -> bool:
        """Whether past use counts, or did until the last document."""
        return bool(self.half_life_s or self.recent.at)

    def with_document(self, document: Mapping[str, Any], now: float) -> Sharing:
        """The same with another document in force."""
        before = ((self.latest,) if self.latest else ()) + self.earlier
        latest = SharingDocument(self.revision + 1, now, document)
        return replace(self, latest=latest, earlier=before[:MOST_EARLIER])

    @property
    def reclaim(self) -> Reclaim | None:
        """None: no queue takes room from others."""
        found = self.latest.document.get("reclaim") if self.latest else None
        if found is None:
            return None
        usual = Reclaim()
        return Reclaim(
            float(found.get("afterSeconds", usual.after_s)),
            found.get("by", DRAIN) == PREEMPT,
            int(found.get("perTask", usual.per_task)),
            float(found.get("perHourOfSpend", usual.per_hour_of_spend)),
        )

    @property
    def takes_room(self) -> bool:
        """Whether a queue may take room from others, or a run is recorded as waiting for room to take."""
        return bool(self.held_since) or self.reclaim is not None

    def to_bytes(self) -> bytes:
        """As it is stored."""
        stored: Any = [self.latest, *self.earlier] if self.latest else []
        if self.held_since or self.displaced:
            stored = {"documents": stored, "heldSince": self.held_since, "displaced": self.displaced}
        return zlib.compress(json.dumps(stored, separators=(",", ":")).encode(), 6)

    @classmethod
    def from_bytes(cls, body: bytes) -> Sharing:
        """Raises one of `damage.FAULTS`."""
        stored = json.loads(zlib.decompress(body))
        stored = {"documents": stored} if isinstance(stored, list) else stored
        listed = stored["documents"]
        documents = [SharingDocument(int(number), float(at), dict(document)) for number, at, document in listed]
        found = cls(
            documents[0] if documents else None,
            tuple(documents[1:]),
            {str(run_id): float(at) for run_id, at in stored.get("heldSince", {}).items()},
            tuple((float(at), float(usd)) for at, usd in stored.get("displaced", ())),
        )
        _ = (
            found.queues(),
            found.usd_per_hour,
            found.reclaim,
            found.half_life_s,
        )  # an unreadable document raises here
        return found


def _queue(said: Mapping[str, Any]) -> ShareQueue:
    promised = [Guarantee(unit, float(amount)) for unit, amount in said.get("guarantee", {}).items()]
    return ShareQueue(
        weight=int(said.get("weight", 1)),
        by_owner=said.get("within") == "owners",
        cap=_cap(said.get("cap", {})),
        guarantee=promised[0] if promised else None,
        lend=bool(said.get("lend", True)),
        preempts=bool(said.get("preempts", False)),
        preemptible=said.get("preemptible"),
    )


def _cap(said: Mapping[str, Any]) -> Cap:
    return Cap(*(float(said.get(name, math.inf)) for name in UNITS))
