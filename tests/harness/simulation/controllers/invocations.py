"""When is the controller's function invoked?

By the schedule's tick while it is enabled, and by callers. A controller that has left quiet comes back with the next
minute of the schedule, or when it is called. All others act at each step of a trial, which costs less time and is
harder on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from argosy.aws.dynamodb import DynamoStore
from argosy.aws.sqs import SqsQueue
from argosy.emulator.sqs import SqsModel
from argosy.ports import Caller, Message
from tests.harness.simulation.world.bus import BusModel, LambdaModel
from tests.harness.simulation.world.world import World

FUNCTION, TICK_RULE = "argosy-controller", "argosy-tick"
EVERY_S = 60.0  # of the schedule
CALL_S = 0.1  # from a call to the handler of a warm process
OF_RULE = b'{"detail-type": "any"}'
LOOK_S = 0.25  # between two polls of a caller that waits for a message


class Invocations:
    """The invocations of one deployment's controller. store: through calls that never fail. is_at_work: whether some
    controller is."""

    def __init__(
        self,
        world: World,
        functions: LambdaModel,
        bus: BusModel,
        store: DynamoStore,
        is_at_work: Callable[[], bool],
    ) -> None:
        self.called_by: Caller | None = None
        """The caller that invokes it now, besides the schedule."""
        self.is_quiet = False
        """Whether the last controller that left had nothing to do for a while."""
        self.lease_holds = True
        self.turned_away = 0
        self._world, self._bus, self._store, self._is_at_work = world, bus, store, is_at_work
        self._next_at, self._count = 0.0, 0
        functions.on_invoke.append(self._called)

    @property
    def is_scheduled(self) -> bool:
        return TICK_RULE in self._bus.enabled

    @property
    def is_called(self) -> bool:
        return self.called_by is not None

    @property
    def next_at(self) -> float:
        """Epoch seconds of the schedule's next tick, if a quiet controller waits for it."""
        return self._next_at if self.is_quiet and self.is_scheduled else math.inf

    @property
    def is_due(self) -> bool:
        waits = self.is_quiet and self._world.now < self._next_at
        return self.is_called or (self.is_scheduled and not waits)

    def taken(self) -> Caller:
        """An invocation begins. Returns the caller."""
        caller, self.called_by = self.called_by or Caller.CLOCK, None
        self._next_at = (self._world.now // EVERY_S + 1) * EVERY_S
        return caller

    def left(self, reason: str) -> None:
        """An invocation has ended, for whatever reason; one that was turned away says nothing about the work."""
        if reason != "no lease":
            self.is_quiet = reason == "quiet"

    def _called(self, name: str, payload: bytes) -> None:
        caller = Caller.RULE if payload == OF_RULE else Caller.API
        if name == FUNCTION:
            self._world.later(CALL_S, lambda: self._begin(caller))

    def _begin(self, caller: Caller) -> None:
        """While a controller works, another process asks for the lease."""
        self._count += 1
        owner = f"call#{self._count}"
        if self.lease_holds and self._is_at_work():
            if not self._store.take_lease(owner, self._world.now, EVERY_S):
                self.turned_away += 1
                return
            self._store.release_lease(owner)
        self.called_by = Caller.API if Caller.API in (caller, self.called_by) else caller


class PatientQueue(SqsQueue):
    """The queue of a trial. Virtual time passes while it waits, and controllers wait only after they were called."""

    def __init__(self, client: object, url: str, world: World, model: SqsModel) -> None:
        super().__init__(client, url, world.run_for, threads=1)
        self._world, self._model = world, model

    def receive(self, wait_s: float) -> list[Message]:
        until = self._world.now + wait_s
        while self._world.now < until and not self._is_there():
            self._world.run_for(min(LOOK_S, until - self._world.now))
        return super().receive(0.0)

    def _is_there(self) -> bool:
        return any(held.visible_at <= self._world.now for held in self._model.messages.values())
