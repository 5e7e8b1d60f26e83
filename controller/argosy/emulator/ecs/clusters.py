"""ECS clusters: creating, describing, listing, deleting."""

from __future__ import annotations

import re
from typing import Any

from argosy.emulator.ecs.ledger import EcsLedger
from argosy.emulator.ecs.records import EcsCluster
from argosy.emulator.ecs.tags import checked
from argosy.emulator.ecs.views import cluster_view
from argosy.emulator.operations import OperationGroup, Refusal, operation
from argosy.emulator.paging import limit_of, page

JSON = dict[str, Any]


class ClusterOperations(OperationGroup[EcsLedger]):
    """Operations on clusters."""

    @operation
    def create_cluster(self, request: JSON) -> JSON:
        """If the cluster exists, the answer is the existing one."""
        name = str(request.get("clusterName") or "default")
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,254}", name):
            raise Refusal("InvalidParameterException", "Invalid cluster name.")
        cluster = self.ledger.clusters.get(name)
        if cluster is None or cluster.status != "ACTIVE":
            tags, settings = checked(request.get("tags")), list(request.get("settings") or [])
            arn = self.ledger.arn("cluster", name)
            cluster = self.ledger.clusters[name] = EcsCluster(self.ledger.ordinal(), arn, name, tags, settings)
        return {"cluster": cluster_view(cluster)}

    @operation
    def describe_clusters(self, request: JSON) -> JSON:
        """Unknown ones are failures MISSING; tags and settings only when included."""
        names = request.get("clusters") or ["default"]
        if len(names) > 100:
            raise Refusal("InvalidParameterException", "Clusters can not have more than 100 elements.")
        found, failures = [], []
        for name in names:
            cluster = self.ledger.clusters.get(name.removeprefix(self.ledger.arn("cluster", "")))
            if cluster is None:
                failures.append({"arn": _full(self.ledger.arn("cluster", ""), name), "reason": "MISSING"})
            else:
                found.append(_including(cluster_view(cluster), request.get("include") or ()))
        return {"clusters": found, "failures": failures}

    @operation
    def list_clusters(self, request: JSON) -> JSON:
        """The ARNs of those that are ACTIVE."""
        limit = limit_of(request.get("maxResults"))
        clusters, token = page(
            self.ledger.clusters.values(), lambda each: each.status == "ACTIVE", request.get("nextToken"), limit
        )
        reply: JSON = {"clusterArns": [cluster.arn for cluster in clusters]}
        return {**reply, "nextToken": token} if token else reply

    @operation
    def delete_cluster(self, request: JSON) -> JSON:
        """Refused while container instances remain; without them there are no live tasks either."""
        cluster = self.ledger.cluster(request)
        if any(instance.status != "INACTIVE" for instance in cluster.instances.values()):
            raise Refusal(
                "ClusterContainsContainerInstancesException",
                "The Cluster cannot be deleted while Container Instances are active or draining.",
            )
        cluster.status = "INACTIVE"
        return {"cluster": cluster_view(cluster)}


def _full(prefix: str, name: str) -> str:
    return name if name.startswith("arn:") else prefix + name


def _including(view: JSON, include: Any) -> JSON:
    for member, word in (("tags", "TAGS"), ("settings", "SETTINGS"), ("statistics", "STATISTICS")):
        if word not in include:
            view[member] = []
    return view
