"""Preparing a run: one registration for each distinct content, and the files in the folder afterwards."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import pytest

from argosy.aws.cell import Cell
from argosy.aws.items import S3ItemsReader
from argosy.aws.preparation import RunPreparation
from argosy.model.events import RunNotPrepared, RunPrepared
from argosy.model.runs import Run
from tests.builders import CELL, NOW, RUN_ID, prepared, state_with, submitted
from tests.fakes.aws import DEPLOYMENT, Clock, ScriptedClient, cell, refusal, timed_out

UNKNOWN = refusal("ClientException", "Unable to describe task definition.")
FOREVER = NOW + 1e6


def registering(region: str = CELL) -> Any:
    def register(**request: Any) -> dict[str, Any]:
        arn = f"arn:aws:ecs:{region}:123456789012:task-definition/{request['family']}:1"
        return {"taskDefinition": {"taskDefinitionArn": arn}}

    return register


def run_of(**overrides: Any) -> Run:
    return state_with(submitted(**overrides)).runs[RUN_ID]


def definitions(*cells: Cell, s3: ScriptedClient | None = None, allow_exec: bool = False) -> RunPreparation:
    s3 = s3 or ScriptedClient("s3", put_object={})
    return RunPreparation(
        replace(DEPLOYMENT, allow_exec=allow_exec), {each.name: each for each in cells}, s3, S3ItemsReader(s3)
    )


def test_content_that_is_new_is_registered_once_and_the_spec_lies_in_the_folder() -> None:
    ecs = ScriptedClient("ecs", describe_task_definition=UNKNOWN, register_task_definition=registering())
    s3 = ScriptedClient("s3", put_object={})
    here = definitions(cell(Clock(), ecs), s3=s3)
    events = [here.prepare(run_of(), FOREVER) for _ in range(3)]
    assert len(ecs.requests("register_task_definition")) == 1
    family = ecs.requests("register_task_definition")[0]["family"]
    assert family.startswith("argosy-")
    assert len(family) == len("argosy-") + 12
    assert isinstance(events[0], RunPrepared)
    assert events == [events[0]] * 3
    assert (events[0].container, events[0].cpu_units, events[0].memory_mib, events[0].gpus) == ("main", 1024, 1024, 0)
    put = s3.requests("put_object")[0]
    assert (put["Bucket"], put["Key"]) == ("results", f"{RUN_ID}/spec.json")
    assert json.loads(put["Body"])["name"] == "digits"


def test_content_that_ecs_already_has_is_not_registered_again() -> None:
    arn = prepared().task_definition
    ecs = ScriptedClient(
        "ecs", describe_task_definition={"taskDefinition": {"taskDefinitionArn": arn, "status": "ACTIVE"}}
    )
    event = definitions(cell(Clock(), ecs)).prepare(run_of(), FOREVER)
    assert isinstance(event, RunPrepared)
    assert event.task_definition == arn


def test_a_family_with_only_inactive_revisions_is_registered_again() -> None:
    inactive = {"taskDefinition": {"taskDefinitionArn": "arn:old", "status": "INACTIVE"}}
    ecs = ScriptedClient("ecs", describe_task_definition=inactive, register_task_definition=registering())
    event = definitions(cell(Clock(), ecs)).prepare(run_of(), FOREVER)
    assert isinstance(event, RunPrepared)
    assert event.task_definition.startswith("arn:aws:ecs")


@pytest.mark.parametrize(
    ("error", "final"),
    [
        (refusal("ClientException", "Invalid 'cpu' setting"), True),
        (refusal("InvalidParameterException", "what no request may say"), True),
        (refusal("AccessDeniedException", "not authorized to perform: iam:PassRole"), False),
        (refusal("ClientException", "Too many concurrent attempts to create a new revision of the family."), False),
        (refusal("SomethingNewException", "never seen before"), False),
        (refusal("ThrottlingException", "Rate exceeded"), False),
        (timed_out(), False),
    ],
)
def test_a_registration_that_fails_says_so_and_whether_to_try_again(error: Exception, final: bool) -> None:
    ecs = ScriptedClient("ecs", describe_task_definition=UNKNOWN, register_task_definition=error)
    event = definitions(cell(Clock(), ecs)).prepare(run_of(), FOREVER)
    assert isinstance(event, RunNotPrepared)
    assert event.final is final
    assert "could not be prepared" in event.reason


def test_trouble_with_the_description_or_the_bucket_is_reported_too() -> None:
    denied = ScriptedClient("ecs", describe_task_definition=refusal("AccessDeniedException", "no"))
    event = definitions(cell(Clock(), denied)).prepare(run_of(), FOREVER)
    assert isinstance(event, RunNotPrepared)
    ecs = ScriptedClient("ecs", describe_task_definition=UNKNOWN, register_task_definition=registering())
    s3 = ScriptedClient("s3", put_object=refusal("NoSuchBucket", "gone", 404))
    event = definitions(cell(Clock(), ecs), s3=s3).prepare(run_of(), FOREVER)
    assert isinstance(event, RunNotPrepared)
    assert event.final


def test_a_registration_waits_for_its_turn() -> None:
    ecs = ScriptedClient("ecs", describe_task_definition=UNKNOWN, register_task_definition=registering())
    event = definitions(cell(Clock(), ecs)).prepare(run_of(), NOW - 1)
    assert isinstance(event, RunNotPrepared)
    assert (event.final, event.queued) == (False, True)
    assert ecs.requests("register_task_definition") == []


def users_own(**changes: Any) -> dict[str, Any]:
    container = {
        "name": "trainer",
        "cpu": 2048,
        "memory": 4096,
        "resourceRequirements": [{"type": "GPU", "value": "1"}],
    }
    arn = f"arn:aws:ecs:{CELL}:123456789012:task-definition/train:7"
    return {
        "taskDefinition": {"taskDefinitionArn": arn, "status": "ACTIVE", "containerDefinitions": [container], **changes}
    }


def test_a_users_definition_is_pinned_to_its_revision_with_its_own_needs() -> None:
    ecs = ScriptedClient("ecs", describe_task_definition=users_own())
    event = definitions(cell(Clock(), ecs)).prepare(run_of(taskDefinition="train"), FOREVER)
    assert event == RunPrepared(
        RUN_ID,
        f"arn:aws:ecs:{CELL}:123456789012:task-definition/train:7",
        "trainer",
        2048,
        4096,
        1,
        architecture="x86_64",
    )


def test_a_users_definition_that_is_missing_or_unusable_ends_the_run() -> None:
    for script in (UNKNOWN, users_own(networkMode="awsvpc"), users_own(networkMode="host")):
        ecs = ScriptedClient("ecs", describe_task_definition=script)
        event = definitions(cell(Clock(), ecs)).prepare(run_of(taskDefinition="train:7"), FOREVER)
        assert isinstance(event, RunNotPrepared)
        assert event.final


def test_the_host_ports_of_a_run_come_from_its_spec_or_from_its_definition() -> None:
    ecs = ScriptedClient("ecs", describe_task_definition=UNKNOWN, register_task_definition=registering())
    run = run_of(container={"image": "argosy/digits", "hostPorts": [8080, "53/udp"]})
    event = definitions(cell(Clock(), ecs)).prepare(run, FOREVER)
    assert isinstance(event, RunPrepared)
    assert event.host_ports == ((53, "udp"), (8080, "tcp"))
    [container] = ecs.requests("register_task_definition")[0]["containerDefinitions"]
    assert [mapping["hostPort"] for mapping in container["portMappings"]] == [53, 8080]
    own = users_own()
    own["taskDefinition"]["containerDefinitions"][0]["portMappings"] = [{"containerPort": 80, "hostPort": 9000}]
    ecs = ScriptedClient("ecs", describe_task_definition=own)
    event = definitions(cell(Clock(), ecs)).prepare(run_of(taskDefinition="train"), FOREVER)
    assert isinstance(event, RunPrepared)
    assert event.host_ports == ((9000, "tcp"),)


@pytest.mark.parametrize("allowed", [True, False])
def test_a_run_of_an_image_takes_exec_where_the_owner_allows_it(allowed: bool) -> None:
    ecs = ScriptedClient("ecs", describe_task_definition=UNKNOWN, register_task_definition=registering())
    event = definitions(cell(Clock(), ecs), allow_exec=allowed).prepare(run_of(), FOREVER)
    assert isinstance(event, RunPrepared)
    assert event.takes_exec is allowed


ROLE = "arn:aws:iam::123456789012:role/trainer"


@pytest.mark.parametrize(
    ("role", "is_read_only", "takes"), [(ROLE, False, True), (None, False, False), (ROLE, True, False)]
)
def test_a_users_definition_takes_exec_with_a_role_and_a_root_that_can_be_written_to(
    role: str | None, is_read_only: bool, takes: bool
) -> None:
    """RunTask would refuse the one, and the agent of Exec fails in the other."""
    own = users_own(**({"taskRoleArn": role} if role else {}))
    own["taskDefinition"]["containerDefinitions"][0]["readonlyRootFilesystem"] = is_read_only
    for allowed in (True, False):
        ecs = ScriptedClient("ecs", describe_task_definition=own)
        event = definitions(cell(Clock(), ecs), allow_exec=allowed).prepare(run_of(taskDefinition="train"), FOREVER)
        assert isinstance(event, RunPrepared)
        assert event.takes_exec is (takes and allowed)


def test_a_run_takes_exec_only_where_all_cells_can() -> None:
    cells = [
        cell(Clock(), ScriptedClient("ecs", describe_task_definition=users_own(**role)), name=name)
        for name, role in (("us-east-1", {"taskRoleArn": ROLE}), ("eu-west-1", {}))
    ]
    event = definitions(*cells, allow_exec=True).prepare(run_of(taskDefinition="train"), FOREVER)
    assert isinstance(event, RunPrepared)
    assert not event.takes_exec


def test_every_cell_gets_the_definition_and_launches_use_their_own_cells() -> None:
    clients = {
        name: ScriptedClient("ecs", describe_task_definition=UNKNOWN, register_task_definition=registering(name))
        for name in (CELL, "eu-west-1")
    }
    clock = Clock()
    cells = [cell(clock, ecs, name=name) for name, ecs in clients.items()]
    here = definitions(*cells)
    run = run_of()
    event = here.prepare(run, FOREVER)
    assert isinstance(event, RunPrepared)
    run.task_definition = event.task_definition
    assert all(len(ecs.requests("register_task_definition")) == 1 for ecs in clients.values())
    assert here.arn_in(run, cells[0], FOREVER) == event.task_definition
    assert {here.arn_in(run, cells[1], FOREVER).split(":")[3] for _ in range(3)} == {"eu-west-1"}
    assert len(clients["eu-west-1"].requests("register_task_definition")) == 1


def pinning(items: bytes, tasks: int, **overrides: Any) -> tuple[Any, ScriptedClient]:
    answer = {"ContentLength": len(items), "Body": io.BytesIO(items)}
    s3 = ScriptedClient("s3", put_object={}, get_object=answer)
    ecs = ScriptedClient("ecs", describe_task_definition=UNKNOWN, register_task_definition=registering())
    run = run_of(tasks=tasks, array={"itemsFrom": "s3://data/items"}, **overrides)
    return definitions(cell(Clock(), ecs), s3=s3).prepare(run, FOREVER), s3


def test_the_items_of_a_run_are_pinned_before_its_spec_is_written() -> None:
    event, s3 = pinning(b'{"a": 1}\n\n2\n', tasks=2)
    assert isinstance(event, RunPrepared)
    pinned, spec = s3.requests("put_object")
    assert (pinned["Key"], pinned["Body"]) == (f"{RUN_ID}/items.jsonl", b'{"a":1}\n2\n')
    assert spec["Key"] == f"{RUN_ID}/spec.json"


@pytest.mark.parametrize(
    ("items", "command", "sentence"),
    [
        (b"1\n2\n3\n", ["x"], "had 2 items at submission and has 3 now"),
        (b'{"url": "u"}\n{}\n', ["${item.url}"], "has no url"),
        (b'"a"\n"' + b"x" * 9000 + b'"\n', ["${item}"], "8192"),
        (b"not json\nx\n", ["x"], "is not JSON"),
    ],
)
def test_items_that_changed_or_do_not_fit_the_spec_end_the_run(items: bytes, command: list[str], sentence: str) -> None:
    container = {"image": "argosy/digits", "command": command}
    event, _ = pinning(items, tasks=2, container=container)
    assert isinstance(event, RunNotPrepared)
    assert event.final
    assert sentence in event.reason
