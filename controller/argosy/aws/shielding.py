"""What if our own code fails while it carries an action out? That action is told as failed, and the others are done."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable
from typing import TypeVar

from argosy.model.events import ActionFailed, Event, NotCarriedOut
from argosy.model.suspensions import reason_of

A = TypeVar("A")

log = logging.getLogger(__name__)


def shielded(action: A, do: Callable[[A], Iterable[Event]]) -> list[Event]:
    """The events of `do(action)`. For AWS's answers nothing is raised there: what is raised is a fault of ours."""
    try:
        return list(do(action))
    except Exception as error:
        run_id = _run_of(action)
        if run_id:
            return [ActionFailed(run_id, reason_of(error), "".join(traceback.format_exception(error)))]
        log.exception("a fault in Argosy's own code: %s was not carried out", type(action).__name__)
        return [NotCarriedOut(f"a fault in Argosy's own code: {reason_of(error)}")]


def _run_of(action: object) -> str:
    key = getattr(action, "key", None)
    return str(key.run_id if key else getattr(action, "run_id", ""))
