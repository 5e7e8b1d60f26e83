"""For which runs do only the logs show whether their tasks failed alike?"""

from __future__ import annotations

from collections.abc import Iterator

from argosy.lifecycle.run_stops import awaits_logs
from argosy.model.failure_texts import MOST_READ, ReadFailures
from argosy.model.moment import Moment


def log_reads(moment: Moment) -> Iterator[ReadFailures]:
    """The latest failures of each."""
    for run in moment.state.runs.values():
        if awaits_logs(run, moment.policy):
            arns = [each.task_arn for each in run.failures if each.task_arn]
            yield ReadFailures(run.id, tuple(arns[-MOST_READ:]))
