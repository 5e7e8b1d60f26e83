"""Which aliases did the functions have in the local mode before this one?"""

from __future__ import annotations

import json
from typing import Any

from argosy.local.keeping.database import Database
from argosy.local.lambdas.aliases import Aliases, Named


def keep_aliases(aliases: Aliases, database: Database) -> None:
    """Make those again that were kept, and keep what changes from now on."""
    for function, name, text in database.rows("SELECT function, name, about FROM aliases"):
        aliases.known[function, name] = json.loads(text)

    def store(named: Named, about: dict[str, Any] | None) -> None:
        if about is None:
            database.write([("DELETE FROM aliases WHERE function = ? AND name = ?", named)])
        else:
            database.write([("INSERT OR REPLACE INTO aliases VALUES (?, ?, ?)", (*named, json.dumps(about)))])

    aliases.on_change = store
