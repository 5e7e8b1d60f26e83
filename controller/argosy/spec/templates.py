"""Substitution of `${name}` in a spec: its places, its names, and its faults.

`${name}` is replaced inside each element of the command or of `run`, each environment value and each input, from a
closed list, in one pass and never through a shell: the text of an item is not searched again. `$${` means a literal
`${`; any other `$` is itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from argosy.spec.faults import Fault, path_text, shown

VARIABLES = ("range", "start", "end", "index", "paddedIndex", "count", "item", "output", "part", "runId", "attempt")
ITEM_KEY = re.compile(r"item\.([A-Za-z_][A-Za-z0-9_-]*)", re.ASCII)
_TOKEN = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")


def names_used(text: str) -> Iterator[str | None]:
    """The text between the braces of each `${...}`; None for one that is never closed."""
    for token in _TOKEN.finditer(text):
        if token[0] != "$${":
            yield token[1]


def substitute(text: str, values: Mapping[str, str]) -> str:
    """Raises KeyError for a name that is not in `values`; validation has refused those at submit."""
    return substitute_by(text, values.__getitem__)


def substitute_by(text: str, value: Callable[[str], str]) -> str:
    """The same with what `value` gives for each name."""
    return _TOKEN.sub(lambda token: "${" if token[0] == "$${" else value(token[1]), text)


def fill_outputs(form: dict[str, Any], outputs: Mapping[str, str]) -> dict[str, Any]:
    """A validated spec in which every `${dependency.NAME.output}` has its value. outputs: by NAME."""

    def filled(value: Any) -> Any:
        if isinstance(value, str):
            return _TOKEN.sub(lambda token: _output_of(token, outputs), value)
        if isinstance(value, list):
            return [filled(each) for each in value]
        return {name: filled(each) for name, each in value.items()} if isinstance(value, dict) else value

    places = ("container", "run", "inputs")
    return {name: filled(value) if name in places else value for name, value in form.items()}


def _output_of(token: re.Match[str], outputs: Mapping[str, str]) -> str:
    """The value of the token; every other token stays as it is."""
    found = OUTPUT.fullmatch(token[1] or "")
    return outputs[found[1]] if found and token[0] != "$${" else token[0]


def templates(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(path, text) of every place in a spec, validated or not, where `${...}` is substituted."""
    container = data.get("container")
    if isinstance(container, Mapping):
        yield from _listed_templates("container.command", container.get("command"))
        yield from _environment_templates(container.get("environment"))
    for name in ("run", "inputs"):
        if isinstance(data.get(name), str):
            yield name, data[name]
        yield from _listed_templates(name, data.get(name))


def _listed_templates(path: str, given: Any) -> Iterator[tuple[str, str]]:
    for number, text in enumerate(given if isinstance(given, list) else ()):
        if isinstance(text, str):
            yield f"{path}[{number}]", text


def _environment_templates(environment: Any) -> Iterator[tuple[str, str]]:
    if isinstance(environment, Mapping):
        for name, text in environment.items():
            if isinstance(text, str):
                yield path_text(("container", "environment", name)), text
    elif isinstance(environment, list):
        for number, entry in enumerate(environment):
            if isinstance(entry, Mapping) and isinstance(entry.get("value"), str):
                yield f"container.environment[{number}].value", entry["value"]


def template_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """Unknown names, names that the array gives no value, and inline items that lack a key."""
    array = data.get("array")
    array = array if isinstance(array, Mapping) else {}
    for path, text in templates(data):
        for name in names_used(text):
            message = _name_fault(name, array, data)
            if message:
                yield Fault(path, message)
    if isinstance(array.get("items"), list):
        yield from item_faults(data, array["items"], "array.items")


def item_faults(data: Mapping[str, Any], items: Sequence[Any], where: str) -> Iterator[Fault]:
    """Items that lack a key which the templates use. where: the path or the address of the items, for the faults."""
    keys = _keys_used(data)
    for number, item in enumerate(items if keys else ()):
        for key, path in keys.items():
            if not isinstance(item, Mapping):
                yield Fault(f"{where}[{number}]", f"must be a mapping with {key}, which {path} uses")
            elif key not in item:
                yield Fault(f"{where}[{number}]", f"has no {key}, which {path} uses")


def _keys_used(data: Mapping[str, Any]) -> dict[str, str]:
    """KEY -> path of the first place that says `${item.KEY}`."""
    keys: dict[str, str] = {}
    for path, text in templates(data):
        for name in names_used(text):
            key = ITEM_KEY.fullmatch(name or "")
            if key:
                keys.setdefault(key[1], path)
    return keys


def _name_fault(name: str | None, array: Mapping[str, Any], data: Mapping[str, Any]) -> str | None:
    if name is None:
        return "has a ${ that is never closed; write $${ for a literal ${"
    if name in ("in", "out"):
        return f"${{{name}}} is not a substitution: a program finds the folder's name in $ARGOSY_{name.upper()}"
    if OUTPUT.fullmatch(name):
        return output_fault(name, data)
    if name not in VARIABLES and not ITEM_KEY.fullmatch(name):
        known = ", ".join((*VARIABLES, "item.KEY", "dependency.NAME.output"))
        return f"unknown substitution ${{{shown(name)}}}; known: {known}; write $${{ for a literal ${{"
    if name in ("range", "start", "end") and array and array.get("range") is None:
        return f"${{{name}}} is only possible with array.range"
    if name.split(".")[0] == "item" and array and array.get("items") is None and array.get("itemsFrom") is None:
        return f"${{{name}}} is only possible with array.items or array.itemsFrom"
    return None


OUTPUT = re.compile(r"dependency\.([a-z][a-z0-9-]{0,62})\.output", re.ASCII)
_RUN_ID = re.compile(r"([a-z][a-z0-9-]{0,62})-[0-9]{6}-[0-9]{6}-[a-z0-9]{4}", re.ASCII)


def name_of(run: str) -> str:
    """The name of the run with this id; a name is itself."""
    found = _RUN_ID.fullmatch(run)
    return found[1] if found else run


def output_fault(name: str, data: Mapping[str, Any]) -> str | None:
    """The fault of `${dependency.NAME.output}`. None for a name of another form, or a correct one."""
    found = OUTPUT.fullmatch(name)
    if found is None:
        return None
    given = data.get("dependsOn")
    entries = [each for each in given if isinstance(each, Mapping)] if isinstance(given, list) else []
    names = [name_of(each["run"]) for each in entries if isinstance(each.get("run"), str)]
    if names.count(found[1]) == 1:
        return None
    if found[1] in names:
        return f"${{{name}}} could mean several runs of dependsOn: give the runs different names"
    known = ", ".join(f"dependency.{each}.output" for each in names) or "nothing: there is no dependsOn"
    return f"${{{name}}} is not a run of dependsOn; known: {known}"
