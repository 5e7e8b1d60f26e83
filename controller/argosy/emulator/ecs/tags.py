"""Tags of resources: their limits, and reading and changing them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from argosy.emulator.ecs.ledger import EcsLedger
from argosy.emulator.ecs.records import ContainerInstance, EcsCluster, EcsTask, TaskDefinition
from argosy.emulator.operations import OperationGroup, Refusal, operation

JSON = dict[str, Any]

MAX_TAGS = 50
MAX_KEY, MAX_VALUE = 128, 256


def checked(tags: Iterable[JSON] | None) -> list[JSON]:
    """The tags as ECS stores them. Raises Refusal: more than 50, too long, a reserved prefix, a key twice."""
    listed = [{"key": str(tag.get("key", "")), "value": str(tag.get("value", ""))} for tag in tags or ()]
    if len(listed) > MAX_TAGS:
        raise Refusal("InvalidParameterException", f"Tags can not have more than {MAX_TAGS} elements.")
    if len({tag["key"] for tag in listed}) < len(listed):
        raise Refusal("InvalidParameterException", "Duplicate tag keys found. Please note that tag keys are unique.")
    for tag in listed:
        _check(tag["key"], tag["value"])
    return listed


def _check(key: str, value: str) -> None:
    if not 1 <= len(key) <= MAX_KEY or len(value) > MAX_VALUE:
        raise Refusal(
            "InvalidParameterException",
            f"The key of a tag must have 1 to {MAX_KEY} characters, the value at most {MAX_VALUE}.",
        )
    if key.lower().startswith("aws:"):
        raise Refusal("InvalidParameterException", "Tag keys that start with 'aws:' are reserved for AWS use.")


class TagOperations(OperationGroup[EcsLedger]):
    """TagResource and its relatives, for tasks, container instances, clusters and task definitions."""

    @operation
    def tag_resource(self, request: JSON) -> JSON:
        """Adds or replaces."""
        record = self._tagged(request["resourceArn"])
        fresh = {tag["key"]: tag["value"] for tag in checked(request["tags"])}
        merged = {**{tag["key"]: tag["value"] for tag in record.tags}, **fresh}
        record.tags = checked([{"key": key, "value": value} for key, value in merged.items()])
        return {}

    @operation
    def untag_resource(self, request: JSON) -> JSON:
        """Keys that are not there are ignored."""
        record = self._tagged(request["resourceArn"])
        record.tags = [tag for tag in record.tags if tag["key"] not in request["tagKeys"]]
        return {}

    @operation
    def list_tags_for_resource(self, request: JSON) -> JSON:
        """All of them; there is no paging."""
        return {"tags": list(self._tagged(request["resourceArn"]).tags)}

    def _tagged(self, arn: str) -> EcsTask | ContainerInstance | EcsCluster | TaskDefinition:
        kind, _, rest = arn.rpartition(":")[2].partition("/")
        if kind == "task-definition" or ":task-definition/" in arn:
            found = [d for revisions in self.ledger.definitions.values() for d in revisions if d.arn == arn]
            if found:
                return found[0]
        for cluster in self.ledger.clusters.values():
            record = cluster if cluster.arn == arn else cluster.tasks.get(arn) or cluster.instances.get(arn)
            if record is not None:
                return record
        raise Refusal("InvalidParameterException", f"The specified resource {rest or arn!r} was not found.")
