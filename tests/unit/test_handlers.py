"""The composition root of the controller hands on what the owner's settings say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from controller import handlers

GOOD, GONE = "controller.placement.fitness:least_allocated", "no_such_module:f"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    names = {
        "ARGOSY_STAGE": "main",
        "ARGOSY_TABLE": "argosy-state",
        "ARGOSY_QUEUE_URL": "http://127.0.0.1:1/queue",
        "ARGOSY_CLUSTER": "argosy",
        "ARGOSY_BUCKET": "results",
        "ARGOSY_LOG_GROUP": "/ecs/argosy/tasks",
        "ARGOSY_CONTROLLER_FUNCTION": "argosy-controller",
        "ARGOSY_TICK_RULE": "argosy-tick",
        "ARGOSY_EXECUTION_ROLE_ARN": "arn:aws:iam::123456789012:role/execution",
        "ARGOSY_TASK_ROLE_ARN": "arn:aws:iam::123456789012:role/task",
        "ARGOSY_SETTINGS": json.dumps({"fitnessFunctions": [GOOD, GONE]}),
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
    }
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    made = (handlers._api, handlers._clients, handlers._controller, handlers._settings)
    for once in made:
        once.cache_clear()
    yield handlers._controller()[2]
    for once in made:
        once.cache_clear()


def test_listed_functions_are_loaded_and_one_that_cannot_be_is_logged_and_stops_nothing(
    engine: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert list(engine.functions.ready) == [GOOD]
    assert list(engine.functions.faults) == [GONE]
    (record,) = caplog.get_records("setup")
    assert (record.levelname, record.__dict__["function"]) == ("ERROR", GONE)
    assert "there is no fitness function" in record.__dict__["fault"]


def test_the_api_admits_what_the_settings_list(engine: Any) -> None:
    assert handlers._api().limits.fitness_functions == {GOOD, GONE}
