"""A suggestion for a value that a field does not take: a few words at the end of a fault's message."""

from __future__ import annotations

import difflib
import json
import math
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Any

# Names that other tools have for our fields.
_ALIASES = {
    "accelerators": "gpus",
    "args": "command",
    "attempts": "retryStrategy",
    "cmd": "command",
    "constraints": "placement",
    "cores": "vcpus",
    "cpu": "vcpus",
    "cpus": "vcpus",
    "env": "environment",
    "environ": "environment",
    "envs": "environment",
    "mem": "memory",
    "ram": "memory",
    "retries": "retryStrategy",
    "retry": "retryStrategy",
}
# Where a spec says what other tools say at the top.
_PLACES = {
    "filemounts": "inputs",
    "jobrecovery": "retryStrategy",
    "numnodes": "array.size, for independent tasks",
    "usespot": "capacity.purchase: spot",
}
_PARTS = ("container", "resources", "array", "capacity", "retryStrategy", "timeout")
_SIZE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*([kmgt])i?b?", re.I | re.ASCII)
_DOLLARS = re.compile(r"(?:\$|USD)?\s*([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*(?:\$|USD)?", re.I | re.ASCII)
_UNLIKE_A_NAME = re.compile(r"[^a-z0-9-]+")
_SIZES = {"k": 1 / 1024, "m": 1.0, "g": 1024.0, "t": 1024.0 * 1024}  # MiB; GB and GiB mean the same, as Docker has it
_TIME_PART = re.compile(
    r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*(seconds?|secs?|s|minutes?|mins?|m|hours?|h|days?|d)\s*", re.I | re.ASCII
)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,9})?", re.ASCII)
_MODEL_AND_COUNT = re.compile(r"([A-Za-z0-9.-]{1,32}):([0-9.]{1,9})", re.ASCII)  # SkyPilot's `A10G:0.25`
_SHARE = "gpuShare: {memoryMib: 8000}"
_LONGEST = 300  # characters of a suggestion


def suggestion(path: Sequence[str | int], kind: str, given: Any, expected: str = "") -> str:
    """`; write 4096 (MiB)`; empty if nothing is near. kind: pydantic's name of the fault. expected: in quotes, the
    values of a field with a fixed list."""
    name = next((part for part in reversed(path) if isinstance(part, str)), "")
    found = _as_gpus(name, given)
    if not isinstance(given, str):
        return f"; {found}" if found else ""
    if kind == "literal_error":
        found = _near_value(given, re.findall(r"'([^']*)'", expected))
    elif kind in ("int_type", "float_type") and not found:
        found = next(_as_number(name, given.strip()), "")
    elif kind in ("list_type", "tuple_type"):
        found = _as_list(name, given)
    elif kind == "string_pattern_mismatch" and name == "name":
        found = _as_name(given)
    elif name == "timeout" and (seconds := _seconds(given)) is not None:
        found = f"write {{attemptDurationSeconds: {seconds:g}}}"
    return f"; {found}" if 0 < len(found) <= _LONGEST else ""


def _as_gpus(name: str, given: Any) -> str:
    """For the words that others have for GPUs and parts of one."""
    is_number = isinstance(given, (int, float)) and not isinstance(given, bool)
    if name == "gpuShare" and is_number:
        return f"write {{memoryMib: {given if given >= 1 else 8000}}}: it is MiB of one GPU's memory"
    if name != "gpus":
        return ""
    if is_number:
        return f"or write {_SHARE} for a part of any" if 0 < given < 1 else ""
    if not isinstance(given, str) or given.lower() == "all":
        return "write ALL" if isinstance(given, str) else ""
    named = _MODEL_AND_COUNT.fullmatch(given)
    is_part = named is not None and named[1] == "L4" and named[2] in ("0.125", "0.25", "0.5")
    count = (f"gpus: {named[2]}" if is_part or named[2].isdecimal() else _SHARE) if named else ""
    return f"write gpuModel: {named[1]} and {count}" if named else ""


def near_field(name: str, fields_at: Callable[[str], Sequence[str]], path: str = "") -> str:
    """The field that an unknown name may mean; empty if none is near. path: of the part that holds it. fields_at: the
    fields of a part."""
    plain, known = name.lower().replace("_", "").replace("-", ""), fields_at(path)
    alias = _ALIASES.get(plain, name)
    if alias in known:
        return alias
    if path == "" and plain in _PLACES:
        return _PLACES[plain]
    part = next((each for each in _PARTS if path == "" and alias in fields_at(each)), "")
    near = [f"{part}.{alias}"] if part else difflib.get_close_matches(name[:80], known, n=1)
    return near[0] if near else ""


def _as_name(given: str) -> str:
    """`My_Job` -> `write my-job`."""
    plain = _UNLIKE_A_NAME.sub("-", given.lower()).strip("-")[:63].rstrip("-")
    return f"write {plain}" if plain[:1].isalpha() else ""


def _near_value(given: str, values: Sequence[str]) -> str:
    plain = {_letters(each): each for each in values}
    near = difflib.get_close_matches(_letters(given[:80]), [*plain], n=1)
    return f"did you mean {plain[near[0]]}?" if near else ""


def _letters(text: str) -> str:
    return "".join(each for each in text.lower() if each.isalnum())


def _as_number(name: str, given: str) -> Iterator[str]:
    if _NUMBER.fullmatch(given):
        yield f"write {given} without quotes"
    elif name.endswith("Usd") and (dollars := _DOLLARS.fullmatch(given)):
        yield f"write {dollars[1]} (US dollars)"
    size = _SIZE.fullmatch(given)
    if size and name in ("memory", "memoryMib", "gpuMemoryMib"):
        yield f"write {math.ceil(float(size[1]) * _SIZES[size[2].lower()])} (MiB)"
    if size and name.endswith("GiB"):
        yield f"write {math.ceil(float(size[1]) * _SIZES[size[2].lower()] / 1024)} (GiB)"
    if name.endswith("Seconds") and (seconds := _seconds(given)) is not None:
        yield f"write {seconds:g} (seconds)"


def _seconds(text: str) -> float | None:
    """`30m`, `1h30m`, `2 days`; None for any other text."""
    total, place = 0.0, 0
    while place < len(text):
        part = _TIME_PART.match(text, place)
        if part is None:
            return None
        total += float(part[1]) * _SECONDS[part[2][0].lower()]
        place = part.end()
    return total if place else None


def _as_list(name: str, given: str) -> str:
    """A command in words as a shell takes them; any other text as the only entry."""
    if name != "command":
        return f"write {json.dumps([given], ensure_ascii=False)}"
    try:
        words = shlex.split(given)
    except ValueError:  # quotes that do not end
        return ""
    return f"write {json.dumps(words, ensure_ascii=False)}" if words else ""
