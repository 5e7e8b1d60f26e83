"""The cluster query language, in full as Amazon ECS documents it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from argosy.placement import query_nodes as nodes
from argosy.placement.arrays import BoolArray
from argosy.placement.query_grammar import build
from argosy.placement.query_nodes import LiveTasks, Node
from argosy.placement.query_tokens import QuerySyntaxError
from argosy.placement.strategy import check_strategy
from argosy.placement.supply import Supply

__all__ = ["Query", "QuerySyntaxError", "check_constraints", "check_strategy", "matching", "parse"]

MAX_EXPRESSION_CHARS: Final = 4_096
MAX_DEPTH: Final = 64  # parentheses and `not` inside one another
MAX_CONSTRAINTS: Final = 10  # RunTask's own limit
DISTINCT_INSTANCE: Final = "distinctInstance"


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed expression.

    counts: the numbers that it compares runningTasksCount with. asks_groups: whether it names task:group.
    """

    expression: str
    root: Node
    counts: tuple[int, ...]
    asks_groups: bool

    @property
    def changes(self) -> bool:
        """Whether placing a task can change the answer."""
        return bool(self.counts) or self.asks_groups


@lru_cache(maxsize=4_096)
def parse(expression: str) -> Query:
    """The query. QuerySyntaxError(message, column, expected) when it is invalid or has over 4,096 characters."""
    if len(expression) > MAX_EXPRESSION_CHARS:
        message = f"the expression has {len(expression):,} characters; {MAX_EXPRESSION_CHARS:,} are allowed"
        raise QuerySyntaxError(message, MAX_EXPRESSION_CHARS + 1)
    if (column := _not_unicode(expression)) is not None:
        raise QuerySyntaxError("half of a surrogate pair is not text", column)
    if not expression.strip():
        raise QuerySyntaxError("the expression is empty", 1, "a comparison such as attribute:ecs.instance-type =~ c5.*")
    root = build(expression)
    if root.depth > MAX_DEPTH:
        raise QuerySyntaxError(f"parentheses and not are {root.depth} deep; {MAX_DEPTH} are allowed", 1)
    parts = list(nodes.parts_of(root))
    counts = tuple(sorted({part.count for part in parts if isinstance(part, nodes.TaskCountTest)}))
    asks_groups = any(isinstance(part, nodes.MembersTest) and part.subject == "task:group" for part in parts)
    return Query(expression, root, counts, asks_groups)


def _not_unicode(expression: str) -> int | None:
    """The column (from 1) of the first half of a surrogate pair, which RE2 and the store could not take."""
    try:
        expression.encode()
    except UnicodeEncodeError as fault:
        return fault.start + 1
    return None


def matching(query: Query, supply: Supply, live: LiveTasks | None = None) -> BoolArray:
    """(m,) bool, read only: the rows that the query accepts. live: running tasks; None = the supply as it is."""
    if query.changes:
        return query.root.rows(supply, live or supply)
    return supply.kept_mask(query.expression, lambda whole: query.root.rows(whole, whole))


def subjects(expression: str) -> frozenset[str]:
    """The property of an instance in an expression, such as `attribute:ecs.instance-type`. Raises QuerySyntaxError."""
    names = {nodes.TaskCountTest: "runningTasksCount", nodes.RegistrationTest: "registeredAt"}
    parts = [
        part for part in nodes.parts_of(parse(expression).root) if not isinstance(part, (nodes.Clauses, nodes.Negation))
    ]
    return frozenset(getattr(part, "subject", names.get(type(part), "")) for part in parts)


def is_attribute(subject: str) -> bool:
    """Whether it stays the same from an instance's start to its end."""
    return subject.startswith("attribute:")


def check_constraints(constraints: Sequence[str]) -> list[str]:
    """One sentence for each constraint that cannot be used; empty when all are fine."""
    faults = []
    if len(constraints) > MAX_CONSTRAINTS:
        faults.append(f"{len(constraints)} constraints are given; ECS accepts at most {MAX_CONSTRAINTS}.")
    for constraint in constraints:
        if constraint == DISTINCT_INSTANCE:
            continue
        try:
            parse(constraint)
        except QuerySyntaxError as error:
            faults.append(f"{constraint[:80]!r} is not a cluster query: {error}.")
    return faults
