"""Figures for people, with their units. JSON output never goes through here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.client.progress import TERMINAL, ProgressRate
from argosy.figures.numbers import clock, counted, duration, instant, money, saved, share, size, start_up

__all__ = ["clock", "counted", "duration", "instant", "money", "saved", "share", "size", "start_up"]


def deadline(view: Mapping[str, Any], now: float | None = None) -> str:
    """`2026-11-21 18:00:00 UTC, in 1h 12m`, or `..., missed: the run goes on`; empty without one."""
    if not view.get("deadline"):
        return ""
    at, ended = instant(view["deadline"]), view["status"] in TERMINAL
    text = clock(view["deadline"])
    if view.get("late"):
        return f"{text}, missed" + ("" if ended else ": the run continues")
    left = 0.0 if at is None or now is None else at.timestamp() - now
    return f"{text}, met" if ended else text + (f", in {duration(left)}" if left > 0 else "")


def purchase(view: Mapping[str, Any]) -> str:
    """`on-demand since 12:03 UTC: 14 min of slack left`; empty while there is nothing to say."""
    return (view.get("purchase") or {}).get("reason") or ""


def seconds_between(start: str | None, end: str | None, now: float) -> float | None:
    """From `start` to `end`, or to `now` (epoch seconds) while there is no end; None before the start."""
    begun, ended = instant(start), instant(end)
    if begun is None:
        return None
    return max(0.0, (ended.timestamp() if ended else now) - begun.timestamp())


def rate(progress: ProgressRate) -> str:
    """`2.4 tasks/s, ETA 45 s`; empty when nothing can be said."""
    if progress.left_s is None:
        return ""
    speed = f"{progress.per_s:.1f} tasks/s" if progress.per_s >= 1 else f"{60 * progress.per_s:.1f} tasks/min"
    return f"{speed}, ETA {duration(progress.left_s)}"


def cost(view: Mapping[str, Any]) -> str:
    """`$0.00213 (on-demand $0.00640, 67 % less)`."""
    spot, on_demand = float(view["costUsd"]), float(view["onDemandCostUsd"])
    less = saved(spot, on_demand)
    return f"{money(spot)} (on-demand {money(on_demand)}{', ' + less if less else ''})"


def useful(view: Mapping[str, Any]) -> str:
    """`, 71 % useful`: the share of the cost that went into successful attempts; empty while it is unknown."""
    spent, good = float(view["costUsd"]), view.get("usefulUsd")
    return f", {share(good, spent)} useful" if spent and good is not None else ""


def started_up(view: Mapping[str, Any]) -> str:
    """`boot 90 s, pull 81 s, start 2 s: $0.12 of the cost`, as a mean of its instances and attempts."""
    told = view.get("startUp")
    return f"{start_up(told)}: {money(told['usd'])} of the cost" if told and told["starts"] else ""


def hours(count: float) -> str:
    """`0.013 instance-hours`, `12.5 instance-hours`, `1,200 instance-hours`."""
    shown = f"{count:,.0f}" if count >= 100 else f"{count:.1f}" if count >= 10 else f"{count:.3f}"
    return f"{shown} instance-hours"


def caps(view: Mapping[str, Any]) -> str:
    """`$4.12 of the $5.00 budget spent, $0.350 reserved; $0.850 an hour, at most $2.00`; empty without caps."""
    money_of = view.get("budget")
    if not money_of:
        return ""
    parts = []
    if money_of["budgetUsd"] is not None:
        reserved = f", {money(money_of['reservedUsd'])} reserved" if money_of["reservedUsd"] else ""
        parts.append(f"{money(money_of['spentUsd'])} of the {money(money_of['budgetUsd'])} budget spent{reserved}")
    if money_of["maxHourlyCost"] is not None and view["status"] not in TERMINAL:
        parts.append(f"{money(money_of['usdPerHour'])} an hour, at most {money(money_of['maxHourlyCost'])}")
    return "; ".join(parts)


def bar(share: float, width: int = 10) -> str:
    """`█████░░░░░`; any use at all shows at least one block."""
    filled = min(width, max(1 if share > 0 else 0, round(share * width)))
    return "█" * filled + "░" * (width - filled)


def use(pair: Mapping[str, Any], unit: str = "") -> str:
    """`█████░░░░░ 4/8`; empty when the instance has none of it."""
    total, used = pair["total"], pair["used"]
    if not total:
        return "-"
    return f"{bar(used / total)} {_short(used)}/{_short(total)}{unit}"


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
