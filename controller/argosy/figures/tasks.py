"""The tasks of a run as a table: filtered, sorted and in pages, from columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs, urlencode

import numpy as np
from numpy.typing import NDArray

from argosy.client.failures import AlikeAttempts
from argosy.client.task_indexes import parsed
from argosy.figures.document import ROWS_SHOWN, Cell, Figure, Page, Table, status_pill
from argosy.figures.history import ALIVE, Attempts, Floats, column
from argosy.figures.markup import Content, Markup, element
from argosy.figures.numbers import counted, duration
from argosy.model.tasks import NO_EXIT_CODE

View = Mapping[str, Any]
Rows = NDArray[np.int64]

_SORTS = {  # heading: the name of the sort in the address
    ">Task": "task", "State": "state", ">Attempts": "attempts", "Why": "reason", "Instance": "instance",
    ">Started after": "started", ">Duration": "duration",
}  # fmt: skip
_LONGEST = 200  # characters of a filter


@dataclass(frozen=True, slots=True)
class TaskColumns:
    """Row i is task i; shape (tasks,). status: a row of `states`; the rest is of the latest attempt, 0 = there is none:
    attempts: its number; cause: a row of `causes`; instance: a row of `instances`; started: seconds after the run was
    submitted; seconds: of the attempt, so far if it is alive."""

    states: Sequence[str]
    causes: Sequence[str]
    instances: Sequence[str]
    status: NDArray[np.uint8]
    attempts: Rows
    cause: Rows
    instance: Rows
    started: Floats
    seconds: Floats

    def sorted_by(self, name: str) -> Floats:
        """The values to sort by, numbers that can be negated."""
        if name == "reason":
            return _ranks(self.causes, self.cause)
        if name == "instance":
            return _ranks(self.instances, self.instance)
        columns: dict[str, NDArray[Any]] = {"state": self.status, "attempts": self.attempts, "started": self.started}
        columns |= {"duration": self.seconds, "task": np.arange(len(self.status))}
        found: Floats = columns[name].astype("f8")
        return found


def _ranks(texts: Sequence[str], rows: Rows) -> Floats:
    """The alphabetical place of the text of each row."""
    places = np.empty(len(texts))
    places[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    found: Floats = places[rows]
    return found


def tasks_of(view: View, attempts: Attempts, age_s: float) -> TaskColumns:
    """view: DescribeRun with `statuses`. age_s: seconds since the run was submitted."""
    status = column(view["statuses"])
    newest = np.full(len(status), -1)
    rows = np.flatnonzero(attempts.index < len(status))
    rows = rows[np.argsort(attempts.attempt[rows], kind="stable")]
    newest[attempts.index[rows]] = rows  # the last one counts
    alive = (attempts.outcome == ALIVE) & (attempts.started > 0)
    seconds = np.where(alive, np.maximum(0.0, age_s - attempts.started), attempts.ran)
    kinds, kind = np.unique(
        (attempts.reason.astype("i8") << 32) + (attempts.exit_code.astype("i8") - NO_EXIT_CODE), return_inverse=True
    )
    causes = [_cause(attempts.reasons[each >> 32], (each & 0xFFFFFFFF) + NO_EXIT_CODE, view) for each in kinds.tolist()]

    def of(values: NDArray[Any], none: int = 0) -> NDArray[Any]:
        found: NDArray[Any] = np.append(values, none)[newest]
        return found

    return TaskColumns(
        states=view["statuses"]["values"],
        causes=[*causes, ""],
        instances=[*attempts.instances, ""],
        status=status,
        attempts=of(attempts.attempt.astype("i8")),
        cause=of(kind, len(causes)),
        instance=of(attempts.instance.astype("i8"), len(attempts.instances)),
        started=of(attempts.started),
        seconds=of(seconds),
    )


def _cause(reason: str, exit_code: int, view: View) -> str:
    code = None if exit_code == NO_EXIT_CODE else exit_code
    if not reason and not code:
        return ""
    return AlikeAttempts(reason, code, 1, 0, 0, view.get("memoryMib")).cause


@dataclass(frozen=True, slots=True)
class TaskChoice:
    """Which tasks, in which order. attempts, seconds: at least. sort: one of `_SORTS`, `-` before it for descending.
    page: from 1."""

    state: str = ""
    reason: str = ""
    instance: str = ""
    tasks: str = ""
    attempts: int = 0
    seconds: int = 0
    sort: str = "task"
    page: int = 1

    @classmethod
    def of(cls, query: str) -> TaskChoice:
        """Whatever cannot be read there does not count."""
        try:
            asked = parse_qs(query, max_num_fields=20)
        except ValueError:
            asked = {}
        given = {name: values[-1].strip()[:_LONGEST] for name, values in asked.items()}
        texts = {name: given.get(name, "") for name in ("reason", "instance", "tasks")}
        sort = given.get("sort", "")
        return cls(
            state=given.get("state", "").upper(),
            sort=sort if sort.removeprefix("-") in _SORTS.values() else "task",
            attempts=_number(given.get("attempts", "")),
            seconds=_number(given.get("seconds", "")),
            page=max(1, _number(given.get("page", ""))),
            **texts,
        )

    def address(self) -> str:
        """The query of the address of this choice."""
        given = {name: getattr(self, name) for name in self.__slots__}
        usual = {name: getattr(TaskChoice(), name) for name in self.__slots__}
        return "?" + urlencode({name: value for name, value in given.items() if value != usual[name]})

    def rows(self, tasks: TaskColumns) -> Rows:
        """The indexes of the tasks that all filters choose, in order. Raises ValueError for indexes that are none."""
        fits = (tasks.attempts >= self.attempts) & (tasks.seconds >= self.seconds)
        if self.state:
            fits &= np.isin(tasks.status, _with(tasks.states, self.state))
        if self.reason:
            fits &= np.isin(tasks.cause, _with(tasks.causes, self.reason))
        if self.instance:
            fits &= np.isin(tasks.instance, _with(tasks.instances, self.instance))
        if self.tasks:
            index, named = np.arange(len(fits)), np.zeros(len(fits), np.bool_)
            for first, last in parsed(self.tasks):
                named |= (index >= first) & (index <= last)
            fits &= named
        found = np.flatnonzero(fits)
        keys = tasks.sorted_by(self.sort.removeprefix("-"))[found]
        return found[np.argsort(-keys if self.sort.startswith("-") else keys, kind="stable")]


def _number(text: str) -> int:
    """0 for what is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _with(texts: Sequence[str], part: str) -> list[int]:
    """The rows of the texts that hold the part, in upper or lower case."""
    return [row for row, text in enumerate(texts) if part.lower() in text.lower()]


def tasks_page(view: View, tasks: TaskColumns, choice: TaskChoice) -> Page:
    """view: DescribeRun."""
    warnings = []
    try:
        rows = choice.rows(tasks)
    except ValueError as fault:
        rows, warnings = np.zeros(0, "i8"), [f"Tasks: {fault}."]
    return Page(
        title=f"Tasks of {view['runId']} · Argosy",
        heading=f"Tasks of {view['runId']}",
        status=view["status"],
        facts=list(_facts(tasks, choice)),
        warnings=warnings,
        figures=[
            Figure("choose", "Show", picture=_form(tasks, choice), wide=True),
            _table(view["runId"], tasks, choice, rows),
        ],
    )


def _facts(tasks: TaskColumns, choice: TaskChoice) -> Iterator[tuple[str, Content]]:
    """Each state with its number of tasks, which leads to them."""
    counts = np.bincount(tasks.status, minlength=len(tasks.states)).tolist()
    yield "all", _to(f"{len(tasks.status):,}", replace(choice, state="", page=1), is_here=not choice.state)
    for name, count in zip(tasks.states, counts, strict=False):
        if count:
            to = replace(choice, state=name, page=1)
            yield name.lower(), _to(f"{count:,}", to, is_here=choice.state == name)


def _to(said: str, choice: TaskChoice, is_here: bool = False) -> Markup:
    return element("a", said, href=choice.address(), aria_current="true" if is_here else None)


def _form(tasks: TaskColumns, choice: TaskChoice) -> Markup:
    states = [("", "all"), *((name, name.lower()) for name in tasks.states)]
    orders = [(name, heading.removeprefix(">").lower()) for heading, name in _SORTS.items()]
    orders += [(f"-{name}", f"{heading}, descending") for name, heading in orders]
    return element(
        "form",
        labelled("State", selection("state", states, choice.state)),
        labelled("Why has", entry("reason", choice.reason, "exit 137")),
        labelled("Instance has", entry("instance", choice.instance, "i-0abc")),
        labelled("Tasks", entry("tasks", choice.tasks, "3,7-12")),
        labelled("Attempts from", entry("attempts", choice.attempts or "", "2")),
        labelled("Seconds from", entry("seconds", choice.seconds or "", "60")),
        labelled("Sorted by", selection("sort", orders, choice.sort)),
        element("button", "Show"),
        role="search",
        class_="fields",
    )


def labelled(name: str, content: Content) -> Markup:
    return element("label", element("span", name), content)


def entry(name: str, value: str | int, example: str) -> Markup:
    return element("input", name=name, value=value, placeholder=example, maxlength=_LONGEST, autocomplete="off")


def selection(name: str, options: Sequence[tuple[str, str]], chosen: str) -> Markup:
    return element(
        "select", *(element("option", said, value=of, selected=of == chosen) for of, said in options), name=name
    )


def _table(run_id: str, tasks: TaskColumns, choice: TaskChoice, rows: Rows) -> Figure:
    key, title = "tasks", "Tasks"
    if not len(rows):
        return Figure(key, title, empty="No task is like this.", wide=True)
    pages = -(-len(rows) // ROWS_SHOWN)
    page = min(choice.page, pages)
    first = (page - 1) * ROWS_SHOWN
    shown = rows[first : first + ROWS_SHOWN].tolist()
    note = f"{first + 1:,} to {first + len(shown):,} of {counted(len(rows), 'task')}."
    turns = [("first", 1), ("previous", page - 1), ("next", page + 1), ("last", pages)]
    links = [_to(said, replace(choice, page=to)) for said, to in turns if 0 < to <= pages and to != page]
    table = Table(
        [*_SORTS, "Log"],
        [_row(run_id, tasks, index) for index in shown],
        more=element("span", *(part for link in links for part in (link, " ")), class_="turns") if links else "",
        stacks=True,
        sorting={heading.removeprefix(">"): _sorting(name, choice) for heading, name in _SORTS.items()},
    )
    return Figure(key, title, note=note, table=table, wide=True)


def _sorting(name: str, choice: TaskChoice) -> tuple[str, str | None]:
    """A second click on a heading turns the order around."""
    now = {name: "ascending", f"-{name}": "descending"}.get(choice.sort)
    to = replace(choice, sort=f"-{name}" if choice.sort == name else name, page=1)
    return to.address(), now


def _row(run_id: str, tasks: TaskColumns, index: int) -> Sequence[Cell]:
    started, seconds = float(tasks.started[index]), float(tasks.seconds[index])
    return (
        f"{index}",
        status_pill(tasks.states[tasks.status[index]]),
        f"{tasks.attempts[index]:,}",
        tasks.causes[tasks.cause[index]],
        tasks.instances[tasks.instance[index]],
        duration(started) if started else "-",
        duration(seconds) if started else "-",
        element("a", "log", href=f"/runs/{run_id}/tasks/{index}") if tasks.attempts[index] else "",
    )
