"""From data to the validated spec, its JSON form and its JSON Schema.

A document passes through this package once, in this order: `bounds` (its size and depth), `models` and `fields` (single
fields), `checks` (the agreement of several fields), `templates` (the names in `${...}`) and `overrides` (the length of
the request to ECS). `shards` then says which piece of the run each task is. Text and line numbers are the concern of
`file`; checks that depend on the deployment (its buckets, its instance types, the placement language) are the concern
of `api.admission`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from argosy.model.purchases import PurchaseMode
from argosy.spec import bounds
from argosy.spec.checks import cross_faults
from argosy.spec.examples import EXAMPLES
from argosy.spec.faults import Fault, SpecError, from_pydantic
from argosy.spec.models import CapacitySpec, ResourcesSpec, RunSpec, fields_at
from argosy.spec.overrides import length_faults
from argosy.spec.program import DEFAULT_IMAGE, DEFAULT_RESULT
from argosy.spec.services import DaemonSpec
from argosy.spec.templates import template_faults

KUBERNETES = (
    "is an object of Kubernetes; a run spec has version: 1, name, container with image and command, resources with"
    " vcpus and memory, and array with size"
)


def parse_spec(data: Any) -> RunSpec:
    """The spec in `data` (JSON values). Raises SpecError with every fault, each with its path.

    Safe for any input: size and depth are checked first, without recursion.
    """
    faults = bounds.faults(data)
    if faults:
        raise SpecError(faults)
    if isinstance(data, Mapping) and "apiVersion" in data and "spec" in data:
        raise SpecError([Fault("", KUBERNETES)])
    parsed: RunSpec | None = None
    try:
        parsed = RunSpec.model_validate(data)
    except ValidationError as refusal:
        faults = from_pydantic(refusal.errors(include_url=False), fields_at)
    if isinstance(data, Mapping):
        seen = {fault.path for fault in faults}
        beyond = [*bounds.value_faults(data), *cross_faults(data), *template_faults(data)]
        faults += [fault for fault in beyond if fault.path not in seen]
        faults += length_faults(data)
    if faults or parsed is None:
        raise SpecError(faults)
    return parsed


def to_json(spec: RunSpec) -> dict[str, Any]:
    """The validated form with defaults filled in, which is stored and compared, and which `shards` reads."""
    form: dict[str, Any] = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    if spec.array is not None and spec.array.range is not None:
        form["array"].setdefault("shardSize", 1)
    form["capacity"]["purchase"] = purchase_of(spec.capacity)
    if spec.array is not None and spec.array.items is not None:
        form["array"]["items"] = spec.array.items  # exclude_none would drop members of an item that are null
    if spec.service is not None:
        form["array"] = {"size": max(1, spec.service.desired)}  # each task receives this size; there may be more slots
    if spec.kind == "daemon":
        form["array"] = {"size": 1}  # each task receives this size; there are as many slots as instances
        form.setdefault("daemon", DaemonSpec().model_dump(mode="json", by_alias=True, exclude_none=True))
    if spec.task_definition is None and spec.resources is None:
        form["resources"] = ResourcesSpec.model_validate({}).model_dump(mode="json", by_alias=True, exclude_none=True)
    if spec.run is not None:
        form["container"] = {"image": DEFAULT_IMAGE, **form.get("container", {})}
        form.setdefault("result", DEFAULT_RESULT)
    return form


def purchase_of(capacity: CapacitySpec) -> str:
    """The purchase option, or its meaning where the spec gives none: spot alone could not meet a deadline."""
    if capacity.deadline is not None and "purchase" not in capacity.model_fields_set:
        return PurchaseMode.SPOT_THEN_ON_DEMAND.value
    return capacity.purchase


def schema() -> dict[str, Any]:
    """The JSON Schema for editors, which `argosy schema` prints."""
    body: dict[str, Any] = _tidy(RunSpec.model_json_schema(by_alias=True))
    for name, model in ((RunSpec.__name__, body), *body["$defs"].items()):
        for field, example in EXAMPLES[name].items():
            model["properties"][field]["examples"] = [example]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Argosy run spec", **body}


def _tidy(node: Any) -> Any:
    """Without pydantic's titles and without null: users leave a field out instead of writing null."""
    if isinstance(node, list):
        return [_tidy(member) for member in node]
    if not isinstance(node, dict):
        return node
    kept = {name: _tidy(member) for name, member in node.items() if name != "title" or not isinstance(member, str)}
    if kept.get("default", 0) is None:
        del kept["default"]
    branches = [branch for branch in kept.get("anyOf", ()) if branch != {"type": "null"}]
    if len(branches) == 1:
        del kept["anyOf"]
        kept = {**branches[0], **kept}
    return kept
