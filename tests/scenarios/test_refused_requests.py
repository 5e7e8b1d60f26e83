"""A retry or a cancellation at which our own code fails blocks no other run, and its run says that it is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from argosy.model.inbox import REFUSED
from argosy.model.runs import RunStatus, sort_key
from argosy.model.stored import documents
from tests.fakes.throwing import any_of, named, names_run, throwing
from tests.scenarios.controlled import Controlled

VICTIM, OTHER = "victim-261121-062733-aaaa", "other-261121-062734-bbbb"
TASKS, OTHER_TASKS = 3, 2
of_victim = any_of(lambda value: names_run(value, VICTIM, TASKS))


def with_a_cancelled_run() -> Controlled:
    cluster = Controlled(zones=("us-east-1a",), work_s=5.0)
    cluster.submit(TASKS, VICTIM, name="victim")
    cluster.tick()
    cluster.cancel(VICTIM)
    cluster.run_to_rest()
    cluster.faulty = True
    return cluster


def finish_the_other(cluster: Controlled) -> None:
    """No tick may raise in the meantime."""
    cluster.submit(OTHER_TASKS, OTHER, name="other")
    cluster.run_for(600.0)
    assert cluster.record(OTHER).status == "SUCCEEDED"


@pytest.mark.parametrize("name", ["lifecycle.revival._change", "model.run_record.RunRecord.to_run"])
def test_a_retry_at_which_the_code_fails_is_refused_and_can_be_asked_for_again(name: str) -> None:
    cluster = with_a_cancelled_run()
    cluster.retry(VICTIM, cancelled=True)
    with throwing(named(name), of_victim) as thrown:
        finish_the_other(cluster)
    assert thrown[0] > 0
    assert cluster.record(VICTIM).status == "CANCELLED"
    assert "the request to retry it could not be carried out" in cluster.record(VICTIM).status_reason
    assert len(cluster.store.read_partition(REFUSED)) == 1
    cluster.retry(VICTIM, cancelled=True)
    cluster.run_to_rest()
    assert (cluster.record(VICTIM).status, cluster.record(VICTIM).status_reason) == ("SUCCEEDED", "")


def test_a_cancellation_at_which_the_code_fails_is_refused_and_blocks_no_other_run() -> None:
    """For a run that is stored as open but not among the open ones, as after a root was restored."""
    cluster = with_a_cancelled_run()
    stored = replace(cluster.record(VICTIM), status=RunStatus.RUNNING, stopped_at=0.0, cancelled=False)
    cluster.store.items[documents.RUNS, sort_key(VICTIM)] = documents.encode(stored.to_json())
    cluster.cancel(VICTIM)
    with throwing(named("lifecycle.revival.adopt"), any_of(lambda value: getattr(value, "id", "") == VICTIM)) as thrown:
        finish_the_other(cluster)
    assert thrown[0] > 0
    assert cluster.record(VICTIM).status == "RUNNING", "a reason would count as one to halt it"
    cluster.cancel(VICTIM)
    cluster.run_to_rest()
    assert cluster.record(VICTIM).status == "CANCELLED"
