"""What does the engine need from outside? Each docstring is a contract that adapters and fakes share.

Ordinary failures (insufficient capacity, a refused start, a lost reply) are events, not exceptions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from argosy.model.actions import Action
from argosy.model.events import Event
from argosy.model.schedules.record import Schedule
from argosy.model.signed_requests import SignedFor
from argosy.model.state import State

Key = tuple[str, str]  # partition, sort key


class StaleState(Exception):
    """Another invocation has committed since the version that we loaded. Nothing was written, nothing was done."""


class AlreadyExists(Exception):
    """A conditional create found an item with that key. Nothing was written."""


@dataclass(frozen=True, slots=True)
class Switches:
    """The functions that an operator or a teardown has switched off, with the reasons in sentences."""

    deployment: str | None = None  # why nothing may be launched anywhere; None = it may
    cells: Mapping[str, str] = field(default_factory=dict)  # cell -> why nothing may be launched there


class Store(Protocol):
    """Documents by (partition, sort key). Strongly consistent reads. Errors of the store's client are passed on."""

    def read(self, key: Key) -> bytes | None: ...

    def read_partition(self, partition: str) -> dict[str, bytes]:
        """Every item of the partition, in sort-key order, all pages. Raises if a page fails: never a partial answer."""

    def read_many(self, keys: Iterable[Key]) -> dict[Key, bytes]:
        """Those of the items that exist. Each is read as `read` does, and not all at the same time. Never a partial
        answer."""

    def page(
        self, partition: str, limit: int, after: str | None = None, oldest_first: bool = False
    ) -> tuple[list[tuple[str, bytes]], str | None]:
        """At most `limit` items in *descending* sort-key order after `after`, and where the next page starts.
        oldest_first: in ascending order."""

    def create(
        self,
        items: Mapping[Key, bytes],
        expires_at: Mapping[Key, float] | None = None,
        replacing: Mapping[Key, bytes] | None = None,
    ) -> None:
        """All or nothing, only if none of `items` exists. Raises AlreadyExists.

        expires_at: epoch seconds after which the store may delete an item; other items are kept. replacing: documents
        written together with `items`, whether or not they exist.
        """

    def commit(
        self,
        version: int,
        puts: Mapping[Key, bytes],
        deletes: Iterable[Key],
        expires_at: Mapping[Key, float] | None = None,
    ) -> None:
        """One transaction on condition that the stored version is `version`; it becomes `version + 1`.

        expires_at: epoch seconds after which the store may delete an item of `puts`, as in `create`: it may do so days
        later, but never before.

        Version 0 means "no state yet". At most 99 items besides the version, and 4 MB. If the reply is lost, the
        version is read again to see whether the commit took effect. Raises StaleState.
        """

    def version(self) -> int: ...

    def take_lease(self, owner: str, now: float, seconds: float) -> bool:
        """True when `owner` now holds the lease until now + seconds (it was free, expired, or already ours). False: the
        holder learns of the request when it releases the lease."""

    def release_lease(self, owner: str) -> None:
        """Release the lease if `owner` holds it, even if another controller was refused it."""

    def lay_down_lease(self, owner: str) -> bool:
        """Release the lease, unless a controller was refused it since `owner` took it or last tried to release it: then
        False, once, and `owner` keeps it. No controller can be refused between the check and the release."""

    def beat(self, now: float, *, at_rest: bool = False) -> None:
        """Record that a tick ended at `now` (epoch seconds). It is never removed: the watchdog judges the controller by
        it, and a released lease must not look like a dead controller. at_rest: nothing is left to do, so that no tick
        need follow."""

    def is_at_rest(self) -> bool:
        """Whether the last heartbeat said so."""

    def switches(self) -> Switches:
        """The places where nothing may be launched now: the whole deployment, or single cells."""


@dataclass(frozen=True, slots=True)
class Message:
    """One queue message: an EventBridge event, or `body` None if it was not a JSON object (poison)."""

    receipt: str
    body: dict[str, Any] | None


class EventQueue(Protocol):
    """Delivers at least once, in any order. A message that is not deleted is delivered again."""

    def receive(self, wait_s: float) -> list[Message]:
        """The waiting messages, at most a few hundred; waits up to `wait_s` seconds if there are none."""

    def delete(self, receipts: Sequence[str]) -> None:
        """A failure is harmless: the message is delivered again and changes nothing."""


class Executor(Protocol):
    """Carries actions out. AWS's answers never raise: every outcome, refusal or doubt is an event."""

    def carry_out(self, actions: Sequence[Action], state: State, deadline: float) -> list[Event]:
        """Do what can be done before `deadline` (epoch seconds), in a safe order (targets before terminations, stops
        before launches). An action that was not begun yields a NotCarriedOut event."""

    def observe(self, now: float, state: State) -> Event | None:
        """The full sweep of ECS and EC2 as one Observed event, in which a listing that failed midway is marked as
        incomplete. None: the sweep is not finished; call again in the next tick. state: its tasks that
        the listing does not show are looked up."""


class Archive(Protocol):
    """The record of the controller's inputs and decisions (`recording`)."""

    def put(self, name: str, body: bytes) -> None:
        """Store a file, once. Raises the errors of the store's client."""


class Caller(StrEnum):
    """The caller that has invoked the controller. The payload from a rule or the api is not read, because the queue or
    the inbox has it."""

    API = "api"
    RULE = "rule"  # that an urgent message has matched (`messages.urgent`)
    CLOCK = "clock"  # the schedule's tick


class Wake(Protocol):
    """The start and the rest of the controller."""

    def controller(self) -> None:
        """Invoke the controller asynchronously and make sure the tick is enabled. Idempotent."""

    def rest(self) -> None:
        """Disable the tick."""

    def stay(self) -> None:
        """Enable the tick, if AWS allows it now."""


class ScheduleClock(Protocol):
    """The service that fires the schedules: it calls the api's FireSchedule at each time, at least once."""

    def set(self, schedule: Schedule) -> None:
        """From now on it fires accordingly; a paused one does not. Idempotent."""

    def remove(self, name: str) -> None:
        """It fires no more. A missing one is not a fault."""


class ImageResolver(Protocol):
    def resolve(self, image: str) -> str | None:
        """`argosy/NAME` -> its image in this deployment; other names unchanged; None = unknown."""


class SignatureRefused(Exception):
    """AWS rejects the signature. Its message is AWS's code."""


class IdentityUnknown(Exception):
    """AWS cannot be queried now for the owner of a signature."""


class Identities(Protocol):
    signed_for: SignedFor

    def arn(self, headers: Mapping[str, str]) -> str:
        """The owner of a signature, whose headers were checked. Raises SignatureRefused and IdentityUnknown."""


class ItemsReader(Protocol):
    def read_items(self, uri: str) -> list[Any]:
        """The items of an S3 object, one JSON value per line. Raises ItemsUnreadable with a sentence."""


class ObjectReader(Protocol):
    def fetch(self, uri: str) -> bytes:
        """An S3 object's bytes. Raises ItemsUnreadable with a sentence."""


class DefinitionReader(Protocol):
    def describe(self, name: str) -> Mapping[str, Any] | None:
        """The task definition FAMILY or FAMILY:REVISION as ECS describes it; None = there is none."""


class ItemsUnreadable(Exception):
    """An object is missing, forbidden or too large, or not JSON lines (`itemsFrom`); the message says which."""
