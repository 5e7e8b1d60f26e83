"""`argosy cluster scale`: the request, the output, and refusals."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.cli import NOW, World, instance

FLOOR: dict[str, Any] = {
    "instances": 3, "instanceTypes": ["c5.xlarge", "m5.xlarge"], "askedAt": None,
    "until": "2026-11-21T08:27:33.000Z", "waiting": None,
}  # fmt: skip
CLUSTER = {
    "cluster": "argosy", "cells": ["us-east-1"], "instances": [instance()], "fleets": [], "usdPerHour": 1.0,
    "spentUsd": 0.2, "onDemandUsd": 0.4, "peakUtilisation": {},
}  # fmt: skip


def test_number_types_and_end_are_sent_and_the_answer_is_a_sentence() -> None:
    world = World().answers("ScaleCluster", {"floor": FLOOR})
    result = world.argosy("cluster", "scale", "3", "--type", "c5.xlarge", "--type", "m5.xlarge", "--for", "2h")
    assert result.exit_code == 0, result.stderr
    assert world.functions.requests[0] == {
        "action": "ScaleCluster", "instances": 3, "instanceTypes": ["c5.xlarge", "m5.xlarge"], "until": NOW + 7200,
    }  # fmt: skip
    assert "At least 3 instances of c5.xlarge or m5.xlarge are kept until " in result.stdout


def test_no_entrance_is_reported_too() -> None:
    result = World().answers("ScaleCluster", {"floor": None}).argosy("cluster", "scale", "0")
    assert "There is no minimum number of instances: the cluster has what the work needs." in result.stdout


def test_a_time_may_be_named() -> None:
    world = World().answers("ScaleCluster", {"floor": FLOOR})
    world.argosy("cluster", "scale", "1", "--until", "2026-11-22T00:00")
    assert world.functions.requests[0]["until"] == NOW - NOW % 86_400 + 86_400


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["scale", "3", "--for", "2h", "--until", "23:00"], "--until and --for exclude each other"),
        (["scale", "3", "--for", "ages"], "--for 'ages' is not a duration: write 30m, 2h or 90s."),
        (["scale", "3", "--for", "0s"], "--for '0s' is not a duration"),
        (["scale", "3", "--until", "2020-01-01"], "--until 2020-01-01 is in the past."),
        (["scale", "-1"], "-1"),
        (["--stage", "dev", "scale", "3"], "--stage must come after scale, not before it"),
    ],
)
def test_impossible_options_are_refused_and_nothing_is_sent(words: list[str], sentence: str) -> None:
    world = World()
    result = world.argosy("cluster", *words)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert not world.functions.requests


def test_the_cluster_shows_what_is_kept_and_why_there_are_fewer() -> None:
    short = {**FLOOR, "instanceTypes": [], "until": None, "waiting": "held back by maxInstances of the deployment"}
    result = World().answers("DescribeCluster", {**CLUSTER, "floor": short}).argosy("cluster")
    said = " ".join(result.stdout.split())
    assert "At least 3 instances are kept; there are fewer now: held back by maxInstances of the deployment." in said
