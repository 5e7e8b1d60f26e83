"""EC2's last answer for each cell: queried again when it is old, and kept while EC2 does not answer.

Such answers are advice: prices, scores, offers. None is worth a failed sweep.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from argosy.aws.cell import Cell
from argosy.aws.errors import AWS_ERRORS, classify

Answer = TypeVar("Answer")
log = logging.getLogger(__name__)


class KeptAnswers(Generic[Answer]):
    """what: the answer's name in the log. fresh_s: how long an answer holds. again_s: the pause after a failure."""

    def __init__(self, what: str, fresh_s: float, again_s: float) -> None:
        self._what, self._fresh_s, self._again_s = what, fresh_s, again_s
        self._known: dict[str, Answer] = {}
        self._next: dict[str, float] = {}

    def of(self, cell: Cell, now: float, ask: Callable[[], Answer], without: Answer) -> Answer:
        """The last answer that was not empty; `without` as long as there is none. Raises what `ask` raises, except
        AWS_ERRORS."""
        if now >= self._next.get(cell.name, 0.0):
            self._next[cell.name] = now + self._again_s
            try:
                self._known[cell.name] = ask() or self._known.get(cell.name, without)
                self._next[cell.name] = now + self._fresh_s
            except AWS_ERRORS as error:
                log.warning("no %s of %s: %s", self._what, cell.name, classify(error).text)
        return self._known.get(cell.name, without)
