"""How do a user's request, the time and what is decided change the number of instances that are kept?"""

from __future__ import annotations

from dataclasses import replace

from argosy.model.actions import NoteFloor
from argosy.model.floor import NO_FLOOR, Floor
from argosy.model.inbox import ScaleRequest
from argosy.model.state import State


def scale(state: State, request: ScaleRequest) -> None:
    """The latest request counts, whole: nothing of the one before is left."""
    asked = Floor(request.instances, request.types, request.until, request.requested_at)
    state.floor = asked if asked.instances else NO_FLOOR


def expire(state: State, now: float) -> None:
    """Once its time is over there is none."""
    if state.floor.until and now >= state.floor.until:
        state.floor = NO_FLOOR


def note(state: State, action: NoteFloor) -> None:
    """Why it is not reached."""
    state.floor = replace(state.floor, waiting=action.waiting)
