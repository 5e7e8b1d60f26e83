"""Planted bugs: fleet targets that are too high, instances that are never released, money that is charged to the wrong
run or forgotten."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

from argosy.aws import fleets, on_demand
from argosy.aws.fleet_templates import FleetTemplates
from argosy.aws.fleets import AwsFleets
from argosy.aws.offerings import Offerings
from argosy.aws.on_demand import OnDemandOrders
from argosy.catalogue.lookup import Overheads
from argosy.lifecycle import charges, hosts, pools, reservations
from argosy.market import cover, offers
from argosy.model.events import NotCarriedOut
from argosy.model.instance_types import PURCHASE_ATTRIBUTE
from argosy.model.instances import Purchase
from argosy.model.state import State
from argosy.placement import supply
from argosy.placement.arrays import ENDLESS
from argosy.scheduler.buying import budget, capacity
from argosy.scheduler.turns import asks
from tests.fakes.trials import SMALL, WARM
from tests.mutations.catalogue import Patch, planned, planted, scenario

FLEETS, OF_POOLS = "tests.scenarios.test_fleets_and_their_instances", "tests.unit.scheduler.buying.test_fleets_of_pools"
ORDERS = "tests.scenarios.test_on_demand_orders"
RESERVED = "tests.scenarios.test_reservations"
WHOLE = "tests.unit.market.test_whole_price"
PATIENCE = "test_an_hourly_cap_below_every_offer_ends_the_run_exactly_when_its_patience_ends"
CHOICE = "test_small_instances_are_bought_only_where_they_are_cheaper_with_a_disk_and_an_address_each"


@planted(
    "an instance counts for the fleet of its pool that was listed last, and is bought again for the other",
    check=scenario(FLEETS, "test_a_second_fleet_of_a_pool_buys_nothing_for_what_the_first_one_holds"),
)
def any_fleet_counts(patch: Patch) -> None:
    real = pools.see_fleet

    def see(state: State, seen: Any, now: float) -> None:
        for pool in state.pools.values():
            if (pool.cell, pool.instance_type, pool.zone) == (seen.cell, seen.instance_type, seen.zone):
                pool.fleet_id = seen.fleet_id
        real(state, seen, now)

    patch.setattr(pools, "see_fleet", see)
    patch.setattr(State, "in_pools_fleet", lambda self, instance: True)
    targets_follow_belief(patch)


@planted(
    "EC2's list of offered types is read, and orders go to withdrawn types",
    check=scenario("tests.scenarios.test_withdrawn_types", "test_the_work_goes_to_the_types_that_ec2_still_offers"),
)
def offers_are_thrown_away(patch: Patch) -> None:
    patch.setattr(Offerings, "of", lambda self, cell, types, now, check_time: {})


@planted(
    "a target rises with the instances that are believed to live, ordered or not",
    check=scenario(OF_POOLS, "test_a_target_rises_by_no_more_than_what_is_ordered_whatever_is_held", ""),
)
def targets_follow_belief(patch: Patch) -> None:
    patch.setattr(capacity._RiseLimits, "at_most", lambda self, pool, purchase, wanted, replaced: wanted)


@planted(
    "one instance that EC2 refuses to end keeps the others of the same call alive",
    check=scenario(
        "tests.unit.aws.test_fleets",
        "test_an_instance_that_ec2_refuses_to_end_keeps_no_other_of_its_call_alive",
        "OperationNotPermitted",
    ),
)
def a_refusal_spoils_the_call(patch: Patch) -> None:
    patch.setattr(
        AwsFleets, "_terminate_by_halves", lambda self, cell, ids, fault, deadline: [NotCarriedOut(fault.text)]
    )


@planted(
    "every target is split by purchase, which EC2 may refuse",
    check=scenario(
        "tests.scenarios.test_readings",
        "test_a_run_is_bought_for_and_ends_and_its_fleets_go_back_to_nothing",
        "modify-fleet-total-only",
    ),
)
def targets_are_split(patch: Patch) -> None:
    real = FleetTemplates.modify_fleet

    def modify(self: FleetTemplates, cell: Any, request: Any) -> None:
        total = request["TargetCapacitySpecification"]["TotalTargetCapacity"]
        split = {"TotalTargetCapacity": total, "SpotTargetCapacity": total, "OnDemandTargetCapacity": 0}
        real(self, cell, {**request, "TargetCapacitySpecification": split})

    patch.setattr(FleetTemplates, "modify_fleet", modify)


@planted(
    "an on-demand order has another token each time it is sent, so a lost reply buys again",
    check=scenario(ORDERS, "test_an_order_whose_reply_was_lost_is_sent_again_under_its_token_and_buys_nothing_more"),
)
def orders_have_fresh_tokens(patch: Patch) -> None:
    patch.setattr(on_demand, "token_of", lambda pool, epoch: uuid4().hex)


@planted(
    "a refused on-demand order is sent again in every tick",
    check=scenario(ORDERS, "test_a_refusal_is_learned_and_keeps_spot_out_of_it"),
)
def refused_orders_are_repeated(patch: Patch) -> None:
    failed = OnDemandOrders._failed
    patch.setattr(
        OnDemandOrders, "_failed", lambda self, cell, pool, error: NotCarriedOut(str(failed(self, cell, pool, error)))
    )


@planted(
    "the end of a Capacity Block is not known, so EC2 ends its instances under their tasks",
    check=scenario(RESERVED, "test_what_runs_at_its_end_is_stopped_before_and_starts_elsewhere", True),
)
def blocks_have_no_end(patch: Patch) -> None:
    patch.setattr(reservations, "_empty_by", lambda seen: 0.0)


@planted(
    "tasks are placed on reserved instances that end before them",
    check=scenario(RESERVED, "test_a_task_that_would_outlast_a_block_is_placed_elsewhere"),
)
def ends_keep_no_task_off(patch: Patch) -> None:
    patch.setattr(asks, "done_in_time", lambda run, moment: "attribute:ecs.instance-type exists")


@planted(
    "a run pays the on-demand price of an instance whose reservation is paid anyway",
    check=scenario(RESERVED, "test_a_run_pays_for_disk_and_address_alone"),
)
def reserved_instances_are_charged(patch: Patch) -> None:
    real = hosts._price

    def price(state: State, instance: Any, policy: Any) -> None:
        real(state, instance, policy)
        instance.price_usd_per_hour = instance.on_demand_usd_per_hour

    patch.setattr(hosts, "_price", price)


@planted(
    "runs that want on-demand are placed on instances whose owner may take them back",
    check=scenario(
        RESERVED,
        "test_what_may_be_taken_back_is_used_first_except_by_runs_that_want_on_demand",
        "on-demand",
        False,
    ),
)
def what_is_lent_counts_as_on_demand(patch: Patch) -> None:
    listed = f"attribute:{PURCHASE_ATTRIBUTE} in [on-demand, reserved, interruptible]"
    patch.setattr(asks, "_ONLY", {**asks._ONLY, Purchase.ON_DEMAND: listed})


@planted(
    "a reservation that the settings no longer name is used on",
    check=scenario(RESERVED, "test_instances_of_a_reservation_that_is_gone_are_emptied", "left out of the settings"),
)
def gone_reservations_stay(patch: Patch) -> None:
    patch.setattr(reservations, "miss", lambda state, sweep, policy: None)


@planted(
    "only instances of listed fleets are ours, so those of on-demand orders vanish",
    check=scenario(ORDERS, "test_one_that_works_for_long_is_seen_in_every_sweep"),
)
def templates_prove_nothing(patch: Patch) -> None:
    patch.setattr(fleets, "_launchers", lambda fleet: iter([fleet["FleetId"]]))


@planted(
    "the targets of a fleet that is being modified are believed, so they are set repeatedly",
    check=scenario(
        "tests.scenarios.test_readings",
        "test_a_run_is_bought_for_and_ends_and_its_fleets_go_back_to_nothing",
        "old-target-while-modifying",
    ),
)
def old_targets_are_believed(patch: Patch) -> None:
    see = pools.see_fleet
    patch.setattr(pools, "see_fleet", lambda state, seen, now: see(state, replace(seen, is_modifying=False), now))


@planted(
    "a fleet that EC2 has deleted stays its pool's, and is ordered from",
    check=scenario(
        "tests.scenarios.test_readings",
        "test_every_story_ends_well",
        "fleet-deleted-over-limit",
        "two_pools_without_capacity_or_quota",
    ),
)
def deleted_fleets_are_kept(patch: Patch) -> None:
    patch.setattr(pools, "miss_fleets", lambda state, sweep: None)


@planted(
    "fleets are listed by a filter of states, in the spelling of their member",
    check=scenario(
        "tests.scenarios.test_readings",
        "test_an_instance_of_a_deleted_fleet_is_still_ours_however_its_state_is_spelt",
    ),
)
def fleets_are_filtered_by_state(patch: Patch) -> None:
    real = fleets.pages

    def pages_of(call: Any, **request: Any) -> Any:
        if request.get("MaxResults") == 100:
            request["Filters"] = [{"Name": "fleet-state", "Values": ["active", "modifying", "deleted_running"]}]
        return real(call, **request)

    patch.setattr(fleets, "pages", pages_of)


@planted(
    "a run that cannot start at any price waits forever, and keeps the controller running",
    check=scenario("tests.unit.scheduler.test_decide", PATIENCE),
)
def prices_are_waited_for_for_ever(patch: Patch) -> None:
    patch.setattr(budget, "out_of_patience", lambda moment, run, told, below: None)


@planted("a run pays for what its instance waited before the run was submitted", check=planned(WARM))
def newcomers_pay_for_waiting(patch: Patch) -> None:
    """As if the launch, which ends the idle time, were begun before the claim that reads it."""
    patch.setattr(charges, "_note_waiting", lambda state, instance, now, booting: None)


@planted("disks and public addresses of instances are in no ledger", check=planned(SMALL))
def disks_are_free(patch: Patch) -> None:
    patch.setattr(hosts, "overheads_of", lambda region, disk_gib, has_address: Overheads(0.0, 0.0))


@planted("what is bought is compared by EC2's price alone", check=scenario(WHOLE, CHOICE, 1.05, "c5.4xlarge"))
def small_ones_look_cheap(patch: Patch) -> None:
    patch.setattr(offers, "overheads_of", lambda region, disk_gib, has_address: Overheads(0.0, 0.0))


@planted("instances get more tasks than their most", "most-tasks")
def mosts_are_ignored(patch: Patch) -> None:
    patch.setattr(supply, "_tasks_left", lambda row: ENDLESS)


@planted(
    "what is bought does not know the most tasks of an instance",
    check=scenario(
        "tests.unit.scheduler.placing.test_placement_rules",
        "test_what_is_bought_and_what_waits_for_instances_on_their_way_know_their_most_of_tasks",
    ),
)
def offers_have_no_most(patch: Patch) -> None:
    real = cover.hypothetical
    patch.setattr(cover, "hypothetical", lambda offer, number: replace(real(offer, number), most_tasks=None))
