"""A run that is closed while it is read: whichever read the commits come before, every attempt is shown once."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from argosy.api import reading
from argosy.api.history.attempts import ALIVE
from argosy.aws.cell import Coordination, HomeClients
from argosy.aws.items import S3ItemsReader
from argosy.aws.results import Results
from argosy.model.actions import CloseRun
from argosy.model.ended_attempts import Outcome
from tests.builders import (
    NOW,
    RUN_ID,
    MemoryStore,
    container_instance,
    fleet,
    host,
    launched,
    prepared,
    submitted,
    task,
    told,
)
from tests.fakes.api import Desk
from tests.fakes.aws import Clock, ScriptedClient
from tests.harness.simulation.world.s3 import S3Model

END = NOW + 60


class ReadStore(MemoryStore):
    """Does something before one of its reads."""

    def __init__(self) -> None:
        super().__init__()
        self.reads, self.at_read = 0, 0
        self.before_it: Callable[[], None] = lambda: None

    def _read(self) -> None:
        self.reads += 1
        if self.reads == self.at_read:
            self.before_it()

    def read(self, key: Any) -> bytes | None:
        self._read()
        return super().read(key)

    def page(self, *args: Any, **options: Any) -> Any:
        self._read()
        return super().page(*args, **options)

    def read_partition(self, partition: str) -> dict[str, bytes]:
        self._read()
        return super().read_partition(partition)


class Closing:
    """A run of two tasks, one of which runs its second attempt, and all that closes it."""

    def __init__(self) -> None:
        self.desk, self.store, self.s3 = Desk(), ReadStore(), S3Model()
        self.desk.store = self.desk.api.store = self.store
        self.desk.api.objects = S3ItemsReader(self.s3)
        events = ScriptedClient("events", put_events=lambda **request: {"FailedEntryCount": 0, "Entries": []})
        together = Coordination(appended=lambda run_id, after: reading.appended(self.store, run_id, after))
        self.results = Results(HomeClients(self.s3, events), Clock(END), together)
        state = self.desk.state
        told(state, submitted(tasks=2, expects_result=False), prepared(), fleet(spot_target=1), host(1))
        told(state, container_instance(1))
        for index, number, attempt, code in ((0, 1, 1, 3), (1, 2, 1, 0)):
            launched(state, index=index, number=number, attempt=attempt)
            told(state, task(number, "STOPPED", 3, started_at=NOW + 1, stopped_at=END, exit_code=code), now=END)
            self.desk.commit()
        launched(state, index=0, number=3, attempt=2)
        told(state, task(3, "RUNNING"))
        self.desk.commit()

    def close(self) -> None:
        """The last attempt ends; its row is folded; the run is closed: in two commits."""
        self.store.at_read = 0
        told(self.desk.state, task(3, "STOPPED", 4, exit_code=0, started_at=NOW, stopped_at=END + 5), now=END + 5)
        self.desk.commit()
        told(self.desk.state, *self.results.end(CloseRun(RUN_ID), self.desk.state), now=END + 6)
        self.desk.commit()
        assert RUN_ID not in self.desk.state.runs

    def reply(self, at_read: int, action: str, **fields: Any) -> dict[str, Any]:
        """To a reader before one of whose reads the run is closed. 0 = it is not."""
        self.store.reads, self.store.at_read, self.store.before_it = 0, at_read, self.close
        return self.desk.body(action, runId=RUN_ID, **fields)


def interleaved(action: str, **fields: Any) -> list[dict[str, Any]]:
    """The replies, with the run closed before the first read, the second, and so on."""
    whole = Closing()
    whole.reply(0, action, **fields)
    return [Closing().reply(number, action, **fields) for number in range(1, whole.store.reads + 1)]


def values(view: dict[str, Any], name: str) -> list[int]:
    column = view["columns"][name]
    return [int(each) for each in np.frombuffer(base64.b64decode(column["data"]), column["dtype"])]


def test_attempts_are_listed_once_each() -> None:
    replies = interleaved("ListAttempts")
    for view in replies:
        rows = zip(values(view, "index"), values(view, "attempt"), values(view, "outcome"), strict=True)
        outcomes = {(index, attempt): outcome for index, attempt, outcome in rows}
        assert (len(outcomes), view["rows"]) == (3, 3)
        assert outcomes[0, 1] == Outcome.FAILED
        assert outcomes[1, 1] == Outcome.SUCCEEDED
        assert outcomes[0, 2] in (ALIVE, Outcome.SUCCEEDED)
    assert len(replies) > 2
    assert {values(view, "outcome")[-1] for view in replies} == {ALIVE, Outcome.SUCCEEDED}


def test_a_tasks_attempts_are_shown_once_each() -> None:
    for view in interleaved("DescribeTask", index=0):
        assert [(each["attempt"], each["outcome"]) for each in view["attempts"]] in (
            [(1, "FAILED"), (2, None)],
            [(1, "FAILED"), (2, "SUCCEEDED")],
        )


@pytest.mark.parametrize("action", ["DescribeHistory", "DescribeRun", "ListTasks", "ListChanges"])
def test_what_else_is_asked_of_it_is_answered(action: str) -> None:
    for view in interleaved(action):
        if action == "ListTasks":
            assert [each["index"] for each in view["tasks"]] == [0, 1]
        if action == "DescribeHistory":
            assert (len(view["instances"]), len(view["failures"])) == (1, 1)
        if action == "ListChanges":
            assert [each["type"] for each in view["changes"]].count("run.closed") <= 1
