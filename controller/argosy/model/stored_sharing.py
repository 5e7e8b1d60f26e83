"""Where does it lie in the store how the cluster is shared: the documents, and apart from them what was used lately?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from argosy.model.damage import Damage, tried
from argosy.model.recent_use import RECENT_USE, RecentUse
from argosy.model.sharing import SHARING, Sharing, sharing_in
from argosy.model.state import State


def sharing_bodies(state: State) -> Iterator[tuple[str, bytes]]:
    """By key, what was changed."""
    if state.changed_sharing:
        yield SHARING, state.sharing.to_bytes()
    if state.changed_recent_use:
        yield RECENT_USE, state.sharing.recent.to_bytes()


def all_sharing_in(items: Mapping[str, bytes]) -> Iterator[Sharing | Damage]:
    """Of the partition STATE. What was used lately begins anew where it cannot be read."""
    sharing = sharing_in(items)
    recent: RecentUse | Damage = RecentUse()
    if RECENT_USE in items:
        recent = tried("record of recent use", lambda: RecentUse.from_bytes(items[RECENT_USE]))
    if isinstance(recent, Damage):
        yield recent
    elif not isinstance(sharing, Damage):
        sharing = replace(sharing, recent=recent)
    yield sharing
