"""Docker's rule of health, step by step."""

from __future__ import annotations

import pytest

from argosy.emulator.ecs.container_health import HealthWatch, task_health


def said(check: dict[str, object], *runs: tuple[bool, float]) -> list[str]:
    watch = HealthWatch({"command": ["CMD", "x"], **check}, started_at=0.0)
    found = []
    for succeeded, at in runs:
        watch.note(succeeded, at)
        found.append(watch.status)
    return found


def test_consecutive_failures_make_it_unhealthy_and_one_success_healthy_again() -> None:
    runs = [(False, 30.0), (False, 60.0), (True, 90.0), (False, 120.0), (False, 150.0), (False, 180.0), (True, 210.0)]
    unknown, well, ill = "UNKNOWN", "HEALTHY", "UNHEALTHY"
    assert said({"retries": 3}, *runs) == [unknown, unknown, well, well, well, ill, well]


def test_failures_in_the_start_period_do_not_count_unless_it_was_healthy_already() -> None:
    assert said({"retries": 1, "startPeriod": 100}, (False, 30.0), (False, 90.0), (False, 120.0))[-2:] == [
        "UNKNOWN",
        "UNHEALTHY",
    ]
    assert said({"retries": 1, "startPeriod": 100}, (True, 30.0), (False, 60.0)) == ["HEALTHY", "UNHEALTHY"]


def test_numbers_that_are_not_given_are_dockers() -> None:
    watch = HealthWatch({"command": ["CMD", "x"]}, 0.0)
    assert (watch.interval_s, watch.timeout_s) == (30.0, 5.0)


@pytest.mark.parametrize(
    ("main", "side", "expected"),
    [
        ("HEALTHY", "HEALTHY", "HEALTHY"),
        ("HEALTHY", "UNKNOWN", "UNKNOWN"),
        ("UNKNOWN", "UNHEALTHY", "UNHEALTHY"),
    ],
)
def test_the_health_of_a_task_is_that_of_its_essential_containers(main: str, side: str, expected: str) -> None:
    check = {"healthCheck": {"command": ["CMD", "x"]}}
    definitions = [{"name": "main", **check}, {"name": "side", **check}, {"name": "plain"}]
    definitions.append({"name": "extra", "essential": False, **check})
    containers = {"main": main, "side": side, "plain": "UNKNOWN", "extra": "UNHEALTHY"}
    assert task_health(containers, definitions) == expected
    assert task_health({"plain": "UNKNOWN"}, [{"name": "plain"}]) == "UNKNOWN"
