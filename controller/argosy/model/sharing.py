"""How is the cluster shared? The queues of the document that is in force, and the documents before it."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from argosy.model.damage import Damage, tried
from argosy.model.run_terms import DEFAULT_QUEUE

SHARING = "SHARING"  # of the partition STATE
MOST_EARLIER = 10  # documents that are kept beside the one in force
MOST_QUEUES, MOST_WEIGHT = 200, 1_000
UNITS = ("usdPerHour", "vcpus", "gpus", "instances")  # in which caps are said, in the order of `Cap`


class Cap(NamedTuple):
    """What a queue may use at most; infinite = any number."""

    usd_per_hour: float = math.inf
    vcpus: float = math.inf
    gpus: float = math.inf
    instances: float = math.inf

    @property
    def is_any(self) -> bool:
        """Whether there is one."""
        return any(each < math.inf for each in self)


class ShareQueue(NamedTuple):
    """One queue. weight: its share beside the others'; 0 = gets what nobody else wants."""

    weight: int = 1
    by_owner: bool = False  # whether its weight is divided among the owners who have open runs in it
    cap: Cap = Cap()


class SharingDocument(NamedTuple):
    """As it was applied. document: the validated JSON form."""

    revision: int
    applied_at: float  # epoch seconds
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sharing:
    """latest: None = none was ever applied, so that there is one queue."""

    latest: SharingDocument | None = None
    earlier: tuple[SharingDocument, ...] = ()  # the latest of them first

    @property
    def revision(self) -> int:
        """0 = none was ever applied."""
        return self.latest.revision if self.latest else 0

    def queues(self) -> dict[str, ShareQueue]:
        """By name, in the order of the document. `default` is always there."""
        listed = self.latest.document["queues"] if self.latest else {}
        found = {
            name: ShareQueue(int(each.get("weight", 1)), each.get("within") == "owners", _cap(each.get("cap", {})))
            for name, each in listed.items()
        }
        return found if DEFAULT_QUEUE in found else {DEFAULT_QUEUE: ShareQueue(), **found}

    @property
    def usd_per_hour(self) -> float:
        """What all instances together may cost; infinite = nothing is said of it."""
        limits = self.latest.document.get("limits", {}) if self.latest else {}
        return float(limits.get("usdPerHour", math.inf))

    def with_document(self, document: Mapping[str, Any], now: float) -> Sharing:
        """With another one in force."""
        before = ((self.latest,) if self.latest else ()) + self.earlier
        return Sharing(SharingDocument(self.revision + 1, now, document), before[:MOST_EARLIER])

    def to_bytes(self) -> bytes:
        """As it is stored."""
        documents = [self.latest, *self.earlier] if self.latest else []
        return zlib.compress(json.dumps(documents, separators=(",", ":")).encode(), 6)

    @classmethod
    def from_bytes(cls, body: bytes) -> Sharing:
        """Raises one of `damage.FAULTS`."""
        stored = json.loads(zlib.decompress(body))
        documents = [SharingDocument(int(number), float(at), dict(document)) for number, at, document in stored]
        found = cls(documents[0], tuple(documents[1:])) if documents else cls()
        _ = found.queues(), found.usd_per_hour  # what cannot be read is found out here
        return found


def _cap(said: Mapping[str, Any]) -> Cap:
    return Cap(*(float(said.get(name, math.inf)) for name in UNITS))


def sharing_in(items: Mapping[str, bytes]) -> Sharing | Damage:
    """Of the partition STATE. What cannot be read is to be left out: all runs go on in one queue, until another
    document is applied."""
    return tried("sharing document", lambda: Sharing.from_bytes(items[SHARING])) if SHARING in items else Sharing()
