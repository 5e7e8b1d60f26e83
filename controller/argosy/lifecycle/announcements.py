"""What has EC2 announced about instances that are not known yet?

A warning or advice may come before any other fact about its instance, and its message is deleted once a commit holds
it. EC2 announces this for every spot instance in the account, and most of them are not ours. So announcements are kept
for a limited number of instances and a limited time.
"""

from __future__ import annotations

from typing import NamedTuple

from argosy.model.state import State

MOST = 500  # instances: 30 kB of the stored root
KEPT_S = 900.0  # a sweep shows a new instance within minutes


class AnnouncementTimes(NamedTuple):
    """Announcements of one instance, as epoch seconds; 0 = none. JSON stores it as a list."""

    warned_at: float = 0.0
    advised_at: float = 0.0
    heard_at: float = 0.0  # the last announcement


def keep(state: State, instance_id: str, announced: AnnouncementTimes) -> None:
    """Keep the announcement until the instance is known. If there are too many, the oldest are dropped."""
    earlier = AnnouncementTimes(*state.announced.pop(instance_id, ()))
    warned_at, advised_at = earlier.warned_at or announced.warned_at, earlier.advised_at or announced.advised_at
    state.announced[instance_id] = [warned_at, advised_at, announced.heard_at]
    while len(state.announced) > MOST:
        del state.announced[next(iter(state.announced))]


def take(state: State, instance_id: str) -> AnnouncementTimes:
    """Remove and return the announcements of an instance that is now known."""
    return AnnouncementTimes(*state.announced.pop(instance_id, ()))


def drop_old(state: State, now: float) -> None:
    """Drop announcements of instances that no sweep has shown in time."""
    for instance_id, kept in list(state.announced.items()):
        if now - AnnouncementTimes(*kept).heard_at > KEPT_S:
            del state.announced[instance_id]
