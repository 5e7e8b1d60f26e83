"""The position of a run in line, as figures for programs and as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from argosy.api.line_position import SHOWN, Help, LinePosition
from argosy.scheduler.turns.queue_views import QuotaUse


def not_in_line(why: str) -> dict[str, Any]:
    """Of a run that has no turn to wait for."""
    return {"inLine": False, "reason": why, "sentences": [f"It has no place in line: {why}."]}


def position_view(position: LinePosition) -> dict[str, Any]:
    """Shares are 0..1; what does not apply is null."""
    return {
        "inLine": True,
        "queue": position.queue,
        "owner": position.owner or None,
        "queuePlace": position.queue_place,
        "queues": position.queues,
        "runPlace": position.run_place,
        "runs": position.runs,
        "use": round(position.use, 4),
        "share": round(position.share, 4),
        "weightFactor": round(position.factor, 4),
        "limit": position.limit or None,
        "maxInstancesReached": position.most_instances or None,
        "quotasReached": [_quota_view(each) for each in position.quotas],
        "usedBy": [{"queue": name, "use": round(use, 4)} for name, use in position.used_by],
        "tasksAhead": position.ahead,
        "runsAhead": position.runs_ahead,
        "wouldHelp": [{"what": each.what, "value": each.value, "now": each.now} for each in position.helps],
        "sentences": list(sentences(position)),
    }


def _quota_view(quota: QuotaUse) -> Mapping[str, Any]:
    used_by = [{"queue": name, "use": round(use, 4)} for name, use in _parts(quota)]
    return {
        **dict(zip(("region", "purchase", "family"), quota.key, strict=True)),
        "vcpus": quota.vcpus,
        "usedBy": used_by,
    }


def _parts(quota: QuotaUse) -> list[tuple[str, float]]:
    """Which part of it each queue uses."""
    return [(name, vcpus / max(1, quota.vcpus)) for name, vcpus in quota.used.items()]


def sentences(position: LinePosition) -> Iterator[str]:
    """The place among queues and runs, what is used up and by which queues, what comes first, and what would help."""
    yield from _place(position)
    yield from _limit(position)
    yield _ahead(position)
    for each in position.helps:
        yield _help(each)


def _place(position: LinePosition) -> Iterator[str]:
    whose = position.queue + (f"/{position.owner}" if position.owner else "")
    what = position.limit or "largest resource"
    if position.queues > 1:
        use, share = _percent(position.use), _percent(position.share)
        place = f"{_ordinal(position.queue_place)} of {position.queues} queues"
        yield f"{place}: {whose} uses {use} of the cluster's {what}; by weight it is due {share}."
        if position.factor != 1:
            than = "more" if position.factor < 1 else "less"
            yield f"{whose} recently used {than} than it is due, so its weight counts {position.factor:.3g} times."
    if position.runs > 1:
        yield f"{_ordinal(position.run_place)} of {position.runs} runs that wait in {whose}."


def _limit(position: LinePosition) -> Iterator[str]:
    for quota in position.quotas:
        users = ", ".join(f"{name} has {_percent(use)}" for name, use in _parts(quota)[:SHOWN])
        yield f"{quota.name[0].upper()}{quota.name[1:]} is reached{': ' + users if users else ''}."
    most = position.most_instances
    reached = f" and maxInstances of the deployment ({most:,}) is reached" if most else ""
    if position.needs_other_type:
        yield (
            f"No instance that is here could take its tasks{',' + reached if reached else ''}:"
            " another instance has to run out of work and end first."
        )
    elif position.limit:
        users = ", ".join(f"{name} has {_percent(use)}" for name, use in position.used_by)
        yield f"The cluster's {position.limit} is used up{reached}{': ' + users if users else ''}."


def _ahead(position: LinePosition) -> str:
    if not position.ahead:
        return "No waiting task of another run comes first."
    tasks, runs = _counted(position.ahead, "waiting task"), _counted(position.runs_ahead, "run")
    return f"{tasks} of {runs} {'comes' if position.ahead == 1 else 'come'} first."


def _help(each: Help) -> str:
    if each.what == "maxInstances":
        return f"With maxInstances {each.value:,} (now {each.now:,}) an instance would be bought for it at once."
    return f"With priority {each.value} (now {each.now}) it would be the first in its queue."


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _ordinal(number: int) -> str:
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"
