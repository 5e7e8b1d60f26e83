"""How does another sharing document come into force, and when is it noted what the sharers use?"""

from __future__ import annotations

from dataclasses import replace

from argosy.model.inbox import SharingRequest
from argosy.model.recent_use import RecentUse
from argosy.model.sharers import live_by_number, taken_by_sharer
from argosy.model.state import State


def ask(state: State, request: SharingRequest) -> None:
    """Fold a request in. Of two that are based on one revision, the second changes nothing."""
    if request.base != state.sharing.revision:
        return
    state.sharing = state.sharing.with_document(request.document, request.requested_at)
    state.changed_sharing = True


def pass_time(state: State, now: float) -> None:
    """What is used is noted every five minutes, where what was used lately counts and there is anything to note or to
    forget. That is before anything is decided, so that a controller that was away decides by what counts now."""
    recent, half_life_s = state.sharing.recent, state.sharing.half_life_s
    if not half_life_s:
        if recent.at:
            _note(state, RecentUse())
        return
    if not recent.is_due(now):
        return
    used = {name: tuple(taken) for name, taken in taken_by_sharer(state, live_by_number(state)).items() if any(taken)}
    if not recent.at or used or recent.means:
        sizes = [each.total for each in state.instances.values() if each.alive]
        whole = tuple(sum(size[axis] for size in sizes) for axis in range(3))
        _note(state, recent.moved_on(used, whole, now, half_life_s))


def _note(state: State, recent: RecentUse) -> None:
    state.sharing = replace(state.sharing, recent=recent)
    state.changed_recent_use = True
