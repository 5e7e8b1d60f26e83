"""Which tasks really run, and which have succeeded? Millions of them, counted on the instances themselves."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from argosy.emulator.ec2.service import Ec2Instance
from argosy.messages.ecs import key_of_task
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.harness.simulation.world.world import World

JSON = dict[str, Any]


class Census:
    """The workload of several worlds and a sink of each: it sees every task start and end."""

    def __init__(self, tasks: int, shortest_s: float, longest_s: float) -> None:
        self.started = np.zeros(tasks, dtype=np.uint16)
        self.ended_well = np.zeros(tasks, dtype=np.uint16)
        self.running = np.zeros(tasks, dtype=np.int8)
        self.launches: Counter[str] = Counter()
        """By Region."""
        self.twice: list[str] = []
        """Tasks that started while another of their attempts ran: there must be none."""
        self._index: dict[str, int] = {}
        self._shortest_s, self._longest_s = shortest_s, longest_s

    def attend(self, world: World) -> None:
        """Count the events there."""

        def course(task: JSON, instance: Ec2Instance) -> TaskBehaviour:
            return self._starts(world, task)

        world.workload = course
        world.sinks.append(self._hears)

    def _starts(self, world: World, task: JSON) -> TaskBehaviour:
        key = key_of_task(task)
        if key is None:
            return TaskBehaviour()
        self.launches[world.region] += 1
        self.started[key.index] += 1
        if self.running[key.index]:
            self.twice.append(f"task {key.index}: {task['taskArn']}")
        self.running[key.index] += 1
        self._index[task["taskArn"]] = key.index
        share = world.share("length", key.index, key.attempt)
        return TaskBehaviour(duration_s=self._shortest_s + (self._longest_s - self._shortest_s) * share)

    def _hears(self, message: JSON) -> None:
        detail = message["detail"]
        if message["detail-type"] != "ECS Task State Change" or detail["lastStatus"] != "STOPPED":
            return
        index = self._index.pop(detail["taskArn"], None)
        if index is not None:  # else it never reached its instance
            self.running[index] -= 1
            self.ended_well[index] += any(each.get("exitCode") == 0 for each in detail["containers"])
