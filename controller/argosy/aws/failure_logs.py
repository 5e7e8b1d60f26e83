"""The ends of the logs of failed attempts, from CloudWatch Logs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping

from argosy import layout
from argosy.aws.cell import TIME_WAS_UP, Cell
from argosy.aws.errors import AWS_ERRORS, FailureKind, classify
from argosy.model.arns import cell_of
from argosy.model.events import Event, NotCarriedOut
from argosy.model.failure_texts import FailuresRead, ReadFailures
from argosy.model.redaction import last_lines

log = logging.getLogger(__name__)
EVENTS, CHARACTERS = 5, 200  # the last events may be blank; kept of a line


class FailureLogs:
    """GetLogEvents, in every cell. A log that cannot be read is a text that is not known."""

    def __init__(self, cells: Mapping[str, Cell], group: str, clock: Callable[[], float]) -> None:
        self._cells, self._group, self._clock = cells, group, clock

    def read(self, action: ReadFailures, deadline: float) -> Iterator[Event]:
        if self._clock() >= deadline:
            yield NotCarriedOut(TIME_WAS_UP)
            return
        yield FailuresRead(action.run_id, tuple(map(self._last_line, action.task_arns)))

    def _last_line(self, task_arn: str) -> str:
        cell = self._cells.get(cell_of(task_arn))
        if cell is None or cell.logs is None:
            return ""
        stream = f"{layout.LOG_PREFIX}/{layout.OWN_CONTAINER}/{task_arn.rpartition('/')[2]}"
        try:
            reply = cell.logs.get_log_events(
                logGroupName=self._group, logStreamName=stream, startFromHead=False, limit=EVENTS
            )
        except AWS_ERRORS as error:
            fault = classify(error)
            if fault.kind is not FailureKind.NOT_FOUND:  # a task may have written nothing
                log.warning("the log of %s cannot be read: %s", task_arn, fault.text)
            return ""
        return last_lines("\n".join(each["message"] for each in reply["events"]), 1, CHARACTERS)
