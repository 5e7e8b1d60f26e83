"""What if our own code fails while it carries an action out, or at one thing of many that AWS shows?

That action or thing is told as failed, and the others are done or shown.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from argosy.model.events import ActionFailed, Event
from argosy.model.suspensions import reason_of

A = TypeVar("A")


def shielded(action: A, do: Callable[[A], Iterable[Event]]) -> list[Event]:
    """The events of `do(action)`. For AWS's answers nothing is raised there: what is raised is a fault of ours."""
    try:
        return list(do(action))
    except Exception as error:  # noqa: BLE001 - whatever it is
        return [ActionFailed(_run_of(action), reason_of(error), "".join(traceback.format_exception(error)))]


def read_each(read: Callable[[A], Event], answer: Iterable[A]) -> Iterator[Event]:
    """What `read` makes of each item of an answer. One at which it fails is told as that, and the others are shown."""
    for item in answer:
        yield from shielded(item, lambda one: [read(one)])


def _run_of(action: object) -> str:
    """ "" for one that is for no run."""
    key = getattr(action, "key", None)
    return str(key.run_id if key else getattr(action, "run_id", ""))
