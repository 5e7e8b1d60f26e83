"""The command and the environment for the runner, for tasks of a run that brings its own program.

The program is `run`. Its other fields are `workdir`, `setup` and `packages`, which the submitter packs into a `job`,
and `inputs` and `result`. Pure functions over a spec, validated or not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from argosy.model.run_terms import RUNNER_PROTOCOL
from argosy.spec.faults import Fault
from argosy.spec.templates import names_used, substitute, substitute_by

DEFAULT_IMAGE = "argosy/python"
STOCK_PYTHON = "3.12"  # of that image, unless the deployment says otherwise
PYTHONS = ("3.11", "3.12", "3.13", "3.14")  # that a tag can select, as in argosy/python:3.13
DEFAULT_RESULT = "folder"
UNPACKED = ("workdir", "setup", "packages")  # what becomes a job before the spec is sent
BESIDE = (*UNPACKED, "job", "inputs", "result")  # fields that are about the program of `run`
# Letters, digits, `:` and `-` only: a shell reads them literally anywhere in its text.
_HARMLESS = frozenset({"range", "start", "end", "index", "count", "runId", "attempt"})


def is_local_input(text: str) -> bool:
    """Whether an input is a path of this machine, or the name of what `argosy put` uploaded."""
    return "://" not in text and not text.startswith("${")


def listed_inputs(data: Mapping[str, Any]) -> list[str]:
    """The inputs of a spec, validated or not, which may have one in place of a list."""
    given = data.get("inputs") or ()
    return [each for each in ([given] if isinstance(given, str) else given) if isinstance(each, str)]


def program_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """The faults of the program's fields among themselves and with the rest of the spec."""
    if data.get("run") is None:
        for name in BESIDE:
            if data.get(name) is not None:
                yield Fault(name, "belongs to your own program: it is only possible with run")
        return
    if data.get("taskDefinition") is not None:
        yield Fault("run", "cannot be combined with taskDefinition, which defines what runs")
    container = data.get("container")
    if isinstance(container, Mapping) and container.get("command") is not None:
        yield Fault("container.command", "cannot be combined with run, which is the command")
    for name in UNPACKED:
        if data.get("job") is not None and data.get(name) is not None:
            yield Fault(name, "cannot be combined with job, which is the packed form of it")
    if isinstance(data["run"], str):
        yield from _quoted_faults(data["run"])


def _quoted_faults(text: str) -> Iterator[Fault]:
    """Values in single quotes, where a shell inserts nothing."""
    quoted = "".join(_in_single_quotes(text)) if "<<" not in text else ""
    for name in names_used(quoted):
        if name and name not in _HARMLESS:
            yield Fault(
                "run",
                f"${{{name}}} is in single quotes, where the shell substitutes nothing: use double quotes, or a list",
            )


def _in_single_quotes(text: str) -> Iterator[str]:
    """The pieces of a shell's text within single quotes."""
    quote, place = "", 0
    while place < len(text):
        char = text[place]
        if quote == "'" or (not quote and char == "'"):
            end = text.find("'", place + 1)
            yield text[place + 1 : end if end > 0 else len(text)]
            place = end if end > 0 else len(text)
        elif not quote and char == "#" and (place == 0 or text[place - 1].isspace()):
            place = text.find("\n", place) if "\n" in text[place:] else len(text)
        elif char == "\\":
            place += 1
        elif char == '"':
            quote = "" if quote else '"'
        place += 1


def program_words(run: str | list[str], values: Mapping[str, str]) -> list[str]:
    """The command: the words of a list, or `sh -c` with a text.

    A text gets outside values, such as an item, as arguments of the shell and not as a part of its text. So an item
    with a semicolon is not a command, and "${item}" is quoted like every variable.
    """
    if not isinstance(run, str):
        return [substitute(word, values) for word in run]
    given: dict[str, str] = {}

    def inserted(name: str) -> str:
        if name in _HARMLESS:
            return values[name]
        given.setdefault(name, values[name])
        return f"${{{list(given).index(name) + 1}}}"

    return ["sh", "-c", substitute_by(run, inserted), "argosy", *given.values()]


def program_environment(spec: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, str]:
    """The variables that the runner reads; empty for a run without its own program."""
    if "run" not in spec:
        return {}
    told = {"ARGOSY_RUNNER": str(RUNNER_PROTOCOL), "ARGOSY_RESULT": str(spec.get("result", DEFAULT_RESULT))}
    if "job" in spec:
        told["ARGOSY_JOB"] = str(spec["job"])
    if spec.get("inputs"):
        told["ARGOSY_INPUTS"] = json.dumps(list(_addresses(spec["inputs"], values)), separators=(",", ":"))
    if "checkpoint" in spec:
        told["ARGOSY_CHECKPOINT_URI"] = values["checkpoints"]
        told["ARGOSY_CHECKPOINT_SECONDS"] = str(spec["checkpoint"].get("everySeconds", 0))
    return told


def _addresses(inputs: Iterable[str], values: Mapping[str, str]) -> Iterator[str]:
    """An input with `${item}` is one address for each member of an item that is a list."""
    for uri in inputs:
        if "members" in values and "item" in names_used(uri):
            yield from (substitute(uri, {**values, "item": each}) for each in json.loads(values["members"]))
        else:
            yield substitute(uri, values)
