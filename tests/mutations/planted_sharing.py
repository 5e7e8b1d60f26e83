"""Planted bugs about the order at a limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from argosy.lifecycle import apply as apply_module
from argosy.market import on_demand
from argosy.market.limits import Headroom
from argosy.model.cluster_history import EVERY_S
from argosy.model.inbox import SharingRequest
from argosy.model.run_terms import DEFAULT_QUEUE
from argosy.model.runs import Run
from argosy.model.shares.recent_use import RecentUse
from argosy.model.shares.sharing import Sharing
from argosy.model.state import State
from argosy.placement.demand import Batch
from argosy.scheduler.buying import orders, purchase_shares, whole_limits
from argosy.scheduler.buying.capped_demand import CappedDemand
from argosy.scheduler.buying.purchase_shares import Due
from argosy.scheduler.turns import caps, fair_order, fair_share, share_levels
from argosy.scheduler.turns import turns as turns_of_tick
from argosy.scheduler.turns.caps import CapRoom
from argosy.scheduler.turns.fair_order import FairOrder
from argosy.scheduler.turns.fair_share import FairShare
from argosy.scheduler.upkeep import upkeep
from argosy.sharing import alternatives, bounds, fill, history, levels
from argosy.sharing.bounds import QueueBounds
from argosy.sharing.columns import ONE_FACTOR, IntArray, Limits
from tests.harness.simulation.audit.sharing import SharingChecker
from tests.mutations.catalogue import Check, Patch, planted, scenario
from tests.mutations.planted_once_missed import reworded

BY_HAND, CLUSTER = "tests.unit.sharing.test_fill", "tests.unit.scheduler.turns.test_sharing_a_cluster"
LIFTING, SCENARIO = "tests.unit.scheduler.turns.test_share_levels", "tests.scenarios.test_sharing"
SATURATED = "tests.simulation.test_sharing"
QUOTAS = "tests.unit.scheduler.turns.test_quotas_of_queues"
CAPS = "tests.unit.scheduler.turns.test_caps_of_queues"
DEADLINES = "tests.unit.scheduler.turns.test_deadlines_in_a_queue"
LATELY, HISTORY = "tests.unit.scheduler.turns.test_recent_use", "tests.unit.sharing.test_history"
CAPPED_TRIALS = scenario("tests.simulation.test_sharing", "within_caps", range(2))
ORACLE = scenario(BY_HAND, "test_the_closed_form_equals_dealing_out_one_task_at_a_time")
TRIALS = scenario("tests.simulation.test_sharing", "trials_find_nothing", range(3))


@planted("the launch limit of a tick is ignored: the run placed first starts all its tasks", check=scenario(
    CLUSTER, "test_launches_of_a_tick_are_shared"
))  # fmt: skip
def level_without_launches(patch: Patch) -> None:
    patch.setattr(FairShare, "launched", lambda self, placed, cell_of, room: list(placed))


@planted("a limit that is reached is closed for all runs", check=scenario(
    BY_HAND, "test_no_run_waits_for_a_limit_that_it_does_not_need"
))  # fmt: skip
def limit_closed_for_all(patch: Patch) -> None:
    real = fill._Allotment._give_ties

    def give_ties(self: Any, counts: IntArray) -> None:
        real(self, counts)
        self.closed = self.closed | self.closed.any()

    patch.setattr(fill._Allotment, "_give_ties", give_ties)


@planted("no limit is ever closed: small tasks overtake a large one", check=scenario(
    BY_HAND, "test_a_large_task_is_not_overtaken_by_small_ones_in_its_limit"
))  # fmt: skip
def small_starve_large(patch: Patch) -> None:
    real = fill._Allotment._give_ties

    def give_ties(self: Any, counts: IntArray) -> None:
        before = self.counts.sum()
        real(self, counts)
        if self.counts.sum() == before and self.closed.any():  # what did not fit is passed over, and others go on
            self.takes = np.where((self.takes > self.free).any(axis=1)[:, None], self.takes, 0)

    patch.setattr(fill._Allotment, "_give_ties", give_ties)


@planted("ties go by a hash instead of the sharers' order", check=ORACLE)
def ties_by_hash(patch: Patch) -> None:
    real = fill.keys

    def keys(starts: IntArray, steps: IntArray, task: IntArray) -> IntArray:
        found: IntArray = real(starts, steps, task) * 1_024 + (starts.sum(axis=1) + task) * 2_654_435_761 % 1_024
        return found

    patch.setattr(fill, "keys", keys)


@planted("a weight of 0 divides: such a queue gets as much as one of weight 1", check=scenario(
    CLUSTER, "test_weight_0_gets_what_is_left"
))  # fmt: skip
def weight_0_is_1(patch: Patch) -> None:
    real = fair_order.FairOrder._sharers

    def sharers(self: Any, used: IntArray) -> Any:
        found = real(self, used)
        return replace(found, weight=np.maximum(found.weight, 1))

    patch.setattr(fair_order.FairOrder, "_sharers", sharers)


@planted("what may be ordered goes to the first run", check=scenario(
    CLUSTER,
    "test_a_run_of_one_task_gets_its_instance_although_the_first_run_would_take_all_that_may_be_ordered",
))  # fmt: skip
def growth_by_first_run(patch: Patch) -> None:
    def due_instances(moment: Any, places: Any, wanted: Sequence[Batch], *given: Any) -> list[Due]:
        return [Due(batch.count) for batch in wanted]

    patch.setattr(orders, "due_instances", due_instances)


@planted("a run that may use another quota waits for the full one", check=scenario(
    QUOTAS, "test_a_run_that_may_use_several_quotas_waits_for_none_of_them_alone"
))  # fmt: skip
def no_other_way(patch: Patch) -> None:
    patch.setattr(alternatives, "_past_closed", lambda its, at, closed: at)


@planted("a run that switches to another quota still buys from the closed one", check=scenario(
    QUOTAS, "test_a_run_that_may_use_several_quotas_waits_for_none_of_them_alone"
))  # fmt: skip
def closed_quota_is_bought_in(patch: Patch) -> None:
    real = orders._part
    patch.setattr(orders, "_part", lambda backlog, tasks, shut: real(backlog, tasks, frozenset()))


@planted("a share that a run's own limits cannot pay for goes to no other run", check=scenario(
    CAPS, "test_what_a_run_may_not_buy_within_its_own_limits_is_bought_for_the_others"
))  # fmt: skip
def unaffordable_shares_are_kept(patch: Patch) -> None:
    def shared_order(market: Any, places: Any, demand: Any, told: str) -> Any:
        due = orders.due_instances(market.moment, places, demand, market.offers, told)
        return orders.buy_in_turn(market, demand, due)

    patch.setattr(orders, "_shared_order", shared_order)


@planted("what is used of a quota already does not count", check=scenario(
    QUOTAS, "test_what_a_run_has_in_a_quota_counts_there"
))  # fmt: skip
def use_of_quotas_is_forgotten(patch: Patch) -> None:
    patch.setattr(purchase_shares, "use_of_quotas", lambda moment, keys: {})


@planted("an order that serves more tasks takes what is due to others", check=scenario(
    QUOTAS, "test_a_run_whose_turn_it_is_loses_nothing_because_more_tasks_of_others_could_be_served"
))  # fmt: skip
def more_tasks_are_better(patch: Patch) -> None:
    real = orders.buy
    patch.setattr(
        orders, "buy", lambda parts, offers, limits, *more: real(parts, offers, replace(limits, in_turn=False), *more)
    )


@planted("results are looked up for the first run first", check=scenario(
    CLUSTER, "test_result_look_ups_and_closings_take_turns"
))  # fmt: skip
def verifications_first_come(patch: Patch) -> None:
    def shares(state: State, wants: Mapping[str, int], room: int) -> dict[str, int]:
        found = {}
        for run_id, count in wants.items():
            found[run_id] = min(count, room)
            room -= found[run_id]
        return found

    patch.setattr(upkeep, "shares", shares)


@planted("owners do not divide the weight of their queue", check=scenario(
    CLUSTER, "test_owners_divide_the_weight_of_their_queue"
))  # fmt: skip
def owners_multiply(patch: Patch) -> None:
    real = levels.scaled
    patch.setattr(
        levels,
        "scaled",
        lambda amount, capacity, weight, parts, *more: real(amount, capacity, weight, parts * 0 + 1, *more),
    )


@planted("what is used already does not count", check=scenario(
    CLUSTER, "test_a_run_with_places_waits_for_those_without"
))  # fmt: skip
def use_is_forgotten(patch: Patch) -> None:
    real = fair_order.FairOrder._sharers
    patch.setattr(fair_order.FairOrder, "_sharers", lambda self, used: real(self, used * 0))


@planted("room on instances that are on their way goes to the first run", check=scenario(
    CLUSTER, "test_what_is_bought_for_one_queue_is_not_promised_to_another"
))  # fmt: skip
def promises_first_come(patch: Patch) -> None:
    def dealt_out(self: Any, batches: Sequence[Batch], supply: Any, fitness: Any) -> Any:
        from collections import Counter

        from argosy.placement.demand import Queue
        from argosy.placement.pass_state import PassState

        return Counter(), PassState(supply, Queue.of(batches))

    patch.setattr(FairShare, "_dealt_out", dealt_out)


@planted("a run whose queue is there no more brings the tick down", check=scenario(
    CLUSTER, "test_a_run_of_a_removed_queue_is_in_the_default_one"
))  # fmt: skip
def queue_unknown_after_another_document(patch: Patch) -> None:
    assert DEFAULT_QUEUE
    patch.setattr(fair_order, "sharer_of", lambda run, queues: (run.terms.queue, queues[run.terms.queue] and ""))


@planted("of two documents that follow one revision both come into force", check=scenario(
    CLUSTER, "test_of_two_documents_that_follow_one_revision_the_first_counts"
))  # fmt: skip
def overtaken_document_counts(patch: Patch) -> None:
    def ask(state: State, request: SharingRequest) -> None:
        state.sharing = state.sharing.with_document(request.document, request.requested_at)
        state.changed_sharing = True

    patch.setattr(apply_module.user_requests, "change_sharing", ask)


@planted("queues share nothing: the first run comes first", check=TRIALS)
def queues_share_nothing(patch: Patch) -> None:
    patch.setattr(fair_order.FairOrder, "is_shared", property(lambda self: False))


@planted("a cap is looked at when all is bought", check=scenario(CAPS, "test_no_instance_is_ordered_above_a_cap"))
def cap_checked_after_buying(patch: Patch) -> None:
    def of(cls: Any, dealing: Any, wanted: Sequence[Batch], run_ids: Sequence[str], offers: Any) -> Any:
        wants = np.array([batch.count for batch in wanted], dtype=np.int64)
        return cls(dealing.caps, wants * 0, wants, wants, ("",) * len(wants))

    patch.setattr(CappedDemand, "of", classmethod(of))
    patch.setattr(CappedDemand, "purses", lambda self, limits, left: {})


@planted("a queue is held to the cap of another one", check=CAPPED_TRIALS)
def cap_of_another_queue(patch: Patch) -> None:
    real = CapRoom.left.fget  # type: ignore[attr-defined]
    patch.setattr(CapRoom, "left", property(lambda self: np.roll(real(self), 1, axis=0)))


@planted("at its cap a queue keeps the room that it was due to", check=scenario(
    CAPS, "test_room_that_a_queue_may_not_use_goes_to_the_others"
))  # fmt: skip
def cap_keeps_room(patch: Patch) -> None:
    real = fair_order.FairOrder.dealt

    def dealt(self: Any, *given: Any) -> Any:
        return real(self, *given[:5])  # without caps, which only the starts are held to

    patch.setattr(fair_order.FairOrder, "dealt", dealt)


@planted("what runs already does not count against a cap", check=scenario(CAPS, "test_what_runs_already_counts"))
def cap_forgets_use(patch: Patch) -> None:
    patch.setattr(caps, "use_by_run", lambda state, numbers: {})


@planted("dollars an hour are no limit of an order", check=scenario(
    CAPS, "test_no_order_takes_the_deployment_above_its_dollars"
))  # fmt: skip
def dollars_are_no_limit(patch: Patch) -> None:
    patch.setattr(Headroom, "_usd_room", lambda self, offer: self.room)


@planted("guarantees are served after all other turns", check=scenario(
    CAPS, "test_a_guarantee_is_served_before_the_weights"
))  # fmt: skip
def guarantee_served_last(patch: Patch) -> None:
    patch.setattr(fill, "_allot_guarantees", lambda allotment, *given: allotment.counts.copy())


@planted("what is not lent is lent", check=scenario(
    CAPS, "test_a_guarantee_that_is_not_lent_is_kept_from_others_even_if_unused"
))  # fmt: skip
def lend_is_ignored(patch: Patch) -> None:
    patch.setattr(CapRoom, "kept", lambda self, unit: {})
    patch.setattr(CappedDemand, "within", lambda self: self.caps.within(np.zeros(len(self.caps.asks), dtype=np.int64)))


@planted("recent use alone decides: the queue that used least lately gets everything", check=scenario(
    LATELY, "test_a_queue_that_recently_used_everything_still_gets_a_part"
))  # fmt: skip
def history_as_key(patch: Patch) -> None:
    real = FairOrder.of.__func__  # type: ignore[attr-defined]

    def of(cls: Any, state: State, runs: Sequence[Run], *more: Any) -> Any:
        found = real(cls, state, runs, *more)
        return replace(found, weight=np.where(found.factor == found.factor.max(initial=0), found.weight, 0))

    patch.setattr(FairOrder, "of", classmethod(of))


@planted("what was used lately counts without bounds", check=scenario(
    HISTORY, "test_the_factor_stays_between_a_quarter_and_four"
))  # fmt: skip
def history_without_bounds(patch: Patch) -> None:
    patch.setattr(history, "LEAST_FACTOR", 1)


@planted("what was used lately is forgotten by ticks, not by time", check=scenario(
    HISTORY, "test_after_one_half_life_it_counts_half"
))  # fmt: skip
def history_by_ticks(patch: Patch) -> None:
    real = RecentUse.moved_on
    patch.setattr(
        RecentUse, "moved_on", lambda self, used, whole, now, half_life_s: replace(
            real(replace(self, at=now - EVERY_S), used, whole, now, half_life_s), at=now
        )
    )  # fmt: skip


@planted("what was used lately is noted, and decides nothing", check=scenario(
    "tests.simulation.test_sharing", "with_memory", range(6, 7)
))  # fmt: skip
def history_decides_nothing(patch: Patch) -> None:
    patch.setattr(fair_order, "factors", lambda recent, weights: dict.fromkeys(weights, ONE_FACTOR))


@planted("a controller that was away goes by what it last noted", check=scenario(
    LATELY, "test_a_controller_that_was_away_first_forgets_by_the_time_that_has_passed"
))  # fmt: skip
def history_stands_still(patch: Patch) -> None:
    patch.setattr(apply_module.user_requests, "note_use", lambda state, now: None)


@planted("a run that has missed its deadline comes before one that can still meet its own", check=scenario(
    DEADLINES, "test_a_late_run_is_ordered_as_without_its_deadline"
))  # fmt: skip
def late_runs_first(patch: Patch) -> None:
    real = fair_order.latest_starts
    patch.setattr(turns_of_tick, "latest_starts", late := lambda moment, runs: real(replace(moment, now=0.0), runs))
    patch.setattr(fair_order, "latest_starts", late)


@planted("a deadline makes a queue come before the others", check=scenario(
    DEADLINES, "test_a_deadline_gives_no_share_of_another_queue"
))  # fmt: skip
def deadlines_across_queues(patch: Patch) -> None:
    real = FairOrder.of.__func__  # type: ignore[attr-defined]

    def of(cls: Any, state: State, runs: Sequence[Run], *urgent: Any) -> Any:
        found = real(cls, state, runs, *urgent)
        hurries = {found.row[run_id] for each in urgent for run_id in each}
        rows = np.arange(len(found.weight))
        return replace(found, weight=np.where(np.isin(rows, [*hurries]), 1_000, found.weight))

    patch.setattr(FairOrder, "of", classmethod(of))


@planted("how much is left to do does not count, only the deadline", check=scenario(
    DEADLINES, "test_not_the_deadline_but_what_is_left_to_do_decides"
))  # fmt: skip
def work_left_is_forgotten(patch: Patch) -> None:
    patch.setattr(fair_order, "rest_s", lambda run, moment, whole: 0.0)


@planted("within a queue the newest run comes first", check=scenario(
    "tests.simulation.test_sharing", "within_a_queue", range(2)
))  # fmt: skip
def newest_first(patch: Patch) -> None:
    real = turns_of_tick.latest_starts

    def newest(moment: Any, runs: Sequence[Run]) -> dict[str, int]:
        return {**real(moment, runs), **{run.id: -run.number for run in runs}}

    patch.setattr(turns_of_tick, "latest_starts", newest)


@planted("GPUs that only one queue wants raise its level, so that others take what was bought for it", check=scenario(
    LIFTING, "test_gpus_that_only_one_queue_wants_raise_no_level"
))  # fmt: skip
def gpus_always_count(patch: Patch) -> None:
    patch.setattr(share_levels, "_several_want_gpus", lambda state: True)


@planted("dollars are limited, and cpu is shared", check=scenario(
    LIFTING, "test_where_dollars_are_limited_a_task_counts_what_it_costs_where_it_costs_least"
))  # fmt: skip
def dollars_lift_nobody(patch: Patch) -> None:
    patch.setattr(share_levels, "_least_costs", lambda runs, sizes, usd_per_hour: {})


@planted("an order raises a queue's level at once, so that dollars are divided by instances", check=scenario(
    SCENARIO, "test_dollars_are_shared_although_instances_are_ordered_a_few_at_a_time"
))  # fmt: skip
def growth_lifts(patch: Patch) -> None:
    real = purchase_shares.CommonLimits.limits

    def limits(self: purchase_shares.CommonLimits) -> Limits:
        found = real(self)
        found.capacity[0] = max(1, self.room) * purchase_shares.UNIT
        return found

    patch.setattr(purchase_shares.CommonLimits, "limits", limits)


@planted("what was dealt out is placed in the queues' order", check=scenario(
    "tests.unit.scheduler.turns.test_slices", "test_tasks_with_gpus_find_theirs_although_others_come_first"
))  # fmt: skip
def whole_batches_are_placed(patch: Patch) -> None:
    patch.setattr(fair_share, "_slices", lambda counts, has_gpus: iter([counts]))


@planted("of alike tasks of a queue, those of a later run start while the first's wait for instances", check=scenario(
    CLUSTER, "test_of_a_queue_the_first_run_starts_first_although_instances_come_for_both"
))  # fmt: skip
def slices_mix_a_queue(patch: Patch) -> None:
    reworded(patch, FairShare.meant_for, "number if spread[number] else -1", "number")


@planted("one queue gets only what no other one wants: S3", check=scenario(SATURATED, "nothing_breaks", "S3", range(2)))
def prod_has_no_weight(patch: Patch) -> None:
    patch.setattr(SharingChecker, "committed", lambda self, commit: None)  # S1 sees it as well, and earlier
    real = fair_order.FairOrder._sharers

    def sharers(self: Any, used: IntArray) -> Any:
        found, is_prod = real(self, used), np.array([queue == "prod" for queue, _ in self.sharers])
        return type(found)(np.where(is_prod, 0, found.weight), found.parts, found.used, found.factor)

    patch.setattr(fair_order.FairOrder, "_sharers", sharers)


@planted(
    "places of one of several sharers stay free: S2", check=scenario(SATURATED, "nothing_breaks", "S2", range(3, 4))
)
def first_starts_nothing(patch: Patch) -> None:
    real = FairShare.launched

    def launched(self: FairShare, placed: Any, cell_of: Any, room: Any) -> Any:
        found = real(self, placed, cell_of, room)
        return [each for each in found if len(self.order.sharers) < 2 or self.order.row[self.asks[each[0]].run.id]]

    patch.setattr(FairShare, "launched", launched)


@planted("all weights count as one: S4", check=scenario(SATURATED, "nothing_breaks", "S4", range(2, 3)))
def weights_are_one(patch: Patch) -> None:
    patch.setattr(SharingChecker, "committed", lambda self, commit: None)  # S1 sees it as well, and earlier
    real = fair_order.FairOrder._sharers

    def sharers(self: Any, used: IntArray) -> Any:
        found = real(self, used)
        return type(found)(np.minimum(found.weight, 1), found.parts, found.used, found.factor)

    patch.setattr(fair_order.FairOrder, "_sharers", sharers)


WHOLE_CAP = {"queues": {"c": {"cap": {"vcpus": 1}}}}, {"resources": {"vcpus": 2, "memory": 512}}
ALL_DOLLARS = (
    {"queues": {"c": {}, "d": {}}, "limits": {"usdPerHour": 0.2}},
    {"resources": {"vcpus": 12, "memory": 512}},
)


def never_fits(document: dict[str, Any], large: dict[str, Any]) -> Check:
    """The scenario of a run whose task is larger than a limit of the document."""
    name = "test_it_closes_its_limit_to_no_other_run_and_ends_after_its_patience"
    return scenario("tests.scenarios.test_runs_that_never_fit", name, document, large, "a task needs ")


@planted("a task that is larger than a whole cap closes the cap for all runs behind it", check=never_fits(*WHOLE_CAP))
def head_closes_its_limit(patch: Patch) -> None:
    real = bounds.cut

    def cut(climb: Any, its: QueueBounds, *rest: Any) -> Any:
        return real(climb, replace(its, never=np.zeros_like(its.never)), *rest)

    patch.setattr(fill, "cut", cut)


@planted(
    "a run that all dollars of the deployment do not pay for closes them for others", check=never_fits(*ALL_DOLLARS)
)
def dollars_closed_forever(patch: Patch) -> None:
    patch.setattr(purchase_shares, "ROUNDING", 1e9)


@planted("a run whose task is larger than a whole limit waits forever", check=never_fits(*WHOLE_CAP))
def patience_without_end(patch: Patch) -> None:
    patch.setattr(whole_limits, "out_of_patience", lambda *asked: None)


@planted("a run falls back to on-demand that the cap of its queue never pays for", check=scenario(
    "tests.unit.market.test_fallback", "test_on_demand_runs_no_more_at_once_than_the_cap_of_its_queue_pays_for"
))  # fmt: skip
def on_demand_above_a_cap(patch: Patch) -> None:
    real = on_demand._affordable

    def affordable(run: Run, pool: Any, state: State, policy: Any) -> float:
        return real(run, pool, replace(state, sharing=Sharing()), policy)

    patch.setattr(on_demand, "_affordable", affordable)
