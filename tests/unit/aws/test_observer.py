"""The sweep: complete, or marked as incomplete; and it describes only necessary tasks."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.aws.fleets import AwsFleets
from argosy.aws.observer import SWEEP_LIMIT_S, Observer
from argosy.lifecycle.apply import apply
from argosy.model.events import Observed, TaskSeen
from argosy.model.state import State
from tests.builders import CELL, NOW, POLICY, instance_id, launched, state_with_instance, task, task_arn, told
from tests.fakes.aws import Clock, ScriptedClient, cell, refusal, timed_out

EC2 = {"describe_fleets": {"Fleets": []}, "describe_instances": {"Reservations": []}}
NO_INSTANCES = {"containerInstanceArns": []}
INSTANCE_ARN = f"arn:aws:ecs:{CELL}:123456789012:container-instance/argosy/1"
FLEET_ID = "fleet-1"
OURS = [{"Key": "argosy:stage", "Value": "main"}, {"Key": "aws:ec2:fleet-id", "Value": FLEET_ID}]
FLEET = {
    "FleetId": FLEET_ID,
    "Tags": [{"Key": "argosy:stage", "Value": "main"}, {"Key": "argosy:pool", "Value": "c5.xlarge/us-east-1a"}],
}


def sweep(
    ecs: dict[str, Any], ec2: dict[str, Any] | None = None, state: State | None = None, pace: float = 1000
) -> tuple[Observed, ScriptedClient]:
    clock = Clock()
    scripts = {"list_tasks": {"taskArns": []}, "list_container_instances": NO_INSTANCES, **ecs}
    client = ScriptedClient("ecs", **scripts)
    cells = {CELL: cell(clock, client, ScriptedClient("ec2", **{**EC2, **(ec2 or {})}), pace=pace)}
    observer = Observer(cells, AwsFleets("main", cells, clock), clock)
    observer.state = state
    observed = observer.observe(NOW)
    assert observed is not None
    return observed, client


def shown(**request: Any) -> dict[str, Any]:
    """Describes every requested task, whether by ARN or by id."""
    arns = [name if ":" in name else f"arn:aws:ecs:{CELL}:123456789012:task/argosy/{name}" for name in request["tasks"]]
    return {"tasks": [{"taskArn": arn, "lastStatus": "STOPPED", "version": 9} for arn in arns], "failures": []}


def test_an_empty_cell_is_a_complete_sweep() -> None:
    observed, _ = sweep({})
    cells = frozenset({CELL})
    assert observed == Observed(at=NOW, whole_cells=cells, cells=cells, reservations_read=cells)


def test_unknown_tasks_are_described_by_the_hundred_over_all_pages() -> None:
    pages = [{"taskArns": [task_arn(n) for n in range(100)], "nextToken": "n"}, {"taskArns": [task_arn(100)]}]
    observed, ecs = sweep({"list_tasks": pages, "describe_tasks": shown})
    assert len(observed.tasks) == 101
    assert [len(request["tasks"]) for request in ecs.requests("describe_tasks")] == [100, 1]
    assert [request["desiredStatus"] for request in ecs.requests("list_tasks")] == ["RUNNING"] * 2


def test_tasks_that_are_known_to_run_are_only_listed() -> None:
    state = state_with_instance()
    launched(state, index=0, number=1)
    told(state, task(1, "RUNNING"))
    observed, ecs = sweep({"list_tasks": {"taskArns": [task_arn(1)]}}, state=state)
    assert observed.tasks == (TaskSeen(task_arn(1), 0, "RUNNING", "RUNNING"),)
    assert ecs.requests("describe_tasks") == []
    before = state.attempts["version"].tolist()
    apply(state, observed, NOW, POLICY)
    assert state.attempts["version"].tolist() == before
    assert not state.orphans


def test_tasks_that_are_believed_alive_and_not_listed_are_asked_for_by_name() -> None:
    state = state_with_instance()
    launched(state, index=0, number=1)
    launched(state, index=1, number=2)
    told(state, task(1, "RUNNING"))
    observed, _ = sweep({"list_tasks": {"taskArns": []}, "describe_tasks": shown}, state=state)
    assert sorted(seen.arn for seen in observed.tasks) == [task_arn(1), task_arn(2)]
    apply(state, observed, NOW, POLICY)
    assert len(state.attempts.live()) == 0


def test_tasks_of_other_cells_are_not_asked_for_here() -> None:
    state = state_with_instance()
    launched(state)
    state.instances[instance_id(1)].cell = "eu-west-1"
    observed, ecs = sweep({}, state=state)
    assert ecs.requests("describe_tasks") == []
    assert observed.tasks == ()


def test_container_instances_are_described() -> None:
    answer = {
        "containerInstances": [{"containerInstanceArn": INSTANCE_ARN, "status": "ACTIVE", "agentConnected": True}]
    }
    listing = {"containerInstanceArns": [INSTANCE_ARN]}
    observed, _ = sweep({"list_container_instances": listing, "describe_container_instances": answer})
    assert [(seen.arn, seen.cell, seen.agent_connected) for seen in observed.container_instances] == [
        (INSTANCE_ARN, CELL, True)
    ]


@pytest.mark.parametrize(
    ("ecs", "ec2", "incomplete"),
    [
        ({"list_tasks": timed_out()}, {}, "tasks_complete"),
        ({"list_tasks": {"taskArns": [task_arn(1)]}, "describe_tasks": timed_out()}, {}, "tasks_complete"),
        ({"list_container_instances": refusal("ServerException", status=500)}, {}, "container_instances_complete"),
        ({}, {"describe_instances": timed_out()}, "hosts_complete"),
        ({}, {"describe_fleets": timed_out()}, "hosts_complete"),  # the fleets say to which pool instances belong
    ],
)
def test_a_listing_that_breaks_off_is_marked_and_spoils_no_other(
    ecs: dict[str, Any], ec2: dict[str, Any], incomplete: str
) -> None:
    observed, _ = sweep(ecs, ec2)
    flags = ("tasks_complete", "container_instances_complete", "hosts_complete")
    assert [name for name in flags if not getattr(observed, name)] == [incomplete]
    # A fleet that was not listed is gone only if all fleets and hosts of its cell were listed.
    assert observed.whole_cells == (frozenset() if incomplete == "hosts_complete" else {CELL})


def test_the_pages_before_the_one_that_failed_are_not_lost() -> None:
    known = state_with_instance()
    launched(known)
    told(known, task(1, "RUNNING"))
    pages = [{"taskArns": [task_arn(1)], "nextToken": "n"}, timed_out()]
    observed, _ = sweep({"list_tasks": pages}, state=known)
    assert (len(observed.tasks), observed.tasks_complete) == (1, False)


def test_throttling_slows_the_reads_down_and_a_sweep_without_end_breaks_off() -> None:
    clock = Clock()
    ecs = ScriptedClient("ecs", list_tasks=refusal("ThrottlingException"), list_container_instances=NO_INSTANCES)
    cells = {CELL: cell(clock, ecs, ScriptedClient("ec2", **EC2), pace=20)}
    broken_off = Observer(cells, AwsFleets("main", cells, clock), clock).observe(NOW)
    assert broken_off is not None
    assert not broken_off.tasks_complete
    assert cells[CELL].rates.reads.rate_per_s == 10

    endless = {"list_tasks": {"taskArns": [], "nextToken": "more"}}
    observed, client = sweep(endless, pace=4)
    assert not observed.tasks_complete
    assert len(client.requests("list_tasks")) <= 4 + 4 * SWEEP_LIMIT_S


def test_a_long_sweep_pauses_so_that_launches_can_continue_and_reports_as_of_its_beginning() -> None:
    clock = Clock()
    numbers = iter(range(4))

    def page(**_: Any) -> dict[str, Any]:
        clock.at += 1.0
        number = next(numbers)
        return {"taskArns": [task_arn(number)], **({"nextToken": "more"} if number < 3 else {})}

    known = state_with_instance()
    for number in range(4):
        launched(known, index=number, number=number)
        told(known, task(number, "RUNNING"))
    ecs = ScriptedClient("ecs", list_tasks=page, list_container_instances=NO_INSTANCES)
    cells = {CELL: cell(clock, ecs, ScriptedClient("ec2", **EC2))}
    observer = Observer(cells, AwsFleets("main", cells, clock), clock)
    observer.state = known
    pieces = [observer.observe(NOW + 60 * number) for number in range(5)]
    assert pieces[:4] == [None] * 4  # a page takes longer than a piece may
    whole = pieces[4]
    assert whole is not None
    assert (whole.at, len(whole.tasks), whole.tasks_complete) == (NOW, 4, True)


def test_a_task_that_ends_during_a_long_sweep_is_checked_again_and_not_taken_for_an_orphan() -> None:
    clock, state = Clock(), state_with_instance()
    key = launched(state, index=0, number=1)
    started_by = state.started_by(1)

    def described(**request: Any) -> dict[str, Any]:
        clock.at += 1.0
        ended = bool(state.attempts.live().size == 0)
        environment = [
            {"name": "ARGOSY_RUN_ID", "value": key.run_id},
            {"name": "ARGOSY_TASK_INDEX", "value": str(key.index)},
            {"name": "ARGOSY_TASK_ATTEMPT", "value": str(key.attempt)},
            {"name": "ARGOSY_LAUNCH", "value": str(key.launch)},
        ]
        status = {"lastStatus": "STOPPED" if ended else "PENDING", "desiredStatus": "STOPPED" if ended else "RUNNING"}
        overrides = {"containerOverrides": [{"name": "main", "environment": environment}]}
        return {
            "tasks": [{"taskArn": task_arn(1), "version": 1, "startedBy": started_by, "overrides": overrides, **status}]
        }

    listed = {"taskArns": [task_arn(1)]}
    ecs = ScriptedClient("ecs", list_tasks=listed, list_container_instances=NO_INSTANCES, describe_tasks=described)
    cells = {CELL: cell(clock, ecs, ScriptedClient("ec2", **EC2))}
    observer = Observer(cells, AwsFleets("main", cells, clock), clock)
    observer.state = state
    assert observer.observe(NOW) is None
    told(state, task(1, "STOPPED", 3, exit_code=0))
    observed = observer.observe(NOW + 5)
    assert observed is not None
    assert [(seen.key, seen.last_status) for seen in observed.tasks] == [(key, "STOPPED")]
    told(state, observed)
    assert not state.orphans


@pytest.mark.parametrize(
    ("operation", "endless"),
    [
        ("describe_instances", {"Reservations": [], "NextToken": "more"}),
        ("describe_fleets", {"Fleets": [], "NextToken": "more"}),
    ],
)
def test_fleets_and_hosts_without_end_break_off_like_the_rest(operation: str, endless: dict[str, Any]) -> None:
    clock, signs = Clock(), []

    def page(**_: Any) -> dict[str, Any]:
        clock.at += 1.0
        return endless

    ecs = ScriptedClient("ecs", list_tasks={"taskArns": []}, list_container_instances=NO_INSTANCES)
    ec2 = ScriptedClient("ec2", **{**EC2, operation: page})
    cells = {CELL: cell(clock, ecs, ec2)}
    observed = Observer(cells, AwsFleets("main", cells, clock), clock, lambda: signs.append(clock.at)).observe(NOW)
    assert observed is not None
    assert not observed.hosts_complete
    assert clock.at - NOW <= SWEEP_LIMIT_S + 1.0
    assert len(signs) >= SWEEP_LIMIT_S  # before every request


NO_ARN = "neither fish nor ARN"


def test_an_item_that_our_code_cannot_read_is_logged_and_hides_nothing_else() -> None:
    """And the task that it may have been does not count as gone."""
    tasks = {"tasks": [{"taskArn": NO_ARN}, {"taskArn": task_arn(2), "lastStatus": "RUNNING", "version": 1}]}
    shown_there = {"containerInstances": [{"containerInstanceArn": arn} for arn in (NO_ARN, INSTANCE_ARN)]}
    hosts = [
        {"InstanceId": instance_id(number), "Tags": OURS, "State": {"Name": "running"}, **more}
        for number, more in ((1, {}), (2, {"InstanceType": "c5.xlarge"}))
    ]
    observed, _ = sweep(
        {
            "list_tasks": {"taskArns": [task_arn(1), task_arn(2)]},
            "describe_tasks": tasks,
            "list_container_instances": {"containerInstanceArns": [INSTANCE_ARN, INSTANCE_ARN]},
            "describe_container_instances": shown_there,
        },
        {
            "describe_fleets": {"Fleets": [FLEET]},
            "describe_instances": {"Reservations": [{"Instances": hosts}]},
            "describe_spot_price_history": {"SpotPriceHistory": []},
        },
    )
    assert [seen.arn for seen in observed.tasks] == [task_arn(2)]
    assert [seen.arn for seen in observed.container_instances] == [INSTANCE_ARN]
    assert [seen.instance_id for seen in observed.hosts] == [instance_id(2)]
    complete = observed.tasks_complete, observed.container_instances_complete, observed.hosts_complete
    assert complete == (False, False, False)
    assert [failed.reason.partition(":")[0] for failed in observed.unread] == ["ValueError", "ValueError", "KeyError"]
