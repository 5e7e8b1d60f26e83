"""The gangs of a run that are at work: where their members are, and how the first of them failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class MemberEnd(NamedTuple):
    """The end of a member for which its gang restarts. Of several, the one that is charged."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which no end needs
    account: str  # value of `lifecycle.accounts.Account`
    cause: int  # StopCause
    reason: str
    exit_code: int | None
    container_reason: str
    status_reason: str
    task_arn: str
    instance: str


class Gang(NamedTuple):
    """A gang from its intents to the end of its last member. Its rendezvous follows from this alone, so that a launch
    that is sent again is byte for byte the same.

    Example: gang 1 of size 2 on i-a and i-b. Then `hosts` is ("i-a", "i-b") and `addresses` their private addresses:
    rank 0 listens on the first of them.
    """

    placed_at: float  # epoch seconds
    port: int  # where rank 0 listens
    hosts: tuple[str, ...]  # EC2 ids by rank
    addresses: tuple[str, ...]  # private addresses by rank
    end: MemberEnd | None = None  # None: no member has failed

    @classmethod
    def from_json(cls, row: Sequence[Any]) -> Gang:
        """Raises TypeError or ValueError for a damaged row."""
        placed_at, port, hosts, addresses, end = row
        return cls(placed_at, port, tuple(hosts), tuple(addresses), None if end is None else MemberEnd(*end))
