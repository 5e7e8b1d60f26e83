"""A controller as Lambda invokes it: the real loop with its lease, one tick at each step.

A process outlasts its invocations, like a warm one of Lambda, and none of its state survives a crash. `invocations`
decides when one begins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from botocore.exceptions import BotoCoreError, ClientError

from argosy.aws.dynamodb import DynamoStore
from argosy.engine.loop import WAIT_S, Loop
from argosy.engine.report import TickReport
from argosy.engine.tick import Engine
from argosy.ports import Wake
from tests.harness.simulation.controllers.invocations import Invocations
from tests.harness.simulation.injection.boundary import ProcessLife

INVOCATION_S = 900.0  # Lambda's longest


class OpenLease(DynamoStore):
    """The table of a deployment whose lease excludes no controller, as when clocks are far off: then the commit has to
    exclude them."""

    def take_lease(self, owner: str, now: float, seconds: float) -> bool:
        return True


@dataclass(slots=True)
class Process:
    """The memory of a controller, and its outgoing ports. store: the one with the lease."""

    engine: Engine
    store: DynamoStore
    wake: Wake
    life: ProcessLife
    loop: Loop | None = None
    """Of the invocation under way."""


@dataclass(slots=True)
class SimulatedController:
    """One controller, dead or alive, with its own clock."""

    name: str
    skew_s: float = 0.0
    is_next: bool = False
    """True for the invented next version, which reads this version's state and stores a format that this version
    refuses.
    """
    process: Process = field(init=False)
    down_until: float = 0.0
    working: bool = False
    busy: bool = False
    """Whether the last tick did anything, or failed."""
    invocations: int = 0
    ends_at: float = 0.0
    """Of the invocation under way: when Lambda ends it."""
    ticks: int = 0
    conflicts: int = 0
    failures: int = 0
    """Ticks that an AWS call ended."""

    @property
    def engine(self) -> Engine:
        return self.process.engine

    def step(self, clock: Callable[[], float], on_tick: Callable[[TickReport], None], invocations: Invocations) -> None:
        """Begin an invocation if none is under way, and tick. clock: the world's. Raises the errors that end an
        invocation."""
        process = self.process
        if process.loop is None:
            self._begin(process, clock, on_tick, invocations)
        loop = process.loop
        if loop is None:
            invocations.left("no lease")
            return
        invocations.is_quiet = False  # if it dies at work, it has not left
        before, goes_on = loop.report.conflicts, False
        try:
            loop.step(self.ends_at - clock())
            goes_on = not loop.report.reason
        finally:
            process.loop = loop if goes_on else None
            if not goes_on:
                invocations.left(loop.report.reason)
        self.conflicts += loop.report.conflicts - before

    def keep_alive(self) -> None:
        """Like `handlers.SignsOfLife` during long work."""
        try:
            if self.process.loop is not None:
                self.process.loop.renew()
        except (ClientError, BotoCoreError):
            return

    def _begin(
        self,
        process: Process,
        clock: Callable[[], float],
        on_tick: Callable[[TickReport], None],
        invocations: Invocations,
    ) -> None:
        """In virtual time only a controller that was called while idle waits for messages: the steps of a trial are the
        waits
        of the others.
        """
        caller = invocations.taken()
        wait_s = WAIT_S if invocations.is_quiet else 0.0
        self.invocations += 1
        self.ends_at = process.life.ends_at = clock() + INVOCATION_S
        name = f"{self.name}#{self.invocations}"
        engine = process.engine
        loop = Loop(engine, process.store, process.wake, name, engine.now, on_tick, wait_s=wait_s, caller=caller)
        loop.begin()
        process.loop = None if loop.report.reason else loop
