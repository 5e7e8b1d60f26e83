"""A run's record names the instances that it has used, and never outgrows an item of the table."""

from __future__ import annotations

import random

import pytest

from argosy.model.instances import Instance, InstanceStatus
from argosy.model.run_record import RunRecord
from argosy.model.runs import MOST_NAMED
from argosy.model.state import State
from argosy.model.stored import documents
from tests.builders import state_with_instance, the_run

ITEM = 400_000  # bytes that DynamoDB stores


def replaced(state: State, count: int, alive: int) -> list[str]:
    """That many instances, one after the other, with the last few alive at each time; ids as EC2's."""
    drawn = random.Random(1)
    names = [f"i-0{drawn.getrandbits(64):016x}" for _ in range(count)]
    for place, name in enumerate(names):
        state.instances[name] = Instance(name, "us-east-1", "c5.xlarge", "us-east-1a", status=InstanceStatus.ACTIVE)
        if place >= alive:
            state.instances[names[place - alive]].status = InstanceStatus.GONE
        the_run(state).note_instance(name, state.instances)
    return names


@pytest.mark.slow
def test_a_hundred_thousand_instances_one_after_the_other_are_counted_and_fit_into_the_record() -> None:
    state = state_with_instance()
    names = replaced(state, 100_000, alive=5_000)
    run, record = the_run(state), RunRecord.of(the_run(state))
    assert record.instance_count == 100_000
    assert len(record.instances) <= MOST_NAMED
    assert set(names[-5_000:]) <= run.instances
    state.instances.clear()


def test_a_record_with_as_many_names_as_it_can_have_is_far_below_what_an_item_holds() -> None:
    state = state_with_instance()
    names = replaced(state, MOST_NAMED, alive=MOST_NAMED)
    record = RunRecord.of(the_run(state))
    assert len(record.instances) == MOST_NAMED
    assert len(documents.encode(record.to_json())) < ITEM * 0.7
    assert documents.record_from(documents.encode(record.to_json())).instances == tuple(sorted(names))
    state.instances.clear()


def test_an_instance_that_is_used_again_counts_once() -> None:
    state = state_with_instance()
    for _ in range(3):
        the_run(state).note_instance("i-0abc", state.instances)
    assert RunRecord.of(the_run(state)).instance_count == 1
