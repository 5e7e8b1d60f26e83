"""Targets are absolute, nothing is terminated that a fleet would replace, and what the listings show is read."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from argosy.aws.cell import Cell
from argosy.aws.fleets import AwsFleets
from argosy.messages.fleet_faults import shortage
from argosy.model.actions import LookUpHosts, ReadHistory, SetTarget, Terminate
from argosy.model.events import Event, HistoryRead, HostSeen, HostStateChanged, NotCarriedOut, PoolShort, TargetAccepted
from argosy.model.policy import Policy
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State
from tests.builders import CELL, NOW, container_instance, fleet, host, instance_id, state_with, told
from tests.fakes.aws import Clock, ScriptedClient, cell, refusal, timed_out

POOL = f"{CELL}/c5.xlarge/us-east-1a"
SOON = NOW + 5


def fleets(ec2: Any, clock: Clock | None = None) -> AwsFleets:
    return fleets_of_home(ec2, clock)[0]


def fleets_of_home(ec2: Any, clock: Clock | None = None, pace: float = 1000) -> tuple[AwsFleets, Cell]:
    clock = clock or Clock()
    ec2.scripts.setdefault("describe_fleets", {"Fleets": []})
    home = cell(clock, ec2=ec2, pace=pace)
    return AwsFleets("main", {CELL: home}, clock), home


def state_of(count: int = 2) -> State:
    hosts = [host(number) for number in range(1, count + 1)]
    state = state_with(fleet(spot_target=count), *hosts, container_instance(1))
    state.pools[POOL].spot_target = count
    return state


def target_set(here: AwsFleets, action: SetTarget, deadline: float = SOON) -> Event:
    here.list_before_buying([action], state_of(), deadline)
    return here.set_target(action, state_of(), deadline)


def test_a_cell_is_listed_once_before_its_threads_buy_and_bought_in_only_then() -> None:
    ec2 = ScriptedClient("ec2", modify_fleet={"Return": True})
    here = fleets(ec2)
    ec2.scripts["describe_fleets"] = refusal("UnauthorizedOperation")
    refused = target_set(here, SetTarget(POOL, 1, 0))
    assert isinstance(refused, PoolShort)
    assert (refused.pool, refused.refused, "UnauthorizedOperation" in refused.reason) == (POOL, True, True)
    ec2.scripts["describe_fleets"] = {"Fleets": []}
    assert target_set(here, SetTarget(POOL, 1, 0), NOW) == NotCarriedOut("the time limit was reached")
    assert not ec2.requests("modify_fleet")
    for _ in range(3):
        assert isinstance(target_set(here, SetTarget(POOL, 1, 0)), TargetAccepted)
    assert len(ec2.requests("describe_fleets")) == 2


def test_a_target_is_absolute_and_ends_nothing_by_itself() -> None:
    ec2 = ScriptedClient("ec2", modify_fleet={"Return": True})
    event = target_set(fleets(ec2), SetTarget(POOL, 3, 2))
    assert event == TargetAccepted(POOL, 3)
    assert ec2.requests("modify_fleet")[0] == {
        "FleetId": "fleet-c5.xlarge-us-east-1a",
        "ExcessCapacityTerminationPolicy": "no-termination",
        "TargetCapacitySpecification": {"TotalTargetCapacity": 3},
    }


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (refusal("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded"), PoolShort),
        (refusal("RequestLimitExceeded", "Request limit exceeded.", 503), NotCarriedOut),
        (refusal("FleetNotInModifiableState", "The fleet is being modified."), NotCarriedOut),
        (refusal("InvalidFleetId.NotFound", "The fleet does not exist."), PoolShort),
        (timed_out(), NotCarriedOut),
    ],
)
def test_a_target_that_is_not_taken_says_why(error: Exception, kind: type) -> None:
    event = target_set(fleets(ScriptedClient("ec2", modify_fleet=error)), SetTarget(POOL, 3, 0))
    assert isinstance(event, kind)


def test_a_fleet_that_is_being_changed_is_asked_again_only_after_a_listing_had_time_to_show_it_unchanged() -> None:
    changing = ScriptedClient("ec2", modify_fleet=refusal("FleetNotInModifiableState", "The fleet is being modified."))
    event = target_set(fleets(changing), SetTarget(POOL, 3, 0))
    state = state_of()
    told(state, event)
    assert not state.may_try(Act.TARGET, POOL, NOW + Policy().sweep_s)
    told(state, replace(fleet(spot_target=2), is_modifying=True), now=NOW + 1)
    assert not state.may_try(Act.TARGET, POOL, NOW + 1)
    told(state, fleet(spot_target=2), now=NOW + 2)
    assert state.may_try(Act.TARGET, POOL, NOW + 2)


def test_a_refusal_for_good_is_not_forgotten_because_a_listing_shows_the_fleet() -> None:
    state = state_of()
    told(state, NotCarriedOut("no", about=Subject(Act.TARGET, POOL)))
    told(state, fleet(spot_target=2), now=NOW)
    assert not state.may_try(Act.TARGET, POOL, NOW)


def history_of(*pages: Any) -> ScriptedClient:
    return ScriptedClient("ec2", describe_fleet_history=list(pages))


def page(*sub_types: str, more: str = "") -> dict[str, Any]:
    records = [{"EventType": "service-error", "EventInformation": {"EventSubType": each}} for each in sub_types]
    return {"HistoryRecords": records, "FleetId": "fleet-c5.xlarge-us-east-1a", **({"NextToken": more} if more else {})}


def test_the_history_of_a_fleet_is_read_for_the_last_half_hour_and_a_few_pages() -> None:
    ec2 = history_of(*[page("launched", more="next")] * 2, page("iamFleetRoleInvalid", more="next"))
    event = fleets(ec2).history(ReadHistory(POOL), state_of(), SOON)
    assert event == HistoryRead(POOL, shortage(POOL, "iamFleetRoleInvalid"))
    first = ec2.requests("describe_fleet_history")[0]
    assert first["FleetId"] == "fleet-c5.xlarge-us-east-1a"
    assert first["StartTime"].timestamp() == NOW - 1800
    assert fleets(history_of(page())).history(ReadHistory(POOL), state_of(), SOON) == HistoryRead(POOL, None)


def test_a_history_that_cannot_be_read_costs_only_the_reason() -> None:
    refused = history_of(refusal("UnauthorizedOperation", "You are not authorized", 403))
    event = fleets(refused).history(ReadHistory(POOL), state_of(), SOON)
    assert isinstance(event, NotCarriedOut)
    assert "its history could not be read" in event.reason
    assert fleets(history_of()).history(ReadHistory(POOL), state_of(), NOW - 1) == NotCarriedOut(
        "the time limit was reached"
    )
    assert isinstance(fleets(history_of()).history(ReadHistory("a/b/c"), state_of(), SOON), NotCarriedOut)


def test_a_target_needs_its_fleet_its_cell_and_time() -> None:
    here = fleets(ScriptedClient("ec2"))
    assert isinstance(here.set_target(SetTarget("a/b/c", 1, 0), state_of(), SOON), NotCarriedOut)
    assert here.set_target(SetTarget(POOL, 1, 0), state_of(), NOW - 1) == NotCarriedOut("the time limit was reached")
    nowhere = AwsFleets("main", {}, Clock())
    assert isinstance(nowhere.set_target(SetTarget(POOL, 1, 0), state_of(), SOON), NotCarriedOut)
    assert isinstance(nowhere.terminate(Terminate(CELL, (instance_id(1),)), state_of(), {}, SOON)[0], NotCarriedOut)


def test_throttling_slows_the_fleet_calls_down() -> None:
    ec2 = ScriptedClient("ec2", modify_fleet=refusal("RequestLimitExceeded", status=503))
    here, home = fleets_of_home(ec2, pace=4)
    target_set(here, SetTarget(POOL, 1, 0))
    assert home.rates.fleets.rate_per_s == 2


def ended(**request: Any) -> dict[str, Any]:
    return {
        "TerminatingInstances": [
            {"InstanceId": name, "CurrentState": {"Name": "shutting-down"}} for name in request["InstanceIds"]
        ]
    }


def test_instances_are_ended_once_their_targets_are_taken() -> None:
    ec2 = ScriptedClient("ec2", terminate_instances=ended)
    action = Terminate(CELL, (instance_id(1), instance_id(2)))
    events = fleets(ec2).terminate(action, state_of(), {POOL: True}, SOON)
    assert events == [HostStateChanged(instance_id(number), "shutting-down", NOW) for number in (1, 2)]


def test_an_instance_whose_fleet_still_wants_it_stays() -> None:
    ec2 = ScriptedClient("ec2", terminate_instances=ended)
    action = Terminate(CELL, (instance_id(1),))
    assert isinstance(fleets(ec2).terminate(action, state_of(), {POOL: False}, SOON)[0], NotCarriedOut)
    unconfirmed = state_of()
    unconfirmed.pools[POOL].spot_target = 0
    assert isinstance(fleets(ec2).terminate(action, unconfirmed, {}, SOON)[0], NotCarriedOut)
    assert ec2.calls == []
    assert fleets(ec2).terminate(action, state_of(), {}, SOON)  # the fleet's target was set at an earlier tick
    fleetless = state_of()
    del fleetless.pools[POOL]
    assert isinstance(fleets(ec2).terminate(action, fleetless, {}, SOON)[0], HostStateChanged)


def test_an_instance_that_ec2_has_forgotten_is_gone_and_spoils_nothing() -> None:
    unknown = refusal("InvalidInstanceID.NotFound", f"The instance IDs '{instance_id(1)}' do not exist")
    ec2 = ScriptedClient("ec2", terminate_instances=[unknown, ended(InstanceIds=[instance_id(2)]), unknown])
    events = fleets(ec2).terminate(Terminate(CELL, (instance_id(1), instance_id(2))), state_of(), {POOL: True}, SOON)
    assert events == [
        HostStateChanged(instance_id(1), "terminated", NOW),
        HostStateChanged(instance_id(2), "shutting-down", NOW),
    ]
    assert ec2.calls[1][1]["InstanceIds"] == [instance_id(2)]
    alone = fleets(ec2).terminate(Terminate(CELL, (instance_id(1),)), state_of(), {POOL: True}, SOON)
    assert alone == [HostStateChanged(instance_id(1), "terminated", NOW)]


@pytest.mark.parametrize("error", [timed_out(), refusal("InvalidInstanceID.NotFound", "none of those")])
def test_a_termination_that_fails_is_decided_again(error: Exception) -> None:
    here = fleets(ScriptedClient("ec2", terminate_instances=error))
    action = Terminate(CELL, (instance_id(1),))
    assert isinstance(here.terminate(action, state_of(), {POOL: True}, SOON)[0], NotCarriedOut)
    assert here.terminate(action, state_of(), {POOL: True}, NOW - 1) == [NotCarriedOut("the time limit was reached")]


def protecting(*protected: str, code: str = "OperationNotPermitted") -> Any:
    """EC2 ends nothing in a call that names one of them."""

    def terminate(**request: Any) -> dict[str, Any]:
        if {*protected} & {*request["InstanceIds"]}:
            raise refusal(code, "The instance may not be terminated. Modify its 'disableApiTermination' attribute.")
        return ended(**request)

    return terminate


@pytest.mark.parametrize("code", ["OperationNotPermitted", "UnauthorizedOperation", "IncorrectInstanceState"])
def test_an_instance_that_ec2_refuses_to_end_keeps_no_other_of_its_call_alive(code: str) -> None:
    names = tuple(instance_id(number) for number in range(1, 101))
    ec2 = ScriptedClient("ec2", terminate_instances=protecting(names[41], code=code))
    events = fleets(ec2).terminate(Terminate(CELL, names), state_of(100), {POOL: True}, SOON)
    assert sorted(event.instance_id for event in events if isinstance(event, HostStateChanged)) == sorted(
        {*names} - {names[41]}
    )
    (refused,) = [event for event in events if isinstance(event, NotCarriedOut)]
    assert (refused.about, refused.reason.split(":")[:2]) == (
        Subject(Act.TERMINATE, names[41]),
        [f"{names[41]} could not be terminated", f" {code}"],
    )
    assert len(ec2.calls) <= 15  # by halves: the calls have a pace


@pytest.mark.parametrize("error", [timed_out(), refusal("RequestLimitExceeded", status=503)])
def test_a_call_that_came_at_a_bad_time_is_not_split(error: Exception) -> None:
    ec2 = ScriptedClient("ec2", terminate_instances=error)
    action = Terminate(CELL, (instance_id(1), instance_id(2)))
    (event,) = fleets(ec2).terminate(action, state_of(), {POOL: True}, SOON)
    assert isinstance(event, NotCarriedOut)
    assert (event.about, len(ec2.calls)) == (None, 1)


def test_an_instance_of_another_fleet_waits_for_that_fleets_target_alone() -> None:
    ec2 = ScriptedClient("ec2", terminate_instances=ended)
    state = state_of()
    state.pools[POOL].spot_target = 0  # not confirmed
    state.instances[instance_id(1)].fleet_id = "fleet-other"
    action = Terminate(CELL, (instance_id(1),))
    assert isinstance(fleets(ec2).terminate(action, state, {}, SOON)[0], HostStateChanged)  # deleted: no target
    state.pools[POOL].surplus = ["fleet-other"]
    assert isinstance(fleets(ec2).terminate(action, state, {POOL: True}, SOON)[0], NotCarriedOut)
    state.pools[POOL].fleet_id = ""  # the pool has none
    assert isinstance(fleets(ec2).terminate(action, state, {}, SOON)[0], HostStateChanged)


def test_a_surplus_fleet_is_steered_by_its_own_id() -> None:
    ec2 = ScriptedClient("ec2", modify_fleet={"Return": True})
    event = fleets(ec2).set_target(SetTarget(POOL, 0, 0, fleet_id="fleet-other"), state_of(), SOON)
    assert event == TargetAccepted(POOL, 0, "fleet-other")
    assert ec2.calls[0][1]["FleetId"] == "fleet-other"


def test_terminations_go_out_by_the_hundred() -> None:
    ec2 = ScriptedClient("ec2", terminate_instances=ended)
    names = tuple(instance_id(number) for number in range(1, 251))
    assert len(fleets(ec2).terminate(Terminate(CELL, names), state_of(250), {POOL: True}, SOON)) == 250
    assert [len(request["InstanceIds"]) for _, request in ec2.calls] == [100, 100, 50]


# Listings


def listed_fleet(number: int, pool: str | None, stage: str = "main", **target: int) -> dict[str, Any]:
    tags = [{"Key": "argosy:stage", "Value": stage}] + ([{"Key": "argosy:pool", "Value": pool}] if pool else [])
    return {"FleetId": f"fleet-{number}", "Tags": tags, "TargetCapacitySpecification": target}


OF_FLEET_1 = [{"Key": "aws:ec2:fleet-id", "Value": "fleet-1"}]


def price(instance_type: str, zone: str, usd: str, hour: int) -> dict[str, Any]:
    at = datetime(2026, 11, 21, hour, tzinfo=UTC)
    return {"InstanceType": instance_type, "AvailabilityZone": zone, "SpotPrice": usd, "Timestamp": at}


def test_our_fleets_are_found_by_their_tags_with_the_prices_in_force() -> None:
    page = {
        "Fleets": [listed_fleet(1, "c5.xlarge/us-east-1a", TotalTargetCapacity=4)],
        "NextToken": "n",
    }
    more = [
        listed_fleet(2, "c5.xlarge/us-east-1b"),
        listed_fleet(3, "x/y", "other"),
        listed_fleet(4, None),
        {"FleetId": "f"},
    ]
    prices = [
        price("c5.xlarge", "us-east-1a", "0.05", 3),
        price("c5.xlarge", "us-east-1a", "0.07", 5),
        price("c5.xlarge", "us-east-1a", "0.06", 4),
    ]
    ec2 = ScriptedClient(
        "ec2", describe_fleets=[page, {"Fleets": more}], describe_spot_price_history={"SpotPriceHistory": prices}
    )
    here, home = fleets_of_home(ec2)
    first, second = here.fleets(home, NOW)
    assert (first.fleet_id, first.instance_type, first.zone) == ("fleet-1", "c5.xlarge", "us-east-1a")
    assert (first.spot_target, first.spot_usd_per_hour) == (4, 0.07)
    assert (second.zone, second.spot_target, second.spot_usd_per_hour) == ("us-east-1b", 0, None)
    assert ec2.requests("describe_fleets")[1]["NextToken"] == "n"
    assert ec2.requests("describe_spot_price_history")[0]["InstanceTypes"] == ["c5.xlarge"]


@pytest.mark.parametrize("spelling", ["deleted_running", "deleted-running"])
def test_fleets_are_told_apart_by_their_state_in_either_spelling_and_never_by_a_filter(spelling: str) -> None:
    states = {1: "active", 2: spelling, 3: "deleted"}
    listed = [listed_fleet(number, f"c5.xlarge/us-east-1{'abc'[number - 1]}") for number in states]
    listing = {"Fleets": [{**each, "FleetState": state} for each, state in zip(listed, states.values(), strict=True)]}
    ec2 = ScriptedClient("ec2", describe_fleets=listing, describe_spot_price_history={"SpotPriceHistory": []})
    here, home = fleets_of_home(ec2)
    assert [seen.fleet_id for seen in here.fleets(home, NOW)] == ["fleet-1"]
    assert "Filters" not in ec2.requests("describe_fleets")[0]
    instances = [
        {
            "InstanceId": instance_id(number),
            "InstanceType": "c5.xlarge",
            "State": {"Name": "running"},
            "Tags": [{"Key": "aws:ec2:fleet-id", "Value": f"fleet-{number}"}],
        }
        for number in states
    ]
    ec2.scripts["describe_instances"] = {"Reservations": [{"Instances": instances}]}
    assert [each.fleet_id for each in here.hosts(home)] == ["fleet-1", "fleet-2"]  # a deleted one may still run some


def test_prices_are_asked_for_every_five_minutes_and_old_ones_do_when_ec2_is_silent() -> None:
    one = {"SpotPriceHistory": [price("c5.xlarge", "us-east-1a", "0.05", 3)]}
    listing = {"Fleets": [listed_fleet(1, "c5.xlarge/us-east-1a")]}
    ec2 = ScriptedClient(
        "ec2",
        describe_fleets=listing,
        describe_spot_price_history=[one, timed_out()],
        describe_instance_type_offerings={"InstanceTypeOfferings": []},
    )
    here, home = fleets_of_home(ec2)
    for later in (0, 299, 301):
        (seen,) = here.fleets(home, NOW + later)
        assert seen.spot_usd_per_hour == 0.05
    assert len(ec2.requests("describe_spot_price_history")) == 2


def test_offers_are_read_every_six_hours_and_what_ec2_does_not_say_is_not_assumed() -> None:
    """Not in the first minutes; a refusal or an empty list says nothing about any type."""
    here_a = {"InstanceTypeOfferings": [offer("c5.xlarge", "us-east-1a"), offer("c5.large", "us-east-1b")]}
    listing = {"Fleets": [listed_fleet(1, "c5.xlarge/us-east-1a"), listed_fleet(2, "c5.xlarge/us-east-1b")]}
    answers = [refusal("UnauthorizedOperation", "no"), {"InstanceTypeOfferings": []}, here_a, timed_out()]
    ec2 = ScriptedClient(
        "ec2",
        describe_fleets=listing,
        describe_spot_price_history={"SpotPriceHistory": []},
        describe_instance_type_offerings=answers,
    )
    here, home = fleets_of_home(ec2)
    hours = 3_600.0
    for later, expected in (
        (0.0, [None, None]),
        (600.0, [None, None]),
        (1_300.0, [None, None]),
        (7 * hours, [True, False]),
        (12 * hours, [True, False]),
        (14 * hours, [True, False]),
    ):
        assert [seen.is_offered for seen in here.fleets(home, NOW + later)] == expected
    assert len(ec2.requests("describe_instance_type_offerings")) == 4


def offer(name: str, zone: str) -> dict[str, str]:
    return {"InstanceType": name, "LocationType": "availability-zone", "Location": zone}


def test_a_stage_without_fleets_asks_for_no_prices() -> None:
    here, home = fleets_of_home(ScriptedClient("ec2", describe_fleets={"Fleets": []}))
    assert list(here.fleets(home, NOW)) == []


def test_hosts_are_read_with_how_they_were_bought() -> None:
    spot = {
        "InstanceId": instance_id(1),
        "InstanceType": "c5.xlarge",
        "InstanceLifecycle": "spot",
        "Placement": {"AvailabilityZone": "us-east-1a"},
        "State": {"Name": "running"},
        "LaunchTime": datetime.fromtimestamp(NOW, UTC),
        "Tags": OF_FLEET_1,
    }
    bare = {
        "InstanceId": instance_id(2),
        "InstanceType": "c5.large",
        "State": {"Name": "terminated"},
        "Tags": OF_FLEET_1,
    }
    ec2 = ScriptedClient(
        "ec2",
        describe_fleets={"Fleets": [listed_fleet(1, "c5.xlarge/us-east-1a")]},
        describe_spot_price_history={"SpotPriceHistory": []},
        describe_instances={"Reservations": [{"Instances": [spot]}, {"Instances": [bare]}]},
    )
    here, home = fleets_of_home(ec2)
    first, second = here.hosts(home)
    assert (first.purchase, first.zone, first.state, first.launched_at) == ("spot", "us-east-1a", "running", NOW)
    assert (second.purchase, second.zone, second.state, second.launched_at) == ("on-demand", "", "terminated", 0.0)
    (request,) = ec2.requests("describe_instances")
    assert request["Filters"] == [{"Name": "tag:argosy:stage", "Values": ["main"]}]


def test_an_instance_with_our_tag_in_no_fleet_of_ours_is_a_strangers() -> None:
    running = {"InstanceType": "c5.large", "State": {"Name": "running"}}
    foreign = [{"Key": "argosy:stage", "Value": "main"}, {"Key": "aws:ec2:fleet-id", "Value": "fleet-9"}]
    answer = [
        {**running, "InstanceId": instance_id(1), "Tags": OF_FLEET_1},
        {**running, "InstanceId": instance_id(2), "Tags": foreign},
        {**running, "InstanceId": instance_id(3)},
    ]
    deleted = {**listed_fleet(1, "c5.xlarge/us-east-1a"), "FleetState": "deleted_running"}
    ec2 = ScriptedClient(
        "ec2",
        describe_fleets={"Fleets": [deleted]},
        describe_spot_price_history={"SpotPriceHistory": []},
        describe_instances={"Reservations": [{"Instances": answer}]},
    )
    here, home = fleets_of_home(ec2)
    assert list(here.fleets(home, NOW)) == []  # nothing can be bought there any more
    assert [seen.instance_id for seen in here.hosts(home)] == [instance_id(1)]


def test_ec2_is_asked_about_single_instances_of_ours_and_says_when_it_was_asked() -> None:
    shown = {"InstanceId": instance_id(1), "InstanceType": "c5.xlarge", "State": {"Name": "shutting-down"}}
    ec2 = ScriptedClient("ec2", describe_instances={"Reservations": [{"Instances": [shown]}]})
    (seen,) = fleets(ec2).look_up(LookUpHosts(CELL, (instance_id(1), instance_id(2))), SOON)
    assert isinstance(seen, HostSeen)
    assert (seen.instance_id, seen.state, seen.at) == (instance_id(1), "shutting-down", NOW)
    filters = {each["Name"]: each["Values"] for each in ec2.requests("describe_instances")[0]["Filters"]}
    assert filters == {"instance-id": [instance_id(1), instance_id(2)], "tag:argosy:stage": ["main"]}


def test_a_look_at_instances_that_fails_or_comes_too_late_is_tried_again() -> None:
    throttled = fleets(ScriptedClient("ec2", describe_instances=refusal("RequestLimitExceeded", status=503)))
    look_up = LookUpHosts(CELL, (instance_id(1),))
    assert throttled.look_up(look_up, SOON) == [NotCarriedOut("RequestLimitExceeded")]
    late, _ = fleets_of_home(ScriptedClient("ec2"), pace=0.01)
    assert late.look_up(look_up, NOW - 1) == [NotCarriedOut("the time limit was reached")]
    assert late.look_up(LookUpHosts("nowhere", (instance_id(1),)), SOON) == [NotCarriedOut("there is no cell nowhere")]
