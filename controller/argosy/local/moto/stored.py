"""S3 objects that outlive the process, and the interface of the place that stores them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class KeptObject:
    """One object as it was stored. read: its body, or None where moto has it in memory."""

    bucket: str
    key: str
    about: dict[str, Any]
    size: int
    read: Callable[[], bytes]


class ObjectStore(Protocol):
    """Where objects outlive the process."""

    def buckets(self) -> list[tuple[str, str]]:
        """(name, Region) of each."""

    def add_bucket(self, name: str, region: str) -> None:
        """Harmless when repeated."""

    def drop_bucket(self, name: str) -> None:
        """With all its objects."""

    def objects(self) -> Iterable[KeptObject]:
        """All that are stored."""

    def put(self, bucket: str, key: str, about: dict[str, Any], body: bytes) -> Callable[[], bytes] | None:
        """Store or replace one. How to read its body; None where it is too small to leave the memory."""

    def drop(self, bucket: str, key: str) -> None:
        """Harmless for what is not there."""
