"""What do facts about instances do to them and to their tasks?"""

from __future__ import annotations

from typing import Any

import pytest

from argosy.lifecycle.apply import pass_time
from argosy.model.actions import Terminate
from argosy.model.events import (
    Event,
    HostStateChanged,
    LaunchAccepted,
    Observed,
)
from argosy.model.host_care import DrainAsked, DrainRequest, HostHealthChanged
from argosy.model.instances import InstanceStatus
from argosy.model.tasks import TaskStatus
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    begun,
    container_instance,
    host,
    instance_id,
    launched,
    prepared,
    state_with,
    state_with_instance,
    status_of,
    stored,
    submitted,
    task,
    task_arn,
    the_run,
    told,
)


def test_a_terminated_host_loses_its_tasks_and_a_late_stop_event_is_ignored() -> None:
    state = state_with_instance()
    launched(state)
    told(state, task(1, "RUNNING"), HostStateChanged(instance_id(1), "terminated", NOW + 60))
    assert status_of(state) is TaskStatus.PENDING
    assert state.instances[instance_id(1)].status is InstanceStatus.GONE
    told(state, task(1, "STOPPED", 9, exit_code=0))
    assert status_of(state) is TaskStatus.PENDING


def test_shutting_down_takes_no_new_work_but_proves_no_loss_yet() -> None:
    state = state_with_instance()
    launched(state)
    told(state, task(1, "RUNNING"), HostStateChanged(instance_id(1), "shutting-down", NOW))
    assert status_of(state) is TaskStatus.RUNNING
    assert not state.instances[instance_id(1)].placeable


def test_an_instance_is_placeable_only_when_ec2_shows_it_as_ours() -> None:
    state = state_with(container_instance(1))
    assert not state.instances[instance_id(1)].placeable
    assert state.observed_at == 0.0
    told(state, host(1))
    assert state.instances[instance_id(1)].placeable


@pytest.mark.parametrize("change", [{"agent_connected": False}, {"status": "DRAINING"}])
def test_disconnected_and_draining_instances_take_no_work(change: dict[str, object]) -> None:
    state = state_with(host(1), container_instance(1), container_instance(1, version=2, **change))
    assert not state.instances[instance_id(1)].placeable


def test_an_older_picture_of_an_instance_is_ignored() -> None:
    state = state_with(host(1), container_instance(1, version=5))
    told(state, container_instance(1, version=4, agent_connected=False))
    assert state.instances[instance_id(1)].placeable


def test_a_gpu_instance_that_registers_without_its_gpus_is_cordoned() -> None:
    state = state_with(host(1, "p3.2xlarge"), container_instance(1, 8192, 60000, gpus=0))
    instance = state.instances[instance_id(1)]
    assert instance.cordon == "registered 0 of 1 GPUs"
    told(state, container_instance(1, 8192, 60000, gpus=1, version=2))
    assert instance.placeable


def test_what_drains_or_is_impaired_keeps_a_cordon_for_another_reason_and_all_three_are_stored() -> None:
    items: dict[Any, bytes] = {}
    state = stored(state_with(host(1, "p3.2xlarge"), container_instance(1, 8192, 60000, gpus=0)), items)
    told(state, DrainAsked(DrainRequest(NOW, instance_id(1), NOW + 3600)))
    state = stored(state, items)
    told(state, HostHealthChanged(instance_id(1), "ECS says IMPAIRED", NOW))
    instance = stored(state, items).instances[instance_id(1)]
    assert (instance.cordon, instance.drain_until) == ("registered 0 of 1 GPUs", NOW + 3600)
    assert instance.impaired == {"ecs": "ECS says IMPAIRED"}


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (DrainAsked(DrainRequest(NOW, instance_id(1), NOW + 3600)), "drained by a user until 2027-01-15 09:00:00 UTC"),
        (HostHealthChanged(instance_id(1), "ECS says IMPAIRED", NOW), "impaired: ECS says IMPAIRED"),
    ],
    ids=["drained", "impaired"],
)
def test_once_another_cordon_is_lifted_the_drain_or_impairment_says_why_again(event: Event, words: str) -> None:
    state = state_with(host(1, "p3.2xlarge"), container_instance(1, 8192, 60000, gpus=0))
    told(state, event)
    told(state, container_instance(1, 8192, 60000, gpus=1, version=2), now=NOW + 5)
    pass_time(state, NOW + 10, POLICY)
    instance = state.instances[instance_id(1)]
    assert instance.cordon == words
    assert not instance.placeable
    state.changed_instances.clear()
    pass_time(state, NOW + 20, POLICY)
    assert not state.changed_instances  # it is stored once


def test_a_drain_of_an_instance_that_has_ended_or_is_released_changes_nothing() -> None:
    state = state_with(*(each(number) for number in (1, 2) for each in (host, container_instance)))
    told(state, host(1, state="terminated"))
    begun(state, [Terminate(CELL, (instance_id(2),))])
    told(state, *(DrainAsked(DrainRequest(NOW, instance_id(number), NOW + 3600)) for number in (1, 2, 3)))
    assert {each.drain_until for each in state.instances.values()} == {0.0}
    assert not any(each.cordon for each in state.instances.values())


def test_hosts_absent_from_a_complete_listing_are_gone_after_the_quiet_time_only() -> None:
    state = state_with_instance()
    told(state, Observed(NOW + 60))
    assert state.instances[instance_id(1)].alive
    told(state, Observed(NOW + 400, hosts_complete=False), Observed(NOW + 401))
    assert state.instances[instance_id(1)].alive
    told(state, Observed(NOW + 600, hosts=(host(1),)), Observed(NOW + 700), Observed(NOW + 900))
    assert state.instances[instance_id(1)].alive  # it was seen in between: the quiet time restarts
    told(state, Observed(NOW + 1000))
    assert not state.instances[instance_id(1)].alive


def test_tasks_absent_from_complete_listings_are_lost_after_the_quiet_time_only() -> None:
    state = state_with_instance()
    launched(state)
    told(state, task(1, "RUNNING"))
    shown = (host(1),)
    told(state, Observed(NOW + 400, hosts=shown), Observed(NOW + 500, hosts=shown))
    assert status_of(state) is TaskStatus.RUNNING
    told(state, Observed(NOW + 900, hosts=shown, tasks_complete=False))
    assert status_of(state) is TaskStatus.RUNNING
    told(state, Observed(NOW + 901, hosts=shown))
    assert status_of(state) is TaskStatus.PENDING


def test_pinned_gpus_are_kept_as_a_mask_over_the_registration_order() -> None:
    state = state_with(
        submitted(resources={"vcpus": 1, "memory": 1024, "gpus": 1}),
        prepared(resources={"vcpus": 1, "memory": 1024, "gpus": 1}),
        host(1, "p3.8xlarge"),
        container_instance(1, 32768, 200000, gpus=4),
    )
    key = launched(state)
    told(state, LaunchAccepted(key, task_arn(1)), task(1, "RUNNING", gpu_ids=("GPU-1-2",)))
    told(state, task(1, "STOPPED", 3, exit_code=0))
    assert the_run(state).tasks["gpu_mask"][0] == 0b100
