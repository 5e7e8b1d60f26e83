"""Polls of single ECS tasks: DescribeTasks is the only way to learn the health of their containers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from argosy.aws.cell import TIME_WAS_UP, Cell, chunks, read_each
from argosy.aws.errors import AWS_ERRORS, FailureKind, classify
from argosy.messages.ecs import task_seen
from argosy.model.actions import LookAtTasks
from argosy.model.events import Event, NotCarriedOut, TaskSeen


class EcsPolls:
    """DescribeTasks for the tasks of every cell."""

    def __init__(self, cells: Mapping[str, Cell], clock: Callable[[], float]) -> None:
        self._cells, self._clock = cells, clock

    def look(self, action: LookAtTasks, deadline: float) -> Iterator[Event]:
        """What ECS shows, as of the time of the call. A sweep finds the tasks that ECS has forgotten."""
        cell = self._cells.get(action.cell)
        if cell is None:
            yield NotCarriedOut(f"there is no cell {action.cell}")
            return
        for chunk in chunks(list(action.arns)):
            if self._clock() >= deadline or not cell.rates.reads.take(deadline):
                yield NotCarriedOut(TIME_WAS_UP)
                return
            at = self._clock()
            try:
                answer = cell.ecs.describe_tasks(cluster=cell.cluster, tasks=chunk)
            except AWS_ERRORS as error:
                fault = classify(error)
                if fault.kind is FailureKind.THROTTLED:
                    cell.rates.reads.throttled()
                yield NotCarriedOut(fault.text, passing=fault.passing)
                return
            yield from read_each(partial(_seen, at=at), answer["tasks"])


def _seen(task: Mapping[str, Any], at: float) -> TaskSeen:
    return replace(task_seen(task), looked_at=at)
