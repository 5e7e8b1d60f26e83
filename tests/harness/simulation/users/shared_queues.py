"""The queues by which the users of a trial share the cluster. Its owner changes them repeatedly, by the api."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from argosy.model.shares.sharing import SHARING, Sharing
from argosy.model.stored import documents
from tests.harness.simulation.controllers.deployment import SimulatedDeployment
from tests.harness.simulation.faults import Faults
from tests.harness.simulation.world.world import share

NAMES = ("default", "prod", "research", "night")
OWNERS = ("alice", "bob", "carol")
MOST_DOCUMENTS = 4
WEIGHTS = (0, 1, 1, 2, 5)
CAPS = {"vcpus": (4.0, 12.0), "gpus": (1.0, 4.0), "instances": (1.0, 4.0), "usdPerHour": (0.8, 2.0)}
"""Caps that let every task of a trial run."""
TIGHT = {
    "vcpus": (0.0, 0.5, 1.0, 2.0, 4.0),
    "gpus": (0, 1, 1),
    "instances": (0.5, 1.0, 2.0),
    "usdPerHour": (0.05, 0.15, 0.3, 1.0),
}
"""Caps of a crowd: some tasks exceed them. The default queue has none."""
TIGHT_USD = (0.2, 4.0)  # `limits.usdPerHour` of a crowd: the cheapest instance is within it

REMOVED = {"research": 0.2, "night": 0.4}  # share of a crowd's later documents without the queue
OF_SPEND = (0.1, 0.3, 1.0)  # of a crowd: the least soon allows nothing more for the rest of an hour
PRESSED_WEIGHT = 20
RESTORED = 0.15  # share of later documents that are earlier ones
AskLater = Callable[[float, Callable[[], dict[str, Any] | None]], None]
HALF_LIVES = ("10m", "30m", "2h")


def terms_of(seed: int, number: int) -> dict[str, Any]:
    """The queue that a run of a trial names; some name none."""
    found: dict[str, Any] = {}
    if (drawn := share(seed, "queue", number)) < 0.8:
        found["queue"] = NAMES[int(len(NAMES) * drawn / 0.8)]
    if (drawn := share(seed, "owner", number)) < 0.6:
        found["owner"] = OWNERS[int(len(OWNERS) * drawn / 0.6)]
    if (drawn := share(seed, "priority", number)) < 0.5:
        found["priority"] = int(drawn * 400) - 100
    if (drawn := share(seed, "preemptible", number)) < 0.3:
        found["preemptible"] = drawn < 0.2
    return found


class SharedQueues:
    """Of one trial."""

    def __init__(
        self, deployment: SimulatedDeployment, faults: Faults, ask_later: AskLater, *, are_tight: bool = False
    ) -> None:
        """ask_later: of `Users`; are_tight: whether some tasks exceed a limit."""
        self._deployment, self._faults, self._seed = deployment, faults, deployment.world.seed
        self._ask_later = ask_later
        self.capped = 0.15
        """How often a queue has a cap in a unit."""
        self.guaranteed = 0.0
        """How often it is guaranteed something, at least."""
        self.remembers = 0.3
        """How often a document says that recent usage counts."""
        self.drains = 0.2
        """How often room is taken only by emptying instances."""
        self._are_tight = are_tight
        self.is_pressed = False
        """Whether prod soon takes much room from nearly all others."""
        self._takes_room = False

    def plan(self, faulty_s: float) -> Sharing:
        """The document in force when the trial begins, so that the api knows the queues of its runs. Others come at
        random times in the phase of faults.
        """
        kinds = [kind for kind in ("queue", "preemption") if self._faults.on(kind)]
        if not kinds:
            return Sharing()
        self._takes_room = "preemption" in kinds
        for kind in kinds:
            self._faults.note(kind)
        first = Sharing().with_document(self._document(0), self._deployment.world.now)
        self._deployment.store.create({(documents.STATE, SHARING): first.to_bytes()})
        for number in range(1, 1 + int(MOST_DOCUMENTS * share(self._seed, "documents"))):
            at = faulty_s * share(self._seed, "document at", number)
            for _ in range(1 + (share(self._seed, "twice", number) < 0.2)):
                self._ask_later(at, partial(self._wish, number))
        return first

    def _wish(self, number: int) -> dict[str, Any] | None:
        """Most follow the previous one; some are sent twice, some were overtaken, and some restore an earlier one."""
        if self._deployment.is_torn_down:
            return None
        if share(self._seed, "restored", number) < RESTORED:
            return {"action": "ApplySharing", "restore": 1 + int(number * share(self._seed, "restored which", number))}
        wish: dict[str, Any] = {"action": "ApplySharing", "document": self._document(number)}
        return wish | {"revision": number - 1} if share(self._seed, "overtaken", number) < 0.2 else wish

    def _document(self, number: int) -> dict[str, Any]:
        """All queues are in each of them, unless the users are a crowd."""
        queues: dict[str, Any] = {}
        for name in NAMES:
            if self._are_tight and number and share(self._seed, "removed", number, name) < REMOVED.get(name, 0.0):
                continue
            queues[name] = {"weight": WEIGHTS[int(len(WEIGHTS) * share(self._seed, "weight", number, name))]}
            if share(self._seed, "within", number, name) < 0.3:
                queues[name]["within"] = "owners"
            if cap := self._cap(number, name):
                queues[name]["cap"] = cap
            if share(self._seed, "guarantee", number, name) < max(self.capped / 2, self.guaranteed):
                queues[name] |= self._guarantee(number, name, capped="cap" in queues[name])
        found: dict[str, Any] = {"version": 1, "queues": queues}
        if (drawn := share(self._seed, "limits", number)) < self.capped:
            least, most = TIGHT_USD if self._are_tight else (2.0, 4.0)
            found["limits"] = {"usdPerHour": round(least + (most - least) * drawn / self.capped, 2)}
        if share(self._seed, "half life", number) < self.remembers:
            found["halfLife"] = HALF_LIVES[int(len(HALF_LIVES) * share(self._seed, "which half life", number))]
        found |= self._taking(number, queues) if self._takes_room else {}
        if not any(queue["weight"] for queue in queues.values()):  # the api refuses such a document
            next(iter(queues.values()))["weight"] = 1
        return found

    def _cap(self, number: int, name: str) -> dict[str, Any]:
        """Of some queues."""
        found: dict[str, Any] = {}
        if self._are_tight:
            for unit, amounts in TIGHT.items() if name != NAMES[0] else ():
                if (drawn := share(self._seed, "cap", number, name, unit)) < 2 * self.capped:
                    found[unit] = amounts[int(len(amounts) * drawn / (2 * self.capped))]
            return found
        for unit, (least, most) in CAPS.items():
            if (drawn := share(self._seed, "cap", number, name, unit)) < self.capped:
                amount = least + (most - least) * drawn / self.capped
                found[unit] = int(amount) if unit == "gpus" else round(amount, 2)
        return found

    def _guarantee(self, number: int, name: str, *, capped: bool) -> dict[str, Any]:
        """A crowd has some in instances that are not lent, where no cap may be below."""
        if not self._are_tight:
            return {"guarantee": {"vcpus": 4.0}}
        if capped:
            return {}
        lent = share(self._seed, "lent", number, name) < 0.5
        return {"guarantee": {"vcpus": 2.0}} if lent else {"guarantee": {"instances": 1.0}, "lend": False}

    def _taking(self, number: int, queues: dict[str, Any]) -> dict[str, Any]:
        """Prod may take room, nearly always; most of the others may be stopped."""
        if not self.is_pressed and share(self._seed, "no reclaim", number) < 0.15:
            return {}
        queues["prod"] |= {"preempts": True, "weight": 1 + 4 * (share(self._seed, "heavy", number) < 0.7)}
        for name in queues:
            says = (True, True, None, False)[int(4 * share(self._seed, "gives up", number, name))]
            queues[name] |= {} if says is None else {"preemptible": says}
        by = "preempt" if share(self._seed, "by", number) < 1 - self.drains else "drain"
        after_s = 30 * int(6 * share(self._seed, "after", number))
        reclaim: dict[str, Any] = {"by": by, "afterSeconds": after_s, "perHourOfSpend": 1}
        if self.is_pressed:
            queues["prod"]["weight"] = PRESSED_WEIGHT
            reclaim |= {"afterSeconds": after_s // 3, "by": "drain" if by == "drain" and after_s > 60 else "preempt"}
        if self._are_tight:
            reclaim["perHourOfSpend"] = OF_SPEND[int(len(OF_SPEND) * share(self._seed, "of spend", number))]
            reclaim["perTask"] = 1 + int(3 * share(self._seed, "per task", number))
        return {"reclaim": reclaim}
