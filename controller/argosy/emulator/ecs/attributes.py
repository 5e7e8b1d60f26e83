"""Custom attributes of container instances: put, list, delete."""

from __future__ import annotations

import re
from typing import Any

from argosy.emulator.ecs.changes import changed_instance
from argosy.emulator.ecs.ledger import EcsLedger
from argosy.emulator.ecs.records import ContainerInstance, EcsCluster
from argosy.emulator.operations import OperationGroup, Refusal, operation
from argosy.emulator.paging import limit_of, page_of_values

JSON = dict[str, Any]

MAX_PER_RESOURCE = 10  # custom ones [known: verify]
MAX_PER_CALL = 10
_NAME = re.compile(r"[A-Za-z0-9\-_./\\]{1,128}")
_VALUE = re.compile(r"(?! )[A-Za-z0-9\-_.@:/\\ ]{1,128}(?<! )")


class AttributeOperations(OperationGroup[EcsLedger]):
    """Operations on attributes. A call is checked as a whole before any change is made."""

    @operation
    def put_attributes(self, request: JSON) -> JSON:
        """Creates or replaces."""
        cluster = self.ledger.cluster(request)
        pairs = self._targets(cluster, request["attributes"])
        for _, attribute in pairs:
            _check(attribute)
        for instance in {each.arn: each for each, _ in pairs}.values():
            fresh = {attribute["name"] for each, attribute in pairs if each is instance}
            custom = (set(instance.attributes) | fresh) - instance.built_in
            if len(custom) > MAX_PER_RESOURCE:
                raise Refusal(
                    "AttributeLimitExceededException", f"A resource can have at most {MAX_PER_RESOURCE} attributes."
                )
        for instance, attribute in pairs:
            instance.attributes[attribute["name"]] = attribute.get("value")
        self._tell(pairs)
        return {"attributes": [_described(instance, attribute) for instance, attribute in pairs]}

    @operation
    def delete_attributes(self, request: JSON) -> JSON:
        """By name, and by value too when one is given; an attribute that is not there is not an error."""
        cluster, deleted = self.ledger.cluster(request), []
        for instance, attribute in self._targets(cluster, request["attributes"]):
            name, value = attribute["name"], attribute.get("value")
            if name in instance.built_in:
                raise Refusal("InvalidParameterException", f"Attribute {name} can not be deleted.")
            if name in instance.attributes and value in (None, instance.attributes[name]):
                deleted.append((instance, {"name": name, "value": instance.attributes.pop(name)}))
        self._tell(deleted)
        return {"attributes": [_described(instance, attribute) for instance, attribute in deleted]}

    @operation
    def list_attributes(self, request: JSON) -> JSON:
        """Built-in and custom ones, by name, or by name and value."""
        cluster, name, value = self.ledger.cluster(request), request.get("attributeName"), request.get("attributeValue")
        if value is not None and name is None:
            raise Refusal("InvalidParameterException", "Attribute value can only be used together with a name.")
        found = [
            _described(instance, {"name": each, "value": its})
            for instance in cluster.instances.values()
            if instance.status != "INACTIVE"
            for each, its in instance.attributes.items()
            if name in (None, each) and value in (None, its)
        ]
        attributes, token = page_of_values(found, request.get("nextToken"), limit_of(request.get("maxResults")))
        return {"attributes": attributes, "nextToken": token} if token else {"attributes": attributes}

    def _targets(self, cluster: EcsCluster, attributes: list[JSON]) -> list[tuple[ContainerInstance, JSON]]:
        if not 1 <= len(attributes) <= MAX_PER_CALL:
            raise Refusal("InvalidParameterException", f"Give 1 to {MAX_PER_CALL} attributes.")
        pairs = []
        for attribute in attributes:
            instance = self.ledger.find_instance(cluster, str(attribute.get("targetId") or ""))
            if instance is None or instance.status == "INACTIVE":
                raise Refusal("TargetNotFoundException", f"{attribute.get('targetId')} is not a known target.")
            pairs.append((instance, attribute))
        return pairs

    def _tell(self, pairs: list[tuple[ContainerInstance, JSON]]) -> None:
        for instance in {each.arn: each for each, _ in pairs}.values():
            changed_instance(self.ledger, instance)


def _check(attribute: JSON) -> None:
    name, value = attribute["name"], attribute.get("value")
    if not _NAME.fullmatch(name) or name.startswith("ecs."):
        raise Refusal("InvalidParameterException", f"Invalid attribute name {name!r}.")
    if value is not None and not _VALUE.fullmatch(value):
        raise Refusal("InvalidParameterException", f"Invalid value of attribute {name!r}.")


def _described(instance: ContainerInstance, attribute: JSON) -> JSON:
    named = {key: attribute[key] for key in ("name", "value") if attribute.get(key) is not None}
    return {**named, "targetType": "container-instance", "targetId": instance.arn}
