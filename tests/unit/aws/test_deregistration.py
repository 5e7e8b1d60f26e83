"""Definitions that no run needs any more, and those that were deregistered by others."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.aws.cell import Cell
from argosy.aws.items import S3ItemsReader
from argosy.aws.preparation import RunPreparation
from argosy.model.actions import DeregisterDefinition
from argosy.model.arns import family_of
from argosy.model.events import DefinitionDeregistered, NotCarriedOut, RunPrepared
from argosy.model.runs import Run
from argosy.model.setbacks import Act, Subject
from tests.builders import CELL, NOW, RUN_ID, state_with, submitted
from tests.fakes.aws import DEPLOYMENT, SOON, Clock, ScriptedClient, cell, refusal, timed_out

AWAY = "eu-west-1"
UNKNOWN = refusal("ClientException", "Unable to describe task definition.")


class Registry:
    """One cell's ECS, as far as definitions go."""

    def __init__(self, region: str = CELL, deregister: Any = None) -> None:
        self.region = region
        self.active: list[str] = []
        self.count = 0
        self.client = ScriptedClient(
            "ecs",
            register_task_definition=self.register,
            describe_task_definition=self.describe,
            deregister_task_definition=self.deregister if deregister is None else deregister,
        )

    def register(self, **request: Any) -> dict[str, Any]:
        self.count += 1
        arn = f"arn:aws:ecs:{self.region}:123456789012:task-definition/{request['family']}:{self.count}"
        self.active.append(arn)
        return {"taskDefinition": {"taskDefinitionArn": arn}}

    def describe(self, **request: Any) -> dict[str, Any]:
        found = [arn for arn in self.active if family_of(arn) == request["taskDefinition"]]
        if not found:
            raise UNKNOWN
        return {"taskDefinition": {"taskDefinitionArn": found[-1], "status": "ACTIVE"}}

    def deregister(self, **request: Any) -> dict[str, Any]:
        self.active.remove(request["taskDefinition"])
        return {}


def definitions(*cells: Cell) -> RunPreparation:
    s3 = ScriptedClient("s3", put_object={})
    return RunPreparation(DEPLOYMENT, {each.name: each for each in cells}, s3, S3ItemsReader(s3))


def run_of() -> Run:
    return state_with(submitted()).runs[RUN_ID]


def prepared_in(*registries: Registry) -> tuple[RunPreparation, Run, str]:
    """A preparation that has the definition of a run; the run; the definition's family."""
    clock = Clock()
    here = definitions(*[cell(clock, each.client, name=each.region) for each in registries])
    run = run_of()
    prepare_again(here, run)
    return here, run, family_of(run.task_definition)


def prepare_again(here: RunPreparation, run: Run) -> None:
    event = here.prepare(run, SOON)
    assert isinstance(event, RunPrepared)
    run.task_definition = event.task_definition


def test_the_definition_is_deregistered_in_every_cell_and_registered_again_for_the_next_run() -> None:
    home, away = Registry(), Registry(AWAY)
    here, run, family = prepared_in(home, away)
    far = cell(Clock(), away.client, name=AWAY)
    assert here.arn_in(run, far, SOON).endswith(":1")
    assert here.deregister(DeregisterDefinition(family), [], SOON) == DefinitionDeregistered(family)
    assert (home.active, away.active) == ([], [])
    prepare_again(here, run)
    assert [arn.rpartition(":")[2] for arn in (*home.active, *away.active)] == ["2", "2"]
    assert run.task_definition.endswith(":2")
    assert here.arn_in(run, far, SOON).endswith(":2")


def test_what_a_run_that_waits_for_its_preparation_will_get_stays_and_nothing_else() -> None:
    home = Registry()
    here, run, family = prepared_in(home)
    other = state_with(submitted(resources={"vcpus": 2, "memory": 1536})).runs[RUN_ID]
    users = state_with(submitted(taskDefinition="train")).runs[RUN_ID]
    prepare_again(here, other)
    assert family_of(other.task_definition) != family
    before = list(home.active)
    event = here.deregister(DeregisterDefinition(family), [users, other, run], SOON)
    assert isinstance(event, NotCarriedOut)
    assert (event.about, event.passing) == (Subject(Act.DEREGISTER, family), True)
    assert "that is being prepared needs this definition" in event.reason
    assert home.active == before
    assert here.deregister(DeregisterDefinition(family), [users, other], SOON) == DefinitionDeregistered(family)
    assert home.active == before[1:] != []


def test_of_several_active_revisions_all_are_deregistered() -> None:
    """Two controllers registered the same content."""
    home = Registry()
    here, _, family = prepared_in(home)
    home.register(family=family)
    assert here.deregister(DeregisterDefinition(family), [], SOON) == DefinitionDeregistered(family)
    assert (home.active, home.count) == ([], 2)


def test_a_cell_that_refuses_is_named_and_holds_up_no_other() -> None:
    home, away = Registry(deregister=refusal("AccessDeniedException", "no")), Registry(AWAY)
    here, _, family = prepared_in(home, away)
    event = here.deregister(DeregisterDefinition(family), [], SOON)
    assert isinstance(event, NotCarriedOut)
    assert CELL in event.reason
    assert (len(home.active), away.active) == (1, [])


def test_a_definition_that_is_gone_already_is_as_good() -> None:
    home = Registry()
    here, _, family = prepared_in(home)
    home.active.clear()
    assert here.deregister(DeregisterDefinition(family), [], SOON) == DefinitionDeregistered(family)
    assert home.client.requests("deregister_task_definition") == []


def test_a_revision_that_was_just_deregistered_is_not_used_though_ecs_still_shows_it() -> None:
    home = Registry(deregister={})
    here, run, family = prepared_in(home)
    first = run.task_definition
    here.deregister(DeregisterDefinition(family), [], SOON)
    prepare_again(here, run)
    assert home.active == [first, run.task_definition]


@pytest.mark.parametrize("family", ["train", "argosy-evening", "argosy-0a1b2c3d4e5f-gpu", "another-0a1b2c3d4e5f"])
def test_a_family_that_is_not_ours_is_left_alone(family: str) -> None:
    home = Registry()
    here, _, _ = prepared_in(home)
    before = len(home.client.calls)
    assert here.deregister(DeregisterDefinition(family), [], SOON) == DefinitionDeregistered(family)
    assert len(home.client.calls) == before


@pytest.mark.parametrize(
    ("error", "passing", "throttles"),
    [
        (refusal("AccessDeniedException", "not authorized to perform: ecs:DeregisterTaskDefinition"), False, 0),
        (refusal("ThrottlingException", "Rate exceeded"), True, 1),
        (timed_out(), True, 0),
    ],
)
def test_a_refusal_says_so_and_is_tried_again(error: Exception, passing: bool, throttles: int) -> None:
    home = Registry(deregister=error)
    place = cell(Clock(), home.client)
    here = definitions(place)
    run = run_of()
    prepare_again(here, run)
    family = family_of(run.task_definition)
    event = here.deregister(DeregisterDefinition(family), [], SOON)
    assert isinstance(event, NotCarriedOut)
    assert (event.about, event.passing) == (Subject(Act.DEREGISTER, family), passing)
    assert family in event.reason
    assert place.rates.definitions.throttles == throttles


def test_registrations_keep_tokens_that_deregistrations_may_not_take() -> None:
    home = Registry()
    here, run, family = prepared_in(home)
    event = here.deregister(DeregisterDefinition(family), [], NOW - 1)
    assert event == NotCarriedOut("the time limit was reached", about=Subject(Act.DEREGISTER, family), passing=True)
    assert home.active == [run.task_definition]


def test_after_a_revision_was_deregistered_the_next_launch_names_another() -> None:
    home = Registry()
    here, run, _ = prepared_in(home)
    place, gone = cell(Clock(), home.client), run.task_definition
    home.active.clear()
    assert here.arn_in(run, place, SOON) == gone
    assert here.replaces(run, gone)
    another = here.arn_in(run, place, SOON)
    assert (home.active, another != gone) == ([another], True)
    assert here.replaces(run, gone)  # the refusal of a launch that was sent earlier
    assert here.arn_in(run, place, SOON) == another
    assert home.count == 2
