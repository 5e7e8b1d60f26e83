"""Starts of tasks: RunTask chooses the instance and remembers client tokens; StartTask does neither."""

from __future__ import annotations

from dataclasses import dataclass
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
from argosy.emulator.ecs.ledger import EcsLedger
from argosy.emulator.ecs.placement import checked_constraints, checked_strategy, has_member, matches, pinned_to, ranking
from argosy.emulator.ecs.records import (
    ContainerInstance,
    EcsCluster,
    EcsContainer,
    EcsTask,
    RememberedLaunch,
    TaskDefinition,
    TaskNeeds,
)
from argosy.emulator.ecs.resources import gpu_sharing, needs_of, shortfall, take
from argosy.emulator.ecs.tags import checked
from argosy.emulator.ecs.views import task_view
from argosy.emulator.operations import OperationGroup, Refusal, operation
from argosy.emulator.region import as_uuid

JSON = dict[str, Any]

MAX_TARGETS = 10
NOT_A_MEMBER = {"reason": "MemberOf placement constraint unsatisfied."}
NOT_DISTINCT = {"reason": "DistinctInstance placement constraint unsatisfied."}


@dataclass(frozen=True, slots=True)
class LaunchOrder:
    """The task that RunTask or StartTask is to start, on any instance."""

    cluster: EcsCluster
    definition: TaskDefinition
    request: JSON
    needs: TaskNeeds
    tags: list[JSON]

    @classmethod
    def of(cls, cluster: EcsCluster, definition: TaskDefinition, request: JSON) -> LaunchOrder:
        """Raises Refusal."""
        request = _copied(request)
        needs = needs_of(definition, request.get("overrides") or {})
        return cls(cluster, definition, request, needs, _tags(request, definition))

    @property
    def group(self) -> str:
        return str(self.request.get("group") or f"family:{self.definition.family}")

    @property
    def required_attributes(self) -> list[str]:
        return [each["name"] for each in self.definition.body["requiresAttributes"]]


def _copied(value: Any) -> Any:
    """A copy of dicts, lists and tuples at every level: deepcopy takes four times as long."""
    if isinstance(value, dict):
        return {name: _copied(each) for name, each in value.items()}
    return type(value)(map(_copied, value)) if isinstance(value, (list, tuple)) else value


class LaunchOperations(OperationGroup[EcsLedger]):
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
        order = LaunchOrder.of(cluster, definition, request)
        tasks, failures = self._place(order, count)
        if token is not None and tasks:
            arns = [task.arn for task in tasks]
            cluster.launches[token] = RememberedLaunch(fingerprint(order.request), self.ledger.now(), arns, failures)
            for task in tasks:
                task.token = (cluster.name, token)
        return {"tasks": [task_view(self.ledger, task) for task in tasks], "failures": failures}

    @operation
    def start_task(self, request: JSON) -> JSON:
        """One task on each named container instance; there is no client token: the same call again starts it again."""
        cluster, names = self.ledger.cluster(request), request["containerInstances"]
        if not names:
            raise Refusal("InvalidParameterException", "Container instances cannot be empty.")
        if len(names) > MAX_TARGETS:
            raise Refusal("InvalidParameterException", f"Give at most {MAX_TARGETS} container instances.")
        definition = checked_definition(self.ledger, request)
        check_request(request, definition, START_STARTED_BY_CHARS)
        order = LaunchOrder.of(cluster, definition, request)
        tasks, failures = [], []
        for name in names:
            instance = self.ledger.find_instance(cluster, name)
            reason = _refusal_by_name(instance, order)
            if instance is None or reason is not None:
                prefix = self.ledger.arn("container-instance", f"{cluster.name}/")
                failures.append({"arn": name if name.startswith("arn:") else prefix + name, "reason": reason})
            else:
                tasks.append(self._start(order, instance))
        return {"tasks": [task_view(self.ledger, task) for task in tasks], "failures": failures}

    def _remembered(self, cluster: EcsCluster, token: str) -> RememberedLaunch | None:
        launch = cluster.launches.get(token)
        if launch is not None and self.ledger.token_expired(cluster, launch):
            return None
        return launch

    def _replayed(self, cluster: EcsCluster, launch: RememberedLaunch, request: JSON) -> JSON:
        if launch.request != request:
            raise Refusal(
                "ConflictException",
                "The request with this client token was made before with other parameters.",
                resourceIds=list(launch.task_arns),
            )
        tasks = [cluster.tasks[arn] for arn in launch.task_arns if arn in cluster.tasks]
        return {"tasks": [self._shown_again(task) for task in tasks], "failures": list(launch.failures)}

    def _shown_again(self, task: EcsTask) -> JSON:
        """A repeated request for a stopped task gets only its ARN and statuses (aws.md 2.3)."""
        view = task_view(self.ledger, task)
        if task.stopped_at is None:
            return view
        return {name: view[name] for name in ("taskArn", "lastStatus", "desiredStatus")}

    def _place(self, order: LaunchOrder, count: int) -> tuple[list[EcsTask], list[JSON]]:
        """One after the other, each with the effects of those before; the first that finds no place ends it."""
        cluster, group, tasks = order.cluster, order.group, list[EcsTask]()
        given = (order.definition.body, order.request)
        constraints = [each for source in given for each in source.get("placementConstraints") or ()]
        expressions, distinct = checked_constraints(constraints)
        strategy = checked_strategy(order.request.get("placementStrategy") or ())
        if all(each.status == "INACTIVE" for each in cluster.instances.values()):
            raise Refusal("InvalidParameterException", "No Container Instances were found in your cluster.")
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
            fit, failures = _fitting(apart, order)
            if not fit:
                return tasks, failures
            best = min(fit, key=ranking(candidates, strategy, group, f"{len(cluster.tasks)}"))
            tasks.append(self._start(order, best))
        return tasks, []

    def _start(self, order: LaunchOrder, instance: ContainerInstance) -> EcsTask:
        path = f"{order.cluster.name}/{self.ledger.new_id()}"
        pinned = take(instance, order.needs, self.ledger.pick_gpu)
        overrides = order.request.get("overrides") or {}
        named = {each["name"]: each for each in overrides.get("containerOverrides") or ()}
        containers = order.definition.containers
        listed = [named.get(each["name"], {"name": each["name"]}) for each in containers]
        task = EcsTask(
            ordinal=self.ledger.ordinal(),
            arn=self.ledger.arn("task", path),
            cluster=order.cluster.name,
            definition=order.definition,
            instance=instance,
            needs=order.needs,
            containers=[self._container(path, each, named.get(each["name"], {}), pinned) for each in containers],
            overrides={"inferenceAcceleratorOverrides": [], **overrides, "containerOverrides": listed},
            group=order.group,
            started_by=order.request.get("startedBy"),
            tags=list(order.tags),
            enable_execute_command=bool(order.request.get("enableExecuteCommand")),
            created_at=self.ledger.now(),
        )
        assign(self.ledger, task)
        return task

    def _container(
        self, task_path: str, definition: JSON, override: JSON, pinned: dict[str, list[str]]
    ) -> EcsContainer:
        sizes = {**definition, **override}
        memory, reservation = sizes.get("memory"), sizes.get("memoryReservation")
        return EcsContainer(
            arn=self.ledger.arn("container", f"{task_path}/{as_uuid(self.ledger.new_id())}"),
            name=definition["name"],
            image=definition["image"],
            cpu=str(sizes.get("cpu") or 0),
            memory=None if memory is None else str(memory),
            memory_reservation=None if reservation is None else str(reservation),
            gpu_ids=pinned.get(definition["name"], []),
            gpu_sharing=gpu_sharing(sizes),
        )


def _refusal_by_name(instance: ContainerInstance | None, order: LaunchOrder) -> str | None:
    """StartTask's view. AWS does not document that it refuses DRAINING instances, so the model accepts them; GPUs are
    checked."""
    if instance is None:
        return "MISSING"
    if instance.status == "INACTIVE":
        return "INACTIVE"
    return shortfall(instance, order.needs, order.required_attributes)


def _fitting(instances: list[ContainerInstance], order: LaunchOrder) -> tuple[list[ContainerInstance], list[JSON]]:
    """Those that fit, and one failure for each of the others."""
    fit, failures, required = [], [], order.required_attributes
    for instance in instances:
        reason = shortfall(instance, order.needs, required)
        if reason is None:
            fit.append(instance)
        else:
            failures.append({"arn": instance.arn, "reason": reason})
    return fit, failures


def _active(cluster: EcsCluster, expressions: list[str]) -> list[ContainerInstance]:
    """The candidates: the ACTIVE instances, or for a pinned launch only the one it names."""
    pins = [pin for expression in expressions if (pin := pinned_to(expression))]
    among = cluster.by_ec2_id.get(pins[0], []) if pins else cluster.instances.values()
    return [each for each in among if each.status == "ACTIVE"]


def _tags(request: JSON, definition: TaskDefinition) -> list[JSON]:
    """The request's own win over those propagated from the definition."""
    own = checked(request.get("tags"))
    if request.get("propagateTags") != "TASK_DEFINITION":
        return own
    keys = {tag["key"] for tag in own}
    return checked([*own, *(tag for tag in definition.tags if tag["key"] not in keys)])
