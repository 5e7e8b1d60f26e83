"""How do tasks come into being? RunTask chooses and remembers client tokens, StartTask does neither."""

from __future__ import annotations

import copy
from typing import Any

from argosy.emulator.ecs.changes import assign
from argosy.emulator.ecs.launch_checks import (
    RUN_STARTED_BY_CHARS,
    START_STARTED_BY_CHARS,
    check_placement_mode,
    check_request,
    checked_count,
    checked_definition,
    checked_token,
    fingerprint,
)
from argosy.emulator.ecs.operations import EcsOperations
from argosy.emulator.ecs.placement import checked_constraints, checked_strategy, has_member, matches, pinned_to, ranking
from argosy.emulator.ecs.records import Cluster, Container, Definition, Instance, Launch, Needs, Task
from argosy.emulator.ecs.resources import needs_of, shortfall, take
from argosy.emulator.ecs.tags import checked
from argosy.emulator.ecs.views import task_view
from argosy.emulator.ids import as_uuid
from argosy.emulator.refusals import Refused, operation

JSON = dict[str, Any]

MAX_TARGETS = 10
NOT_A_MEMBER = {"reason": "MemberOf placement constraint unsatisfied."}
NOT_DISTINCT = {"reason": "DistinctInstance placement constraint unsatisfied."}


class Launching(EcsOperations):
    """The two operations that start tasks."""

    @operation
    def run_task(self, request: JSON) -> JSON:
        """Starts `count` tasks where constraints and strategy say; partial success is HTTP 200 with `failures`."""
        cluster, count = self.ledger.cluster(request), checked_count(request)
        token = checked_token(request)
        if token is not None and (earlier := self._remembered(cluster, token)) is not None:
            return self._replayed(cluster, earlier, fingerprint(request))
        definition = checked_definition(self.ledger, request)
        check_placement_mode(request)
        check_request(request, definition, RUN_STARTED_BY_CHARS)
        request = copy.deepcopy(request)
        tasks, failures = self._place(cluster, definition, request, count)
        if token is not None and tasks:
            arns = [task.arn for task in tasks]
            cluster.launches[token] = Launch(fingerprint(request), self.ledger.now(), arns, failures)
            for task in tasks:
                task.token = (cluster.name, token)
        return {"tasks": [task_view(self.ledger, task) for task in tasks], "failures": failures}

    @operation
    def start_task(self, request: JSON) -> JSON:
        """One task on each named container instance; there is no client token: the same call again starts it again."""
        cluster, names = self.ledger.cluster(request), request["containerInstances"]
        if not names:
            raise Refused("InvalidParameterException", "Container instances cannot be empty.")
        if len(names) > MAX_TARGETS:
            raise Refused("InvalidParameterException", f"Give at most {MAX_TARGETS} container instances.")
        definition = checked_definition(self.ledger, request)
        check_request(request, definition, START_STARTED_BY_CHARS)
        request = copy.deepcopy(request)
        needs, tags = needs_of(definition, request.get("overrides") or {}), _tags(request, definition)
        tasks, failures = [], []
        for name in names:
            instance = self.ledger.find_instance(cluster, name)
            reason = _refusal_by_name(instance, definition, needs)
            if instance is None or reason is not None:
                prefix = self.ledger.arn("container-instance", f"{cluster.name}/")
                failures.append({"arn": name if name.startswith("arn:") else prefix + name, "reason": reason})
            else:
                tasks.append(self._start(cluster, definition, request, instance, needs, tags))
        return {"tasks": [task_view(self.ledger, task) for task in tasks], "failures": failures}

    def _remembered(self, cluster: Cluster, token: str) -> Launch | None:
        launch = cluster.launches.get(token)
        if launch is not None and self.ledger.token_expired(launch.at):
            return None
        return launch

    def _replayed(self, cluster: Cluster, launch: Launch, request: JSON) -> JSON:
        if launch.request != request:
            raise Refused(
                "ConflictException",
                "The request with this client token was made before with other parameters.",
                resourceIds=list(launch.task_arns),
            )
        tasks = [cluster.tasks[arn] for arn in launch.task_arns if arn in cluster.tasks]
        return {"tasks": [task_view(self.ledger, task) for task in tasks], "failures": list(launch.failures)}

    def _place(
        self, cluster: Cluster, definition: Definition, request: JSON, count: int
    ) -> tuple[list[Task], list[JSON]]:
        """One after the other, each seeing the ones before; the first that finds no place ends it."""
        constraints = [
            *(definition.body.get("placementConstraints") or ()),
            *(request.get("placementConstraints") or ()),
        ]
        expressions, distinct = checked_constraints(constraints)
        strategy = checked_strategy(request.get("placementStrategy") or ())
        needs, tags = needs_of(definition, request.get("overrides") or {}), _tags(request, definition)
        if all(each.status == "INACTIVE" for each in cluster.instances.values()):
            raise Refused("InvalidParameterException", "No Container Instances were found in your cluster.")
        group, tasks = _group(request, definition), list[Task]()
        candidates = _active(cluster, expressions)
        while len(tasks) < count:
            members = candidates
            for expression in expressions:
                members = matches(expression, members)
            if not members:
                return tasks, [dict(NOT_A_MEMBER)]
            apart = [each for each in members if not (distinct and has_member(each, group))]
            if not apart:
                return tasks, [dict(NOT_DISTINCT)]
            fit, failures = _fitting(apart, definition, needs)
            if not fit:
                return tasks, failures
            best = min(fit, key=ranking(candidates, strategy, group, f"{len(cluster.tasks)}"))
            tasks.append(self._start(cluster, definition, request, best, needs, tags))
        return tasks, []

    def _start(
        self,
        cluster: Cluster,
        definition: Definition,
        request: JSON,
        instance: Instance,
        needs: Needs,
        tags: list[JSON],
    ) -> Task:
        digits = self.ledger.new_id()
        pinned = take(instance, needs)
        overrides = request.get("overrides") or {}
        named = {each["name"]: each for each in overrides.get("containerOverrides") or ()}
        listed = [named.get(each["name"], {"name": each["name"]}) for each in definition.containers]
        task = Task(
            ordinal=self.ledger.ordinal(),
            arn=self.ledger.arn("task", f"{cluster.name}/{digits}"),
            cluster=cluster.name,
            definition=definition,
            instance=instance,
            needs=needs,
            containers=[
                self._container(f"{cluster.name}/{digits}", each, named.get(each["name"], {}), pinned)
                for each in definition.containers
            ],
            overrides={"inferenceAcceleratorOverrides": [], **overrides, "containerOverrides": listed},
            group=_group(request, definition),
            started_by=request.get("startedBy"),
            tags=list(tags),
            enable_execute_command=bool(request.get("enableExecuteCommand")),
            created_at=self.ledger.now(),
        )
        assign(self.ledger, task)
        return task

    def _container(self, task_path: str, definition: JSON, override: JSON, pinned: dict[str, list[str]]) -> Container:
        sizes = {**definition, **override}
        memory, reservation = sizes.get("memory"), sizes.get("memoryReservation")
        return Container(
            arn=self.ledger.arn("container", f"{task_path}/{as_uuid(self.ledger.new_id())}"),
            name=definition["name"],
            image=definition["image"],
            cpu=str(sizes.get("cpu") or 0),
            memory=None if memory is None else str(memory),
            memory_reservation=None if reservation is None else str(reservation),
            gpu_ids=pinned.get(definition["name"], []),
        )


def _refusal_by_name(instance: Instance | None, definition: Definition, needs: Needs) -> str | None:
    """StartTask's view. That it refuses DRAINING instances is not documented, so it does not; GPUs are checked."""
    if instance is None:
        return "MISSING"
    if instance.status == "INACTIVE":
        return "INACTIVE"
    return shortfall(instance, needs, _required(definition))


def _fitting(instances: list[Instance], definition: Definition, needs: Needs) -> tuple[list[Instance], list[JSON]]:
    """Those that fit, and one failure for each of the others."""
    fit, failures = [], []
    for instance in instances:
        reason = shortfall(instance, needs, _required(definition))
        if reason is None:
            fit.append(instance)
        else:
            failures.append({"arn": instance.arn, "reason": reason})
    return fit, failures


def _active(cluster: Cluster, expressions: list[str]) -> list[Instance]:
    """Where to look: the ACTIVE instances, or of a pinned launch only the one it names."""
    pins = [pin for expression in expressions if (pin := pinned_to(expression))]
    among = cluster.by_ec2_id.get(pins[0], []) if pins else cluster.instances.values()
    return [each for each in among if each.status == "ACTIVE"]


def _required(definition: Definition) -> list[str]:
    return [each["name"] for each in definition.body["requiresAttributes"]]


def _group(request: JSON, definition: Definition) -> str:
    return str(request.get("group") or f"family:{definition.family}")


def _tags(request: JSON, definition: Definition) -> list[JSON]:
    """The request's own win over those propagated from the definition."""
    own = checked(request.get("tags"))
    if request.get("propagateTags") != "TASK_DEFINITION":
        return own
    keys = {tag["key"] for tag in own}
    return checked([*own, *(tag for tag in definition.tags if tag["key"] not in keys)])
