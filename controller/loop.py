"""How long does one invocation of the controller work, and when does it go to rest? (DESIGN D12a)

The invocation that gets the lease loops: tick after tick until there is no work and no instance, or until its time is
nearly up. Every other invocation leaves at once. The lease only saves double work: it is the conditional commit that
makes launches unique.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from controller.engine import Engine, TickReport
from controller.model.requests import INBOX
from controller.ports import StaleState, Store, Wake

LEASE_S = 90.0  # longer than any tick; a dead controller is replaced after this
RESERVE_S = 30.0  # no new tick with less time than this left: what is in flight must end first
WAIT_S = 5.0  # long poll on the queue when nothing happens


@dataclass(frozen=True, slots=True)
class LoopReport:
    """Why the loop ended, and what it did."""

    reason: str  # "no lease" | "rest" | "time" | "lease lost"
    ticks: int = 0
    events: int = 0
    poison: int = 0
    launches: int = 0
    conflicts: int = 0


@dataclass(slots=True)
class Loop:
    """One invocation's loop. `lease_s` and `wait_s` are shorter in local mode."""

    engine: Engine
    store: Store
    wake: Wake
    owner: str
    now: Callable[[], float]
    on_tick: Callable[[TickReport], None] = lambda report: None
    lease_s: float = LEASE_S
    reserve_s: float = RESERVE_S
    wait_s: float = WAIT_S

    def run(self, remaining_s: Callable[[], float]) -> LoopReport:
        """Work until rest or until `remaining_s()` falls under the reserve."""
        if not self.store.take_lease(self.owner, self.now(), self.lease_s):
            return LoopReport("no lease")
        self.engine.forget()  # somebody else may have committed since this process last worked
        report = self._loop(remaining_s)
        self.store.release_lease(self.owner)
        return report

    def _loop(self, remaining_s: Callable[[], float]) -> LoopReport:
        ticks = events = poison = launches = conflicts = 0
        leased_at = self.now()
        reason = "time"
        while remaining_s() > self.reserve_s:
            if self.now() - leased_at > self.lease_s / 3:
                if not self.store.take_lease(self.owner, self.now(), self.lease_s):
                    reason = "lease lost"
                    break
                leased_at = self.now()
            try:
                tick = self.engine.tick(self.wait_s)
            except StaleState:
                conflicts += 1
                continue
            self.on_tick(tick)
            ticks, events, poison = ticks + 1, events + tick.events, poison + tick.poison
            launches += tick.launches
            if tick.at_rest and self._rested():
                reason = "rest"
                break
        return LoopReport(reason, ticks, events, poison, launches, conflicts)

    def _rested(self) -> bool:
        """Disable the tick, then look at the inbox once more: a request that came in between wakes us again."""
        self.wake.rest()
        if self.store.read_partition(INBOX):
            self.wake.stay()
            return False
        return True
