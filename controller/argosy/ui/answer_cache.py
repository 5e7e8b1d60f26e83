"""Recent answers of the api. They serve every tab, and one thread reads for all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from argosy.client.errors import ArgosyError

T = TypeVar("T")


@dataclass
class AnswerCache:
    """Answers by key. now: epoch seconds."""

    now: Callable[[], float]
    _found: dict[Any, tuple[float, Any]] = field(default_factory=dict)
    _locks: dict[Any, threading.Lock] = field(default_factory=dict)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def once(self, key: Any, seconds: float, read: Callable[[], T]) -> T:
        """The answer, if it is younger than that, or is being read now, by one thread for all."""
        with self._guard:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            at, found = self._found.get(key, (float("-inf"), None))
            if self.now() - at >= seconds:
                found = read()
                self._found[key] = self.now(), found
            return cast("T", found)

    def forget(self) -> None:
        """Something has changed: every answer is read again."""
        with self._guard:
            self._found.clear()


def known(read: Callable[[], T]) -> T | None:
    """None if the deployment is older than the action, or cannot answer just now: the rest of the page remains."""
    try:
        return read()
    except ArgosyError:
        return None
