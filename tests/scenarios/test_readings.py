"""The core stories under each reading of AWS's contracts alone, and under all at once. The real engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.emulator.readings import HYPHENS, READINGS, TOTAL_ONLY, known
from tests.scenarios.core_stories import STORIES, a_run_to_its_end, ended, spent_nothing_more, world

NAMES = list(STORIES)
THIRDS = 3
SOME = [
    pytest.param(reading, name, id=f"{reading}-{name}")
    for number, reading in enumerate(READINGS)
    for name in NAMES[number % THIRDS :: THIRDS]
]
ALL = [pytest.param("all", name, id=f"all-{name}") for name in NAMES]
REST = [
    pytest.param(reading, name, id=f"{reading}-{name}", marks=pytest.mark.deep)
    for number, reading in enumerate(READINGS)
    for place, name in enumerate(NAMES)
    if place % THIRDS != number % THIRDS
]


@pytest.mark.parametrize(("reading", "name"), [*SOME, *ALL, *REST])
def test_every_story_ends_well(reading: str, name: str) -> None:
    assert spent_nothing_more(STORIES[name](known([reading])))


@pytest.mark.parametrize("reading", READINGS)
def test_a_run_is_bought_for_and_ends_and_its_fleets_go_back_to_nothing(reading: str) -> None:
    assert spent_nothing_more(a_run_to_its_end({reading}))


def test_an_instance_of_a_deleted_fleet_is_still_ours_however_its_state_is_spelt() -> None:
    """A controller that starts afterwards knows the fleet by its listing alone."""
    cluster = world({HYPHENS}, work_s=200.0)
    cluster.submit(4)
    cluster.run_for(150.0)
    cluster.world.ec2.delete_fleets(FleetIds=list(cluster.world.ec2.ledger.fleets), TerminateInstances=False)
    cluster.controllers = [cluster.controller()]
    assert spent_nothing_more(ended(cluster))
    assert len(cluster.world.ec2.ledger.instances) == 1


def test_the_page_has_a_row_for_each_reading() -> None:
    page = (Path(__file__).parents[2] / "docs/maintainers/notes/readings.md").read_text(encoding="utf-8")
    rows = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    assert rows == list(READINGS)


def test_an_unknown_reading_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=f"'both' is no reading. There are: all, {TOTAL_ONLY}"):
        known(["both"])
