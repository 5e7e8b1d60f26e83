"""What does the engine need from the outside? Each docstring is a contract that fakes and adapters share.

Failures that are part of normal life (insufficient capacity, a refused start, a lost reply) are events, not exceptions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from argosy.model.actions import Action
from argosy.model.events import Event
from argosy.model.state import State

Key = tuple[str, str]  # partition, sort key


class StaleState(Exception):
    """Somebody else has committed since the version we loaded. Nothing was written and nothing was done."""


class AlreadyExists(Exception):
    """A conditional create met an item with that key. Nothing was written."""


class Store(Protocol):
    """Documents by (partition, sort key). Reads are strongly consistent. Raises StoreUnavailable's cause as it is."""

    def read(self, key: Key) -> bytes | None: ...

    def read_partition(self, partition: str) -> dict[str, bytes]:
        """Every item of the partition, in sort-key order, all pages. A page that fails raises: never a part."""

    def page(self, partition: str, limit: int, after: str | None = None) -> tuple[list[tuple[str, bytes]], str | None]:
        """At most `limit` items in *descending* sort-key order after `after`, and where the next page starts."""

    def create(self, items: Mapping[Key, bytes], expires_at: Mapping[Key, float] | None = None) -> None:
        """All or nothing, only if none of them exists. Raises AlreadyExists.

        expires_at: epoch seconds after which the store may forget an item; what is not named is kept.
        """

    def commit(self, version: int, puts: Mapping[Key, bytes], deletes: Iterable[Key]) -> None:
        """One transaction on condition that the stored version is `version`; it becomes `version + 1`.

        Version 0 means "no state yet". At most 99 items besides the version and 4 MB. A reply lost after the effect
        is settled by reading the version again. Raises StaleState.
        """

    def version(self) -> int: ...

    def take_lease(self, owner: str, now: float, seconds: float) -> bool:
        """True when `owner` now holds the lease until now + seconds (it was free, expired, or already ours)."""

    def release_lease(self, owner: str) -> None:
        """Give it back; a lease that is not ours is left alone."""

    def beat(self, now: float) -> None:
        """Say that a tick was carried through at `now` (epoch seconds). Nothing ever takes it back: it is what the
        watchdog judges the controller by, and a released lease must not look like a death."""

    def kill_switch(self) -> str | None:
        """The reason why nothing may be launched any more, or None."""


@dataclass(frozen=True, slots=True)
class Message:
    """One queue message: an EventBridge event, or `body` None when it was no JSON object (poison)."""

    receipt: str
    body: dict[str, Any] | None


class EventQueue(Protocol):
    """At least once, in any order. A message that is not deleted comes again."""

    def receive(self, wait_s: float) -> list[Message]:
        """What is there, at most a few hundred; waits up to `wait_s` when there is nothing."""

    def delete(self, receipts: Sequence[str]) -> None:
        """Failure to delete is harmless: the message comes again and applies to nothing."""


class Executor(Protocol):
    """Carries actions out. Never raises for what AWS answers: every outcome, refusal or doubt is an event."""

    def carry_out(self, actions: Sequence[Action], state: State, deadline: float) -> list[Event]:
        """Do what fits before `deadline` (epoch seconds), in an order that is safe (targets before terminations,
        stops before launches). What was not begun yields a NotCarriedOut event, never silence."""

    def observe(self, now: float) -> Event | None:
        """The full sweep of ECS and EC2 as one Observed event; a listing that broke off is marked incomplete. None: it
        takes longer, ask again in the next tick."""


class Wake(Protocol):
    """How the controller comes to life and goes to rest."""

    def controller(self) -> None:
        """Invoke the controller asynchronously and make sure the tick is enabled. Idempotent."""

    def rest(self) -> None:
        """Disable the tick."""

    def stay(self) -> None:
        """Enable the tick."""


class ImageResolver(Protocol):
    def resolve(self, image: str) -> str | None:
        """`argosy/NAME` -> what it stands for in this deployment, other names as they are; None = unknown."""


class ItemsReader(Protocol):
    def read_items(self, uri: str) -> list[Any]:
        """The items (one JSON value a line) of an S3 object. Raises ItemsUnreadable with a sentence."""


class ItemsUnreadable(Exception):
    """The object of `itemsFrom` is missing, forbidden, too large or not JSON lines; the message says which."""
