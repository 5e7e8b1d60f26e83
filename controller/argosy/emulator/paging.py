"""Pages of a listing. A token names the last item seen: pages never repeat or skip a remaining item."""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Protocol, TypeVar

from argosy.emulator.operations import Refusal

MAX_PAGE = 100  # of every List* operation of ECS [model]


class HasOrdinal(Protocol):
    @property
    def ordinal(self) -> int:
        """Position in the order of creation; unique within a listing."""


T = TypeVar("T", bound=HasOrdinal)


def page(items: Iterable[T], accepts: Callable[[T], bool], token: str | None, limit: int) -> tuple[list[T], str | None]:
    """At most `limit` accepted items after `token`, and the next token if more follow. `items` in ascending ordinal.

    Raises Refusal(InvalidParameterException) for a token that this module did not make.
    """
    ordered = list(items)
    start = bisect_right(ordered, _after(token), key=lambda item: item.ordinal) if token else 0
    found = list(islice(filter(accepts, islice(ordered, start, None)), limit + 1))
    if len(found) <= limit:
        return found, None
    return found[:limit], _token(found[limit - 1].ordinal)


def page_of_values(values: list[Any], token: str | None, limit: int) -> tuple[list[Any], str | None]:
    """The same for values without an ordinal, by position: for listings that do not change between pages."""
    start = _after(token) if token else 0
    end = start + limit
    return values[start:end], _token(end) if end < len(values) else None


def limit_of(max_results: Any, allowed: int = MAX_PAGE) -> int:
    """The page size asked for; the largest when none is. Raises Refusal."""
    if max_results is None:
        return allowed
    if not 1 <= int(max_results) <= allowed:
        raise Refusal("InvalidParameterException", f"maxResults must be between 1 and {allowed}.")
    return int(max_results)


def _token(ordinal: int) -> str:
    return base64.urlsafe_b64encode(f"after:{ordinal}".encode()).decode()


def _after(token: str) -> int:
    try:
        word, _, number = base64.urlsafe_b64decode(token.encode()).decode().partition(":")
        if word == "after":
            return int(number)
    except (binascii.Error, UnicodeError, ValueError):
        pass
    raise Refusal("InvalidParameterException", "Invalid token.")
