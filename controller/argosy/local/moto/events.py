"""The rules of moto's EventBridge, and the delivery of events to those that users make.

For each event that it hands to a target, moto rebuilds eight parsers of the same JSON paths: 30 ms of CPU time. The
parser's results are kept; they hold no state of their own.
"""

from __future__ import annotations

import copy
from datetime import datetime
from functools import lru_cache
from importlib import import_module
from typing import Any

DEFAULT_BUS = "default"
PATHS = 256  # that are kept: the eight of every event, and those of rules that users make


def quicken() -> None:
    """Replaces the function that moto looks up at each use; repeating it does no harm."""
    ext: Any = import_module("jsonpath_ng.ext")
    if not hasattr(ext.parse, "cache_info"):
        ext.parse = lru_cache(PATHS)(ext.parse)


class MotoRules:
    """The rules of one account and Region."""

    def __init__(self, account: str, region: str) -> None:
        from moto.events.models import events_backends

        self._backend: Any = events_backends[account][region]

    def enabled(self, bus: str) -> set[str]:
        """Names of those on this bus that are enabled and match events, not times."""
        return {rule.name for rule in self._on(bus) if _listens(rule)}

    def is_enabled(self, name: str) -> bool:
        """A rule of the default bus."""
        found = self._backend.event_buses[DEFAULT_BUS].rules.get(name)
        return found is not None and found.state == "ENABLED"

    def send(self, bus: str, names: set[str], message: dict[str, Any]) -> None:
        """Hand one of EventBridge's messages to the targets of these rules, where their patterns match. Raises whatever
        moto raises for a target that it cannot reach."""
        at = datetime.fromisoformat(message["time"]).timestamp()  # moto turns it into text for each target
        for rule in self._on(bus):
            if rule.name in names and _listens(rule):
                rule.send_to_targets(copy.deepcopy({**message, "time": at, "ingestion-time": at}))

    def _on(self, bus: str) -> list[Any]:
        found = self._backend.event_buses.get(bus)
        return [] if found is None else list(found.rules.values())


def _listens(rule: Any) -> bool:
    return rule.state == "ENABLED" and not rule.scheduled_expression
