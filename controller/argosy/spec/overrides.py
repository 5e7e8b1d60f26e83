"""The longest overrides of a run's tasks. RunTask accepts 8,192 characters of them, punctuation included.

A program of the user's own has a runner, which reads longer ones from an object (`shortened`).

The bound needs no loop over the tasks: every number in a template grows with the task's index, so the last task has the
longest ones. Items are measured one by one, but only the parts that the templates use.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from argosy import layout
from argosy.gangs import rendezvous
from argosy.model.attempts import LAUNCH_VARIABLE, AttemptKey
from argosy.model.program_versions import FIRST_ATTEMPT_VARIABLE
from argosy.model.run_terms import OVERRIDES_VARIABLE, GangTerms
from argosy.spec import shards
from argosy.spec.faults import Fault
from argosy.spec.fields import TASK_LIMIT, TIMEOUT_LIMIT_S
from argosy.spec.gangs import LARGEST
from argosy.spec.program import UNPACKED, listed_inputs
from argosy.spec.templates import names_used, substitute, templates

OVERRIDES_LIMIT = 8192
PROGRAM_LIMIT = 128 * 1024  # of a program: as much as Linux takes in one argument, execve(2)
IN_DOCUMENT = "argosy:overrides"  # a command in place of one that is in the document

# Stand-ins for what is not known yet; only their lengths matter.
_ATTEMPT = 65_535  # the largest number the task table can hold
_RUN_ID_TAIL = "-261121-062733-k3f9"
_OWN_BUCKET = "s3://" + "b" * 63  # the longest name a bucket can have
_JOB = f"{_OWN_BUCKET}/{layout.PROGRAMS}jobs/{'0' * 64}.json"  # of a spec that is not packed yet
_LAUNCH = {"name": LAUNCH_VARIABLE, "value": str(_ATTEMPT)}  # added by the launcher
_FIRST_ATTEMPT = {"name": FIRST_ATTEMPT_VARIABLE, "value": str(_ATTEMPT)}  # the same, for a later version of a program
_CONTAINER = {True: "c" * 255, False: "main"}  # the longest name ECS allows in a user's own task definition


def length_faults(data: Mapping[str, Any], items: Sequence[Any] | None = None) -> Iterator[Fault]:
    """At most one fault: the longest overrides are too long. Faulty parts of the spec count as empty.

    items: those of an `itemsFrom` array, once they have been read; inline items are in `data`.
    """
    length, index = longest(data, items)
    is_program = data.get("run") is not None
    limit, whose = (PROGRAM_LIMIT, "a program may have") if is_program else (OVERRIDES_LIMIT, "ECS accepts")
    if length > limit:
        where, advice = _culprit(data), "put long values into an S3 object and pass its address"
        if any("item" in names_used(uri) for uri in listed_inputs(data)):
            where, advice = "inputs", "give each task fewer files, or a prefix that ends in /"
        yield Fault(where, f"leads to overrides of up to {length} characters (task {index}); {whose} {limit}: {advice}")


def shortened(override: Mapping[str, Any], address: str) -> tuple[Mapping[str, Any], dict[str, Any] | None]:
    """The override of a container with a runner as ECS accepts it, and the document for `address` with the rest.

    None: it is short enough. Kept are the variables that identify the attempt and direct its runner.
    """
    if _length(override) <= OVERRIDES_LIMIT:
        return override, None
    moved = {each["name"]: each["value"] for each in override["environment"] if not _is_kept(each["name"])}
    return _kept(override, address), {"command": override["command"], "environment": moved}


def _kept(override: Mapping[str, Any], address: str) -> Mapping[str, Any]:
    """Of some 5,000 characters at most: its addresses are ASCII."""
    kept = [each for each in override["environment"] if _is_kept(each["name"])]
    environment = [*kept, {"name": OVERRIDES_VARIABLE, "value": address}]
    return {**override, "command": [IN_DOCUMENT], "environment": environment}


def _is_kept(name: str) -> bool:
    """Users' variables have other names."""
    return name.startswith("ARGOSY_") and name not in ("ARGOSY_INPUTS", "ARGOSY_JOB")


def _length(override: Mapping[str, Any]) -> int:
    return len(json.dumps({"containerOverrides": [override]}))  # as botocore writes it: with spaces, ASCII only


def _culprit(data: Mapping[str, Any]) -> str:
    if data.get("run") is not None:
        return "run"
    return "container.command" if _container(data).get("command") else "container"


def longest(data: Mapping[str, Any], items: Sequence[Any] | None = None) -> tuple[int, int]:
    """(characters of JSON, index) of the task with the longest overrides; never less than the actual size."""
    form = _form(data)
    items = form["array"].get("items", items)
    count = shards.task_count(form, len(items) if items else 1)
    values = _values(form, count)
    fixed = _length(_rendered(form, values)) + _gang_length(data)
    weights = _item_weights(data)
    if not items or not weights:
        return fixed, count - 1
    beside = _beside_member(form, values)
    lengths = [_item_length(item, weights, beside) for item in items]
    extra = max(lengths)
    return fixed + extra, lengths.index(extra)


def _gang_length(data: Mapping[str, Any]) -> int:
    """Characters of the variables with which the members of a gang find each other."""
    gang = data.get("gang")
    size = gang.get("size") if isinstance(gang, Mapping) else None
    if not isinstance(size, int):
        return 0
    told = rendezvous.longest(GangTerms(max(1, min(size, LARGEST)), 0.0, per_gpu=False), TASK_LIMIT)
    return len(json.dumps([{"name": name, "value": value} for name, value in told.items()]))


def _container(data: Mapping[str, Any]) -> Mapping[str, Any]:
    container = data.get("container")
    return container if isinstance(container, Mapping) else {}


def _form(data: Mapping[str, Any]) -> dict[str, Any]:
    """`data` in the shape of a validated spec, with stand-ins for its faulty parts."""
    command = _container(data).get("command")
    container: dict[str, Any] = {"environment": _environment(_container(data).get("environment"))}
    if isinstance(command, list):
        container["command"] = [element for element in command if isinstance(element, str)]
    return {
        **_program(data),
        "name": str(data.get("name"))[:63],
        "container": container,
        "taskDefinition": data.get("taskDefinition"),
        "array": _array(data.get("array")),
        "output": data["output"][:512] if isinstance(data.get("output"), str) else _OWN_BUCKET,
        "compat": data.get("compat"),
    }


def _program(data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a program of the user's own."""
    run = data.get("run")
    if not isinstance(run, (str, list)):
        return {}
    known: dict[str, Any] = {name: data[name] for name in ("job", "result") if isinstance(data.get(name), str)}
    if data.get("checkpoint") is not None:
        known["checkpoint"] = {"everySeconds": TIMEOUT_LIMIT_S}
    return {
        **known,
        "run": run if isinstance(run, str) else [word for word in run if isinstance(word, str)],
        "inputs": listed_inputs(data),
        **({"job": _JOB} if any(data.get(name) for name in UNPACKED) else {}),
    }


def _environment(given: Any) -> dict[str, str]:
    if isinstance(given, list):
        given = {str(entry.get("name")): entry.get("value") for entry in given if isinstance(entry, Mapping)}
    if not isinstance(given, Mapping):
        return {}
    return {name: text for name, text in given.items() if isinstance(text, str)}


def _array(given: Any) -> dict[str, Any]:
    """The array if its tasks can be counted, else an array of one task."""
    if not isinstance(given, Mapping):
        return {"size": 1}
    array: dict[str, Any] = {"partSuffix": str(given.get("partSuffix", layout.DEFAULT_PART_SUFFIX))[:32]}
    size, step = given.get("size"), given.get("shardSize")
    if isinstance(given.get("items"), list) and given["items"]:
        return {**array, "items": given["items"]}
    if isinstance(given.get("itemsFrom"), str):
        return {**array, "itemsFrom": given["itemsFrom"]}
    try:
        shards.parse_range(given["range"])
    except (KeyError, TypeError, ValueError):
        return {**array, "size": size if isinstance(size, int) and size > 0 else 1}
    return {**array, "range": given["range"], "shardSize": step if isinstance(step, int) and step > 0 else 1}


def _values(form: Mapping[str, Any], count: int) -> Mapping[str, str]:
    """Those of the last task; items and unknown names count as empty."""
    run_id = form["name"] + _RUN_ID_TAIL
    output = layout.run_output(form["output"], run_id)
    last = AttemptKey(run_id, count - 1, _ATTEMPT, _ATTEMPT)
    return defaultdict(str, shards.task_values(form, output, last, None, count), item="")


def _beside_member(form: Mapping[str, Any], values: Mapping[str, str]) -> int:
    """Characters of the inputs that an item's member is put into, with their escaped quotes and a comma."""
    named = [text for text in form.get("inputs", ()) if "item" in names_used(text)]
    return sum(_escaped(substitute(text, values), True) + len('\\"\\",') for text in named)


def _rendered(form: Mapping[str, Any], values: Mapping[str, str]) -> Mapping[str, Any]:
    """The last task's override."""
    environment = shards.task_environment(form, values)
    entries = [{"name": name, "value": text} for name, text in environment.items()]
    return {
        "name": _CONTAINER[bool(form["taskDefinition"])],
        "command": shards.task_command(form, values),
        "environment": [*entries, _LAUNCH, *([_FIRST_ATTEMPT] if "job" in form else [])],
    }


def _item_weights(data: Mapping[str, Any]) -> Counter[tuple[str, bool]]:
    """How often the templates use `item` and each `item.KEY`, and whether as JSON within the JSON, as in inputs."""
    names = ((name, path.startswith("inputs")) for path, text in templates(data) for name in names_used(text))
    return Counter((name, nested) for name, nested in names if name and name.split(".")[0] == "item")


def _item_length(item: Any, weights: Mapping[tuple[str, bool], int], beside: int) -> int:
    """beside: what each member of an item that is a list needs besides itself."""
    total = 0
    for (name, nested), times in weights.items():
        if name == "item" and nested and isinstance(item, list):
            total += sum(times * _escaped(shards.item_text(each), nested) + beside for each in item)
        elif name == "item":
            total += times * _escaped(shards.item_text(item), nested)
        elif isinstance(item, Mapping):
            total += times * _escaped(shards.item_text(item.get(name.removeprefix("item."), "")), nested)
    return total


def _escaped(text: str, nested: bool) -> int:
    """Characters inside JSON quotes."""
    return len(json.dumps(json.dumps(text)[1:-1] if nested else text)) - 2
