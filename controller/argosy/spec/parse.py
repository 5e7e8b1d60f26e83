"""What may a user ask for? From data to a validated run spec, its JSON form and its JSON Schema.

The fields are in `spec_models`, what concerns several of them at once in `spec_checks` and `spec_overrides`, what
depends on the deployment (its buckets, its instance types, the placement language) in `admission`, text and line
numbers in `spec_file`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from argosy.spec import bounds, checks, overrides
from argosy.spec.faults import Fault, SpecError, from_pydantic
from argosy.spec.fields import EnvironmentEntry, Strict
from argosy.spec.models import (
    ArraySpec,
    CapacitySpec,
    ContainerSpec,
    ExitRuleSpec,
    FallbackSpec,
    PlacementSpec,
    ResourcesSpec,
    RetrySpec,
    RunSpec,
    SoftConstraintSpec,
    TimeoutSpec,
)

__all__ = ["Fault", "RunSpec", "SpecError", "parse_spec", "schema", "to_json"]

_MODELS: dict[str, type[Strict]] = {
    "": RunSpec,
    "container": ContainerSpec,
    "container.environment": EnvironmentEntry,  # the list form
    "resources": ResourcesSpec,
    "array": ArraySpec,
    "placement": PlacementSpec,
    "placement.softConstraints": SoftConstraintSpec,
    "capacity": CapacitySpec,
    "capacity.fallback": FallbackSpec,
    "retryStrategy": RetrySpec,
    "retryStrategy.evaluateOnExit": ExitRuleSpec,
    "timeout": TimeoutSpec,
}


def parse_spec(data: Any) -> RunSpec:
    """The spec in `data` (JSON values). Raises SpecError with every fault, each with its path.

    Bounded whatever is handed in: size and depth are looked at first, without recursion.
    """
    faults = bounds.faults(data)
    if faults:
        raise SpecError(faults)
    parsed: RunSpec | None = None
    try:
        parsed = RunSpec.model_validate(data)
    except ValidationError as refusal:
        faults = from_pydantic(refusal.errors(include_url=False), _fields_at)
    if isinstance(data, Mapping):
        seen = {fault.path for fault in faults}
        beyond = [*bounds.value_faults(data), *checks.cross_faults(data)]
        faults += [fault for fault in beyond if fault.path not in seen]
        faults += overrides.faults(data)
    if faults or parsed is None:
        raise SpecError(faults)
    return parsed


def to_json(spec: RunSpec) -> dict[str, Any]:
    """The validated form with defaults filled in: what is stored, compared, and what `shards` works on."""
    form: dict[str, Any] = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    if spec.array.range is not None:
        form["array"].setdefault("shardSize", 1)
    if spec.capacity.deadline is not None and "purchase" not in spec.capacity.model_fields_set:
        form["capacity"]["purchase"] = "spot-then-on-demand"  # spot alone could not keep it
    if spec.array.items is not None:
        form["array"]["items"] = spec.array.items  # exclude_none would drop members of an item that are null
    if spec.task_definition is None and spec.resources is None:
        form["resources"] = ResourcesSpec.model_validate({}).model_dump(mode="json", by_alias=True)
    return form


def schema() -> dict[str, Any]:
    """The JSON Schema that editors and `argosy schema` use."""
    body: dict[str, Any] = _tidy(RunSpec.model_json_schema(by_alias=True))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Argosy run spec", **body}


def _tidy(node: Any) -> Any:
    """Without pydantic's titles and without null: an absent field is left out, not written as null."""
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


def _fields_at(path: str) -> Sequence[str]:
    model = _MODELS.get(path.split("[", 1)[0], RunSpec)
    return [field.alias or name for name, field in model.model_fields.items()]
