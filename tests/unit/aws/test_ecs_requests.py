"""Requests to ECS follow from the intent and the spec alone."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from argosy.aws.ecs_requests import (
    UnusableDefinition,
    architecture_of_definition,
    client_token,
    definition_content,
    needs_of_definition,
    ports_of_definition,
    run_task_request,
    usable_container,
)
from argosy.emulator.botocore_check import check_request, service_model
from argosy.lifecycle.apply import apply
from argosy.messages.ecs import key_of_task
from argosy.model.actions import Launch
from argosy.model.attempts import AttemptKey
from argosy.model.policy import Policy
from argosy.model.resources import Resources
from argosy.model.run_record import RunRecord
from argosy.model.runs import Run
from tests.builders import CELL, NOW, RUN_ID, instance_id, prepared, state_with, submitted
from tests.fakes.aws import DEPLOYMENT

KEY = AttemptKey(RUN_ID, 3, 2, 1)
DEFINITION = prepared().task_definition


def run_of(**overrides: Any) -> Run:
    return state_with(submitted(**overrides), prepared(**overrides)).runs[RUN_ID]


def request_of(run: Run, key: AttemptKey = KEY, item: Any = None) -> dict[str, Any]:
    launch = Launch(key, 5, "argosy-testtest-5", instance_id(9), CELL)
    return run_task_request(launch, run, item, DEFINITION, stage="main")


def test_a_launch_is_one_task_pinned_to_its_instance() -> None:
    request = request_of(run_of(tags={"team": "vision"}))
    assert request["count"] == 1
    assert request["launchType"] == "EC2"
    assert request["taskDefinition"] == DEFINITION
    assert request["clientToken"] == client_token(KEY)
    assert request["startedBy"] == "argosy-testtest-5"
    assert request["group"] == f"run:{RUN_ID}"
    assert request["placementConstraints"] == [{"type": "memberOf", "expression": f"ec2InstanceId == {instance_id(9)}"}]
    tags = {tag["key"]: tag["value"] for tag in request["tags"]}
    assert tags == {"argosy:run": RUN_ID, "argosy:stage": "main", "team": "vision"}
    assert request["enableECSManagedTags"] is True


def test_a_launch_in_doubt_is_sent_again_as_it_was_when_the_owner_allows_exec_meanwhile() -> None:
    """ECS refuses a client token with a different request: the value from the run's preparation counts."""
    state = state_with(submitted(), prepared())
    intended = request_of(state.runs[RUN_ID])
    apply(state, replace(prepared(), takes_exec=True), NOW, Policy())
    assert request_of(state.runs[RUN_ID]) == intended
    assert "enableExecuteCommand" not in intended


def test_a_run_that_is_prepared_where_exec_is_allowed_is_launched_with_it() -> None:
    run = state_with(submitted(), replace(prepared(), takes_exec=True)).runs[RUN_ID]
    assert request_of(run)["enableExecuteCommand"] is True
    assert RunRecord.from_json(json.loads(json.dumps(RunRecord.of(run).to_json()))).takes_exec


def test_runs_that_share_a_group_say_so_to_ecs() -> None:
    assert request_of(run_of(placement={"group": "team/web"}))["group"] == "team/web"


def test_host_ports_are_mapped_to_the_same_ports_of_the_container() -> None:
    run = run_of(container={"image": "x", "hostPorts": ["53/udp", 8080]})
    run.host_ports = ((53, "udp"), (8080, "tcp"))
    [container] = definition_content(run, CELL, DEPLOYMENT)["containerDefinitions"]
    assert container["portMappings"] == [
        {"containerPort": 53, "hostPort": 53, "protocol": "udp"},
        {"containerPort": 8080, "hostPort": 8080, "protocol": "tcp"},
    ]
    assert definition_content(run, CELL, DEPLOYMENT)["networkMode"] == "bridge"


def test_a_definition_without_host_ports_is_what_it_always_was() -> None:
    """Its hash is its family: a new key would register every definition again."""
    assert "portMappings" not in definition_content(run_of(), CELL, DEPLOYMENT)["containerDefinitions"][0]


@pytest.mark.parametrize(
    ("mode", "mappings", "expected"),
    [
        ("bridge", [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81}], ((8080, "tcp"),)),
        ("bridge", [{"containerPort": 80, "hostPort": 0, "protocol": "udp"}], ()),
        (None, [], ()),
    ],
)
def test_the_host_ports_of_a_users_own_definition(mode: str | None, mappings: Any, expected: Any) -> None:
    containers = [{"name": "a", "portMappings": mappings}, {"name": "b"}]
    definition = {"containerDefinitions": containers, **({"networkMode": mode} if mode else {})}
    assert ports_of_definition(definition) == expected


def test_a_definition_that_asks_for_a_port_of_the_agent_is_refused_by_name() -> None:
    container = {"name": "a", "portMappings": [{"containerPort": 80, "hostPort": 51678}]}
    with pytest.raises(UnusableDefinition, match="web:3 asks for host port 51678/tcp, which ECS's agent reserves"):
        ports_of_definition({"family": "web", "revision": 3, "containerDefinitions": [container]})


def test_the_key_can_be_read_back_out_of_the_overrides() -> None:
    request = request_of(run_of())
    assert key_of_task(request) == KEY
    override = request["overrides"]["containerOverrides"][0]
    assert override["name"] == "main"
    assert override["command"] == ["--range", "30:40", "--output", f"s3://results/{RUN_ID}/parts/part-0000003.jsonl"]


def test_the_same_intent_gives_the_same_request_and_another_launch_another_token() -> None:
    assert json.dumps(request_of(run_of())) == json.dumps(request_of(run_of()))
    tokens = {client_token(KEY._replace(**{field: 8})) for field in ("index", "attempt", "launch")} | {
        client_token(KEY)
    }
    assert len(tokens) == 4
    assert all(len(token) == 43 and token.isascii() for token in tokens)


def test_a_spec_without_command_leaves_the_images_own() -> None:
    request = request_of(run_of(container={"image": "argosy/digits", "environment": {"SIZE": "${range}"}}))
    override = request["overrides"]["containerOverrides"][0]
    assert "command" not in override
    assert {"name": "SIZE", "value": "30:40"} in override["environment"]


def test_an_item_that_lacks_what_the_spec_uses_is_a_key_error() -> None:
    run = run_of(array={"itemsFrom": "s3://data/items"}, container={"image": "x", "command": ["${item.url}"]})
    assert request_of(run, item={"url": "u"})["overrides"]["containerOverrides"][0]["command"] == ["u"]
    with pytest.raises(KeyError):
        request_of(run, item={"other": "u"})


def test_a_definition_holds_image_size_logs_and_init_and_no_user_environment() -> None:
    run = run_of(container={"image": "argosy/digits", "environment": {"A": "b"}})
    content = definition_content(run, CELL, DEPLOYMENT)
    container = content["containerDefinitions"][0]
    assert (container["name"], container["image"]) == ("main", "argosy/digits")
    assert (container["cpu"], container["memory"], container["privileged"]) == (1024, 1024, False)
    assert container["logConfiguration"]["options"]["awslogs-group"] == "/ecs/argosy/tasks"
    assert container["linuxParameters"] == {"initProcessEnabled": True}
    assert "environment" not in container
    assert "resourceRequirements" not in container
    assert content["networkMode"] == "bridge"


def test_the_definition_of_a_users_own_program_names_an_entry_point_that_only_the_runner_has() -> None:
    """Where there is no runner the task fails at once; the image's own entry point would run something else."""
    run = run_of(run=["python", "x.py", "${index}"])
    definition = definition_content(run, CELL, DEPLOYMENT)
    assert definition["containerDefinitions"][0]["entryPoint"] == ["argosy:program"]
    override = request_of(run)["overrides"]["containerOverrides"][0]
    assert override["command"] == ["python", "x.py", str(KEY.index)]
    assert {"name": "ARGOSY_RUNNER", "value": "1"} in override["environment"]
    plain = definition_content(run_of(), CELL, DEPLOYMENT)
    assert "entryPoint" not in plain["containerDefinitions"][0]


def test_the_runner_gets_its_region_because_not_every_ecs_agent_passes_it() -> None:
    """Without it S3 would be called in us-east-1, which instances without a way out cannot reach."""
    container = definition_content(run_of(run="true", resources={"gpus": 1}), "eu-west-1", DEPLOYMENT)
    told = {each["name"]: each["value"] for each in container["containerDefinitions"][0]["environment"]}
    assert told == {"AWS_REGION": "eu-west-1", "NVIDIA_DRIVER_CAPABILITIES": "utility,compute"}


def test_a_definition_for_arm_says_so_and_others_are_as_they_were() -> None:
    content = definition_content(run_of(resources={"architecture": "arm64"}), CELL, DEPLOYMENT)
    assert content["runtimePlatform"] == {"cpuArchitecture": "ARM64", "operatingSystemFamily": "LINUX"}
    for architecture in ("x86_64", "any"):
        run = run_of(resources={"architecture": architecture})
        assert definition_content(run, CELL, DEPLOYMENT) == definition_content(run_of(), CELL, DEPLOYMENT)


@pytest.mark.parametrize(("said", "architecture"), [("ARM64", "arm64"), ("X86_64", "x86_64"), (None, "x86_64")])
def test_the_architecture_of_a_users_own_definition(said: str | None, architecture: str) -> None:
    definition = {"runtimePlatform": {"cpuArchitecture": said}} if said else {}
    assert architecture_of_definition(definition) == architecture


def test_a_gpu_definition_asks_for_whole_gpus_and_the_driver() -> None:
    container = definition_content(run_of(resources={"gpus": 4}), CELL, DEPLOYMENT)["containerDefinitions"][0]
    assert container["resourceRequirements"] == [{"type": "GPU", "value": "4"}]
    assert container["environment"][0]["name"] == "NVIDIA_DRIVER_CAPABILITIES"


def test_a_definition_with_a_share_names_the_memory_and_the_limit_in_place_of_whole_gpus() -> None:
    for limit, told in (({}, {}), ({"maxComputePercent": 25}, {"maxComputePercent": 25})):
        run = run_of(resources={"gpuShare": {"memoryMib": 8_000, **limit}, "memory": 4_000})
        content = definition_content(run, CELL, DEPLOYMENT)
        [container] = content["containerDefinitions"]
        share = {"sharingStrategy": {"nvidiaMps": {"memory": 8_000, **told}}}
        assert container["resourceRequirements"] == [{"type": "GPU", **share}]
        assert container["environment"][0]["name"] == "NVIDIA_DRIVER_CAPABILITIES"
        assert container["linuxParameters"]["sharedMemorySize"] == 2_000
        operation = service_model("ecs").operation_model("RegisterTaskDefinition")
        check_request(operation, {"family": "f", **content})


def test_a_task_with_gpus_may_use_half_of_its_memory_as_dev_shm() -> None:
    run = run_of(resources={"gpus": 4, "memory": 60_000})
    container = definition_content(run, CELL, DEPLOYMENT)["containerDefinitions"][0]
    assert container["linuxParameters"] == {"initProcessEnabled": True, "sharedMemorySize": 30_000}


GPU = {"type": "GPU", "value": "2"}


@pytest.mark.parametrize(
    ("definition", "needs"),
    [
        ({"containerDefinitions": [{"name": "a", "cpu": 256, "memory": 512}]}, Resources(256, 512, 0)),
        (
            {
                "containerDefinitions": [
                    {"name": "a", "cpu": 1, "memory": 9, "memoryReservation": 4},
                    {"name": "b", "memory": 5},
                ]
            },
            Resources(1, 9, 0),
        ),
        (
            {
                "cpu": "2048",
                "memory": "4096",
                "containerDefinitions": [{"name": "a", "cpu": 5, "memory": 6, "resourceRequirements": [GPU]}],
            },
            Resources(2048, 4096, 2),
        ),
        (
            {
                "containerDefinitions": [
                    {
                        "name": "a",
                        "memory": 6,
                        "resourceRequirements": [GPU, {"type": "InferenceAccelerator", "value": "x"}],
                    }
                ]
            },
            Resources(0, 6, 2),
        ),
    ],
)
def test_needs_follow_the_agents_accounting(definition: dict[str, Any], needs: Resources) -> None:
    assert needs_of_definition(definition) == needs


def test_a_definition_that_shares_a_gpu_is_refused_with_what_to_do_instead() -> None:
    need = {"type": "GPU", "sharingStrategy": {"nvidiaMps": {"memory": 1}}}
    container = {"name": "a", "memory": 6, "resourceRequirements": [need]}
    with pytest.raises(UnusableDefinition, match=r"shares a GPU: name its image and resources\.gpuShare"):
        needs_of_definition({"containerDefinitions": [container]})


@pytest.mark.parametrize("value", ["ALL", "0.5", None])
def test_gpus_that_are_not_counted_whole_are_refused(value: str | None) -> None:
    container = {"name": "a", "memory": 6, "resourceRequirements": [{"type": "GPU", "value": value}]}
    with pytest.raises(UnusableDefinition, match="give a whole number"):
        needs_of_definition({"containerDefinitions": [container]})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"status": "INACTIVE"}, "is INACTIVE"),
        ({"networkMode": "awsvpc"}, "awsvpc"),
        ({"requiresCompatibilities": ["FARGATE"]}, "not compatible with EC2"),
        ({"containerDefinitions": [{"name": "a", "essential": False}]}, "no essential container"),
    ],
)
def test_a_users_definition_that_cannot_run_is_refused_with_a_sentence(changes: dict[str, Any], sentence: str) -> None:
    usable = {
        "family": "f",
        "revision": 1,
        "containerDefinitions": [{"name": "side", "essential": False}, {"name": "x"}],
    }
    assert usable_container(usable) == "x"
    with pytest.raises(UnusableDefinition, match=sentence):
        usable_container({**usable, **changes})
