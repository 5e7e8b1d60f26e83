"""The page that asks before a run is changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from argosy.client.progress import CANCELLING, TERMINAL
from argosy.figures.document import Figure, Page
from argosy.figures.markup import Content, Markup, element
from argosy.figures.numbers import counted

View = Mapping[str, Any]
CANCEL, RETRY = "cancel", "retry"
TOKEN = "token"  # noqa: S105 - the name of the field


def confirmation_page(view: View, action: str, token: str) -> Page:
    """view: DescribeRun. action: CANCEL or RETRY. token: of this action, which counts once."""
    run, tasks = view["runId"], view["tasks"]
    asked = f"{'Cancel' if action == CANCEL else 'Retry'} {run}"
    fields = list((_cancel if action == CANCEL else _retry)(view, tasks))
    hidden = element("input", type="hidden", name=TOKEN, value=token)
    form = element("form", *fields, hidden, method="post", action=f"/runs/{run}/{action}", class_="fields")
    back = element("p", element("a", "Back to the run", href=f"/runs/{run}"))
    nothing = (
        "The run has ended." if action == CANCEL else "The run has no failed or cancelled tasks, or has not ended."
    )
    shown = form if fields else element("p", nothing, class_="empty")
    figure = Figure("ask", "Are you sure?", picture=Markup(shown + back), wide=True)
    return Page(f"{asked} · Argosy", asked, [figure], status=view["status"])


def _cancel(view: View, tasks: View) -> Iterator[Markup]:
    if view["status"] in (*TERMINAL, CANCELLING):
        return
    live = tasks["running"] + tasks["starting"]
    yield element("p", f"{counted(live, 'live task')} will be stopped, and {tasks['pending']:,} will never start. "
                  f"{counted(tasks['succeeded'], 'result')} will be kept.")  # fmt: skip
    yield _label("Reason", element("input", name="reason", maxlength=255, autocomplete="off"))
    yield element("button", "Cancel the run")


def _retry(view: View, tasks: View) -> Iterator[Markup]:
    kinds = [name for name in ("failed", "cancelled") if tasks[name]]
    if view["status"] not in TERMINAL or not kinds:
        return
    for name in kinds:
        box = element("input", type="checkbox", name=name, value="yes", checked=name == kinds[0])
        yield _label(counted(tasks[name], f"{name} task"), box)
    yield element("button", "Run them again")


def _label(name: str, content: Content) -> Markup:
    return element("label", element("span", name), content)
