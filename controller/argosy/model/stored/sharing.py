"""How are the sharing documents and recent use stored?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from argosy.model.damage import Damage, tried
from argosy.model.shares.recent_use import RECENT_USE, RecentUse
from argosy.model.shares.sharing import SHARING, Sharing
from argosy.model.state import State


def sharing_bodies(state: State) -> Iterator[tuple[str, bytes]]:
    """By key, the changed documents."""
    if state.changed_sharing:
        yield SHARING, state.sharing.to_bytes()
    if state.changed_recent_use:
        yield RECENT_USE, state.sharing.recent.to_bytes()


def all_sharing_in(items: Mapping[str, bytes]) -> Iterator[Sharing | Damage]:
    """Read from the partition STATE. Unreadable recent use starts again from nothing."""
    sharing = sharing_in(items)
    recent: RecentUse | Damage = RecentUse()
    if RECENT_USE in items:
        recent = tried("record of recent use", lambda: RecentUse.from_bytes(items[RECENT_USE]))
    if isinstance(recent, Damage):
        yield recent
    elif not isinstance(sharing, Damage):
        sharing = replace(sharing, recent=recent)
    yield sharing


def sharing_in(items: Mapping[str, bytes]) -> Sharing | Damage:
    """Read from the partition STATE. An unreadable document is to be left out: all runs share one queue until another
    document is applied."""
    return tried("sharing document", lambda: Sharing.from_bytes(items[SHARING])) if SHARING in items else Sharing()
