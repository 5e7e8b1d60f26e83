"""One invocation of the controller: how long it works, and when it rests. (DESIGN D12a)

The invocation that gets the lease ticks until there is no work and no instance, or nothing to do for a while, or its
time is nearly up. Every other invocation ends at once. The lease only saves double work; the conditional commit makes
launches unique.

With nothing to do for a while (`scheduler.due`), it ends "quiet". The schedule's tick stays enabled and checks each
minute whether something is due; urgent messages call the function themselves (decision 39).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from argosy.engine.report import TickReport
from argosy.engine.tick import Engine
from argosy.model.inbox import INBOX
from argosy.ports import Caller, StaleState, Store, Wake

# A dead controller is replaced after this and the schedule's minute: 120 s at most. Work that takes longer renews it.
LEASE_S = 60.0
# No tick begins with less time than this left. A tick waits (WAIT_S), carries out (Engine.execute_s, 5 s), sweeps
# (observer.SWEEP_LIMIT_S, 25 s) and may have one call in hand when its time is up (clients.READ_TIMEOUT_S, 15 s). One
# that fails in Argosy's own code searches for the run first (tick.SEARCH_S, 20 s, and the rehearsal in hand).
RESERVE_S = 90.0
WAIT_S = 5.0  # long poll on the queue when nothing happens
BEAT_S = 30.0  # the heartbeat is written at most this often
# The loop waits for what is due within this time: the schedule's next tick may come too late for it.
SOON_S = 70.0


@dataclass(slots=True)
class LoopReport:
    """Why the loop ended, and its totals."""

    reason: str  # "no lease" | "rest" | "quiet" | "time" | "lease lost" | "" = it continues
    ticks: int = 0
    events: int = 0
    poison: int = 0
    launches: int = 0
    conflicts: int = 0


@dataclass(slots=True)
class Loop:
    """One invocation's loop, run once. `lease_s`, `wait_s` and `soon_s` are shorter in local mode.

    caller: the schedule's tick only checks whether there is work. For any other caller, messages may be under way, and
    the first tick waits for them.
    """

    engine: Engine
    store: Store
    wake: Wake
    owner: str
    now: Callable[[], float]
    on_tick: Callable[[TickReport], None] = lambda report: None
    lease_s: float = LEASE_S
    reserve_s: float = RESERVE_S
    wait_s: float = WAIT_S
    soon_s: float = SOON_S
    caller: Caller = Caller.API
    leased_at: float = float("-inf")
    beaten_at: float = float("-inf")
    lost: bool = False  # the lease, to another controller
    report: LoopReport = field(default_factory=lambda: LoopReport(""))

    def run(self, remaining_s: Callable[[], float]) -> LoopReport:
        """Work until the controller rests or `remaining_s()` falls below the reserve.

        An invocation that runs out of time leaves the rest to the schedule's next minute and does not invoke itself:
        Lambda stops functions that invoke themselves (DESIGN D12a, reliability.md row 33).
        """
        self.begin()
        while not self.report.reason:
            self.step(remaining_s())
        return self.report

    def begin(self) -> None:
        """Take the lease. `report.reason` says whether the loop continues. At rest, a message concerns something
        outside the deployment."""
        if self.caller is Caller.RULE and self.store.is_at_rest():
            self.report.reason = "rest"
            return
        if not self.renew():
            self.report.reason = "no lease"
            return
        with self._tidied_up():
            self.engine.resume()
            self.wake.stay()  # an update of the stack may have disabled the tick during the last invocation

    def step(self, remaining_s: float) -> None:
        """One more tick, or the end of the loop."""
        with self._tidied_up():
            self.report.reason = self._step(remaining_s)
            if self.report.reason == "time":
                self.wake.stay()  # it may have been disabled since: nothing else would start the next tick
        if self.report.reason == "quiet":
            self.engine.left_quiet = True  # the lease is released already
        elif self.report.reason:
            self.engine.flush_record()
            self.store.release_lease(self.owner)

    @contextmanager
    def _tidied_up(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.engine.flush_record()
            with suppress(Exception):  # raise what ended the loop, not what failed while tidying up
                self.store.release_lease(self.owner)  # the next invocation need not wait for the lease to expire
            raise

    def renew(self) -> bool:
        """Renew the lease once a third of it has passed; the executor calls this during long work. False = lost."""
        now = self.now()
        if not self.lost and now - self.leased_at > self.lease_s / 3:
            self.lost = not self.store.take_lease(self.owner, now, self.lease_s)
            self.leased_at = now
        return not self.lost

    def _step(self, remaining_s: float) -> str:
        """Why the loop ends; "" = it continues."""
        report = self.report
        if remaining_s <= self.reserve_s:
            return "time"
        if not self.renew():
            return "lease lost"
        try:
            tick = self.engine.tick(0.0 if self.caller is Caller.CLOCK else self.wait_s)
        except StaleState:
            report.conflicts += 1
            return ""
        self._beat()
        self.on_tick(tick)
        report.ticks += 1
        report.events += tick.events
        report.poison += tick.poison
        report.launches += tick.launches
        if tick.at_rest:
            return "rest" if self._rested() else ""
        return "quiet" if tick.due_at > self.now() + self.soon_s and self._left_quietly() else ""

    def _left_quietly(self) -> bool:
        """Release the lease, unless another invocation was refused it since it was taken: the message behind that
        invocation may not have arrived yet. Then the next tick waits for it."""
        if self.report.events or self.report.ticks > 1:
            self.engine.flush_record()  # else there is next to nothing, and the next invocation stores it
        self.wake.stay()  # it may have been disabled since: nothing else would start the next tick
        if self.store.lay_down_lease(self.owner):
            return True
        self.caller = Caller.RULE
        return False

    def _beat(self) -> None:
        """Only a completed tick counts: a controller whose every tick fails must look dead to the watchdog."""
        now = self.now()
        if now - self.beaten_at >= BEAT_S:
            self.store.beat(now)
            self.beaten_at = now

    def _rested(self) -> bool:
        """Disable the tick, then read the inbox once more: a request that came in between wakes the controller. The
        watchdog enables a tick that should not be disabled, so the heartbeat says that this one may stay disabled."""
        self.store.beat(self.now(), at_rest=True)
        self.wake.rest()
        if self.store.page(INBOX, 1)[0]:
            self.beaten_at = float("-inf")
            self.wake.stay()
            return False
        return True
