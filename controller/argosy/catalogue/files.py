"""The catalogue's figures: the JSON files next to this module.

Each ships with a date and a source, and `argosy catalogue refresh` rewrites it from AWS. `overrides.json`, which is not
shipped and which a refresh does not touch, takes precedence: {"types": {NAME: {"registeredMemoryMib": 3500}}, "prices":
{REGION: {NAME: [ON_DEMAND, TYPICAL_SPOT]}}}. A deployment has the files of the checkout that it was made from. The
variable ARGOSY_CATALOGUE names a folder whose files are read instead, to try them out locally.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

FILES = ("instance_types.json", "prices.json", "offered.json", "interruption_bands.json", "overheads.json")
OVERRIDES = "overrides.json"
TYPE_FIELDS = frozenset({"vcpus", "memoryMib", "gpus", "gpuModel", "gpuMemoryMib", "architecture"})
_OPTIONAL_FIELDS = frozenset({"registeredMemoryMib"})


@cache
def document(name: str) -> Any:
    """A file with the owner's overrides. Raises ValueError for overrides that cannot be used."""
    content = json.loads(_path(name).read_text(encoding="utf-8"))
    own = _path(OVERRIDES)
    return overridden(name, content, json.loads(own.read_text(encoding="utf-8"))) if own.is_file() else content


def shipped_folder() -> Path:
    """The folder of this checkout, from which the functions' zip is made."""
    return Path(__file__).parent


def _path(name: str) -> Path:
    other = Path(os.environ.get("ARGOSY_CATALOGUE") or shipped_folder()) / name
    return other if other.is_file() else shipped_folder() / name


def overridden(name: str, shipped: Mapping[str, Any], own: Mapping[str, Any]) -> Mapping[str, Any]:
    """The file `name` with the owner's overrides. Raises ValueError with every fault."""
    if name == "instance_types.json":
        types = dict(shipped["types"])
        types |= {each: {**types.get(each, {}), **row} for each, row in own.get("types", {}).items()}
        if faults := list(_type_faults(own, types)):
            raise ValueError(f"{OVERRIDES}: {'; '.join(faults)}")
        return {**shipped, "types": types}
    if name == "prices.json":
        if faults := list(_price_faults(own)):
            raise ValueError(f"{OVERRIDES}: {'; '.join(faults)}")
        regions = {region: {**shipped["regions"].get(region, {}), **rows} for region, rows in _prices(own).items()}
        return {**shipped, "regions": {**shipped["regions"], **regions}}
    return shipped


def _prices(own: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    found: Mapping[str, Mapping[str, Any]] = own.get("prices", {})
    return found


def _type_faults(own: Mapping[str, Any], types: Mapping[str, Any]) -> Iterator[str]:
    for part in own.keys() - {"types", "prices"}:
        yield f"{part} is unknown: only types and prices can be overridden"
    for name, row in own.get("types", {}).items():
        if unknown := row.keys() - TYPE_FIELDS - _OPTIONAL_FIELDS:
            yield f"types.{name} has unknown fields: {', '.join(sorted(unknown))}"
        if missing := TYPE_FIELDS - types[name].keys():
            yield f"types.{name} is new and lacks {', '.join(sorted(missing))}"


def _price_faults(own: Mapping[str, Any]) -> Iterator[str]:
    for region, rows in _prices(own).items():
        for name, pair in rows.items():
            numbers = isinstance(pair, list) and len(pair) == 2
            if not numbers or not (_is_price(pair[0]) and (pair[1] is None or _is_price(pair[1]))):
                yield f"prices.{region}.{name} must be two prices above 0: [on-demand, typical spot or null]"


def _is_price(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e6


def text_of(name: str, content: Mapping[str, Any]) -> str:
    """The file's text, with a line per type or Region, so that a diff shows what has changed."""
    rows_at = 3 if name == "prices.json" else 2
    return "\n".join(_lines(content, 1, rows_at)) + "\n"


def _lines(content: Mapping[str, Any], depth: int, rows_at: int) -> Iterator[str]:
    pad, last = " " * depth, len(content) - 1
    yield "{"
    for number, (key, value) in enumerate(content.items()):
        end = "" if number == last else ","
        if isinstance(value, dict) and value and depth < rows_at:
            first, *rest = _lines(value, depth + 1, rows_at)
            yield f"{pad}{json.dumps(key)}: {first}"
            yield from rest[:-1]
            yield f"{pad}{rest[-1].strip()}{end}"
        else:
            yield f"{pad}{json.dumps(key)}: {json.dumps(value)}{end}"
    yield "}"
