"""EC2's `Filters`: a filter's values are alternatives, all filters must hold, * and ? are wild."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from argosy.emulator.operations import Refusal
from argosy.emulator.paging import page_of_values

JSON = dict[str, Any]
R = TypeVar("R")
Read = Callable[[R], Iterable[str]]


def passing(
    records: Iterable[R],
    filters: Sequence[JSON] | None,
    read: Mapping[str, Read[R]],
    tags: Callable[[R], Mapping[str, str]] | None = None,
) -> list[R]:
    """The records that pass. `read` returns a record's values for a filter's name; with `tags`, tag:KEY and
    tag-key are known too. Raises Refusal for a filter that the operation does not document."""
    checks = [_check(each, read, tags) for each in filters or ()]
    return [record for record in records if all(check(record) for check in checks)]


def paged(request: JSON, member: str, values: list[Any], smallest: int = 1, largest: int = 1_000) -> JSON:
    """A reply with one page of `values`. Raises Refusal."""
    wanted = request.get("MaxResults")
    if wanted is not None and not smallest <= wanted <= largest:
        raise Refusal(
            "InvalidParameterValue",
            f"Value ( {wanted} ) for parameter maxResults is invalid. Expecting {smallest} to {largest}.",
        )
    try:
        found, token = page_of_values(values, request.get("NextToken"), wanted or largest)
    except Refusal as refused:
        raise Refusal("InvalidNextToken", "The specified nextToken is invalid.") from refused
    return {member: found, "NextToken": token} if token else {member: found}


def _check(
    each: JSON, read: Mapping[str, Read[R]], tags: Callable[[R], Mapping[str, str]] | None
) -> Callable[[R], bool]:
    name, patterns = str(each.get("Name") or ""), [str(value) for value in each.get("Values") or ()]
    if tags is not None and name.startswith("tag:"):
        key = name.removeprefix("tag:")
        return lambda record: key in tags(record) and _matches([tags(record)[key]], patterns)
    if tags is not None and name == "tag-key":
        return lambda record: _matches(tags(record), patterns)
    if name not in read:
        raise Refusal("InvalidParameterValue", f"The filter '{name}' is invalid")
    values = read[name]
    return lambda record: _matches(values(record), patterns)


def _matches(values: Iterable[str], patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(value, pattern.replace("[", "[[]")) for value in values for pattern in patterns)
