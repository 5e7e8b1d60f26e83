"""The nodes of a parsed cluster query, each a function from columns to accepted rows.

Where Amazon's documentation is silent (docs/concepts/placement.md): an instance without the attribute is accepted by
`!exists` only; `task:group` and `task:startedBy` are sets, and `==`, `in` and `=~` hold if some member matches, their
negations if none does; `<`, `<=`, `>` and `>=` compare attributes as dotted numbers and never accept other values.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Protocol

import numpy as np

from argosy.placement.arrays import BoolArray, IntArray
from argosy.placement.supply import Supply

Accepts = Callable[[str], bool]
Dotted = tuple[int, ...]

COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "EQUAL": operator.eq,
    "NOT_EQUAL": operator.ne,
    "GREATER": operator.gt,
    "GREATER_EQUAL": operator.ge,
    "LESS": operator.lt,
    "LESS_EQUAL": operator.le,
}
_DOTTED: Final = re.compile(r"v?\d{1,18}(\.\d{1,18}){0,8}\Z")


class LiveTasks(Protocol):
    """The columns that change while tasks are placed. Supply and PassState both have them."""

    @property
    def running_tasks(self) -> IntArray: ...
    @property
    def group_names(self) -> frozenset[str]: ...
    def of_group(self, name: str) -> IntArray: ...


class Node(Protocol):
    """A part of a query."""

    @property
    def depth(self) -> int: ...
    def rows(self, supply: Supply, live: LiveTasks) -> BoolArray: ...


@dataclass(frozen=True, slots=True)
class Clauses:
    """`and` or `or` over two or more parts."""

    parts: tuple[Node, ...]
    all_of: bool

    @property
    def depth(self) -> int:
        return 1 + max(part.depth for part in self.parts)

    def rows(self, supply: Supply, live: LiveTasks) -> BoolArray:
        """(m,) bool."""
        join = np.logical_and if self.all_of else np.logical_or
        return join.reduce([part.rows(supply, live) for part in self.parts])  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Negation:
    """`not`: every row that the part does not accept, including those without the attribute."""

    part: Node
    depth: int

    def rows(self, supply: Supply, live: LiveTasks) -> BoolArray:
        """(m,) bool."""
        return ~self.part.rows(supply, live)


@dataclass(frozen=True, slots=True)
class TextTest:
    """A subject with one string per instance, or none."""

    subject: str
    accepts: Accepts
    missing: bool = False
    depth: int = 1

    def rows(self, supply: Supply, live: LiveTasks) -> BoolArray:
        """(m,) bool."""
        return supply.codes(self.subject).where(self.accepts, missing=self.missing)


@dataclass(frozen=True, slots=True)
class MembersTest:
    """A subject with a set of strings per instance: some member is accepted, or (`none_of`) no member is."""

    subject: str
    accepts: Accepts
    none_of: bool
    depth: int = 1

    def rows(self, supply: Supply, live: LiveTasks) -> BoolArray:
        """(m,) bool."""
        found = np.zeros(len(supply), dtype=np.bool_)
        if self.subject == "task:startedBy":
            found |= np.array([any(map(self.accepts, row.started_by)) for row in supply.rows], dtype=np.bool_)
        else:
            for name in filter(self.accepts, live.group_names):
                found |= live.of_group(name) > 0
        return ~found if self.none_of else found


@dataclass(frozen=True, slots=True)
class TaskCountTest:
    """runningTasksCount against a whole number."""

    compare: Callable[[Any, Any], Any]
    count: int
    depth: int = 1

    def rows(self, supply: Supply, live: LiveTasks) -> BoolArray:
        """(m,) bool."""
        return np.asarray(self.compare(live.running_tasks, self.count), dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class RegistrationTest:
    """registeredAt against an instant; an instance that is not registered yet is never accepted."""

    compare: Callable[[Any, Any], Any]
    instant: float
    depth: int = 1

    def rows(self, supply: Supply, live: LiveTasks) -> BoolArray:
        """(m,) bool."""
        at = supply.column("registeredAt", lambda row: row.registered_at, np.float64)
        return np.asarray(self.compare(at, self.instant), dtype=np.bool_) & (at > 0)


def parts_of(node: Node) -> Iterator[Node]:
    """The node and everything below it."""
    yield node
    below = node.parts if isinstance(node, Clauses) else (node.part,) if isinstance(node, Negation) else ()
    for part in below:
        yield from parts_of(part)


def dotted(text: str) -> Dotted | None:
    """`1.14.5` or `v1.14.5` as (1, 14, 5), without trailing zeros so that 1.14 equals 1.14.0; None for other text."""
    if not _DOTTED.match(text):
        return None
    parts = [int(part) for part in text.removeprefix("v").split(".")]
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def ordered(kind: str, bound: Dotted) -> Accepts:
    """Accepts the dotted numbers on one side of `bound`."""

    def accepts(text: str) -> bool:
        number = dotted(text)
        return number is not None and bool(COMPARISONS[kind](number, bound))

    return accepts


def instant(text: str) -> float | None:
    """Epoch seconds of an ISO 8601 date or time, UTC where no zone is given; None for other text."""
    try:
        when = datetime.fromisoformat(text)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def one_of(values: Sequence[str]) -> Accepts:
    """Accepts these values."""
    return frozenset(values).__contains__
