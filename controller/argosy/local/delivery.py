"""Delivery of the models' events to the deployment's queue, and to the rules that users make.

EventBridge in moto takes about 10 ms of CPU time for each event, and a task has six of them. So events that match the
deployment's own rules go straight into its queue, in EventBridge's format, while the rules are enabled, and urgent ones
call the controller as well. moto's rules of users get the same events, in order, from a thread, which may take longer.
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable
from typing import Any, Protocol

from argosy.local.moto.events import DEFAULT_BUS
from argosy.messages.eventbridge import MESSAGE_KINDS
from argosy.messages.urgent import URGENT_KINDS, rule_of


class EventRules(Protocol):
    """The existing rules."""

    def enabled(self, bus: str) -> set[str]:
        """Names of the enabled rules on this bus that match events, not times."""

    def send(self, bus: str, names: set[str], message: dict[str, Any]) -> None:
        """Hand the message to the targets of these rules."""


class EventDelivery:
    """Takes EventBridge messages from under the models' locks; never blocks.

    Home's come over the default bus, as on AWS; those of other Regions come over the deployment's own bus, as the rules
    of further cells send them. put: adds a message to the queue. call: invokes the controller's function, with an
    urgent message. complain: called for events that a user's rule lost.
    """

    def __init__(
        self,
        rules: EventRules,
        home: str,
        prefix: str,
        put: Callable[[str], None],
        complain: Callable[[str], None],
        call: Callable[[str], None] = lambda body: None,
    ) -> None:
        self._rules, self._home, self._prefix = rules, home, prefix
        self._put, self._call, self._complain = put, call, complain
        self._rule_of = {(kind.source, kind.detail_type): f"{prefix}-{kind.rule}" for kind in MESSAGE_KINDS}
        self._of_cells = f"{prefix}-forwarded"
        urgent = {f"{prefix}-{kind.rule}" for kind in URGENT_KINDS}
        self._own = {*self._rule_of.values(), self._of_cells, *urgent}
        self._queue: queue.Queue[tuple[str, set[str], dict[str, Any]] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="argosy-events")
        self._thread.start()

    def __call__(self, message: dict[str, Any]) -> None:
        """Take one message."""
        is_home = message["region"] == self._home
        bus = DEFAULT_BUS if is_home else self._prefix
        enabled = self._rules.enabled(bus)
        rule = self._rule_of.get((message["source"], message["detail-type"]))
        if rule is not None and (rule if is_home else self._of_cells) in enabled:
            self._put(json.dumps(message))
        urgent = rule_of(message)
        if urgent and (f"{self._prefix}-{urgent}" if is_home else self._of_cells) in enabled:
            self._call(json.dumps(message))
        if of_users := enabled - self._own:
            self._queue.put((bus, of_users, message))

    def close(self) -> None:
        """Send the remaining events and end."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (taken := self._queue.get()) is not None:
            bus, names, message = taken
            try:
                self._rules.send(bus, names, message)
            except Exception as fault:  # noqa: BLE001 - whatever moto raises costs this event and no other
                self._complain(f"an event of {message['source']} is lost to the rules {sorted(names)}: {fault!r}")
