"""Task *i* of a run: its piece, and its overrides.

Pure functions over the validated JSON form of a spec (`parse.to_json`). The launcher calls `task_overrides`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from argosy import layout
from argosy.model.attempts import AttemptKey
from argosy.spec.program import program_environment, program_words
from argosy.spec.templates import names_used, substitute, templates

RESULT_VARIABLES = frozenset({"output", "part"})


def parse_range(text: str) -> tuple[int, int]:
    """`"900:1797"` -> (900, 1797), half-open. Raises ValueError unless 0 <= start < end."""
    found = re.fullmatch(r"([0-9]{1,16}):([0-9]{1,16})", text, re.ASCII)
    if found is None:
        raise ValueError(f"must be two whole numbers START:END such as 0:1000, not {text[:40]!r}")
    start, end = int(found[1]), int(found[2])
    if start >= end:
        raise ValueError(f"must not be empty: its end ({end}) must be greater than its start ({start})")
    return start, end


def gang_size(spec: Mapping[str, Any]) -> int:
    """The number of tasks that each piece of the array has: 1 without gangs."""
    return int(spec.get("gang", {}).get("size", 1))


def task_count(spec: Mapping[str, Any], item_count: int | None = None) -> int:
    """The number of tasks of the run. item_count: as in `piece_count`."""
    return piece_count(spec, item_count) * gang_size(spec)


def piece_count(spec: Mapping[str, Any], item_count: int | None = None) -> int:
    """The number of pieces of the array; each has a task or a gang. item_count: of an `itemsFrom` array, as read.

    Raises ValueError when `item_count` is needed and missing.
    """
    array = spec["array"]
    if "range" in array:
        start, end = parse_range(array["range"])
        return -(-(end - start) // int(array.get("shardSize", 1)))
    if "size" in array:
        return int(array["size"])
    if "items" in array:
        return len(array["items"])
    if item_count is None:
        raise ValueError(
            "the spec of an itemsFrom array does not say how many tasks there are: pass the number of items read"
        )
    return item_count


def task_range(spec: Mapping[str, Any], index: int) -> tuple[int, int] | None:
    """The half-open range of task `index`; None for arrays that are not a range. The last shard may be shorter."""
    array = spec["array"]
    if "range" not in array:
        return None
    start, end = parse_range(array["range"])
    size = int(array.get("shardSize", 1))
    first = start + index * size
    if index < 0 or first >= end:
        raise IndexError(f"the run has no task {index}")
    return first, min(first + size, end)


def task_item(spec: Mapping[str, Any], index: int) -> Any:
    """The inline item of task `index`; None for arrays without inline items."""
    items = spec["array"].get("items")
    return None if items is None else items[index]


def expects_result(spec: Mapping[str, Any]) -> bool:
    """Whether success needs an object: the spec names `${part}` or `${output}`, or its program has a result."""
    if "run" in spec and spec.get("result") != "none":
        return True
    return any(name in RESULT_VARIABLES for _, text in templates(spec) for name in names_used(text))


def item_text(value: Any) -> str:
    """Text as it is, everything else as compact JSON."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def task_values(spec: Mapping[str, Any], output: str, key: AttemptKey, item: Any, count: int) -> dict[str, str]:
    """The value of every `${name}` in one attempt. Names that have no value for this kind of array are absent."""
    values = {
        "index": str(key.index),
        "paddedIndex": layout.numbered(key.index),
        "count": str(count),
        "output": layout.attempt_uri(output, key.index, key.attempt),
        "part": layout.part_uri(output, key.index, layout.part_suffix(spec)),
        "checkpoints": layout.checkpoints_uri(output, key.index),
        "runId": key.run_id,
        "attempt": str(key.attempt),
    }
    span = task_range(spec, key.index)
    if span is not None:
        values |= {"range": f"{span[0]}:{span[1]}", "start": str(span[0]), "end": str(span[1])}
    if "items" in spec["array"] or "itemsFrom" in spec["array"]:
        values["item"] = item_text(item)
        if isinstance(item, list):
            values["members"] = json.dumps([item_text(each) for each in item])  # for inputs, not for templates
        if isinstance(item, Mapping):
            values |= {f"item.{key}": item_text(value) for key, value in item.items()}
    return values


def task_command(spec: Mapping[str, Any], values: Mapping[str, str]) -> list[str] | None:
    """The command with every value filled in; None = the image's or the task definition's own command."""
    if "run" in spec:
        return program_words(spec["run"], values)
    command = spec.get("container", {}).get("command")
    return None if command is None else [substitute(element, values) for element in command]


def task_environment(spec: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, str]:
    """The user's variables and ours. Validation makes sure that no name is in both."""
    given = spec.get("container", {}).get("environment", {})
    environment = {name: substitute(text, values) for name, text in given.items()}
    environment |= {
        "ARGOSY_RUN_ID": values["runId"],
        "ARGOSY_RUN_NAME": str(spec["name"]),
        "ARGOSY_TASK_INDEX": values["index"],
        "ARGOSY_TASK_COUNT": values["count"],
        "ARGOSY_TASK_ATTEMPT": values["attempt"],
        "ARGOSY_OUTPUT_URI": values["output"],
        "ARGOSY_PART_URI": values["part"],
    }
    if "range" in values:
        for name in ("range", "start", "end"):
            environment["ARGOSY_RANGE" if name == "range" else f"ARGOSY_RANGE_{name.upper()}"] = values[name]
    environment |= program_environment(spec, values)
    if spec.get("compat") == "aws-batch":
        environment["AWS_BATCH_JOB_ARRAY_INDEX"] = values["index"]
        environment["AWS_BATCH_JOB_ARRAY_SIZE"] = values["count"]
        environment["AWS_BATCH_JOB_ATTEMPT"] = values["attempt"]
    return environment


def task_overrides(
    spec: Mapping[str, Any], output: str, key: AttemptKey, item: Any = None, count: int | None = None
) -> dict[str, Any]:
    """What RunTask overrides for one attempt: `{"command": [...] | None, "environment": [{"name", "value"}, ...]}`.

    A pure function of its arguments, so a launch that is sent again is byte for byte the same (DESIGN D4).

    output: the run's own folder, `s3://bucket/prefix/<runId>/` (`Run.output`).
    key: the attempt, counted from 1; its launch number plays no part here.
    item: the task's item; None = look it up in the spec, if the items are inline.
    count: the number of tasks; needed by an `itemsFrom` array only, which raises ValueError without it.
    """
    size = gang_size(spec)
    piece, rank = divmod(key.index, size)
    if item is None:
        item = task_item(spec, piece)
    pieces = piece_count(spec, None if count is None else count // size)
    values = task_values(spec, output, key._replace(index=piece), item, pieces)
    if rank:  # rank 0 leaves the gang's result and saves its checkpoints
        values["output"] += f"rank-{rank}/"
        spec = {name: value for name, value in spec.items() if name != "checkpoint"} | {"result": "none"}
    environment = task_environment(spec, values)
    if size > 1:
        environment |= {"ARGOSY_TASK_INDEX": str(key.index), "ARGOSY_TASK_COUNT": str(pieces * size)}
    return {
        "command": task_command(spec, values),
        "environment": [{"name": name, "value": environment[name]} for name in sorted(environment)],
    }
