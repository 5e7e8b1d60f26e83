"""`argosy instances drain` and `enable`: the request, the output, and refusals."""

from __future__ import annotations

from tests.fakes.cli import NOW, World, instance

REPLY = {"instanceId": "i-1", "drainUntil": "2026-11-21T08:27:33.000Z"}


def test_an_instance_is_drained_for_two_hours_unless_another_time_is_given() -> None:
    world = World().answers("DrainInstance", REPLY)
    for words, seconds in (([], 7200), (["--for", "30m"], 1800)):
        result = world.argosy("instances", "drain", "i-1", *words)
        assert result.exit_code == 0, result.stderr
        asked = {"action": "DrainInstance", "instanceId": "i-1", "until": NOW + seconds}
        assert world.functions.requests[-1] == asked
        assert "i-1 takes no new tasks until " in result.stdout
        assert "argosy instances enable i-1" in result.stdout


def test_a_drain_is_ended() -> None:
    world = World().answers("DrainInstance", {"instanceId": "i-1", "drainUntil": None})
    result = world.argosy("instances", "enable", "i-1")
    assert world.functions.requests == [{"action": "DrainInstance", "instanceId": "i-1"}]
    assert "i-1 takes tasks again." in result.stdout


def test_a_duration_that_is_none_is_refused_and_nothing_is_sent() -> None:
    world = World()
    result = world.argosy("instances", "drain", "i-1", "--for", "ages")
    assert "--for 'ages' is not a duration" in result.stderr
    assert not world.functions.requests


def test_the_cluster_says_why_an_instance_gets_no_work() -> None:
    shown = {**instance(), "noWorkBecause": "drained by a user until 2026-11-21 08:27:33 UTC"}
    view = {
        "cluster": "argosy", "cells": ["us-east-1"], "instances": [shown], "fleets": [], "usdPerHour": 1.0,
        "spentUsd": 0.2, "onDemandUsd": 0.4, "peakUtilisation": {}, "floor": None,
    }  # fmt: skip
    result = World().answers("DescribeCluster", view).argosy("cluster")
    assert "gets no new tasks: drained by a user until 2026-11-21 08:27:33 UTC" in " ".join(result.stdout.split())


def test_the_list_of_instances_says_why_one_gets_no_work() -> None:
    why = "impaired: ECS says IMPAIRED: ACCELERATED_COMPUTE Xid 79"
    found = {"instances": [{**instance(), "noWorkBecause": why}], "nextToken": None}
    result = World().answers("ListInstances", found).argosy("instances")
    assert f"gets no new tasks: {why}" in " ".join(result.stdout.split())
