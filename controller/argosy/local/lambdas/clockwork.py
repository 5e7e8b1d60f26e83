"""The clock of the schedules, which moto stores but never fires. It checks the real clock every second.

Times that an earlier local mode could not fire are made up for within the time in which a schedule may start; a rate
continues with its next time.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from argosy.local.moto.schedules import StoredSchedule
from argosy.model.schedules.cron import BadExpression
from argosy.model.schedules.expressions import Rate, next_time, parsed


class Periodic:
    """A thread that calls `act` every `period_s` seconds, the first time after one of them."""

    def __init__(self, name: str, period_s: float, act: Callable[[], None]) -> None:
        self._period_s, self._act = period_s, act
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End and wait."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._period_s):
            self._act()


PERIOD_S = 1.0
RELEASE_S = 5.0  # interval at which a firing asks whether the run that it waits for has ended


@dataclass(frozen=True, slots=True)
class ClockSurroundings:
    """Its inputs, and the functions that it calls."""

    schedules: Callable[[], Iterable[StoredSchedule]]
    invoke: Mapping[str, Callable[[bytes, str], None]]
    """By name of a function: calls it later with a payload and the id of the request."""
    api: str
    """The function that starts waiting firings."""
    waits: Callable[[], bool]
    """Whether a firing waits for a run to end."""
    complain: Callable[[str], None]
    now: Callable[[], float] = time.time


class Clockwork(Periodic):
    """Fires what is due. `since`: by name, up to when an earlier local mode has fired a schedule."""

    def __init__(self, around: ClockSurroundings, since: Mapping[str, float] | None = None) -> None:
        super().__init__("argosy-schedules", PERIOD_S, self.look)
        self._around, self._since = around, dict(since or {})
        self._due: dict[StoredSchedule, float | None] = {}
        self._released_at = 0.0

    def look(self) -> None:
        """Fire all schedules that are due."""
        now, found = self._around.now(), list(self._around.schedules())
        self._due = {each: self._due[each] if each in self._due else self._first(each, now) for each in found}
        for each in found:
            while (due := self._due[each]) is not None and due <= now:
                self._fire(each, due)
                self._due[each] = _next(each, due)
        if now - self._released_at >= RELEASE_S and self._around.waits():
            self._released_at = now
            self._call(self._around.api, json.dumps({"action": "ReleaseSchedules"}).encode())

    def _first(self, each: StoredSchedule, now: float) -> float | None:
        """When it is first due after now; a changed one is computed again."""
        since = self._since.pop(each.name, max(now - PERIOD_S, each.created_at))
        try:
            parsed(each.expression, each.zone)
            return _next(each, max(since, now - each.age_s))
        except BadExpression as fault:
            self._around.complain(f"the schedule {each.name} cannot be fired: {fault}")
            return None

    def _fire(self, each: StoredSchedule, due: float) -> None:
        if each.function not in self._around.invoke:
            self._around.complain(f"the schedule {each.name} calls something that is not a function of local mode")
            return
        self._call(each.function, each.payload(f"{datetime.fromtimestamp(due, UTC):%Y-%m-%dT%H:%M:%SZ}"))

    def _call(self, function: str, payload: bytes) -> None:
        self._around.invoke[function](payload, str(uuid.uuid4()))


def _next(each: StoredSchedule, after: float) -> float | None:
    """A rate begins at its start or, without one, a period after it was made."""
    expression = parsed(each.expression, each.zone)
    if not isinstance(expression, Rate):
        return next_time(each.expression, each.zone, after, each.start or 0.0)
    begins = each.created_at if each.start is None else each.start - expression.every_s
    return next_time(each.expression, each.zone, after, begins)
