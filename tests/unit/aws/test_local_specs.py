"""For every field of a run's spec: local mode honours it, or says at submission that it does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from argosy.aws.local_definitions import LocalNotes, spec_notes
from argosy.spec.parse import schema

WHOLE = schema()
TESTS = Path(__file__).resolve().parents[2]
# Decided by the controller, which is that of AWS (`unit/spec/test_allowed.py` shows that each has an effect there). A
# part stands for everything below it.
CONTROLLER = {
    *("version", "kind", "name", "array", "service", "daemon", "dependsOn", "notBefore", "output", "placement"),
    *("capacity", "retryStrategy", "timeout", "queue", "owner", "priority", "preemptible", "compat"),
    "checkpoint.sizeGiB",
}
# What depends on this machine, and the test that shows it, below tests/.
CONTAINER, PROGRAM = "unit/local/containers/test_container.py", "unit/local/containers/test_program_run.py"
OWN_PROGRAM, RUNNER = "e2e/test_own_program.py::test_a_folder_with_inputs_becomes_results", "contract/runner"
MACHINE = {
    "container.image": (
        "unit/local/containers/test_images.py::test_names_are_the_folders_with_a_dockerfile_and_the_stock_image"
    ),
    "container.command": f"{CONTAINER}::test_overrides_win_over_the_definition_which_wins_over_the_image",
    "container.environment": f"{CONTAINER}::test_overrides_win_over_the_definition_which_wins_over_the_image",
    "container.ports[].container": (
        "e2e/test_endpoints.py::test_endpoints_answer_while_a_deployment_replaces_them_and_an_ill_task_is_replaced"
    ),
    "container.health": (
        "unit/local/agents/test_health_watcher.py::test_it_follows_what_the_command_says_in_the_tasks_own_surroundings"
    ),
    "service.targetGroup": (
        "unit/local/server/test_target_groups.py::test_targets_of_a_group_of_the_settings_come_and_go"
    ),
    "taskDefinition": "unit/aws/test_local_definitions.py::test_every_field_that_ecs_has_is_honoured_or_named",
    "run": OWN_PROGRAM,
    "workdir": OWN_PROGRAM,
    "job": OWN_PROGRAM,
    "inputs": OWN_PROGRAM,
    "setup": f"{PROGRAM}::test_a_setup_prepares_the_programs_folder",
    "packages": f"{PROGRAM}::test_a_program_finds_none_of_our_packages",
    "result": f"{RUNNER}/test_results.py::test_standard_output_is_the_result_and_the_log",
    "gang": "e2e/test_gangs.py::test_a_gang_of_two_restarts_as_one_from_its_checkpoint",
    "checkpoint.everySeconds": f"{RUNNER}/test_checkpoints.py::test_a_task_that_succeeds_leaves_no_checkpoint",
    "resources.vcpus": f"{CONTAINER}::test_a_host_registers_the_real_size_of_its_type_and_the_same_gpus_each_time",
    "resources.memory": f"{PROGRAM}::test_a_program_that_takes_too_much_memory_is_killed_for_it_and_leaves_nothing",
    "resources.gpus": f"{CONTAINER}::test_gpus_of_this_machine_are_shown_by_their_ids_alone",
    "resources.gpuShare": "unit/local/test_mps.py::test_a_container_is_told_its_limits_and_its_daemon",
    "resources.gpuMemoryMib": (
        "unit/local/test_gpus.py"
        "::test_the_pretended_types_have_no_more_gpus_than_there_are_nor_more_memory_if_one_has_less"
    ),
    "resources.diskGiB": "unit/scheduler/placing/test_placement_rules.py"
    "::test_disk_is_given_out_once_on_an_instance_and_again_when_it_is_free",
    "tags": "contract/test_ecs_tasks_contract.py::test_a_stop_deletes_the_tags",
}
# What is said of a spec with these fields: (fields, of the runtime, whether the machine has GPUs, text).
X86 = {"resources": {"architecture": "x86_64"}}
ARM = {"resources": {"architecture": "arm64"}}
HELD: Any = {"container": {"hostPorts": [8080]}}
SAID: dict[str, list[tuple[Mapping[str, Any], str, bool, str]]] = {
    "resources.architecture": [
        (ARM, "process", False, "local mode runs tasks on the x86_64 of this machine, as if it were arm64"),
        (X86, "process", False, ""),
        ({"resources": {"architecture": "any"}}, "podman", False, ""),
    ],
    "resources.gpuModel": [
        ({"resources": {"gpus": 1, "gpuModel": "T4"}}, "process", True, "local mode simulates the model"),
        ({"resources": {"gpus": 1, "gpuModel": "T4"}}, "process", False, "resources.gpus: local mode simulates GPUs"),
        ({"resources": {"gpuShare": {"memoryMib": 1}}}, "podman", False, "resources.gpus: local mode simulates GPUs"),
        ({"resources": {"gpus": 1}}, "podman", True, ""),
    ],
    "container.hostPorts": [
        (HELD, "process", False, "share this machine's ports"),
        (HELD, "podman", False, "does not forward them"),
    ],
    "container.ports[].host": [
        ({"container": {"ports": [{"container": 80, "host": 80}]}}, "podman", False, "share this machine's ports"),
        ({"container": {"ports": [{"container": 80}]}}, "process", False, ""),
    ],
}


def fields(node: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Of a schema, without parts; `[]` stands for the members of a list."""
    if "$ref" in node:
        node = WHOLE["$defs"][node["$ref"].rpartition("/")[2]]
    below = [each for word in ("anyOf", "oneOf", "allOf") for each in node.get(word, ())]
    inside = {f"{path}.{name}".lstrip("."): each for name, each in node.get("properties", {}).items()}
    found = {field for each in below for field in fields(each, path)}
    found |= {field for name, each in inside.items() for field in fields(each, name)}
    if isinstance(node.get("items"), dict):
        found |= set(fields(node["items"], f"{path}[]")) - {f"{path}[]"}
    yield from found - {path} or {path}


def test_every_field_of_the_schema_is_decided_by_the_controller_shown_by_a_test_or_noted() -> None:
    known = {*CONTROLLER, *MACHINE, *SAID}
    unknown = [each for each in fields(WHOLE) if not known & {each, *parts(each)}]
    assert unknown == [], "say here how local mode honours a new field, or let `local_definitions` say that it does not"
    there = {name for each in fields(WHOLE) for name in (each, *parts(each))}
    assert known <= there


def parts(path: str) -> Iterator[str]:
    while "." in path:
        path = path.rpartition(".")[0]
        yield from (path, path.removesuffix("[]"))


def test_the_tests_of_fields_are_there() -> None:
    named = (shown_by.partition("::") for shown_by in MACHINE.values())
    assert [(file, name) for file, _, name in named if f"def {name}(" not in (TESTS / file).read_text("utf-8")] == []


@pytest.mark.parametrize("field", SAID)
def test_what_this_machine_does_otherwise_is_said(field: str) -> None:
    for given, runtime, has_gpus, text in SAID[field]:
        said = list(spec_notes(given, runtime, "x86_64", has_gpus=has_gpus))
        assert len(said) == bool(text), said
        assert text in "".join(said)


def test_a_definition_and_a_spec_are_judged_together() -> None:
    notes = LocalNotes({"mine:3": {"volumes": [{"name": "v"}]}}.get, "process", has_gpus=True)
    assert len(list(notes({"taskDefinition": "mine:3", "container": {"hostPorts": [80]}}))) == 2
    assert list(notes({"container": {"image": "argosy/python"}, "resources": {"vcpus": 1}})) == []
