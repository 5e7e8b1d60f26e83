"""What is noted when an attempt starts: boot, pull and start by their own times, and which instance holds the image."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.api.runs.costs import start_up_view
from argosy.model.run_record import RunRecord
from argosy.model.start_ups import MOST_IMAGES, StartUps, image_key, with_image
from argosy.model.state import State
from tests.builders import (
    NOW,
    container_instance,
    fleet,
    host,
    instance_id,
    launched,
    prepared,
    state_with,
    state_with_instance,
    submitted,
    task,
    the_run,
    told,
)

PULLED: dict[str, Any] = {"pull_started_at": NOW + 1, "pull_stopped_at": NOW + 81, "started_at": NOW + 84}


def key_of(state: State) -> str:
    run = the_run(state)
    return image_key(run.image, run.task_definition)


def test_a_first_attempt_is_split_into_boot_pull_and_start() -> None:
    state = state_with(submitted(tasks=2), prepared(), fleet(spot_target=1), host(1, launched_at=NOW))
    told(state, container_instance(1, registered_at=NOW + 90), now=NOW + 90)
    launched(state, now=NOW + 90)
    times = {name: at + 90 for name, at in PULLED.items()}
    told(state, task(1, **times), now=NOW + 175)
    run, instance = the_run(state), state.instances[instance_id(1)]
    usd = 80 * 0.25 * instance.price_usd_per_hour / 3600
    assert run.start_ups == StartUps(1, 90.0, 1, 80.0, pytest.approx(usd), 1, pytest.approx(4.0))
    assert instance.images == {key_of(state): NOW + 171}
    shown = start_up_view(RunRecord.of(run))
    assert (shown["bootSeconds"], shown["pullSeconds"]) == (90.0, 80.0)
    assert shown["usd"] == pytest.approx(usd)


def test_an_attempt_counts_once_however_often_and_late_it_is_seen() -> None:
    state = state_with_instance()
    launched(state)
    for version in (2, 3, 4):
        told(state, task(1, version=version, **PULLED))
    told(state, task(1, "STOPPED", 5, exit_code=0, **PULLED))
    assert (the_run(state).start_ups.pulls, the_run(state).start_ups.starts) == (1, 1)
    launched(state, 1, 2)
    told(state, task(2, "STOPPED", 5, exit_code=0, **PULLED))  # its RUNNING was lost
    assert the_run(state).start_ups.starts == 2


def test_only_attempts_that_waited_for_the_image_count_as_pulls() -> None:
    """The second one began its pull while the first was pulling; the third only checks what is there."""
    state = state_with_instance()
    for number, (began, ended) in enumerate([(1, 81), (40, 82), (100, 101)], start=1):
        launched(state, number - 1, number)
        times = {"pull_started_at": NOW + began, "pull_stopped_at": NOW + ended, "started_at": NOW + ended + 1}
        told(state, task(number, **times))
    assert (the_run(state).start_ups.pulls, the_run(state).start_ups.pull_s) == (2, 80.0 + 42.0)
    assert the_run(state).start_ups.starts == 3


def test_an_instance_that_was_there_before_the_run_has_no_boot_of_the_run() -> None:
    state = state_with(fleet(spot_target=1), host(1, launched_at=NOW - 500), container_instance(1, registered_at=NOW))
    told(state, submitted(), prepared())
    launched(state)
    told(state, task(1, **PULLED))
    assert the_run(state).start_ups.boots == 0


def test_without_pull_times_the_image_is_held_once_the_task_runs_and_no_pull_is_made_up() -> None:
    state = state_with_instance()
    launched(state)
    told(state, task(1, started_at=NOW + 3))
    assert state.instances[instance_id(1)].images == {key_of(state): NOW + 3}
    assert (the_run(state).start_ups.pulls, the_run(state).start_ups.starts) == (0, 1)


def test_a_task_that_never_started_leaves_no_image() -> None:
    state = state_with_instance()
    launched(state)
    told(state, task(1, "STOPPED", 3, stop_code="TaskFailedToStart", reason="CannotPullContainerError: no"))
    assert state.instances[instance_id(1)].images == {}
    assert the_run(state).start_ups == StartUps()


def test_an_instance_remembers_its_latest_images() -> None:
    images: dict[str, float] = {}
    for number in range(MOST_IMAGES + 3):
        images = with_image(images, f"{number:08x}", NOW + number)
    assert sorted(images) == [f"{number:08x}" for number in range(3, MOST_IMAGES + 3)]


def test_the_record_keeps_the_sums_and_an_older_one_has_none() -> None:
    state = state_with_instance()
    launched(state)
    told(state, task(1, **PULLED))
    stored = RunRecord.of(the_run(state)).to_json()
    assert RunRecord.from_json(stored).start_ups == the_run(state).start_ups
    assert RunRecord.from_json({**stored, "start_ups": [*the_run(state).start_ups, 7]}).start_ups.pulls == 1
    del stored["start_ups"]
    assert RunRecord.from_json(stored).start_ups == StartUps()
