"""Where do environments lie in the store, and how are they read?"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping

from argosy.model.damage import Damage, tried
from argosy.model.environments import Environment

ENVIRONMENT = "ENVIRONMENT#"  # of the partition STATE; and its name. null once it is deleted


def environment_from(body: bytes) -> Environment | None:
    """None for one that is deleted. Raises one of `damage.FAULTS`."""
    record = json.loads(zlib.decompress(body))
    return None if record is None else Environment.from_json(record)


def environments_in(items: Mapping[str, bytes]) -> Iterator[Environment | Damage]:
    """Of the partition STATE, those that there are. One that cannot be read is to be left out: its tasks go on, and
    nothing is changed about them."""
    for key in sorted(items):
        if key.startswith(ENVIRONMENT):
            body, name = items[key], f"environment {key.removeprefix(ENVIRONMENT)}"
            found = tried(name, lambda body=body: environment_from(body))  # type: ignore[misc]
            if found is not None:
                yield found
