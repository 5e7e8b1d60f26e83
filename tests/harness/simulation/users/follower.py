"""Does a reader of the journal get every line once, although it dies repeatedly?

It reads through the api's own code, a page now and then. It records the lines that it has shown, and is killed at any
line; then it continues from the last one that it has shown.
"""

from __future__ import annotations

from typing import Any

from argosy.api.history.changes import list_changes
from argosy.api.requests import ListChanges
from argosy.ports import Store
from tests.harness.simulation.world.world import World

DIES, READS = 0.1, 0.3  # chance at each line; chance at each step of the trial
MOST_AT_ONCE = 20  # lines of a page


class Follower:
    """The reader of one trial. `seen`: the lines that it has shown, as the api gives them."""

    def __init__(self, store: Store, world: World) -> None:
        self._store, self._world = store, world
        self._since = "0"
        self._number = 0
        self.seen: list[dict[str, Any]] = []
        self.deaths = 0

    def step(self) -> None:
        """Now and then it reads a page."""
        if self._drawn("reads") < READS:
            self._read()

    def read_to_the_end(self) -> None:
        before = None
        while before != self._since:
            before = self._since
            self._read()

    def _read(self) -> None:
        most = 1 + int(MOST_AT_ONCE * self._drawn("page"))
        request = ListChanges.model_validate({"action": "ListChanges", "since": self._since, "maxResults": most})
        page = list_changes(self._store, request, self._world.clock, None)
        for change in page["changes"]:
            self.seen.append(change)
            self._since = change["sequence"]
            if self._drawn("dies") < DIES:
                self.deaths += 1
                return
        self._since = page["next"]

    def _drawn(self, what: str) -> float:
        self._number += 1
        return self._world.share("follower", what, self._number)
