"""Room that is kept for further tasks: what it keeps, what it buys, that tasks come first, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.api.cluster.headroom import headroom_view
from argosy.figures.headroom import said_headroom
from argosy.figures.numbers import money
from argosy.model.actions import Launch, NoteFloor, SetTarget, Terminate
from argosy.model.events import ClusterScaled, TargetAccepted
from argosy.model.inbox import ScaleRequest
from argosy.model.instances import Purchase
from argosy.model.journal.commit import lines_of_commit
from argosy.model.policy import SparePlaces
from argosy.model.pools import Floor
from argosy.model.resources import Resources
from argosy.model.state import State
from argosy.scheduler.decide import decide
from argosy.scheduler.due import next_due
from argosy.settings.settings import SettingsError, load_settings
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    begun,
    container_instance,
    fleet,
    host,
    instance_id,
    launched,
    moment_of,
    prepared,
    state_with,
    submitted,
    task,
    told,
)

ONE_VCPU = Resources(1024, 1024)


def room(places: int, needs: Resources = ONE_VCPU, purchase: Purchase = Purchase.SPOT) -> dict[str, Any]:
    return {"headroom": (SparePlaces(places, needs, purchase),), "linger_s": 0.0}


def decided(state: State, *kinds: type, **policy: Any) -> list[Any]:
    return [each for each in decide(moment_of(state, NOW, replace(POLICY, **policy))) if isinstance(each, kinds)]


def bought(state: State, **policy: Any) -> int:
    return sum(each.spot_target + each.on_demand_target for each in decided(state, SetTarget, **policy))


def cluster(instances: int, running: int = 1, target: int = 0) -> State:
    """Idle instances of 4 vCPUs, the first with tasks of 1 vCPU of a run that is open."""
    state = state_with(submitted(tasks=max(1, running)), prepared(), fleet(spot_target=target or instances))
    for number in range(1, instances + 1):
        told(state, host(number), container_instance(number, registered_at=NOW - 1e6))
        if number > 1:
            state.instances[instance_id(number)].idle_since = NOW - 1e6
    for number in range(running):
        launched(state, number, number + 1)
        told(state, task(number + 1))
    return state


def test_room_beside_running_tasks_counts_and_an_idle_instance_stays_for_the_rest() -> None:
    state = cluster(instances=3)
    gone = [instance_id(2), instance_id(3)]
    assert [each.instance_ids for each in decided(state, Terminate, **room(3))] == [tuple(gone)]
    assert [each.instance_ids for each in decided(state, Terminate, **room(4))] == [tuple(gone[1:])]
    assert decided(state, Terminate, **room(11)) == []
    assert decided(state, SetTarget, **room(11)) == []


@pytest.mark.parametrize(("places", "instances"), [(3, 1), (4, 2), (7, 2), (8, 3)])
def test_what_is_missing_is_bought_once(places: int, instances: int) -> None:
    state = cluster(instances=1)
    assert bought(state, **room(places)) == (instances if instances > 1 else 0)
    begun(state, decided(state, SetTarget, **room(places)))
    told(state, TargetAccepted(f"{CELL}/c5.xlarge/us-east-1a", instances))
    assert decided(state, SetTarget, **room(places)) == []  # what is ordered counts


def test_nothing_is_kept_without_an_open_run() -> None:
    state = state_with(fleet(spot_target=1), host(1), container_instance(1, registered_at=NOW - 1e6))
    state.instances[instance_id(1)].idle_since = NOW - 1e6
    assert decided(state, Terminate, **room(1))
    assert bought(state_with(fleet()), **room(1)) == 0


@pytest.mark.parametrize(("instances", "tasks"), [(0, 3), (1, 6), (2, 7), (2, 12)])
def test_it_takes_no_place_of_a_task_and_tasks_are_bought_for_first(instances: int, tasks: int) -> None:
    state = state_with(submitted(tasks=tasks), prepared(), fleet(spot_target=instances))
    for number in range(1, instances + 1):
        told(state, host(number), container_instance(number))
    without = decided(state, Launch, linger_s=0.0), bought(state, linger_s=0.0)
    assert len(without[0]) == min(tasks, 4 * instances)
    assert decided(state, Launch, **room(9)) == without[0]
    if tasks > 4 * instances:
        assert bought(state, **room(9)) == without[1]  # the headroom is bought in a later tick


def test_a_limit_that_holds_tasks_back_leaves_nothing_for_the_headroom() -> None:
    """The task needs an instance of another size, and the deployment may have no further one."""
    state = cluster(instances=2)
    large = {"resources": {"vcpus": 8, "memory": 2048}}
    told(state, submitted("large-261121-062733-k3f9", tasks=1, **large), prepared("large-261121-062733-k3f9", **large))
    told(state, fleet("c5.2xlarge"))
    limits = {**room(7), "max_instances": 2}
    assert [each.instance_ids for each in decided(state, Terminate, **limits)] == [(instance_id(2),)]
    assert decided(state, Terminate, **room(7)) == []


def test_the_reason_is_stored_where_room_is_missing() -> None:
    state = cluster(instances=1)
    (note,) = decided(state, NoteFloor, **room(4), max_instances=1)
    assert note == NoteFloor("", "held back by maxInstances of the deployment")
    begun(state, [note])
    told(state, ClusterScaled(ScaleRequest(NOW, 0)))
    assert state.floor.headroom_waiting == note.headroom_waiting  # a user's request does not end it
    assert {"type": "cluster.headroom", "reason": note.headroom_waiting} in lines_of_commit(state)
    assert Floor.from_json(state.floor.to_json()) == state.floor
    (note,) = decided(state, NoteFloor, **room(1, Resources(1024, 1024, 1)))
    assert "GPU" in note.headroom_waiting


def test_room_on_demand_is_no_room_on_spot() -> None:
    state = cluster(instances=1)
    on_demand = room(1, purchase=Purchase.ON_DEMAND)
    (target,) = decided(state, SetTarget, **on_demand)
    assert (target.spot_target, target.on_demand_target) == (1, 1)


def test_a_quiet_controller_is_awake_while_room_is_missing() -> None:
    state = cluster(instances=1, running=0)
    assert next_due(moment_of(state, NOW, replace(POLICY, **room(1)))) == NOW


def test_the_setting_names_a_size_by_a_runs_words() -> None:
    text = [
        {"places": 2, "vcpus": 0.5, "memory": 512, "gpuShareMib": 4000},
        {"places": 1, "gpus": 1, "purchase": "on-demand"},
    ]
    assert load_settings({"headroom": text}).policy().headroom == (
        SparePlaces(2, Resources(512, 512, 0, 4000)),
        SparePlaces(1, Resources(1024, 1024, 1), Purchase.ON_DEMAND),
    )
    with pytest.raises(SettingsError, match=r"headroom\[0\]: gpus and gpuShareMib exclude each other"):
        load_settings({"headroom": [{"places": 1, "gpus": 1, "gpuShareMib": 4000}]})


def test_it_is_said_what_is_kept_at_what_price_and_why_some_is_missing() -> None:
    state = cluster(instances=3)
    view = headroom_view(moment_of(state, NOW, replace(POLICY, **room(4))))
    assert view is not None
    assert view["instances"] == [instance_id(2)]  # three places are beside the task of the first
    assert view["usdPerHour"] == state.instances[instance_id(2)].price_usd_per_hour
    said = "While runs are open, room is kept for 4 tasks of 1 vCPU, 1,024 MiB on spot"
    kept = f"; it keeps 1 instance without tasks for {money(view['usdPerHour'])} an hour ({instance_id(2)})"
    assert said_headroom(view) == f"{said}{kept}."
    view = headroom_view(moment_of(state, NOW, replace(POLICY, **room(2, Resources(512, 512, 0, 4000)))))
    assert view is not None
    said = "While runs are open, room is kept for 2 tasks of 0.5 vCPU, 512 MiB, 4,000 MiB of a GPU on spot"
    assert said_headroom({**view, "waiting": "no capacity"}) == f"{said}; some of it is missing: no capacity."
    assert headroom_view(moment_of(state, NOW)) is None


def test_it_is_said_that_runs_with_caps_do_not_pay_for_room() -> None:
    policy = replace(POLICY, **room(2))
    capped = {"capacity": {"maxHourlyCost": 1}}
    state = state_with(submitted(tasks=1, **capped), prepared(**capped), fleet())
    shown = headroom_view(moment_of(state, NOW, policy))
    assert shown is not None
    assert said_headroom(shown).endswith(
        "some of it is missing: only runs with a budget or an hourly cap are open, and these do not pay for it."
    )
    told(state, submitted("free-261121-062733-k3f9", tasks=1), prepared("free-261121-062733-k3f9"))
    for each in (state, state_with(fleet())):
        shown = headroom_view(moment_of(each, NOW, policy))
        assert shown is not None
        assert shown["waiting"] is None
