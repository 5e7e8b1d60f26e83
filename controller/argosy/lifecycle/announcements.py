"""What has EC2 announced about instances that are not known yet?

A warning or advice may come before anything else about its instance, and its message is deleted once a commit holds it.
EC2 announces this of every spot instance in the account, and most of them are none of ours: so what is kept here is
bounded in number and time.
"""

from __future__ import annotations

from typing import NamedTuple

from argosy.model.state import State

MOST = 500  # instances: 30 kB of the stored root
KEPT_S = 900.0  # a sweep shows a new instance within minutes


class Announced(NamedTuple):
    """Of one instance, as epoch seconds; 0 = not announced. JSON stores it as a list."""

    warned_at: float = 0.0
    advised_at: float = 0.0
    heard_at: float = 0.0  # the last one


def keep(state: State, instance_id: str, announced: Announced) -> None:
    """Until the instance is met. Of very many the oldest are dropped."""
    earlier = Announced(*state.announced.pop(instance_id, ()))
    warned_at, advised_at = earlier.warned_at or announced.warned_at, earlier.advised_at or announced.advised_at
    state.announced[instance_id] = [warned_at, advised_at, announced.heard_at]
    while len(state.announced) > MOST:
        del state.announced[next(iter(state.announced))]


def take(state: State, instance_id: str) -> Announced:
    """What is kept about an instance that is met now; from then on the instance says it."""
    return Announced(*state.announced.pop(instance_id, ()))


def drop_old(state: State, now: float) -> None:
    """Those of instances that nothing has shown since."""
    for instance_id, kept in list(state.announced.items()):
        if now - Announced(*kept).heard_at > KEPT_S:
            del state.announced[instance_id]
