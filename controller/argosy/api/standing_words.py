"""How is a user told where a run that waits stands? As figures for programs, and as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from argosy.api.standing import SHOWN, Help, PlaceInLine
from argosy.model.wording import duration
from argosy.scheduler.queue_views import QuotaUse

HOUR_S, DAY_S = 3600.0, 86_400.0
ASSUMED = "if nothing else is submitted and tasks take as long as before"


def not_in_line(why: str) -> dict[str, Any]:
    """Of a run that has no turn to wait for."""
    return {"inLine": False, "whyUnknown": why, "startsIn": None, "sentences": [f"It has no place in line: {why}."]}


def standing_view(told: PlaceInLine, has_started: bool) -> dict[str, Any]:
    """Seconds, shares of 0..1; what is not known is null. has_started: whether a task of it has started already."""
    return {
        "inLine": True,
        "queue": told.queue,
        "owner": told.owner or None,
        "queuePlace": told.queue_place,
        "queues": told.queues,
        "runPlace": told.run_place,
        "runs": told.runs,
        "use": round(told.use, 4),
        "share": round(told.share, 4),
        "weightFactor": round(told.factor, 4),
        "limit": told.limit or None,
        "maxInstancesReached": told.most_instances or None,
        "quotasReached": [_quota_view(each) for each in told.quotas],
        "usedBy": [{"queue": name, "use": round(use, 4)} for name, use in told.used_by],
        "tasksAhead": told.ahead,
        "runsAhead": told.runs_ahead,
        "endsPerMinute": None if told.ends_per_minute is None else round(told.ends_per_minute, 2),
        "startsIn": _range_view(told),
        "whyUnknown": told.why_unknown or None,
        "late": _late_view(told),
        "wouldHelp": [_help_view(each) for each in told.helps],
        "sentences": list(sentences(told, has_started)),
    }


def _range_view(told: PlaceInLine) -> dict[str, int] | None:
    if told.starts_in_s is None:
        return None
    return {"seconds": round(told.starts_in_s), "lowSeconds": round(told.low_s), "highSeconds": round(told.high_s)}


def _quota_view(each: QuotaUse) -> Mapping[str, Any]:
    used_by = [{"queue": name, "use": round(use, 4)} for name, use in _parts(each)]
    return {
        **dict(zip(("region", "purchase", "family"), each.key, strict=True)),
        "vcpus": each.vcpus,
        "usedBy": used_by,
    }


def _parts(quota: QuotaUse) -> list[tuple[str, float]]:
    """Which part of it each queue uses."""
    return [(name, vcpus / max(1, quota.vcpus)) for name, vcpus in quota.used.items()]


def _late_view(told: PlaceInLine) -> dict[str, Any] | None:
    if told.lateness is None:
        return None
    its = told.lateness
    return {"seconds": round(its.late_s), "queueWeight": its.weight, "enoughWeight": its.enough}


def _help_view(each: Help) -> Mapping[str, Any]:
    return {"what": each.what, "value": each.value, "now": each.now, "startsInSeconds": round(each.starts_in_s)}


def sentences(told: PlaceInLine, has_started: bool) -> Iterator[str]:
    """Where it stands, what is used up and by whom, when its next task starts, and what would start it earlier."""
    yield from _place(told)
    yield from _limit(told)
    start = "next start" if has_started else "first start"
    if told.starts_in_s is None:
        yield f"When its {start} comes is not known: {told.why_unknown}."
        return
    when = f"{start} {_about(told)}, {ASSUMED}."
    yield f"{_first(told)}: {when}"
    yield from _late(told)
    for each in told.helps:
        yield _help(each)


def _late(told: PlaceInLine) -> Iterator[str]:
    if told.lateness is None:
        return
    by = duration(told.lateness.late_s)
    if told.lateness.enough is None:
        yield f"As things stand it ends about {by} after its deadline."
        return
    now, enough = told.lateness.weight, told.lateness.enough
    yield f"The share of {told.queue} makes it late by about {by}: with weight {enough} (now {now}) it would do."


def _place(told: PlaceInLine) -> Iterator[str]:
    whose = told.queue + (f"/{told.owner}" if told.owner else "")
    what = told.limit or "largest resource"
    if told.queues > 1:
        uses = f"{whose} uses {_percent(told.use)} of the cluster's {what}; by weight it is due {_percent(told.share)}"
        yield f"{_ordinal(told.queue_place)} of {told.queues} queues: {uses}."
        if told.factor != 1:
            than = "more" if told.factor < 1 else "less"
            yield f"{whose} used {than} lately than it is due, so its weight counts {told.factor:.3g} times."
    if told.runs > 1:
        yield f"{_ordinal(told.run_place)} of {told.runs} runs that wait in {whose}."


def _limit(told: PlaceInLine) -> Iterator[str]:
    for quota in told.quotas:
        users = ", ".join(f"{name} has {_percent(use)}" for name, use in _parts(quota)[:SHOWN])
        yield f"{quota.name[0].upper()}{quota.name[1:]} is reached{': ' + users if users else ''}."
    reached = f"maxInstances of the deployment ({told.most_instances:,}) is reached" if told.most_instances else ""
    if told.needs_other_type:
        yield (
            f"No instance that is here could take its tasks{', and ' + reached if reached else ''}: one that has no"
            " more work has to go first."
        )
        return
    if not told.limit:
        return
    users = ", ".join(f"{name} has {_percent(use)}" for name, use in told.used_by)
    yield f"The cluster's {told.limit} is used up{' and ' + reached if reached else ''}{': ' + users if users else ''}."


def _first(told: PlaceInLine) -> str:
    rate = "" if not told.ends_per_minute else _rate(told.ends_per_minute)
    if not told.ahead:
        return "No task of another run comes first" + (f", and about {rate} tasks end a minute" if rate else "")
    tasks, runs = _counted(told.ahead, "task"), _counted(told.runs_ahead, "run")
    comes = "comes" if told.ahead == 1 else "come"
    return f"{tasks} of {runs} {comes} first" + (f", about {rate} end a minute" if rate else "")


def _help(each: Help) -> str:
    if each.what == "maxInstances":
        return f"With maxInstances {each.value:,} (now {each.now:,}) an instance would be bought for it at once."
    when = _soon(each.starts_in_s)
    return f"With priority {each.value} (now {each.now}) it would be the first in its queue, and start {when}."


def _about(told: PlaceInLine) -> str:
    """`in about 32 min (20-55)`."""
    seconds = told.starts_in_s or 0.0
    if seconds < 60:
        return f"within {duration(max(told.high_s, 60.0))}"
    unit, name = _unit(seconds)
    return f"in about {_rate(seconds / unit)} {name} ({_rate(told.low_s / unit)}-{_rate(told.high_s / unit)})"


def _soon(seconds: float) -> str:
    unit, name = _unit(seconds)
    return "within a minute" if seconds < 60 else f"in about {_rate(seconds / unit)} {name}"


def _unit(seconds: float) -> tuple[float, str]:
    if seconds < 2 * HOUR_S:
        return 60.0, "min"
    return (HOUR_S, "h") if seconds < 2 * DAY_S else (DAY_S, "days")


def _rate(value: float) -> str:
    """No more digits than say something."""
    return f"{value:,.0f}" if value >= 9.95 or value == round(value) else f"{value:.1f}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _ordinal(number: int) -> str:
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"
