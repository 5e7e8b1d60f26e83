"""Changes since a reader's last request: the journal's lines after a place, in pages, each line once.

The journal is read from the table alone. Lines after the reader's place may have expired. The reply then says so, and
the reader lists everything again and continues from there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from argosy.api.requests import ListChanges
from argosy.api.views import iso
from argosy.model.damage import FAULTS
from argosy.model.journal.items import ALL, CHANGES, KEPT_S, JournalItem, Place, after_version, item_from
from argosy.model.journal.lines import Line, LineType, line
from argosy.model.stored import documents
from argosy.ports import Store

JSON = dict[str, Any]
ITEMS_AT_ONCE = 50
MOST_ITEMS = 500  # that one request reads: a filter without a match must not read three days of lines
MOST_BYTES = 2_000_000  # of a reply; Lambda's may have 6 MB
POLL_S = 1.0
_TIMES = ("until",)


class ChangesExpired(Exception):
    """Lines after the place have expired. `oldest`: the place after which all lines are kept; None = no line is."""

    def __init__(self, since: Place, oldest: Place | None) -> None:
        super().__init__(f"changes after {since.to_text()} are no longer kept: they expire after 72 hours")
        self.oldest = oldest


@dataclass(slots=True)
class _Page:
    changes: list[JSON]
    place: Place
    is_full: bool


def list_changes(
    store: Store, request: ListChanges, now: Callable[[], float], pause: Callable[[float], None] | None
) -> JSON:
    """The reply's body. Raises ChangesExpired. pause: waits that many seconds for changes; None = no waiting."""
    began_at = now()
    place = _start(store, request, began_at)
    while True:
        page = _page(store, request, place, now())
        if page.changes or page.is_full or pause is None or now() + POLL_S > began_at + request.wait_seconds:
            break
        place = page.place
        pause(POLL_S)
    oldest, newest = _oldest(store, now()), _newest(store)
    return {
        "changes": page.changes,
        "next": page.place.to_text(),
        "oldest": None if oldest is None else oldest.to_text(),
        "newest": None if newest is None else str(newest),
    }


def _start(store: Store, request: ListChanges, now: float) -> Place:
    """Where to begin: at `since`, or the first line that is young enough, or the oldest."""
    if request.since is not None:
        place = Place.from_text(request.since)
        assert place is not None, "the token of a different query"
        return place
    if request.since_seconds is not None:
        first = _first_after(store, now - min(request.since_seconds, KEPT_S), now)
        return Place(_newest_or_committed(store), ALL) if first is None else Place(first.previous, ALL)
    return _oldest(store, now) or Place(_newest_or_committed(store), ALL)


def _page(store: Store, request: ListChanges, place: Place, now: float) -> _Page:
    page, size, looked_at = _Page([], place, is_full=False), 0, 0
    for item in _items(store, place, now):
        for number, each in enumerate(item.lines, start=item.first):
            if item.version == place.version and number <= place.line:
                continue
            if _is_wanted(each, request):
                change = _change(item, number, each)
                size += len(json.dumps(change))
                page.is_full = len(page.changes) == request.max_results or (bool(page.changes) and size > MOST_BYTES)
                if page.is_full:
                    return page
                page.changes.append(change)
            page.place = Place(item.version, number)
        looked_at += 1
        page.is_full = looked_at == MOST_ITEMS
        if page.is_full:
            return page
    page.place = Place(page.place.version, ALL)
    return page


def _items(store: Store, place: Place, now: float) -> Iterator[JournalItem]:
    """The stored items that may have lines after the place. Raises ChangesExpired when others had some."""
    after: str | None = after_version(place.version if place.line >= ALL else place.version - 1)
    is_first = True
    while after is not None:
        rows, after = store.page(CHANGES, ITEMS_AT_ONCE, after, oldest_first=True)
        for key, body in rows:
            item = _read(key, body, now)
            if not item.is_kept(now):
                continue
            if is_first and _leaves_out(place, item):
                raise ChangesExpired(place, _oldest(store, now))
            is_first = False
            yield item
    newest = _newest_or_committed(store) if is_first else 0
    if is_first and (place.version < newest or (place.version == newest and place.line < ALL)):
        raise ChangesExpired(place, None)


def _leaves_out(place: Place, first: JournalItem) -> bool:
    """Whether lines between the place and the first item are missing."""
    if first.version == place.version and place.line < ALL:
        return first.first > place.line + 1
    return first.previous > place.version or (first.previous == place.version and place.line < ALL)


def _read(key: str, body: bytes, now: float) -> JournalItem:
    try:
        return item_from(key, body)
    except FAULTS:
        version = int(key.partition("#")[0])
        lost = line(LineType.STATE_DAMAGED, reason=f"the lines of version {version} cannot be read")
        return JournalItem(version, now, previous=0, first=1, lines=[lost])


def _is_wanted(each: Line, request: ListChanges) -> bool:
    kind = str(each["type"])
    if request.types and kind not in request.types and kind.partition(".")[0] not in request.types:
        return False
    if request.run_id is not None and each.get("runId") != request.run_id:
        return False
    return request.instance is None or each.get("instance") == request.instance


def _change(item: JournalItem, number: int, each: Line) -> JSON:
    times = {name: iso(each[name]) for name in _TIMES if name in each}
    return {"sequence": Place(item.version, number).to_text(), "at": iso(item.at), **each, **times}


def _oldest(store: Store, now: float) -> Place | None:
    """After it every line is kept; None when none is."""
    first = _first_after(store, now - KEPT_S, now)
    return None if first is None else Place(first.previous, ALL)


def _first_after(store: Store, at: float, now: float) -> JournalItem | None:
    """The first item that was committed after a time. Commits are found by their version, so the time is bisected."""
    first, last = _next(store, None, now), _newest(store)
    if first is None or last is None or first.at > at:
        return first
    bad, answer, good = first.version, _next(store, after_version(last - 1), now), last - 1  # the first after `good` is
    if answer is None or answer.at <= at:
        return None
    while bad < good:
        middle = (bad + good) // 2
        found = _next(store, after_version(middle), now)
        if found is None or found.at > at:
            answer, good = found, middle
        else:
            bad = found.version
    return answer


def _next(store: Store, after: str | None, now: float) -> JournalItem | None:
    rows, _ = store.page(CHANGES, 1, after, oldest_first=True)
    return _read(*rows[0], now) if rows else None


def _newest(store: Store) -> int | None:
    """The version of the last item that is stored, expired or not."""
    rows, _ = store.page(CHANGES, 1)
    return int(rows[0][0].partition("#")[0]) if rows else None


def _newest_or_committed(store: Store) -> int:
    """The last version with lines, stored or expired."""
    newest = _newest(store)
    if newest is not None:
        return newest
    root = store.read((documents.STATE, documents.ROOT))
    return int(documents.decode(root).get("lines_at", store.version())) if root else 0
