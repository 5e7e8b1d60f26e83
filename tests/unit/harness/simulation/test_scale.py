"""A run at size, small enough for every test run: the census, the figures, and the findings if something is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.catalogue.lookup import load_catalogue
from argosy.emulator.ec2.service import Ec2Setup
from argosy.layout import JOURNAL
from argosy.replay.chains import chains_of
from tests.harness.simulation.controllers.recorded import RecordedTrial
from tests.harness.simulation.scale.calls import DirectQueue
from tests.harness.simulation.scale.census import Census
from tests.harness.simulation.scale.report import faults_of, report_of
from tests.harness.simulation.scale.run import ScaleRun, Size
from tests.harness.simulation.world.timeline import Timeline
from tests.harness.simulation.world.world import World

SMALL = Size(tasks=60, instances=8, cells=2, seed=1, interrupted_per_hour=10.0, invocation_s=100.0)


@pytest.fixture(scope="module")
def run() -> ScaleRun:
    run = ScaleRun(SMALL, RecordedTrial())
    run.run()
    return run


@pytest.mark.slow
def test_every_task_is_done_once_in_several_cells_in_spite_of_interruptions(run: ScaleRun) -> None:
    report = report_of(run)
    assert (report["violations"], report["found"], report["succeeded"]) == (0, [], 60)
    assert report["interruptions"] > 0
    assert {pool.split("/")[0] for pool in report["instancesBought"]} == {"us-east-1", "us-west-2"}
    assert report["measured"]["peakMib"] > 0


def test_the_same_size_and_seed_give_the_same_figures(run: ScaleRun) -> None:
    again = ScaleRun(SMALL)
    again.run()
    figures = [{name: value for name, value in report_of(each).items() if name != "measured"} for each in (run, again)]
    assert figures[0] == figures[1]


def test_all_that_several_invocations_did_is_recorded_and_had_again(run: ScaleRun) -> None:
    assert run.recorded is not None
    assert not run.recorded.faults()
    names = run.recorded.names(JOURNAL)
    assert len(chains_of(names)) > 1
    recorded = [
        line[1]["version"] for chain in chains_of(names) for _, line in chain.lines(run.recorded) if line[0] == "tick"
    ]
    versions = [version for version in recorded if version]
    assert versions == list(range(1, len(versions) + 1))


def test_what_journal_and_history_cost_is_counted_apart(run: ScaleRun) -> None:
    units, report = run.dynamodb.units, report_of(run)
    assert all(units[kind] > 0 for kind in ("CHANGES", "HISTORY", "RUN SERIES"))
    assert 0 < report["recordWriteUnitsPerTask"] < report["writeUnitsPerTask"]
    assert units.total() == run.dynamodb.write_units


def test_messages_that_a_controller_had_not_deleted_reach_the_next_one_first() -> None:
    queue = DirectQueue()
    for number in range(3):
        queue({"source": "aws.ecs", "detail-type": "ECS Task State Change", "number": number})
    received = queue.receive(0.0)
    queue({"source": "aws.ecs", "detail-type": "ECS Task State Change", "number": 3})
    queue.delete([received[1].receipt])
    queue.give_back()
    assert [each.body["number"] for each in queue.receive(0.0)] == [0, 2, 3]


def test_faults_at_the_end_are_reported(run: ScaleRun) -> None:
    census, objects = run.census, dict(run.s3.objects)
    census.ended_well[3], census.ended_well[4] = 0, 2
    manifest = next(key for key in objects if key[1].endswith("manifest.json"))
    marker = next(key for key in objects if key[1].endswith("_SUCCESS"))
    try:
        assert list(faults_of(run)) == ["1 tasks never ended well", "1 tasks ended well more than once"]
        del run.s3.objects[manifest], run.s3.objects[marker]
        assert list(faults_of(run))[2:] == ["there is no _SUCCESS", "there is no manifest"]
        run.s3.objects |= {manifest: objects[marker], marker: objects[marker]}
        run.s3.objects[manifest] = type(objects[manifest])(b'{"entries": [{"index": 0, "status": "FAILED"}]}')
        assert list(faults_of(run))[2:] == ["the manifest does not name every task once as SUCCEEDED"]
        assert report_of(run)["violations"] == 3
    finally:
        census.ended_well[3] = census.ended_well[4] = 1
        run.s3.objects = objects


def test_the_census_notices_two_attempts_of_a_task_at_once() -> None:
    world = World(Ec2Setup(load_catalogue()))
    census = Census(2, 1.0, 2.0)
    census.attend(world)

    def started(attempt: int) -> None:
        environment = [
            {"name": f"ARGOSY_{name}", "value": value}
            for name, value in (("RUN_ID", "r"), ("TASK_INDEX", "1"), ("TASK_ATTEMPT", str(attempt)), ("LAUNCH", "0"))
        ]
        overrides = {"containerOverrides": [{"name": "main", "environment": environment}]}
        instance: Any = None
        world.workload({"taskArn": f"arn:{attempt}", "overrides": overrides}, instance)

    started(1)
    assert not census.twice
    started(2)
    assert census.twice == ["task 1: arn:2"]


def test_worlds_on_one_timeline_share_their_clock() -> None:
    timeline = Timeline(100.0)
    worlds = [
        World(Ec2Setup(load_catalogue(), zones=[f"{region}a"]), region=region, timeline=timeline)
        for region in ("us-east-1", "eu-west-1")
    ]
    for world in worlds:
        world.add_fleet("c5.large", f"{world.region}a", spot=1)
    worlds[0].run_for(120.0)
    assert [world.now for world in worlds] == [220.0, 220.0]
    assert [len(world.agents) for world in worlds] == [1, 1]
