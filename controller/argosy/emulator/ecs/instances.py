"""Container instances: registering, describing, listing, draining, deregistering."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argosy.emulator.ecs.changes import changed_instance, gone
from argosy.emulator.ecs.ledger import EcsLedger
from argosy.emulator.ecs.placement import matches
from argosy.emulator.ecs.records import ContainerInstance, EcsCluster
from argosy.emulator.ecs.registration import read_registration, registered_again
from argosy.emulator.ecs.views import emit_instance, health_view, instance_view
from argosy.emulator.operations import OperationGroup, Refusal, operation
from argosy.emulator.paging import limit_of, page

JSON = dict[str, Any]

MAX_DESCRIBED = 100
MAX_STATE_CHANGES = 10
_STATUSES = ("ACTIVE", "DRAINING", "REGISTERING", "DEREGISTERING", "REGISTRATION_FAILED")


class ContainerInstanceOperations(OperationGroup[EcsLedger]):
    """Operations on container instances."""

    @operation
    def register_container_instance(self, request: JSON) -> JSON:
        """With `containerInstanceArn` of a known one: the agent has come back. Otherwise a new instance, connected."""
        cluster = self.ledger.cluster(request)
        known = cluster.instances.get(request.get("containerInstanceArn") or "")
        if known is not None and known.status != "INACTIVE":
            registered_again(known, request)
            known.agent_connected = True
            changed_instance(self.ledger, known)
            return {"containerInstance": instance_view(self.ledger, known)}
        instance = read_registration(self.ledger, cluster, request)
        cluster.instances[instance.arn] = instance
        cluster.by_ec2_id.setdefault(instance.ec2_instance_id, []).append(instance)
        emit_instance(self.ledger, instance)
        return {"containerInstance": instance_view(self.ledger, instance)}

    @operation
    def describe_container_instances(self, request: JSON) -> JSON:
        """Up to 100 by id or ARN; unknown ones are failures MISSING. Tags and health only when included."""
        cluster, names = self.ledger.cluster(request), request["containerInstances"]
        if not names:
            raise Refusal("InvalidParameterException", "Container instances cannot be empty.")
        if len(names) > MAX_DESCRIBED:
            raise Refusal(
                "InvalidParameterException", f"Container instances can not have more than {MAX_DESCRIBED} elements."
            )
        found, failures = self._named(cluster, names)
        views = [instance_view(self.ledger, instance) for instance in found]
        if "TAGS" not in (request.get("include") or ()):
            for view in views:
                view["tags"] = []
        if "CONTAINER_INSTANCE_HEALTH" in (request.get("include") or ()):
            for view, instance in zip(views, found, strict=True):
                view["healthStatus"] = health_view(instance)
        return {"containerInstances": views, "failures": failures}

    @operation
    def list_container_instances(self, request: JSON) -> JSON:
        """All that are not INACTIVE, or those of one status; `filter` is a cluster query."""
        cluster, status = self.ledger.cluster(request), request.get("status")
        if status is not None and status not in _STATUSES:
            raise Refusal("InvalidParameterException", f"Invalid status {status!r}.")
        chosen = self._chosen(cluster, request.get("filter"))
        limit = limit_of(request.get("maxResults"))

        def accepts(instance: ContainerInstance) -> bool:
            wanted = instance.status == status if status else instance.status != "INACTIVE"
            return wanted and chosen(instance)

        found, token = page(cluster.instances.values(), accepts, request.get("nextToken"), limit)
        reply: JSON = {"containerInstanceArns": [instance.arn for instance in found]}
        return {**reply, "nextToken": token} if token else reply

    @operation
    def update_container_instances_state(self, request: JSON) -> JSON:
        """ACTIVE or DRAINING, up to 10. DRAINING does nothing to standalone tasks: they run on (aws.md 1)."""
        cluster, status = self.ledger.cluster(request), request["status"]
        names = request["containerInstances"]
        if status not in ("ACTIVE", "DRAINING"):
            raise Refusal("InvalidParameterException", "Container instance status should be one of [ACTIVE, DRAINING].")
        if not 1 <= len(names) <= MAX_STATE_CHANGES:
            raise Refusal("InvalidParameterException", f"Give 1 to {MAX_STATE_CHANGES} container instances.")
        found, failures = self._named(cluster, names)
        for instance in [each for each in found if each.status == "INACTIVE"]:
            found.remove(instance)
            failures.append({"arn": instance.arn, "reason": "INACTIVE"})
        for instance in found:
            if instance.status != status:
                instance.status = status
                changed_instance(self.ledger, instance)
        return {"containerInstances": [instance_view(self.ledger, each) for each in found], "failures": failures}

    @operation
    def deregister_container_instance(self, request: JSON) -> JSON:
        """With tasks on it only by force; they are then orphaned, which ECS records as STOPPED."""
        cluster = self.ledger.cluster(request)
        instance = self.ledger.find_instance(cluster, request["containerInstance"])
        if instance is None or instance.status == "INACTIVE":
            raise Refusal("InvalidParameterException", "The referenced container instance was not found.")
        if instance.tasks and not request.get("force"):
            raise Refusal("InvalidParameterException", "Found running tasks on the instance.")
        gone(self.ledger, instance, "InfrastructureHealth", "Container instance deregistration forced by user")
        return {"containerInstance": instance_view(self.ledger, instance)}

    def _named(self, cluster: EcsCluster, names: list[str]) -> tuple[list[ContainerInstance], list[JSON]]:
        found: list[ContainerInstance] = []
        failures: list[JSON] = []
        for name in dict.fromkeys(names):
            instance = self.ledger.find_instance(cluster, name)
            if instance is None:
                prefix = self.ledger.arn("container-instance", f"{cluster.name}/")
                failures.append({"arn": name if name.startswith("arn:") else prefix + name, "reason": "MISSING"})
            else:
                found.append(instance)
        return found, failures

    def _chosen(self, cluster: EcsCluster, expression: str | None) -> Callable[[ContainerInstance], bool]:
        if not expression:
            return lambda instance: True
        registered = [each for each in cluster.instances.values() if each.status != "INACTIVE"]
        arns = {instance.arn for instance in matches(expression, registered)}
        return lambda instance: instance.arn in arns
