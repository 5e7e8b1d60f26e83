"""The page of one environment: its tasks now, and a time line of its deployments with a row for each revision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from argosy.client.failures import AlikeAttempts
from argosy.figures import axes, svg
from argosy.figures.document import ROWS_SHOWN, Cell, Figure, Page, Table, Tile, status_pill
from argosy.figures.history import Floats
from argosy.figures.markup import element
from argosy.figures.numbers import clock, counted, duration, instant, money
from argosy.figures.run import explanation
from argosy.figures.services import total

View = Mapping[str, Any]
_KINDS = {
    "COMPLETED": ("succeeded", "completed"),
    "IN_PROGRESS": ("running", "in progress"),
    "WAITING": ("lost", "waits for instances"),
    "STUCK": ("lost", "stuck"),
    "FAILED": ("failed", "failed"),
    "STOPPED": ("cancelled", "stopped"),
    "SUPERSEDED": ("queued", "superseded by the next one"),
}
_MARGIN = 1.015  # room for the ends of what is drawn
_LOW = 5  # rows that need no high picture


def deployments(view: View, now: float) -> Figure:
    """view: DescribeEnvironment's reply. now: epoch seconds."""
    key, title = "deployments", "Deployments over time"
    found = view["deployments"]
    if not found:
        return Figure(key, title, empty="It has never been deployed.", wide=True)
    numbers = sorted({each["revision"] for each in found}, reverse=True)
    begins = [_seconds(each["startedAt"], now) for each in found]
    drawn = list(_stretches(found, begins, numbers, now))
    frame = svg.Frame(
        axes.seconds(_MARGIN * min(begins), 0.0),
        axes.rows([str(each) for each in numbers]),
        "before now",
        "revision",
        f"{counted(len(found), 'deployment')} of {counted(len(numbers), 'revision')}, the last {_word(found[-1])}.",
        low=len(numbers) <= _LOW,
    )
    note = "One row per revision: pale while it was the target, full while it was being deployed."
    picture = svg.stretches(frame, drawn, list(_legend(found)))
    return Figure(key, title, note=note, picture=picture, table=_table(found, now), wide=True)


def _stretches(
    found: Sequence[View], begins: Sequence[float], numbers: Sequence[int], now: float
) -> Iterator[svg.RowSpan]:
    for place, (each, begin) in enumerate(zip(found, begins, strict=True)):
        row = axes.row_of(numbers.index(each["revision"]), len(numbers))
        following = begins[place + 1] if place + 1 < len(begins) else 0.0
        yield svg.RowSpan(f"revision {each['revision']} was the target", "alive", row, begin, following, is_band=True)
        end = _seconds(each["endedAt"], now) if each["endedAt"] else 0.0
        said = f"deployment {each['deployment']}: {_word(each)} after {duration(end - begin)}"
        yield svg.RowSpan(
            f"{said}: {each['reason']}" if each["reason"] else said, _KINDS[each["status"]][0], row, begin, end
        )


def _legend(found: Sequence[View]) -> Iterator[svg.Layer]:
    there = {each["status"] for each in found}
    for status, (kind, word) in _KINDS.items():
        if status in there:
            yield svg.Layer(word, kind, np.empty(0), f"{sum(each['status'] == status for each in found):,}")
    yield svg.Layer("target", "alive", np.empty(0))


def _word(deployment: View) -> str:
    return _KINDS[deployment["status"]][1]


def _table(found: Sequence[View], now: float) -> Table:
    rows = [
        (
            str(each["deployment"]),
            str(each["revision"]) + (" (roll-back)" if each["isRollback"] else ""),
            status_pill(each["status"]),
            clock(each["startedAt"]),
            duration((_seconds(each["endedAt"], now) if each["endedAt"] else 0.0) - _seconds(each["startedAt"], now)),
            f"{each['failures']:,}",
            each["reason"] or "",
        )
        for each in reversed(found)
    ]
    heads = (">Deployment", "Revision", "Status", "Started", ">Took", ">Failures", "Reason")
    return Table(heads, rows, stacks=True)


def _seconds(iso: str | None, now: float) -> float:
    """After now; an unknown time is now."""
    moment = instant(iso)
    return 0.0 if moment is None else min(0.0, moment.timestamp() - now)


NO_INSTANCE = "-"
_COLOURS = ("0", "5", "3", "7")  # of revisions, in turn: none of those that mean success or failure


@dataclass(frozen=True, slots=True)
class ServiceSeen:
    """What is known of an environment besides its own view, by the number of a revision. tasks: of ListTasks, those
    that are alive or wait. tasks_left: how many more there are. histories: DescribeHistory's replies. failures: of the
    latest deployments. pools: `c5.large in us-east-1a, spot`, by instance. explained: why tasks of the target wait.
    now: epoch seconds.
    """

    now: float
    tasks: Mapping[int, Sequence[View]] = field(default_factory=dict)
    tasks_left: int = 0
    histories: Mapping[int, View] = field(default_factory=dict)
    failures: Mapping[int, Sequence[AlikeAttempts]] = field(default_factory=dict)
    pools: Mapping[str, str] = field(default_factory=dict)
    explained: View | None = None


def environment_page(view: View, seen: ServiceSeen) -> Page:
    """view: DescribeEnvironment's reply."""
    return Page(
        title=f"{view['name']} · Argosy",
        heading=view["name"],
        status=view["status"],
        facts=list(_facts(view)),
        tiles=list(_tiles(view)),
        warnings=[view["statusReason"]] if view["statusReason"] else [],
        figures=[
            deployments(view, seen.now),
            _over_time(view, seen),
            _waiting(view, seen),
            _revisions(view),
            _tasks(view, seen),
            _instances(seen),
            _failures(view, seen),
        ],
        next_steps=_steps(view),
    )


def _facts(view: View) -> Iterator[tuple[str, str]]:
    yield "kind", view["kind"]
    yield "created", clock(view["createdAt"])
    target, newest = view["targetRevision"], view["latestRevision"]
    if target is None:
        yield "revision", f"{newest}, not deployed yet"
    else:
        yield "revision", str(target) if target == newest else f"{target}; the newest is {newest}"


def _tiles(view: View) -> Iterator[Tile]:
    short = view["healthy"] < view["desired"]
    yield Tile("Healthy", f"{view['healthy']:,}", f"of {view['desired']:,} desired", "bad" if short else "good")
    yield Tile("Alive", f"{total(view):,}", f"{view['outdated']:,} of other revisions")
    yield Tile("Waiting", f"{view['pending']:,}", "for a place" if view["pending"] else "")
    yield Tile("Deployments", f"{len(view['deployments']):,}", _last(view))
    yield Tile("Cost", money(view["costUsd"]), "of the revisions below")


def _last(view: View) -> str:
    last = view["deployments"][-1:]
    return f"the last one {last[0]['status'].lower().replace('_', ' ')}" if last else "none yet"


def _steps(view: View) -> list[tuple[str, str]]:
    name = view["name"]
    if view["status"] == "LEFT":
        return [("Stop its tasks:", f"argosy env delete {name}"), ("Take them over:", "argosy env create FILE")]
    if view["status"] == "FROZEN":
        back = [("Go back:", f"argosy env rollback {name}")] if _has_earlier(view) else []
        return [("Thaw it:", f"argosy env thaw {name}"), *back]
    if view["targetRevision"] != view["latestRevision"]:
        return [("Deploy the newest revision:", f"argosy env deploy {name}")]
    scale = [("More or fewer tasks:", f"argosy env scale {name} TASKS")] if view["kind"] == "service" else []
    return [("Update it:", "argosy env update FILE"), *scale]


def _has_earlier(view: View) -> bool:
    """Whether there is a revision to go back to."""
    completed = {each["revision"] for each in view["deployments"] if each["status"] == "COMPLETED"}
    return bool((completed | {view["completedRevision"]}) - {view["targetRevision"], None})


def _over_time(view: View, seen: ServiceSeen) -> Figure:
    """Tasks that start or run, a colour for each revision: how one replaced another."""
    key, title = "over-time", "Tasks over time, by revision"
    histories = {number: each["series"] for number, each in sorted(seen.histories.items()) if each.get("series")}
    if not histories:
        return Figure(key, title, empty="Nothing has been recorded yet: the first samples arrive within a minute.")
    present = {each["revision"]: float(each["running"]) for each in view["revisions"]}
    found = {number: _changes(each, present.get(number, 0.0), seen.now) for number, each in histories.items()}
    at = np.unique(np.concatenate([*(moments for moments, _ in found.values()), [seen.now]]))
    rows = {number: _held(*each, at) for number, each in found.items()}
    most = float(np.sum(list(rows.values()), axis=0).max())
    frame = svg.Frame(
        axes.seconds(float(at[0]) - seen.now, 0.0),
        axes.counts(most),
        "before now",
        "tasks",
        f"Tasks of {counted(len(rows), 'revision')} that are starting or running; {most:,.0f} at most.",
    )
    edges = np.repeat(at, 2)[1:]  # what was sampled holds until the next sample
    layers = [
        svg.Layer(
            f"revision {number}", _COLOURS[number % len(_COLOURS)], np.repeat(values, 2)[:-1], f"{values[-1]:,.0f}"
        )
        for number, values in rows.items()
    ]
    return Figure(key, title, picture=svg.areas(frame, edges - seen.now, layers), table=_samples(at, rows, seen.now))


def _changes(series: View, present: float, now: float) -> tuple[Floats, Floats]:
    """Times, and how many tasks start or run from each on. A history has no sample of a change right after the last
    one, so the last value is the present one.
    """
    alive = np.array(series["running"], dtype="f8") + np.array(series["starting"], dtype="f8")
    moments = np.array(series["at"], dtype="f8")
    last = min(now, float(moments[-1]) + series["intervalSeconds"])
    return np.append(moments, last), np.append(alive, present)


def _held(moments: Floats, alive: Floats, at: Floats) -> Floats:
    """Their number at these times; 0 before the first."""
    held: Floats = np.concatenate([[0.0], alive])[np.searchsorted(moments, at, side="right")]
    return held


def _samples(at: Floats, rows: Mapping[int, Floats], now: float) -> Table:
    """The newest first, in steps that show all of the time."""
    chosen = np.arange(len(at))[:: -max(1, -(-len(at) // ROWS_SHOWN))].tolist()
    shown = [(f"{duration(now - at[row])} ago", *(f"{values[row]:,.0f}" for values in rows.values())) for row in chosen]
    return Table((">When", *(f">Revision {number}" for number in rows)), shown)


def _revisions(view: View) -> Figure:
    deployed = {each["revision"]: each["status"] for each in view["deployments"]}
    rows: list[tuple[Cell, ...]] = [
        (
            str(each["revision"]),
            _role(view, each["revision"]),
            status_pill(deployed[each["revision"]]) if each["revision"] in deployed else "-",
            _run_link(each["runId"]),
            f"{each['healthy']:,}",
            f"{each['running']:,}",
            clock(each["createdAt"]),
        )
        for each in reversed(view["revisions"])
    ]
    heads = (">Revision", "State", "Last deployment", "Run", ">Healthy", ">Running", "Created")
    note = "Each revision has its own run, whose page shows its attempts, cost and failures."
    return Figure("revisions", "Revisions", note=note, table=Table(heads, rows, stacks=True), wide=True)


def _role(view: View, number: int) -> str:
    if number == view["targetRevision"]:
        return "target" if number != view["completedRevision"] else "runs"
    if number == view["completedRevision"]:
        return "completed before"
    if number == view["latestRevision"]:
        return "not deployed yet"
    return "-"


def _run_link(run_id: str | None) -> Cell:
    return element("a", run_id, href=f"/runs/{run_id}") if run_id else "-"


def _tasks(view: View, seen: ServiceSeen) -> Figure:
    key, title = "tasks", "Tasks"
    runs = {each["revision"]: each["runId"] for each in view["revisions"]}
    found = [(number, task) for number, tasks in sorted(seen.tasks.items(), reverse=True) for task in tasks]
    if not found:
        return Figure(key, title, empty="No task is running, and none is desired.", wide=True)
    rows: list[tuple[Cell, ...]] = [
        (
            f"{task['index']}",
            str(number),
            status_pill(task["status"]),
            task["instance"] or NO_INSTANCE,
            "-" if task["seconds"] is None else duration(task["seconds"]),
            f"{task['attempts']:,}",
            task["reason"] or "",
        )
        for number, task in found
    ]
    left = seen.tasks_left + max(0, len(rows) - ROWS_SHOWN)
    more = f"{counted(left, 'more task')}: argosy tasks {runs.get(found[0][0])}" if left else ""
    heads = (">Task", ">Revision", "Status", "Instance", ">Runs for", ">Attempts", "Last ended because")
    return Figure(key, title, table=Table(heads, rows[:ROWS_SHOWN], left=left, more=more, stacks=True), wide=True)


def _instances(seen: ServiceSeen) -> Figure:
    """Where its tasks are: how many of each revision, those with most tasks first."""
    key, title = "instances", "Instances"
    here: dict[str, Counter[int]] = {}
    for number, tasks in seen.tasks.items():
        for task in tasks:
            if task["instance"] and task["status"] in ("STARTING", "RUNNING"):
                here.setdefault(task["instance"], Counter())[number] += 1
    if not here:
        return Figure(key, title, empty="No instance runs its tasks.", wide=True)
    ordered = sorted(here.items(), key=lambda each: (-each[1].total(), each[0]))
    rows = [
        (name, seen.pools.get(name, "-"), f"{counts.total():,}", ", ".join(_of(counts)))
        for name, counts in ordered[:ROWS_SHOWN]
    ]
    table = Table(("Instance", "Pool", ">Tasks", "Of"), rows, left=len(here) - len(rows), stacks=True)
    return Figure(key, title, table=table, wide=True)


def _of(counts: Mapping[int, int]) -> Iterator[str]:
    if len(counts) == 1:
        return (f"revision {number}" for number in counts)
    return (f"revision {number}: {count:,}" for number, count in sorted(counts.items(), reverse=True))


def _failures(view: View, seen: ServiceSeen) -> Figure:
    """Of the latest deployments' revisions, in groups."""
    key, title = "failures", "Failures"
    runs = {each["revision"]: each["runId"] for each in view["revisions"]}
    rows: list[tuple[Cell, ...]] = [
        (
            str(number),
            f"{kind.count:,}",
            kind.cause,
            kind.said,
            element("code", f"argosy logs {runs[number]} --task {kind.first}"),
        )
        for number, kinds in sorted(seen.failures.items(), reverse=True)
        for kind in kinds
    ]
    if not rows:
        return Figure(key, title, empty="No task of the latest deployments has failed.", wide=True)
    heads = (">Revision", ">Attempts", "Why", "Last line", "Logs")
    return Figure(key, title, table=Table(heads, rows, stacks=True), wide=True)


def _waiting(view: View, seen: ServiceSeen) -> Figure:
    if seen.explained is None or not view["pending"]:
        return Figure("explain", "Why tasks wait", empty="None does.")
    return explanation(seen.explained)
