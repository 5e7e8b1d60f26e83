"""The live view of a run in a terminal: one block that is redrawn in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live

from argosy.cli import figures
from argosy.cli.console import PlainText
from argosy.cli.runs import views
from argosy.cli.runs.next_steps import next_steps
from argosy.cli.session import Session
from argosy.cli.tables import facts_grid
from argosy.client.failures import kinds_of, with_last_lines
from argosy.client.progress import TERMINAL, ProgressRate, finished

BAR_WIDTH = 50
KINDS_SHOWN = 3  # while it is open
_SEGMENTS = (
    ("succeeded", "green"),
    ("failed", "red"),
    ("cancelled", "yellow"),
    ("running", "cyan"),
    ("starting", "blue"),
)


class LiveView:
    """A context manager that gives the function to call with each view; the last frame stays on the screen."""

    def __init__(self, session: Session, delivers: bool = False) -> None:
        self._session, self._delivers = session, delivers
        self._live = Live(console=session.console, auto_refresh=False)
        self._last: Mapping[str, Any] | None = None

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __call__(self, view: Mapping[str, Any], rate: ProgressRate) -> None:
        self._last, kinds, most = view, kinds_of(view), KINDS_SHOWN
        if view["status"] in TERMINAL:
            kinds, most = with_last_lines(self._session.access, view["runId"], kinds), views.KINDS_SHOWN
        lines = views.failure_lines(kinds, most)
        self._live.update(frame(view, figures.rate(rate), self._session.tools.now(), lines), refresh=True)

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        self._live.stop()
        if self._last and self._last["status"] in TERMINAL:
            for step in next_steps(self._session, self._last, self._delivers):
                self._session.console.print(step, style="dim")


def frame(view: Mapping[str, Any], rate: str, now: float, failures: Sequence[PlainText] = ()) -> RenderableType:
    """Headline, bar, counts and rate, cost, limits, and the failures."""
    spent = f"{figures.cost(view)}{figures.useful(view)}, {figures.counted(view['instances'], 'instance')}"
    rows = [
        ("tasks", views.task_counts(view) + (f"  ({rate})" if rate else "")),
        ("attempts", views.attempts(view)),
        ("cost so far", spent),
        ("limits", figures.caps(view)),
        ("deadline", figures.deadline(view, now)),
        ("purchase", figures.purchase(view)),
        ("waiting", view.get("waiting")),
        ("reason", view.get("statusReason")),
    ]
    grid = facts_grid([(name, PlainText(text)) for name, text in rows if text])
    return Group(views.headline(view, now), bar(view["tasks"]), grid, *failures)


def bar(tasks: Mapping[str, Any], width: int = BAR_WIDTH) -> PlainText:
    """One colour per state, in proportion; what is pending stays empty."""
    total, text, upto, drawn = max(1, tasks["total"]), PlainText(), 0, 0
    for status, colour in _SEGMENTS:
        upto += tasks[status]
        end = round(width * upto / total)
        text.append("━" * (end - drawn), colour)
        drawn = max(drawn, end)
    text.append("━" * (width - drawn), "bright_black")
    return text.append(f" {100 * finished(tasks) // total:3d} %")
