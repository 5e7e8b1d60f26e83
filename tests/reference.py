"""The reference pages. `python -m tests.reference` writes them from the code that they are about.

Fields come from the models of specs and requests, commands from their parsers, and variables from the environment of a
task. A test compares them: do not edit these pages by hand.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from argosy.api.actions import REQUESTS
from argosy.model.attempts import AttemptKey
from argosy.spec.faults import bound_text
from argosy.spec.parse import parse_spec, schema, to_json
from argosy.spec.shards import task_overrides
from argosy.spec.templates import VARIABLES
from tests import settings_reference
from tests.fakes.command_lines import COMMANDS

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
BY_HAND = "Written by `make reference`; do not edit."

SUBSTITUTIONS = {
    "range": "the task's part of `array.range`, `START:END`",
    "start": "its first number",
    "end": "the number after its last",
    "index": "the task's number, from 0",
    "paddedIndex": "the same with seven digits, as it stands in the names of parts",
    "count": "the number of tasks of the run",
    "item": "the task's item of `array.items` or `array.itemsFrom`: text as it is, all else as JSON",
    "output": "`s3://` folder of this attempt alone, for any number of objects",
    "part": "`s3://` name of the one object that merging reads",
    "runId": "the run's id",
    "attempt": "the attempt's number, from 1",
}
OF_TASKS = {
    "ARGOSY_RUN_ID": "the run's id",
    "ARGOSY_RUN_NAME": "`name` of the spec",
    "ARGOSY_TASK_INDEX": "the task's number, from 0",
    "ARGOSY_TASK_COUNT": "the number of tasks of the run",
    "ARGOSY_TASK_ATTEMPT": "the attempt's number, from 1",
    "ARGOSY_OUTPUT_URI": "as `${output}`",
    "ARGOSY_PART_URI": "as `${part}`",
    "ARGOSY_RANGE": "as `${range}`, for arrays that are a range",
    "ARGOSY_RANGE_START": "as `${start}`",
    "ARGOSY_RANGE_END": "as `${end}`",
    "AWS_BATCH_JOB_ARRAY_INDEX": "as `${index}`, with `compat: aws-batch`",
    "AWS_BATCH_JOB_ARRAY_SIZE": "as `${count}`, with `compat: aws-batch`",
    "AWS_BATCH_JOB_ATTEMPT": "as `${attempt}`, with `compat: aws-batch`",
    "ARGOSY_RUNNER": "the number of the protocol between us and the runner of a program of your own (`run`)",
    "ARGOSY_RESULT": "as `result` of the spec, for the runner",
    "ARGOSY_JOB": "as `job` of the spec, for the runner",
    "ARGOSY_INPUTS": "as `inputs` of the spec, filled in, for the runner",
    "ARGOSY_CHECKPOINT_URI": "`s3://` folder of the task's checkpoints, for the runner",
    "ARGOSY_CHECKPOINT_SECONDS": "as `checkpoint.everySeconds` of the spec, for the runner; 0 without",
}
OF_GANGS = {
    "ARGOSY_GANG_INDEX": "the number of its [gang](../guides/gangs.md), from 0",
    "ARGOSY_GANG_RANK": "its rank in the gang, from 0",
    "ARGOSY_GANG_SIZE": "`gang.size` of the spec",
    "ARGOSY_GANG_HOSTS": "the addresses of all members by rank, with commas",
    "MASTER_ADDR": "in a gang, the address of rank 0",
    "MASTER_PORT": "in a gang, a port for rank 0",
    "NODE_RANK": "as `ARGOSY_GANG_RANK`",
    "NNODES": "as `ARGOSY_GANG_SIZE`",
    "RANK": "as `ARGOSY_GANG_RANK`; absent with `gang.processes: gpu`",
    "WORLD_SIZE": "as `ARGOSY_GANG_SIZE`; absent with `gang.processes: gpu`",
    "LOCAL_RANK": "0 in a gang; absent with `gang.processes: gpu`",
    "PET_NNODES": "as `NNODES`, for `torchrun`",
    "PET_NODE_RANK": "as `NODE_RANK`, for `torchrun`",
    "PET_NPROC_PER_NODE": "in a gang, the processes of a member, for `torchrun`",
    "PET_MASTER_ADDR": "as `MASTER_ADDR`, for `torchrun`",
    "PET_MASTER_PORT": "as `MASTER_PORT`, for `torchrun`",
    "AWS_BATCH_JOB_NODE_INDEX": "as `NODE_RANK`, with `compat: aws-batch`",
    "AWS_BATCH_JOB_NUM_NODES": "as `NNODES`, with `compat: aws-batch`",
    "AWS_BATCH_JOB_MAIN_NODE_INDEX": "0 in a gang, with `compat: aws-batch`",
    "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS": "as `MASTER_ADDR`, with `compat: aws-batch`",
}
BY_RUNNER = {
    "ARGOSY_OVERRIDES": "`s3://` object from which the runner takes a command and variables too long for ECS",
    "ARGOSY_IN": "folder with the `inputs`",
    "ARGOSY_OUT": "folder whose files become the result when the program ends with 0",
    "ARGOSY_CHECKPOINT": "folder that survives an interruption, with `checkpoint` in the spec",
    "ARGOSY_FIRST_ATTEMPT": "the first attempt with this version of the program: the runner replaces a part of an"
    " earlier one; absent for version 1",
}
COMMON = ("wants_json", "endpoint_url", "region", "profile", "stage")  # of every command that asks a deployment
TYPES = {"str": "TEXT", "text": "TEXT", "int": "N", "integer": "N", "float": "NUMBER", "path": "PATH"}
A_CALL = """\
```
cat > request.json <<'JSON'
{"action": "SubmitRun", "clientToken": "digits-1", "spec": {"version": 1, "name": "digits",
 "container": {"image": "argosy/digits", "command": ["--range", "${range}", "--output", "${part}"]},
 "resources": {"vcpus": 1, "memory": 1024}, "array": {"range": "900:1797", "shardSize": 50}}}
JSON
aws lambda invoke --function-name argosy-api --payload fileb://request.json reply.json
```
"""
OPTION_HEAD = ("| option | default | meaning |", "| -- | -- | -- |")
PARTS = {
    "RunSpec": "The run",
    "ContainerSpec": "container",
    "EnvironmentEntry": "container.environment, as a list",
    "ResourcesSpec": "resources",
    "GpuShareSpec": "resources.gpuShare",
    "ArraySpec": "array",
    "PlacementSpec": "placement",
    "SoftConstraintSpec": "placement.softConstraints",
    "CapacitySpec": "capacity",
    "FallbackSpec": "capacity.fallback",
    "RetrySpec": "retryStrategy",
    "ExitRuleSpec": "retryStrategy.evaluateOnExit",
    "TimeoutSpec": "timeout",
    "CheckpointSpec": "checkpoint",
    "GangSpec": "gang",
    "DependencySpec": "dependsOn",
    "DaemonSpec": "daemon",
    "DaemonUpdateSpec": "daemon.update",
    "HealthSpec": "container.health",
    "PortSpec": "container.ports[]",
    "ServiceSpec": "service",
    "UpdateSpec": "service.update",
}


def pages() -> dict[str, str]:
    """The text of each page by its file's name."""
    return {
        "spec.md": spec_page(),
        "commands.md": commands_page(),
        "api.md": api_page(),
        "variables.md": names_page(),
    } | {"settings.md": settings_reference.page()}


def spec_page() -> str:
    """Every field of a run spec."""
    body = schema()
    models = {"RunSpec": body, **body["$defs"]}
    lines = ["# Fields of a run spec", "", BY_HAND, "", "Names in `docs/reference/run.schema.json` are the same.", ""]
    for model in sorted(models, key=list(PARTS).index):
        lines += [f"## {PARTS[model]}", "", *_prose(models[model].get("description")), ""]
        lines += ["| field | type | default | example | meaning |", "| -- | -- | -- | -- | -- |"]
        required = models[model].get("required", ())
        for name, field in models[model]["properties"].items():
            default = "required" if name in required else _json(field["default"]) if "default" in field else ""
            assert "examples" in field, f"{model}.{name} has no example: add one to argosy/spec/examples.py"
            example = _json(field["examples"][0])
            lines.append(_row(f"`{name}`", type_of(field), default, example, field.get("description", "")))
        lines.append("")
    return "\n".join(lines)


def type_of(field: Mapping[str, Any]) -> str:
    """A field's type and limits, in words."""
    if "$ref" in field:
        return f"[{PARTS[field['$ref'].rpartition('/')[2]]}](#{_anchor(PARTS[field['$ref'].rpartition('/')[2]])})"
    options = field.get("oneOf") or field.get("anyOf")
    if options:
        return " or ".join(dict.fromkeys(map(type_of, options)))
    if "const" in field or "enum" in field:
        return ", ".join(_json(each) for each in field.get("enum", [field.get("const")]))
    kind = {"integer": "whole number", "string": "text", "object": "mapping", "array": "list"}
    name = kind.get(field.get("type", ""), field.get("type", "any JSON value"))
    if name == "list" and field.get("items"):
        name = f"list of {type_of(field['items'])}"
    return name + _limits(field)


def _limits(field: Mapping[str, Any]) -> str:
    low = field.get("minimum", field.get("exclusiveMinimum"))
    high = field.get("maximum")
    if low is None and high is None:
        return ""
    above = "above " if "exclusiveMinimum" in field else ""
    if high is None:
        return f", {above or 'at least '}{bound_text(low)}"
    return f", {above}{bound_text(low)} to {bound_text(high)}" if low is not None else f", at most {bound_text(high)}"


def commands_page() -> str:
    """Every command of `argosy` with its options."""
    lines = ["# Commands", "", BY_HAND, "", "`argosy COMMAND --help` prints the same.", ""]
    lines += ["## Options of most commands", "", *OPTION_HEAD]
    lines += [_option(each) for each in COMMANDS["submit"].params if each.name in COMMON]
    lines.append("")
    for name, found in sorted(COMMANDS.items()):
        lines += _command(f"argosy {name}", found)
    return "\n".join(lines)


def _command(name: str, command: Any) -> Iterator[str]:
    children = getattr(command, "commands", {})
    if not children or command.invoke_without_command:
        yield from _alone(name, command)
    for child, found in sorted(children.items()):
        yield from _command(f"{name} {child}", found)


def _alone(name: str, command: Any) -> Iterator[str]:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    words = " ".join(_argument(each) for each in arguments)
    yield from (f"## {name} {words}".rstrip(), "", *_prose(command.help), "")
    options = [each for each in command.params if each not in arguments and not getattr(each, "hidden", False)]
    options = [each for each in options if each.name not in {"help", *COMMON}]
    if options:
        yield from OPTION_HEAD
        yield from map(_option, options)
        yield ""


def _argument(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    several = "..." if argument.nargs != 1 and not name.endswith("...") else ""
    return f"{name}{several}" if argument.required else f"[{name}{several}]"


def _option(option: Any) -> str:
    names = ", ".join(f"`{each}`" for each in [*option.opts, *option.secondary_opts])
    is_switch = getattr(option, "is_flag", False)
    value = option.metavar or _type_name(option)
    metavar = "" if is_switch else f" {value}"
    default = option.default if isinstance(option.default, (int, float, str)) and not is_switch else None
    several = " Can be given several times." if getattr(option, "multiple", False) else ""
    text = " ".join((option.help or "").split()) + several
    return _row(names + metavar, "" if default is None else _json(default), text)


def api_page() -> str:
    """Every action of the api function with its fields."""
    lines = ["# Actions of the api function", "", BY_HAND, ""]
    lines += ["A request is JSON with `action` and the fields below. Any AWS client can send one:", "", A_CALL]
    lines += ["The same `clientToken` again returns the same run.", ""]
    for model in REQUESTS.values():
        body = model.model_json_schema(by_alias=True)
        lines += [f"## {model.__name__}", "", *_prose(model.__doc__), ""]
        fields = {name: field for name, field in body["properties"].items() if name != "action"}
        if fields:
            lines += ["| field | type | default |", "| -- | -- | -- |"]
        for name, field in fields.items():
            known = [each for each in field.get("anyOf", ()) if each != {"type": "null"}]
            shown = type_of({**field, "anyOf": known} if known else field)
            default = field.get("default")
            said = "required" if name in body["required"] else "" if default is None else _json(default)
            lines.append(_row(f"`{name}`", shown, said))
        lines += [""] if fields else []
    return "\n".join(lines)


def names_page() -> str:
    """The values that a command may substitute, and the environment of a task."""
    lines = ["# Substitutions and variables", "", BY_HAND, "", "## In a command or a variable's value", ""]
    lines += [
        "`$${` stands for `${`. Nothing passes a shell, but for a text of `run`, into which its shell inserts values as"
    ]
    lines += ["it inserts variables.", "", "| name | value |", "| -- | -- |"]
    lines += [_row(f"`${{{name}}}`", SUBSTITUTIONS[name]) for name in VARIABLES]
    lines += [_row("`${item.KEY}`", "the member KEY of an item that is a mapping")]
    lines += [_row("`${dependency.NAME.output}`", "`s3://` folder of the run NAME that `dependsOn` lists"), ""]
    lines += ["## In the environment of a task", "", "| variable | value |", "| -- | -- |"]
    lines += [_row(f"`{name}`", meaning) for name, meaning in {**OF_TASKS, **OF_GANGS, **BY_RUNNER}.items()]
    return "\n".join([*lines, ""])


def variables_told() -> set[str]:
    """The variables that tasks of runs of every kind really get, in addition to the user's own."""
    base = {"version": 1, "name": "x", "array": {"range": "0:9"}, "compat": "aws-batch"}
    plain = {**base, "container": {"image": "argosy/x"}}
    own = {**base, "run": ["x"], "job": "s3://bucket/job.json", "inputs": ["s3://bucket/in/"], "checkpoint": {}}
    told: set[str] = set()
    for spec in (plain, own):
        overrides = task_overrides(to_json(parse_spec(spec)), "s3://bucket/run/", AttemptKey("run", 0, 1, 0))
        told |= {each["name"] for each in overrides["environment"]}
    return told


def _prose(text: str | None) -> list[str]:
    return textwrap.wrap(" ".join((text or "").split()), 120)


def _type_name(option: Any) -> str:
    shown = str(option.display_type(None)).strip("<>").lower()
    return "TEXT" if shown.startswith("list[") else TYPES.get(shown.removesuffix(" range"), shown.upper())


def _json(value: Any) -> str:
    return f"`{json.dumps(value)}`"


def _row(*cells: str) -> str:
    return "| " + " | ".join(each.replace("|", "\\|").replace("\n", " ") for each in cells) + " |"


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
