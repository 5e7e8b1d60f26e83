"""Task definitions: registering revisions, describing, listing, deregistering."""

from __future__ import annotations

import copy
from typing import Any

from argosy.emulator.ecs.definition_checks import checked_body
from argosy.emulator.ecs.ledger import EcsLedger
from argosy.emulator.ecs.records import TaskDefinition
from argosy.emulator.ecs.tags import checked
from argosy.emulator.ecs.views import definition_view
from argosy.emulator.operations import OperationGroup, Refusal, operation
from argosy.emulator.paging import limit_of, page_of_values

JSON = dict[str, Any]


def find_definition(ledger: EcsLedger, name: str) -> TaskDefinition | None:
    """By family (its latest ACTIVE revision), family:revision or ARN; None when there is none."""
    family, _, revision = name.removeprefix(ledger.arn("task-definition", "")).partition(":")
    revisions = ledger.definitions.get(family, [])
    if not revision:
        return next((each for each in reversed(revisions) if each.status == "ACTIVE"), None)
    index = int(revision) - 1 if revision.isdecimal() else -1
    return revisions[index] if 0 <= index < len(revisions) else None


class TaskDefinitionOperations(OperationGroup[EcsLedger]):
    """Operations on task definitions."""

    @operation
    def register_task_definition(self, request: JSON) -> JSON:
        """A new revision, even if nothing differs from the last one."""
        body, tags = checked_body(copy.deepcopy(request)), checked(request.get("tags"))
        family = request["family"]
        revisions = self.ledger.definitions.setdefault(family, [])
        number = len(revisions) + 1
        arn = self.ledger.arn("task-definition", f"{family}:{number}")
        revisions.append(TaskDefinition(arn, family, number, body, tags, self.ledger.ordinal(), self.ledger.now()))
        self._announce(revisions[-1])
        reply: JSON = {"taskDefinition": definition_view(self.ledger, revisions[-1])}
        return {**reply, "tags": tags} if tags else reply

    @operation
    def describe_task_definition(self, request: JSON) -> JSON:
        """INACTIVE revisions stay describable by number."""
        definition = find_definition(self.ledger, request["taskDefinition"])
        if definition is None:
            raise Refusal("ClientException", "Unable to describe task definition.")
        reply: JSON = {"taskDefinition": definition_view(self.ledger, definition)}
        return {**reply, "tags": list(definition.tags)} if "TAGS" in (request.get("include") or ()) else reply

    @operation
    def deregister_task_definition(self, request: JSON) -> JSON:
        """INACTIVE from now on: no new tasks, running ones continue. Needs a revision."""
        name = request["taskDefinition"].removeprefix(self.ledger.arn("task-definition", ""))
        if ":" not in name:
            raise Refusal("InvalidParameterException", "Revision is missing.")
        definition = find_definition(self.ledger, name)
        if definition is None:
            raise Refusal("ClientException", "The specified task definition does not exist.")
        if definition.status == "ACTIVE":
            definition.status, definition.deregistered_at = "INACTIVE", self.ledger.now()
            self._announce(definition)
        return {"taskDefinition": definition_view(self.ledger, definition)}

    @operation
    def list_task_definitions(self, request: JSON) -> JSON:
        """`familyPrefix` is the *whole* family name here; ACTIVE ones by default."""
        family, status = request.get("familyPrefix"), request.get("status") or "ACTIVE"
        found = [
            each.arn
            for name in sorted(self.ledger.definitions)
            if family in (None, name)
            for each in self.ledger.definitions[name]
            if each.status == status
        ]
        if request.get("sort") == "DESC":
            found.reverse()
        return _paged(request, "taskDefinitionArns", found)

    @operation
    def list_task_definition_families(self, request: JSON) -> JSON:
        """Here `familyPrefix` is a prefix. A family is ACTIVE when one of its revisions is."""
        prefix, status = request.get("familyPrefix") or "", request.get("status") or "ALL"
        found = []
        for family in sorted(self.ledger.definitions):
            active = any(each.status == "ACTIVE" for each in self.ledger.definitions[family])
            if family.startswith(prefix) and status in ("ALL", "ACTIVE" if active else "INACTIVE"):
                found.append(family)
        return _paged(request, "families", found)

    def _announce(self, definition: TaskDefinition) -> None:
        for tell in self.ledger.on_definition:
            tell(definition)


def _paged(request: JSON, member: str, values: list[str]) -> JSON:
    found, token = page_of_values(values, request.get("nextToken"), limit_of(request.get("maxResults")))
    return {member: found, "nextToken": token} if token else {member: found}
