"""Which runs of one queue and priority have their turn first because of their deadlines?

Those that can still make it, the one with least slack first. Slack is the time until the run has to begin at the
latest: its deadline less what the rest of it takes if it has the whole cluster, at its largest, to itself. Of two runs
that wait, the moments at which they have to begin stand still while time passes, and only whole minutes of them count:
so their order does not change from tick to tick.

A run that is late already stands where it would stand without its deadline. Nothing that is given to it makes its
deadline hold, others' may be lost by it, and an impossible deadline is no way to the front. While nobody knows how long
its tasks last, a run is late when its deadline is over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from argosy.model.moment import Moment
from argosy.model.resources import Resources
from argosy.model.runs import Run
from argosy.model.tasks import TaskStatus

MINUTE_S = 60.0
NOT_URGENT = 1 << 60  # after every minute
NOBODY: Mapping[str, int] = MappingProxyType({})
_LEFT = [TaskStatus.PENDING, TaskStatus.STARTING, TaskStatus.RUNNING]


def latest_starts(moment: Moment, runs: Sequence[Run]) -> Mapping[str, int]:
    """By id, of those that can still make their deadlines: the minute in which each has to begin at the latest."""
    with_deadline = [(run, at) for run in runs if (at := run.deadline_at) is not None]
    if not with_deadline:
        return NOBODY
    whole = _largest_cluster(moment)
    found: dict[str, int] = {}
    for run, deadline_at in with_deadline:
        begin_at = deadline_at - rest_s(run, moment, whole)
        is_known = run.mean_seconds(run.terms.expected_seconds) is not None
        if (begin_at if is_known else deadline_at) >= moment.now:
            found[run.id] = int(begin_at // MINUTE_S)
    return found


def _largest_cluster(moment: Moment) -> Resources | None:
    """With as many instances as there may be, like those that are here. None: nothing is known of it."""
    sizes = [each.total for each in moment.state.instances.values() if each.alive]
    if not sizes:
        return None
    times = max(1.0, moment.policy.max_instances / len(sizes))
    return Resources(*(int(sum(axis) * times) for axis in zip(*sizes, strict=True)))


def rest_s(run: Run, moment: Moment, whole: Resources | None) -> float:
    """Seconds that the rest of it takes at most, whatever the order of its tasks, if it has all of that to itself:
    Graham's bound for tasks on equal workers. What has begun counts as if it were to begin."""
    seconds = run.expected_seconds(moment.policy.attempt_s)
    longest_s = max(seconds, run.longest_s)
    at_once = max(1, min(_places(run, whole), run.terms.max_concurrent or run.task_count))
    if run.task_count <= at_once:
        return longest_s
    tasks = int(run.tasks.counts()[_LEFT].sum())
    return longest_s if tasks <= at_once else longest_s + (tasks * seconds - longest_s) / at_once


def _places(run: Run, whole: Resources | None) -> int:
    most = math.inf
    if whole is not None:
        # Of what there is nothing of yet, nothing is known: a run that waits for its first GPU is not late for that.
        most = min((of // need for need, of in zip(run.needs, whole, strict=True) if need and of), default=math.inf)
    terms = run.terms
    if terms.max_instances and terms.max_tasks_per_instance:
        most = min(most, terms.max_instances * terms.max_tasks_per_instance)
    return int(min(most, run.task_count))
