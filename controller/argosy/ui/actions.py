"""The changes that a page may ask for: each after a confirmation, with a token that counts once."""

from __future__ import annotations

import time
from collections.abc import Mapping
from urllib.parse import parse_qs

from argosy.client.errors import InvalidInput
from argosy.client.experiments import give_notice, may_interrupt
from argosy.client.local_requests import NOTICE_S, running_task
from argosy.client.task_indexes import parsed
from argosy.figures.confirmation import CANCEL, INTERRUPT, TOKEN, confirmation_page
from argosy.figures.document import Page
from argosy.loopback.server import Environ
from argosy.ui.deployment_reader import DeploymentReader, NoSuchPage
from argosy.ui.guard import Guard

MOST_BYTES = 10_000  # of a form


def confirmation(reader: DeploymentReader, guard: Guard, run: str, action: str) -> Page:
    """The question; nothing is changed. The form names the run by its id. Raises NoSuchPage for an unknown run, and for
    an interruption that the deployment does not allow."""
    run_id, read = reader.meant(run), None
    if action == INTERRUPT:
        if not may_interrupt(reader.access):
            raise NoSuchPage("This deployment does not interrupt on command: its setting allowInterrupt is not true.")
        read = reader.access.api.describe_with_tasks
    view = reader.found(run_id, read)
    fixed = not reader.access.connection.is_loopback
    return confirmation_page(view, action, guard.token_for(f"{action} {view['runId']}"), notice_is_fixed=fixed)


def carry_out(reader: DeploymentReader, guard: Guard, environ: Environ, run_id: str, action: str) -> bool:
    """Whether the form had the token of this action on this run; only then is anything done. Raises ArgosyError if the
    deployment refuses."""
    if environ.get("HTTP_ORIGIN") is None:  # browsers send it with every form; another origin was refused before
        return False
    body = environ["wsgi.input"].read(MOST_BYTES).decode("ascii", "replace")
    try:
        form = {name: values[-1] for name, values in parse_qs(body, max_num_fields=10).items()}
    except ValueError:
        return False
    token = form.get(TOKEN, "")
    if not guard.spent(f"{action} {run_id}", token):
        return False
    if action == CANCEL:
        _cancel(reader, run_id, form)
    elif action == INTERRUPT:
        _interrupt(reader, run_id, form)
    else:
        wanted = {name: name in form for name in ("failed", "cancelled")}
        if not any(wanted.values()):
            raise InvalidInput("Choose the failed tasks, the cancelled ones, or both.")
        reader.access.api.retry(run_id, wanted, token)
    reader.kept.forget()
    return True


def _cancel(reader: DeploymentReader, run_id: str, form: Mapping[str, str]) -> None:
    """Raises InvalidInput."""
    try:
        tasks = parsed(form["tasks"]) if form.get("tasks") else []
    except ValueError as fault:
        raise InvalidInput(f"Tasks: {fault}.") from fault
    reader.access.api.cancel(run_id, form.get("reason") or None, tasks=tasks)


def _interrupt(reader: DeploymentReader, run_id: str, form: Mapping[str, str]) -> None:
    """Raises InvalidInput, LocalRequestRefused, NotInterrupted, and AWS's refusals."""
    task, seconds = form.get("task", ""), form.get("seconds", f"{NOTICE_S:g}")
    if not (task.isdecimal() and seconds.isdecimal() and int(seconds) <= NOTICE_S):
        raise InvalidInput(f"Give the number of a task, and whole seconds from 0 to {NOTICE_S:g}.")
    view = reader.access.api.describe_with_tasks(run_id)
    chosen = running_task(view, int(task))
    if chosen is None:
        raise InvalidInput(f"Task {int(task)} is not running.")
    give_notice(reader.access, view, chosen, float(seconds), time.sleep)
