"""Which limits are there on the page of the queues, of one queue and of the deployment, and who uses how much?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from argosy.figures import svg
from argosy.figures.document import Cell, Figure, Table
from argosy.figures.markup import joined
from argosy.figures.numbers import money

View = Mapping[str, Any]
_UNITS = {"vcpus": "vCPUs", "gpus": "GPUs", "instances": "instances"}
_NAMED = 6  # queues that have a colour of their own: those that use most
_OTHERS = "other queues", "7"
_NOBODY = "nobody", "idle"
_ALL_BUT = 0.999  # of a cap: what is left is less than any task needs


def caps(found: Sequence[View]) -> Figure:
    """What each queue uses of its caps and of its guarantee."""
    key, title = "caps", "Caps and guarantees"
    rows = [row for queue in found for row in _of_queue(queue)]
    if not rows:
        return Figure(key, title, empty="No queue has a cap or a guarantee.")
    heads = ("Queue", "What", ">Used", ">Of", "", "")
    return Figure(key, title, table=Table(heads, rows, stacks=True), wide=True)


def _of_queue(queue: View) -> Iterator[tuple[Cell, ...]]:
    for unit, most in (queue["cap"] or {}).items():
        is_full = queue["used"][unit] >= _ALL_BUT * most
        yield _of_amount(queue, "cap", unit, most, "lost" if is_full else "plain", "at its cap" if is_full else "")
    for unit, amount in (queue["guarantee"] or {}).items():
        yield _of_amount(queue, "guarantee", unit, amount, "useful", "" if queue["lend"] else "not lent")


def _of_amount(queue: View, what: str, unit: str, most: float, kind: str, said: str) -> tuple[Cell, ...]:
    used = queue["used"][unit]
    bar = svg.track([(used / most if most else 0.0, kind)])
    return queue["name"], what, _amount(unit, used), _amount(unit, most, named=True), bar, said


def _amount(unit: str, amount: float, *, named: bool = False) -> str:
    if unit == "usdPerHour":
        return money(amount) + (" an hour" if named else "")
    number = f"{amount:,.2f}".rstrip("0").rstrip(".")
    return f"{number} {_UNITS[unit]}" if named else number


def deployment(view: View, found: Sequence[View]) -> Figure:
    """Dollars an hour and vCPU quotas: who uses how much of each."""
    kinds = _kinds(view, found)
    usd = view["usdPerHour"]
    spent = {each["name"]: each["used"]["usdPerHour"] for each in found}
    most = "no limit" if usd["limit"] is None else _amount("usdPerHour", usd["limit"], named=True)
    whole = usd["used"] if usd["limit"] is None else usd["limit"]
    rows: list[tuple[Cell, ...]] = [
        ("Dollars", money(usd["used"]), most, *_shares("usdPerHour", usd["used"], whole, spent, kinds))
    ]
    for each in view.get("quotas", ()):
        name = f"vCPU quota of {each['purchase']} {each['family']} in {each['region']}"
        taken, most = each["vcpus"] - each["left"], _amount("vcpus", each["vcpus"], named=True)
        rows.append((name, _amount("vcpus", taken), most, *_shares("vcpus", taken, each["vcpus"], each["used"], kinds)))
    note = "Used: what all instances together take. Of that each queue has what its tasks reserve; the rest nobody has."
    heads = ("Limit", ">Used", ">Of", "", "By whom")
    return Figure("deployment", "Limits that all share", note=note, table=Table(heads, rows, stacks=True), wide=True)


def _kinds(view: View, found: Sequence[View]) -> dict[str, str]:
    """The colours of the queues that use most, the same in every bar."""
    whole = view["usdPerHour"]["used"] or 1.0
    most = {each["name"]: each["used"]["usdPerHour"] / whole for each in found}
    for each in view.get("quotas", ()):
        for name, vcpus in each["used"].items():
            most[name] = max(most.get(name, 0.0), vcpus / max(each["vcpus"], 1))
    named = sorted((name for name in most if most[name]), key=lambda name: (-most[name], name))[:_NAMED]
    return {name: str(place) for place, name in enumerate(named)}


def _shares(
    unit: str, taken: float, whole: float, by_queue: Mapping[str, float], kinds: Mapping[str, str]
) -> tuple[Cell, Cell]:
    """A bar with a part for each queue, and a legend for it. whole: what the bar is at its full length."""
    named = [(name, kind, by_queue.get(name, 0.0)) for name, kind in kinds.items()]
    others = sum(amount for name, amount in by_queue.items() if name not in kinds)
    idle = taken - sum(by_queue.values())
    parts = [*named, (*_OTHERS, others), (*_NOBODY, idle)]
    parts = [each for each in parts if each[2] > 1e-6]
    layers = [svg.Layer(name, kind, np.empty(0), _amount(unit, amount)) for name, kind, amount in parts]
    bar = svg.track([(amount / whole if whole else 0.0, kind) for _, kind, amount in parts])
    return bar, svg.legend(layers) if layers else joined("-")
