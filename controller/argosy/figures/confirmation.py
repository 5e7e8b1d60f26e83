"""The page that asks before a run is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from argosy.client.local_requests import NOTICE_S, running_task
from argosy.client.progress import CANCELLING, TERMINAL
from argosy.figures.document import Figure, Page
from argosy.figures.markup import Markup, element
from argosy.figures.numbers import counted
from argosy.figures.tasks import labelled

View = Mapping[str, Any]
CANCEL, RETRY, INTERRUPT = "cancel", "retry", "interrupt"
TOKEN = "token"  # noqa: S105 - the name of the field
_NOTHING = {
    CANCEL: "The run has ended.",
    RETRY: "The run has no failed or cancelled tasks, or has not ended.",
    INTERRUPT: "No task of the run is running.",
}


def confirmation_page(view: View, action: str, token: str, *, notice_is_fixed: bool = False) -> Page:
    """view: DescribeRun, with its tasks for INTERRUPT. action: CANCEL, RETRY or INTERRUPT. token: of this action, which
    counts once. notice_is_fixed: on AWS, an instance always ends two minutes after its notice."""
    run, tasks = view["runId"], view["tasks"]
    asked = f"{action.capitalize()} {run}"
    forms: dict[str, Callable[[View, View], Iterator[Markup]]] = {CANCEL: _cancel, RETRY: _retry}
    forms[INTERRUPT] = partial(_interrupt, notice_is_fixed=notice_is_fixed)
    fields = list(forms[action](view, tasks))
    hidden = element("input", type="hidden", name=TOKEN, value=token)
    form = element("form", *fields, hidden, method="post", action=f"/runs/{run}/{action}", class_="fields")
    back = element("p", element("a", "Back to the run", href=f"/runs/{run}"))
    shown = form if fields else element("p", _NOTHING[action], class_="empty")
    figure = Figure("ask", "Are you sure?", picture=Markup(shown + back), wide=True)
    return Page(f"{asked} · Argosy", asked, [figure], status=view["status"])


def _cancel(view: View, tasks: View) -> Iterator[Markup]:
    if view["status"] in (*TERMINAL, CANCELLING):
        return
    live = tasks["running"] + tasks["starting"]
    yield element("p", f"{counted(live, 'live task')} will be stopped, and {tasks['pending']:,} will never start. "
                  f"{counted(tasks['succeeded'], 'result')} will be kept.")  # fmt: skip
    yield labelled("Reason", element("input", name="reason", maxlength=255, autocomplete="off"))
    only = element("input", name="tasks", placeholder="all", maxlength=200, autocomplete="off")
    yield labelled("Only these tasks, such as 3,7-12", only)
    yield element("button", "Cancel")


def _retry(view: View, tasks: View) -> Iterator[Markup]:
    kinds = [name for name in ("failed", "cancelled") if tasks[name]]
    if view["status"] not in TERMINAL or not kinds:
        return
    for name in kinds:
        box = element("input", type="checkbox", name=name, value="yes", checked=name == kinds[0])
        yield labelled(counted(tasks[name], f"{name} task"), box)
    yield element("button", "Run them again")


def _interrupt(view: View, tasks: View, *, notice_is_fixed: bool) -> Iterator[Markup]:
    found = running_task(view, None)
    if found is None:
        return
    yield element("p", "The instance of the task gets a spot notice and ends after it. Every task that runs there gets "
                  "SIGTERM now, and runs again elsewhere.")  # fmt: skip
    task = element("input", type="number", name="task", min=0, value=found["index"], required=True)
    yield labelled("Task", task)
    if not notice_is_fixed:
        seconds = element("input", type="number", name="seconds", min=0, max=f"{NOTICE_S:g}", value=f"{NOTICE_S:g}")
        yield labelled("Seconds from the notice to the end", seconds)
    yield element("button", "Interrupt the instance")
