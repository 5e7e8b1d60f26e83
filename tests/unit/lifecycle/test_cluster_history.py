"""The cluster's history is noted every five minutes while anything is there, and each order when it is placed."""

from __future__ import annotations

from dataclasses import replace

from argosy.lifecycle import cluster_history
from argosy.lifecycle.begin import begin
from argosy.lifecycle.suspension import suspend
from argosy.model.actions import NoteOrder, SetTarget
from argosy.model.cluster_history import (
    EVERY_S,
    KEPT_S,
    MOST_ORDERS,
    MOST_POOLS,
    MOST_RUNS,
    PARTITION,
    ClusterHistoryPiece,
    PoolCount,
)
from argosy.model.events import HostStateChanged, InterruptionWarned
from argosy.model.instances import InstanceStatus
from argosy.model.journal.commit import documents_of_commit
from argosy.model.pools import OrderAnswered, OrderNote, Pool
from argosy.model.run_record import RunRecord
from argosy.model.runs import RunStatus
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.stored.documents import Documents
from tests.builders import (
    NOW,
    POLICY,
    RUN_ID,
    fleet,
    instance_id,
    launched,
    prepared,
    state_with,
    state_with_instance,
    stored,
    submitted,
    the_run,
    told,
)

POOL = "us-east-1/c5.xlarge/us-east-1a"


def pieces(items: Documents) -> list[ClusterHistoryPiece]:
    keys = sorted(key for key in items if key[0] == PARTITION)
    return [ClusterHistoryPiece.from_json(documents.decode(items[key])) for key in keys]


def noted(state: State, items: Documents, at: float) -> State:
    cluster_history.note(state, at)
    return stored(state, items)


def test_a_cluster_in_which_nothing_is_leaves_no_sample() -> None:
    state = state_with()
    cluster_history.note(state, NOW)
    assert (state.sample, state.orders) == (None, [])
    assert len(documents.changed(state)) == 1


def test_samples_are_frequent_at_first_then_every_five_minutes_also_after_a_restart_and_on_a_clock_that_went_back() -> (
    None
):
    state, items = state_with_instance(), Documents()
    due = (0, 10, 20, 40, 80, 160, 320, 320 + EVERY_S, 320 + 2 * EVERY_S)
    for after in sorted({*due, *(each - 1 for each in due[1:]), *(each + 1 for each in due)}) + [100]:
        state = noted(state, items, NOW + after)
    assert [piece.sample.at - NOW for piece in pieces(items) if piece.sample] == sorted([*due, 100])


def test_a_sample_counts_tasks_instances_and_money() -> None:
    state, items = state_with_instance(tasks=10), Documents()
    instance = next(iter(state.instances.values()))
    instance.price_usd_per_hour, instance.on_demand_usd_per_hour, state.spent_usd = 0.5, 2.0, 3.0
    launched(state)
    noted(state, items, NOW + 3600)
    sample = pieces(items)[0].sample
    assert sample is not None
    assert (sample.runs, sample.queued, sample.starting, sample.running) == (1, 9, 1, 0)
    assert (sample.booting, sample.active, sample.leaving, sample.spot, sample.on_demand) == (0, 1, 0, 1, 0)
    assert (sample.usd_per_hour, sample.spent_usd, sample.spent_on_demand_usd) == (0.5, 3.5, 2.0)
    assert 0 < sample.cpu_used < 1
    assert sample.gpu_used == 0
    assert sample.pools == [PoolCount(POOL, 1, 0, state.pools[POOL].target)]


def test_tasks_of_a_suspended_run_are_counted() -> None:
    state = stored(state_with_instance(), {})
    suspend(state, RunRecord.of(the_run(state)), "a fault", NOW)
    cluster_history.note(state, NOW)
    assert state.sample is not None
    assert (state.sample.runs, state.sample.queued) == (1, 10)


def test_once_nothing_is_there_any_more_one_last_sample_says_so() -> None:
    state, items = state_with_instance(), Documents()
    state = noted(state, items, NOW)
    the_run(state).status = RunStatus.CANCELLED
    state.changed_runs.add(RUN_ID)
    for instance in state.instances.values():
        instance.status = InstanceStatus.GONE
        state.changed_instances.add(instance.id)
    for after in (1, 2, 2 * EVERY_S):
        state = noted(state, items, NOW + after)
    first, last = (piece.sample for piece in pieces(items))
    assert first is not None
    assert last is not None
    assert (first.is_at_rest, last.is_at_rest, last.at) == (False, True, NOW + 1)


def test_an_order_is_what_a_commit_adds_to_a_target() -> None:
    state, items = state_with(submitted(), prepared(), fleet()), Documents()
    state.pools[POOL].spot_usd_per_hour = 0.07
    state = stored(state, items)
    begin(state, SetTarget(POOL, 3, 1), NOW, POLICY)
    begin(state, NoteOrder(OrderNote(NOW, 4, 0.3, 0.29, 0.034)), NOW, POLICY)
    state = noted(state, items, NOW)
    told(state, OrderAnswered(POOL, 1))
    begin(state, SetTarget(POOL, 2, 4), NOW + 1, POLICY)
    state = noted(state, items, NOW + 1)
    begin(state, SetTarget(POOL, 0, 0), NOW + 2, POLICY)
    noted(state, items, NOW + 2)
    orders = [order for piece in pieces(items) for order in piece.orders]
    assert [(each.at - NOW, each.pool, each.purchase, each.count) for each in orders] == [
        (0, POOL, "spot", 3), (0, POOL, "on-demand", 1), (1, POOL, "on-demand", 3),
    ]  # fmt: skip
    assert [each.why for each in orders[1:]] == [
        "for tasks without a place, at most 3.4 % above the least it could cost",
        "to keep the minimum number of instances",
    ]
    assert [list(each.runs) for each in orders] == [[the_run(state).number]] * 3
    assert [each.usd_per_hour for each in orders] == [0.07, 0.0, 0.0]


def test_an_order_whose_bound_is_not_known_says_only_what_it_is_for() -> None:
    state = stored(state_with(submitted(), prepared(), fleet()), {})
    begin(state, SetTarget(POOL, 1, 0), NOW, POLICY)
    begin(state, NoteOrder(OrderNote(NOW, 1)), NOW, POLICY)
    cluster_history.note(state, NOW)
    assert [each.why for each in state.orders] == ["for tasks without a place"]


def test_a_found_fleet_with_a_target_was_ordered_by_another_controller() -> None:
    state = stored(state_with(), {})
    told(state, fleet(spot_target=5))
    cluster_history.note(state, NOW)
    assert state.orders == []


def test_an_order_to_a_fleet_that_the_same_commit_meets_is_noted() -> None:
    """So is the first order of each deployment."""
    state = stored(state_with(submitted(), prepared()), {})
    told(state, fleet(spot_target=2))
    begin(state, SetTarget(POOL, 5, 1), NOW, POLICY)
    cluster_history.note(state, NOW)
    assert [(each.purchase, each.count) for each in state.orders] == [("spot", 3), ("on-demand", 1)]


def test_the_last_request_to_a_fleet_that_lags_is_unknown_when_it_is_found() -> None:
    state = stored(state_with(submitted(), prepared()), {})
    told(state, fleet(spot_target=2, is_behind=True))
    cluster_history.note(state, NOW)
    assert state.orders == []


def test_of_very_many_pools_the_largest_are_named_and_all_are_in_the_totals() -> None:
    state = state_with_instance()
    for number in range(MOST_POOLS + 5):
        pool = Pool("us-east-1", f"t{number}.x", "us-east-1a", "fleet", spot_target=number + 2)
        state.pools[pool.key] = pool
    cluster_history.note(state, NOW)
    assert state.sample is not None
    assert len(state.sample.pools) == MOST_POOLS
    assert state.sample.pools[0].target == MOST_POOLS + 6
    assert POOL not in [each.pool for each in state.sample.pools]
    assert state.sample.spot == 1


def test_many_orders_while_very_many_runs_wait_are_a_small_item() -> None:
    state = state_with(submitted(), prepared())
    pools = [Pool("us-east-1", f"t{number}.x", "us-east-1a", "fleet") for number in range(MOST_ORDERS + 5)]
    state.pools, state.changed_pools = {pool.key: pool for pool in pools}, True
    state = stored(state, {})
    for number in range(1_000, 1_000 + 10 * MOST_RUNS):
        state.runs[f"r{number}"] = replace(the_run(state), id=f"r{number}", number=number)
    for pool in pools:
        begin(state, SetTarget(pool.key, 1, 0), NOW, POLICY)
    cluster_history.note(state, NOW)
    assert (len(state.orders), len(state.orders[0].runs)) == (MOST_ORDERS, MOST_RUNS)
    [body] = [body for key, body in documents.changed(state).items() if key[0] == PARTITION]
    assert len(body) < 50_000


def test_a_piece_expires_after_ninety_days() -> None:
    state = state_with_instance()
    cluster_history.note(state, NOW)
    _, expires_at = documents_of_commit(state, NOW)
    assert [at for key, at in expires_at.items() if key[0] == PARTITION] == [NOW + KEPT_S]


def test_an_interruption_counts_once_whether_or_not_its_pool_is_known() -> None:
    state = state_with_instance()
    state.pools.clear()
    for _ in range(2):
        told(state, InterruptionWarned(instance_id(1)))
    told(state, HostStateChanged(instance_id(1), "terminated"), now=NOW + 120)
    assert state.interruptions == 1
