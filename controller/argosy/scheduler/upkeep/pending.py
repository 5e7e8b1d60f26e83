"""How long may a task stay PENDING?

A task that neither runs nor pulls its image within ten minutes is stuck. Pulling a large image takes longer than that,
so pulls have a separate limit (setting `imagePullSeconds`). ECS gives the times of a pull in `pullStartedAt` and
`pullStoppedAt`, but the agent sends both only with RUNNING or STOPPED (its `ShouldBeReported`), so ECS may not show
that a PENDING task is pulling. The rule holds in both cases:

    ECS says                      the task is given up
    the pull has ended            `pending_patience_s` after its end
    the pull is under way         `pull_patience_s` after its begin
    nothing                       `pending_patience_s` after the launch where another task of the run runs on the same
                                  instance, so that the image is there; else `pull_patience_s` after the launch

Example: with 10 and 30 minutes, the first task on a new instance whose image takes 12 minutes to pull starts after 12
minutes. The next one on that instance, which needs no pull, is given up after 10.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from argosy.model.attempts import AttemptStatus, AttemptTable, StopCause
from argosy.model.moment import Moment
from argosy.model.runs import Run
from argosy.model.wording import FOR_A_CORE, duration, hour_and_minute

SLOW_S = 120.0  # a task that has not started by then is reported
_NUMBER_BITS = 32  # of an instance's number in the table


def overdue(moment: Moment) -> Mapping[int, tuple[StopCause, str]]:
    """The rows of tasks that have been PENDING for too long, and why each is given up."""
    table, now, policy = moment.state.attempts, moment.now, moment.policy
    rows = waiting_since(table, now - policy.pending_patience_s)
    began, ended = table["pull_started_at"][rows], table["pull_stopped_at"][rows]
    since = np.where(ended > 0, ended, np.where(began > 0, began, table["launched_at"][rows]))
    pulls = (ended == 0) & ((began > 0) | ~_has_image(table, rows))
    late = now - since >= np.where(pulls, policy.pull_patience_s, policy.pending_patience_s)
    limit = duration(policy.pull_patience_s)
    told = StopCause.UNPULLED, f"argosy: its image was still being pulled after {limit}"
    untold = StopCause.UNPULLED, f"argosy: still PENDING after {limit}; ECS did not say whether its image was pulled"
    stuck = StopCause.STUCK, "argosy: the task never left PENDING"
    found: dict[int, tuple[StopCause, str]] = {}
    for row, pull, has_begun in zip(rows[late].tolist(), pulls[late], began[late] > 0, strict=True):
        found[row] = stuck if not pull else told if has_begun else untold
    return found


def waiting_since(table: AttemptTable, at: float) -> NDArray[np.int64]:
    """Rows of tasks that were launched by `at` (epoch seconds) and have not started."""
    here = (table["status"] == AttemptStatus.LAUNCHED.value) & (table["left_at"] == 0)
    return np.flatnonzero(here & (table["launched_at"] <= at))


def why_not_running(moment: Moment, run: Run) -> str:
    """Why a run whose tasks have instances runs none of them; "" if one runs or none has waited for long."""
    table, rows = moment.state.attempts, np.array(moment.state.attempts.here_of_run(run.number), dtype=np.int64)
    slow = rows[np.isin(rows, waiting_since(table, moment.now - SLOW_S))]
    if not len(slow) or (table["status"][rows] == AttemptStatus.RUNNING.value).any():
        return ""
    first = slow[np.argmin(table["launched_at"][slow])]
    where, began = table["instance"][first].decode(), float(table["pull_started_at"][first])
    if began and not table["pull_stopped_at"][first]:
        return f"pulling its image since {hour_and_minute(began)} on {where}"
    since = hour_and_minute(float(table["launched_at"][first]))
    return f"PENDING since {since} on {where}: perhaps it pulls its image, which ECS tells only afterwards"


def why_all_wait(moment: Moment) -> str:
    """Why launched tasks do not run if all instances are one machine: more are launched than it runs at once."""
    most = moment.policy.machine_programs
    if not most:
        return ""
    state, table = moment.state, moment.state.attempts
    serving = [run.number for run in state.runs.values() if run.terms.service is not None]  # they take no turns
    alive = np.isin(table["status"], (AttemptStatus.LAUNCHED.value, AttemptStatus.RUNNING.value))
    alive &= (table["left_at"] == 0) & ~np.isin(table["run"], serving)
    return f"{FOR_A_CORE}, which runs {most} programs at once" if alive.sum() > most else ""


def _has_image(table: AttemptTable, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows have another task of their run at work on their instance."""
    running = np.flatnonzero((table["status"] == AttemptStatus.RUNNING.value) & (table["left_at"] == 0))
    pair = (table["run"].astype(np.int64) << _NUMBER_BITS) + table.instance_number
    return np.isin(pair[rows], np.unique(pair[running]))
