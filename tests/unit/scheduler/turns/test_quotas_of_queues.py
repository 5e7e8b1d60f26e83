"""The order at a reached vCPU quota, and which runs do not wait for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from argosy.market.daemons import daemons_of
from argosy.market.offers import offers_of
from argosy.model.actions import Launch, Remark
from argosy.model.events import LaunchAccepted
from argosy.model.policy import VcpuQuota
from argosy.model.pools import as_registered
from argosy.model.state import State
from argosy.scheduler.buying import orders
from argosy.scheduler.decide import decide
from argosy.scheduler.placing.places import assign
from argosy.scheduler.supply.roster import Roster
from argosy.scheduler.turns.caps import OF_A_VCPU, use_of_quotas, vcpus_left
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    begun,
    container_instance,
    fleet,
    host,
    joined,
    moment_of,
    state_with,
    task_arn,
    told,
)
from tests.shared_clusters import QUEUES, run, shared

CPU_ONLY = {"placement": {"constraints": ["attribute:ecs.instance-type == c5.xlarge"]}}
GPU = {"resources": {"vcpus": 1, "memory": 1024, "gpus": 1}}


def deployment(*types: str, document: dict[str, Any] | None = None) -> State:
    state = state_with(*(fleet(each) for each in types))
    return shared(state, document)


def quotas(**vcpus: int) -> tuple[VcpuQuota, ...]:
    """Of spot instances, by family."""
    return tuple(VcpuQuota(CELL, "spot", family, most) for family, most in vcpus.items())


def bought(state: State, *known: VcpuQuota, **policy: Any) -> tuple[Counter[str], dict[str, tuple[int, str]]]:
    """Instances by type; and by run, how many of its tasks found nothing, and why."""
    moment = moment_of(state, policy=replace(POLICY, vcpu_quotas=known, growth_per_tick=100, **policy))
    moment = replace(moment, catalogue=as_registered(moment.catalogue, state.pools.values()))
    offers = offers_of(state.pools.values(), moment.catalogue, NOW, moment.policy, None, daemons_of(state))
    ordered = orders.bought(orders.MarketView(moment, {}, offers), assign(moment, Roster()))
    places, order = ordered.places, ordered.order
    types = Counter[str]()
    for (pool, _), count in order.instances.items():
        types[state.pools[pool].instance_type] += count
    short = zip(places.runs, order.shortfalls, strict=True)
    return types, {its.run.id: (each.tasks, each.reason) for its, each in short}


def test_a_gpu_run_that_waits_for_its_quota_holds_no_cpu_run_back() -> None:
    """The hardest case: the run of the lowest sharer needs a whole quota that others have used a part of, one
    run could use either quota, and one needs the other quota alone."""
    state = deployment("c5.xlarge", "g4dn.xlarge", "g4dn.12xlarge")
    large = run(state, 1, 1, queue="research", resources={"vcpus": 40, "memory": 150_000, "gpus": 4})
    either, small = run(state, 2, 40), run(state, 3, 40, queue="night", **CPU_ONLY)
    types, short = bought(state, *quotas(g=40, standard=48), max_type_share=1.0)
    assert types == {"c5.xlarge": 12}  # no run takes the rest of the quota that the first one waits for
    assert short[large] == (1, f"the vCPU quota of spot G and VT in {CELL} (40)")
    assert short[either][0] + short[small][0] == 80 - 48
    assert short[small][1] == f"the vCPU quota of spot Standard in {CELL} (48)"


def test_a_quota_is_shared_by_weight() -> None:
    state = deployment("c5.xlarge")
    first, second = run(state, 1, 100), run(state, 2, 100, queue="research")
    types, short = bought(state, *quotas(standard=32))
    assert types == {"c5.xlarge": 8}
    assert (short[first][0], short[second][0]) == (92, 76)
    assert {reason for _, reason in short.values()} == {f"the vCPU quota of spot Standard in {CELL} (32)"}


def test_a_run_that_may_use_several_quotas_waits_for_none_of_them_alone() -> None:
    state = deployment("c5.xlarge", "g4dn.xlarge")
    either, picky = run(state, 1, 100, queue="research"), run(state, 2, 100, **CPU_ONLY)
    types, short = bought(state, *quotas(standard=16, g=16))
    assert types == {"c5.xlarge": 4, "g4dn.xlarge": 4}
    assert short[picky][0] == 100 - 4, "a fourth of the quota that both may use"
    assert short[either] == (
        100 - 12 - 16,
        f"the vCPU quota of spot Standard in {CELL} (16) and the vCPU quota of spot G and VT in {CELL} (16)",
    )


def test_what_a_run_has_in_a_quota_counts_there() -> None:
    state = deployment("c5.xlarge", document={"version": 1, "queues": {"a": {}, "b": {}}})
    first = run(state, 1, 100, queue="a")
    told(state, *joined(range(2)))
    started = [each for each in decide(moment_of(state)) if isinstance(each, Launch)]
    begun(state, started)
    for number, each in enumerate(started):
        told(state, LaunchAccepted(each.key, task_arn(number)))
    second = run(state, 2, 100, queue="b")
    types, short = bought(state, *quotas(standard=24))
    assert types == {"c5.xlarge": 4}
    assert (short[first][0], short[second][0]) == (100 - 8 - 4, 100 - 12)  # 12 vCPUs each in the end


def test_use_of_quotas_is_by_the_parts_of_instances() -> None:
    state = deployment("c5.xlarge")
    mine = run(state, 1, 3)
    told(state, host(1), container_instance(1))
    begun(state, [each for each in decide(moment_of(state)) if isinstance(each, Launch)])
    moment = moment_of(state, policy=replace(POLICY, vcpu_quotas=quotas(standard=16, g=8)))
    keys = tuple(sorted(vcpus_left(moment)))
    assert vcpus_left(moment) == {(CELL, "spot", "standard"): 12, (CELL, "spot", "g"): 8}
    used = use_of_quotas(moment, keys)[state.runs[mine].number]
    assert [round(each / OF_A_VCPU, 2) for each in used.tolist()] == [0.0, 3.0]
    assert use_of_quotas(moment_of(deployment("c5.xlarge")), keys) == {}


def test_an_instance_that_does_not_fit_closes_its_quota_for_smaller_ones_of_others() -> None:
    state = deployment("c5.xlarge", "c5.4xlarge")
    told(state, host(1), container_instance(1), host(2), container_instance(2))
    large = run(state, 1, 1, queue="research", resources={"vcpus": 12, "memory": 1024})
    small = run(state, 2, 18)
    types, short = bought(state, *quotas(standard=20))  # 12 of them are left
    assert not types
    assert (short[large][0], short[small][0]) == (1, 10)


def test_an_instance_larger_than_its_whole_quota_closes_it_for_no_run() -> None:
    state = deployment("c5.xlarge", "c5.4xlarge")
    large = run(state, 1, 1, queue="research", resources={"vcpus": 12, "memory": 1024})
    small = run(state, 2, 14)
    types, short = bought(state, *quotas(standard=12))
    assert types == {"c5.xlarge": 3}
    assert (short[large][0], short[small][0]) == (1, 2)


def test_a_run_that_waits_names_the_quota_with_its_size() -> None:
    state = deployment("c5.xlarge")
    run(state, 1, 100)
    run(state, 2, 100, queue="research")
    for most, sentence in (
        (4, f"held back by the vCPU quota of spot Standard in {CELL} (4)"),
        (0, f"a task needs an instance of 4 vCPUs, the vCPU quota of spot Standard in {CELL} is 0"),
    ):
        moment = moment_of(state, policy=replace(POLICY, vcpu_quotas=quotas(standard=most)))
        assert {each.sentence for each in decide(moment) if isinstance(each, Remark)} == {sentence}


def test_an_unknown_instance_type_uses_no_quota() -> None:
    state = deployment("c5.xlarge")
    told(state, host(1), container_instance(1))
    moment = moment_of(state, policy=replace(POLICY, vcpu_quotas=quotas(standard=16)), catalogue={})
    assert vcpus_left(moment) == {(CELL, "spot", "standard"): 16}


def test_a_run_whose_turn_it_is_loses_nothing_because_more_tasks_of_others_could_be_served() -> None:
    """Dollars for one large instance of the other queue, or for small ones with a GPU."""
    state = deployment("c5.4xlarge", "g4dn.xlarge", document={**QUEUES, "limits": {"usdPerHour": 0.43}})
    run(state, 1, 100)
    second = run(state, 2, 1, queue="research", **GPU)
    types, short = bought(state)
    assert set(types) == {"g4dn.xlarge"}
    assert short[second][0] == 0
