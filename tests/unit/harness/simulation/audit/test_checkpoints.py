"""How much work may an attempt repeat, also while an earlier one is still alive?"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from argosy.model.attempts import AttemptKey
from argosy.model.policy import Policy
from argosy.runner.order import CheckpointOrder
from tests.builders import spec
from tests.fakes.worlds import world
from tests.harness.simulation.audit.checkpoints import CheckpointChecker
from tests.harness.simulation.audit.facts import TrialFacts
from tests.harness.simulation.world.regions import Regions
from tests.harness.simulation.world.s3 import S3Model
from tests.harness.simulation.world.saving import SavedWork, SavingAttempt
from tests.harness.simulation.world.workload import SimulatedJob

RUN_ID = "saving-261121-062733-aaaa"
EVERY_S, UPLOAD_S = 100, 5.0


def attempt(number: int, began_at: float, *saved_at: float, resumed: SavedWork | None = None) -> SavingAttempt:
    """One that is alive, and saves what it has done."""
    order = CheckpointOrder(f"s3://b/{RUN_ID}/checkpoints/0000000/", number, 60.0 * EVERY_S)
    one = SavingAttempt(AttemptKey(RUN_ID, 0, number, number), order, UPLOAD_S, cast("S3Model", None), [], began_at)
    one.resumed = resumed or one.resumed
    one.saved = [SavedWork(number, place, one.work_s(at), at) for place, at in enumerate(saved_at, 1)]
    return one


def violations(*attempts: SavingAttempt) -> list[str]:
    job = SimulatedJob(RUN_ID, spec(checkpoint={"everySeconds": EVERY_S}), 1)
    facts = TrialFacts(Regions(world()), {RUN_ID: job}, Policy(), saving=list(attempts))
    CheckpointChecker(facts).time_passed()
    return [each.invariant for each in facts.violations]


@pytest.mark.parametrize(("lost_at", "found"), [(205.0, []), (215.0, ["K2"])])
def test_of_the_highest_attempt_an_interval_and_an_upload_may_be_lost(lost_at: float, found: list[str]) -> None:
    first = attempt(1, 0.0, 100.0)
    assert violations(first, attempt(2, lost_at, resumed=first.saved[0])) == found
    assert violations(replace(first, ended_at=150.0), attempt(2, lost_at, resumed=first.saved[0])) == []


def test_so_it_is_where_an_earlier_one_is_alive_whose_work_counts_no_more() -> None:
    first = attempt(1, 0.0, 100.0, 900.0)
    second = attempt(2, 110.0, 200.0, resumed=first.saved[0])
    assert violations(first, second, attempt(3, 300.0, resumed=second.saved[0])) == []
    assert violations(first, second, attempt(3, 320.0, resumed=second.saved[0])) == ["K2"]
