"""A plan names the purchases, their cost, the omissions with reasons, and cheaper choices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.catalogue.lookup import load_catalogue
from argosy.model.events import PoolShort
from argosy.model.policy import Policy, SparePlaces
from argosy.model.pools import ReservationSeen
from argosy.model.resources import Resources
from argosy.model.run_record import RunRecord
from argosy.model.start_ups import StartUps
from argosy.model.state import State
from argosy.planning.forecast import AFTER_ESTIMATE, AFTER_NOTHING, GUESS_S, Seconds, pulled_s, seconds_of
from argosy.planning.plan import plan_run
from argosy.planning.question import PlanQuestion
from argosy.spec.terms import terms_of_form
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    RUN_ID,
    container_instance,
    fleet,
    host,
    moment_of,
    prepared,
    spec,
    state_with,
    submitted,
    told,
)

CPU = (fleet("c5.xlarge"), fleet("c5.4xlarge"))


def planned(
    state: State,
    tasks: int = 40,
    fleets: tuple[tuple[str, str, str], ...] = (),
    notes: tuple[str, ...] = (),
    policy: Policy = POLICY,
    image_bytes: int = 0,
    pulled_s: float | None = None,
    **overrides: Any,
) -> Any:
    form = spec(**overrides)
    question = PlanQuestion(
        moment=moment_of(state, NOW, replace(policy, boot_s=100.0, start_s=0.0)),
        terms=terms_of_form(form),
        task_count=tasks,
        needs=terms_of_form(form).needs,
        seconds=Seconds(50.0, 100.0, 200.0, "a test says so"),
        fleets=fleets,
        home="us-east-1",
        warnings=notes,
        image_bytes=image_bytes,
        pulled_s=pulled_s,
    )
    return plan_run(question)


def test_it_buys_what_the_controller_would_and_leaves_the_state_alone() -> None:
    state = state_with(*CPU)
    version, pools = state.version, dict(state.pools)
    reply = planned(state)
    assert sum(row["count"] * row["tasksAtATime"] for row in reply["instances"]) >= 40
    assert reply["seconds"]["expected"] >= 200
    assert (state.version, state.pools, state.runs, state.changed_runs) == (version, pools, {}, set())


def test_the_price_of_room_for_further_tasks_is_told_beside_the_runs_cost() -> None:
    policy = replace(POLICY, headroom=(SparePlaces(5, Resources(1024, 1024)),))
    reply, without = planned(state_with(fleet("c5.xlarge")), policy=policy), planned(state_with(fleet("c5.xlarge")))
    assert reply["headroomUsdPerHour"] == 2 * reply["instances"][0]["priceUsdPerHour"]
    assert reply["costUsd"] == without["costUsd"]
    assert any("(headroom) is not counted: up to $" in each for each in reply["assumptions"])
    assert without["headroomUsdPerHour"] is None


def test_a_first_order_is_told_and_the_forecast_is_of_all_that_is_bought() -> None:
    state, policy = state_with(fleet("c5.xlarge")), replace(POLICY, first_order=2)
    reply = planned(state, policy=policy)
    assert reply["instances"] == planned(state)["instances"]
    assert any(
        "so 2 are ordered first, the rest when one has: 100 s, not counted" in each for each in reply["assumptions"]
    )
    next(iter(state.pools.values())).registered_memory_mib = 7_000
    assert not any("ordered first" in each for each in planned(state, policy=policy)["assumptions"])


def test_the_warnings_of_a_submission_are_in_the_plan_too() -> None:
    assert "the image is for CPUs" in planned(state_with(*CPU), notes=("the image is for CPUs",))["warnings"]
    assert planned(state_with(*CPU))["warnings"] == []


def test_a_plan_says_what_its_prices_hold_and_where_they_are_not_known() -> None:
    said = planned(state_with(*CPU))["assumptions"]
    assert any("includes its disk and its public address; logs and traffic are not counted" in each for each in said)
    assert not any("price of disks" in each for each in said)
    elsewhere = (("mx-central-1", "c6i.xlarge", "mx-central-1a"),)
    assert (
        "the price of disks in mx-central-1 is unknown: a high one is assumed"
        in (planned(state_with(), fleets=elsewhere)["assumptions"])
    )


def test_a_plan_says_for_which_types_no_interruptions_are_known() -> None:
    said = planned(state_with(fleet("g7.2xlarge"), *CPU), resources={"vcpus": 1, "memory": 1024, "gpus": 1})
    (line,) = (each for each in said["assumptions"] if "Spot Instance Advisor" in each)
    assert line.startswith("AWS's Spot Instance Advisor lists g7.2xlarge with no interruptions, so 0.01 an hour are")
    assert not any("Spot Instance Advisor" in each for each in planned(state_with(*CPU))["assumptions"])


def test_the_range_holds_the_expected_value() -> None:
    reply = planned(state_with(*CPU))
    for name in ("costUsd", "seconds"):
        assert 0 < reply[name]["low"] < reply[name]["expected"] < reply[name]["high"]


def test_twice_the_work_on_as_many_instances_takes_about_twice_as_long() -> None:
    capped = {"capacity": {"maxInstances": 2}}
    once, twice = (planned(state_with(*CPU), tasks, **capped) for tasks in (320, 640))
    assert twice["seconds"]["expected"] - 100 == pytest.approx(2 * (once["seconds"]["expected"] - 100), rel=0.05)


def test_where_all_instances_are_one_machine_as_many_run_at_once_as_it_says() -> None:
    apart = planned(state_with(*CPU), 320)
    machine = planned(state_with(*CPU), 320, policy=replace(POLICY, machine_programs=2))
    seconds = [reply["seconds"]["expected"] for reply in (apart, machine)]
    assert seconds[1] > 10 * seconds[0]


SHARE = {"vcpus": 0.5, "memory": 1000, "gpuShare": {"memoryMib": 10_000}}


def test_tasks_with_a_share_are_planned_by_the_memory_of_a_gpu() -> None:
    reply = planned(state_with(*CPU, fleet("g5.xlarge")), 40, resources=SHARE)
    (row,) = reply["instances"]
    assert (row["instanceType"], row["count"], row["tasksAtATime"]) == ("g5.xlarge", 20, 2)
    assert reply["places"] == 40


def test_four_shares_to_a_gpu_cost_less_than_two_and_these_less_than_whole_gpus() -> None:
    gpus = fleet("g5.xlarge")
    sizes: list[dict[str, Any]] = [{"gpuShare": {"memoryMib": mib}} for mib in (5_000, 10_000)]
    costs = [
        planned(state_with(gpus), 640, resources={"vcpus": 0.5, "memory": 1000, **size})["costUsd"]["expected"]
        for size in [*sizes, {"gpus": 1}]
    ]
    assert costs[0] < 0.6 * costs[1] < 0.4 * costs[2]


def test_a_share_that_no_gpu_holds_is_possible_nowhere_and_the_plan_says_why() -> None:
    reply = planned(state_with(*CPU, fleet("g5.xlarge")), 4, resources={**SHARE, "gpuShare": {"memoryMib": 22_000}})
    assert (reply["possible"], reply["instances"]) == (False, [])
    why = {kind: row["reason"] for row in reply["rejected"] for kind in row["instanceTypes"]}
    assert why["g5.xlarge"] == "no GPU is sure to have 22,000 MiB free"


def test_room_that_is_there_is_used_first() -> None:
    reply = planned(state_with(fleet(), host(), container_instance()), tasks=2)
    assert (reply["placesHere"], reply["instances"]) == (2, [])
    assert reply["seconds"]["expected"] == pytest.approx(100, rel=0.01)
    assert 0 < reply["costUsd"]["expected"] < 0.02


def test_fleets_that_no_sweep_has_shown_yet_count_at_typical_prices() -> None:
    reply = planned(state_with(), fleets=(("us-east-1", "c5.xlarge", "us-east-1a"),))
    assert reply["instances"][0]["instanceType"] == "c5.xlarge"
    assert any("typical" in sentence for sentence in reply["assumptions"])


def test_runs_that_came_earlier_are_bought_for_first() -> None:
    waiting = state_with(submitted(tasks=4000), prepared(), *CPU)
    crowded, alone = planned(waiting), planned(state_with(*CPU))
    assert crowded["places"] < alone["places"]


def test_on_demand_in_the_home_region_is_the_measure() -> None:
    reply = planned(state_with(*CPU))
    assert reply["onDemand"]["region"] == "us-east-1"
    assert reply["onDemand"]["costUsd"] > reply["costUsd"]["expected"]


def test_every_pool_that_is_left_out_has_a_reason() -> None:
    state = state_with(*CPU, fleet("g5.xlarge"))
    told(state, PoolShort("us-east-1/c5.4xlarge/us-east-1a", "UnfulfillableCapacity"))
    reply = planned(state, resources={"vcpus": 8, "memory": 1024, "gpus": 0})
    small, short = sorted(reply["rejected"], key=lambda row: -row["pools"])
    assert (small["pools"], small["instanceTypes"]) == (2, ["c5.xlarge", "g5.xlarge"])
    assert "8192 cpu units" in small["reason"]
    assert (short["instanceTypes"], reply["possible"]) == (["c5.4xlarge"], True)
    assert "short of capacity" in reply["warnings"][0]
    assert "short" in short["reason"] or "cool" in short["reason"]


def test_what_nothing_can_run_has_no_forecast_but_says_why() -> None:
    reply = planned(state_with(*CPU), resources={"vcpus": 1, "memory": 1024, "gpus": 2})
    assert (reply["possible"], reply["instances"], reply["onDemand"]) == (False, [], None)
    assert reply["costUsd"] == {"low": None, "expected": None, "high": None}
    assert "nothing in this deployment could run" in reply["warnings"][0]


def test_a_little_less_memory_that_fits_one_more_is_named_with_what_it_saves() -> None:
    kind = load_catalogue()["c5.xlarge"]
    too_much = kind.registered_memory_mib // 4 + 100  # three fit, by memory; four would by vCPUs
    reply = planned(state_with(fleet("c5.xlarge")), 120, resources={"vcpus": 1, "memory": too_much, "gpus": 0})
    (found,) = reply["relaxations"]
    less = kind.registered_memory_mib // 4 // 4 * 4
    assert found["sentence"].startswith(f"{less:,} MiB instead of {too_much:,} MiB")
    assert found["saves"] == pytest.approx(0.25, abs=0.05)


def test_a_constraint_that_costs_money_is_named() -> None:
    only = "attribute:ecs.instance-type == g5.xlarge"
    state = state_with(*CPU, fleet("g5.xlarge"))
    reply = planned(state, placement={"constraints": [only]})
    assert f"without the constraint {only}" in {row["sentence"] for row in reply["relaxations"]}


def test_a_spread_over_zones_is_planned_for_with_what_it_costs() -> None:
    zones = ("us-east-1a", "us-east-1b", "us-east-1c")
    state = state_with(*(fleet("c5.xlarge", zone) for zone in zones))
    for pool, usd in zip(state.pools.values(), (0.03, 0.09, 0.09), strict=True):
        pool.spot_usd_per_hour, pool.priced_at = usd, NOW
    reply = planned(state, 9, placement={"strategy": ["spread:attribute:ecs.availability-zone"]})
    assert {row["zone"]: row["count"] for row in reply["instances"]} == dict.fromkeys(zones, 1)
    (found,) = (row for row in reply["relaxations"] if "spreading" in row["sentence"])
    assert found["sentence"] == "without spreading over ecs.availability-zone"
    assert found["saves"] > 0.4


def test_a_plan_counts_the_instances_that_their_most_of_tasks_takes() -> None:
    state = state_with(fleet("c5.xlarge"))
    rows = {}
    for most in (1_023, 3):
        reply = planned(state, 30, policy=replace(POLICY, most_tasks_by_type=(("*", most),)))
        rows[most] = [(row["count"], row["tasksAtATime"]) for row in reply["instances"]]
    assert rows == {1_023: [(8, 4)], 3: [(10, 3)]}


def test_a_model_of_gpu_is_planned_for_and_named_where_it_costs_money() -> None:
    state = state_with(fleet("g4dn.xlarge"), fleet("p3.2xlarge"))
    reply = planned(state, resources={"vcpus": 1, "memory": 1024, "gpus": 1, "gpuModel": "V100"})
    assert {row["instanceType"] for row in reply["instances"]} == {"p3.2xlarge"}
    assert "with any model of GPU" in {row["sentence"] for row in reply["relaxations"]}
    (left_out,) = reply["rejected"]
    assert left_out["instanceTypes"] == ["g4dn.xlarge"]
    assert "V100" in left_out["reason"]
    reply = planned(state, resources={"vcpus": 1, "memory": 1024, "gpus": 1, "gpuMemoryMib": 16_384})
    assert {row["instanceType"] for row in reply["instances"]} == {"g4dn.xlarge"}


def test_an_insufficient_budget_is_reported() -> None:
    reply = planned(state_with(*CPU), 4000, capacity={"budgetUsd": 0.01})
    assert reply["warnings"] == ["the run will reach its budget of $0.01 before its end"]


def test_no_more_is_bought_than_the_cap_on_money_an_hour_allows() -> None:
    reply = planned(state_with(*CPU), 400, capacity={"maxHourlyCost": 0.2})
    assert 0 < sum(row["count"] * row["priceUsdPerHour"] for row in reply["instances"]) <= 0.2
    assert reply["seconds"]["expected"] > planned(state_with(*CPU), 400)["seconds"]["expected"]


def test_a_strategy_with_a_function_of_the_owners_can_be_planned() -> None:
    assert planned(state_with(*CPU), placement={"strategy": ["mine:score"]})["possible"]


def test_a_deadline_that_cannot_be_kept_is_reported() -> None:
    capacity = {"purchase": "spot-then-on-demand", "deadline": "1m"}
    assert planned(state_with(*CPU), 40, capacity=capacity)["warnings"] == ["the run will miss its deadline"]


PAST = replace(RunRecord.of_unreadable(RUN_ID), ended=10, ended_seconds=50.0, shard_size=10)


def test_past_runs_say_best_how_long_a_task_takes() -> None:
    form = spec(array={"range": "0:100", "shardSize": 20, "expectedSeconds": 77})
    found = seconds_of(terms_of_form(form), [replace(PAST, name="other"), PAST, replace(PAST, ended=0)])
    assert (found.expected, found.source) == (10.0, "10 tasks of an earlier run took 10.0 s on average")


def test_without_past_runs_the_spec_says_and_without_both_the_range_is_wide() -> None:
    said = seconds_of(terms_of_form(spec(array={"range": "0:9", "shardSize": 3, "expectedSeconds": 60})), [])
    assert (said.low, said.high) == (60 * AFTER_ESTIMATE[0], 60 * AFTER_ESTIMATE[1])
    unknown = seconds_of(terms_of_form(spec()), [])
    assert (unknown.low, unknown.high) == (GUESS_S * AFTER_NOTHING[0], GUESS_S * AFTER_NOTHING[1])
    assert "unknown" in unknown.source


def test_the_time_to_pull_the_image_is_part_of_the_start_and_changes_no_purchase() -> None:
    """5,000 MiB at 50 MiB/s: 100 s more until the first tasks, which the run pays for."""
    without, found = planned(state_with(*CPU)), planned(state_with(*CPU), image_bytes=5_000 << 20)
    assert (without["image"], found["image"]) == (None, {"bytes": 5_000 << 20, "pullSeconds": 100.0})
    assert found["instances"] == without["instances"]
    later = {name: found["seconds"][name] - without["seconds"][name] for name in ("low", "expected")}
    assert later == pytest.approx({"low": 40.0, "expected": 100.0})
    assert found["costUsd"]["expected"] > without["costUsd"]["expected"]
    assert "a new instance pulls the image of 5,000 MiB in 100 s (50 MiB/s)" in found["assumptions"]
    usd = sum(each["count"] * each["priceUsdPerHour"] for each in found["instances"])
    parts = {"bootSeconds": 100.0, "pullSeconds": 100.0, "startSeconds": 0.0}
    assert found["startUp"] == {**parts, "usd": pytest.approx(usd * 200 / 3600)}
    assert without["startUp"] == {**parts, "pullSeconds": None, "usd": pytest.approx(usd * 100 / 3600)}
    assert not any("pulls the image" in each for each in without["assumptions"])


def test_a_plan_believes_the_pulls_of_earlier_runs_more_than_the_size_of_the_image() -> None:
    known, guessed = planned(state_with(*CPU), pulled_s=30.0), planned(state_with(*CPU), image_bytes=5_000 << 20)
    assert known["startUp"]["pullSeconds"] == 30.0
    assert known["seconds"]["expected"] < guessed["seconds"]["expected"]
    both = planned(state_with(*CPU), pulled_s=30.0, image_bytes=5_000 << 20)
    assert "a new instance pulls the image of 5,000 MiB in 30 s (as earlier runs did)" in both["assumptions"]


def test_the_mean_pull_is_that_of_the_runs_that_pulled_this_image() -> None:
    of = RunRecord.of_unreadable("a-20261121-000000-aaaa")
    records = [
        replace(of, image="a", start_ups=StartUps(pulls=3, pull_s=90.0)),
        replace(of, image="a", start_ups=StartUps(pulls=1, pull_s=50.0)),
        replace(of, image="b", start_ups=StartUps(pulls=9, pull_s=9.0)),
        replace(of, image="a"),
    ]
    assert pulled_s(records, "a") == 35.0
    assert pulled_s(records, "c") is None


def test_a_plan_takes_what_is_reserved_first_and_says_who_pays_for_it() -> None:
    reserved = ReservationSeen("cr-1", CELL, "c5.xlarge", "us-east-1a", "capacity-block", "active", 2, 2, NOW)
    plan = planned(state_with(*CPU, reserved), tasks=12)
    assert ("reserved", 2) in {(each["purchase"], each["count"]) for each in plan["instances"]}
    assert any("a Capacity Reservation is paid whether it is used or not" in each for each in plan["assumptions"])
    without = planned(state_with(*CPU), tasks=12)
    assert plan["costUsd"]["expected"] < without["costUsd"]["expected"]


def test_a_plan_names_the_reservations_that_cannot_be_used() -> None:
    later = ReservationSeen("cr-1", CELL, "c5.xlarge", "us-east-1a", "capacity-block", "scheduled", 2, 0, NOW + 60)
    reasons = [each["reason"] for each in planned(state_with(*CPU, later))["rejected"]]
    assert any(each.startswith("it is scheduled and starts at") for each in reasons)


def of_an_interruption(reply: Any) -> str:
    return next(each for each in reply["assumptions"] if each.startswith("an interruption"))


def test_a_plan_says_what_an_interruption_costs_with_checkpoints_and_without() -> None:
    without = of_an_interruption(planned(state_with(*CPU)))
    assert without.startswith("an interruption repeats about 50 s of a task ($")
    assert without.endswith("); with checkpoint.everySeconds, half of that interval")
    saved = of_an_interruption(planned(state_with(*CPU), checkpoint={"everySeconds": 20}))
    assert saved.startswith("an interruption repeats about 10 s of a task ($")
    assert "; without checkpoint.everySeconds it would be 50 s of a task ($" in saved


def test_a_forecast_of_a_run_with_checkpoints_repeats_less_work() -> None:
    far = {"array": {"size": 640}}
    risky = state_with(fleet("c5.4xlarge"))
    plain, saved = (planned(risky, 640, **far, **more) for more in ({}, {"checkpoint": {"everySeconds": 1}}))
    assert saved["costUsd"]["expected"] < plain["costUsd"]["expected"]
