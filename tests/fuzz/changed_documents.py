"""Small changes to a JSON document, most of which only a careful reader withstands."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any


def change_once(document: Any, words: Sequence[str], chance: random.Random) -> None:
    """One member of the document is removed, renamed or replaced."""
    holder = chance.choice(_holders(document))
    keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    if not keys or chance.random() < 0.1:
        _put(holder, chance.choice(words), _value(document, words, chance))
        return
    key = chance.choice(keys)
    what = chance.random()
    if what < 0.2:
        del holder[key]
    elif what < 0.3 and isinstance(holder, dict):
        holder[chance.choice(words)] = holder.pop(key)
    elif what < 0.5 and isinstance(holder[key], str):
        text = holder[key]
        at = chance.randint(0, len(text))
        holder[key] = text[:at] + chance.choice(words) + text[at + chance.randint(0, 3) :]
    else:
        holder[key] = _value(document, words, chance)


def _holders(document: Any) -> list[Any]:
    """Every object and list of the document, itself included."""
    found, pending = [], [document]
    while pending:
        each = pending.pop()
        if isinstance(each, (dict, list)):
            found.append(each)
            pending.extend(each.values() if isinstance(each, dict) else each)
    return found


def _put(holder: Any, key: str, value: Any) -> None:
    if isinstance(holder, dict):
        holder[key] = value
    else:
        holder.append(value)


def _value(document: Any, words: Sequence[str], chance: random.Random) -> Any:
    """A value that may occur anywhere in JSON: odd numbers, words, a copy of another part, something nested."""
    numbers = [0, -1, 1, 2**31, 2**53, 2**63, 2**70, -0.0, 1e-9, 1e308, float("inf"), float("nan"), True, False, None]
    kinds: list[Callable[[], Any]] = [
        lambda: chance.choice(numbers),
        lambda: chance.choice(words),
        lambda: json.loads(json.dumps(chance.choice(_holders(document)))),
        lambda: json.loads("[" * (depth := chance.choice([1, 3, 30, 500])) + "]" * depth),
        dict,
    ]
    return chance.choice(kinds)()
