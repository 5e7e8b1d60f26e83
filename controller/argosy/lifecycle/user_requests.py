"""Users' requests about the cluster's floor, its sharing document and the terms of open runs."""

from __future__ import annotations

from dataclasses import replace

from argosy.lifecycle import host_care
from argosy.model.actions import NoteFloor
from argosy.model.host_care import DrainRequest
from argosy.model.inbox import ScaleRequest, SharingRequest, UpdateRequest
from argosy.model.pools import NO_FLOOR, Floor
from argosy.model.purchases import PurchaseStance
from argosy.model.runs import Run
from argosy.model.sharers import live_by_number, taken_by_sharer
from argosy.model.shares.recent_use import RecentUse
from argosy.model.state import State


def change_cluster(state: State, request: DrainRequest | ScaleRequest | SharingRequest, now: float) -> None:
    """A change to an instance, to the floor or to the sharing document."""
    if isinstance(request, DrainRequest):
        host_care.drain(state, request, now)
    elif isinstance(request, ScaleRequest):
        scale(state, request)
    else:
        change_sharing(state, request)


def scale(state: State, request: ScaleRequest) -> None:
    """Set the floor. A request replaces the previous one as a whole."""
    asked = Floor(request.instances, request.types, request.until, request.requested_at)
    _set_floor(state, asked if asked.instances else NO_FLOOR)


def expire_floor(state: State, now: float) -> None:
    """Remove a floor whose time is over."""
    if state.floor.until and now >= state.floor.until:
        _set_floor(state, NO_FLOOR)


def _set_floor(state: State, floor: Floor) -> None:
    """The room for further tasks does not depend on it."""
    state.floor = replace(floor, headroom_waiting=state.floor.headroom_waiting)


def note_floor(state: State, action: NoteFloor) -> None:
    """Record why the floor is not reached, and why room for further tasks is missing."""
    state.floor = replace(state.floor, waiting=action.waiting, headroom_waiting=action.headroom_waiting)


def change_sharing(state: State, request: SharingRequest) -> None:
    """Put another sharing document into force. Of two that are based on one revision, the second changes nothing."""
    if request.base != state.sharing.revision:
        return
    state.sharing = state.sharing.with_document(request.document, request.requested_at)
    state.changed_sharing = True


def note_use(state: State, now: float) -> None:
    """Note every five minutes what each sharer uses, if recent use counts and there is use to note or to forget. This
    comes before the decision, so that a controller that was away decides by present values."""
    recent, half_life_s = state.sharing.recent, state.sharing.half_life_s
    if not half_life_s:
        if recent.at:
            _set_use(state, RecentUse())
        return
    if not recent.is_due(now):
        return
    used = {name: tuple(taken) for name, taken in taken_by_sharer(state, live_by_number(state)).items() if any(taken)}
    if not recent.at or used or recent.means:
        sizes = [each.total for each in state.instances.values() if each.alive]
        whole = tuple(sum(size[axis] for size in sizes) for axis in range(3))
        _set_use(state, recent.moved_on(used, whole, now, half_life_s))


def _set_use(state: State, recent: RecentUse) -> None:
    state.sharing = replace(state.sharing, recent=recent)
    state.changed_recent_use = True


def update_run(state: State, request: UpdateRequest) -> None:
    """Change an open run's terms. Running tasks continue: the next decision uses the new terms. A run that starts
    nothing more, or belongs to an environment, stays as it is."""
    run = state.runs.get(request.run_id)
    if run is None or run.done or run.terms.serves or is_given_up(run):
        return
    deadline_at = run.deadline_at
    run.change(request.changes, request.reason)
    if run.deadline_at != deadline_at:
        _reset_steering(run)
    state.changed_runs.add(run.id)


def is_given_up(run: Run) -> bool:
    """Whether no more of its tasks will start. A run that is being reopened only looks like that."""
    return run.cancelled or (run.halted and not run.revives)


def _reset_steering(run: Run) -> None:
    """With another deadline the run may be in time, and spot capacity may be enough."""
    stance = PurchaseStance.ON_DEMAND if run.steering.stance is PurchaseStance.FIRM else run.steering.stance
    run.steering = replace(run.steering, late=False, stance=stance)
