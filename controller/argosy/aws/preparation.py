"""Preparation of a run: a task definition in each cell, and a results folder with its spec."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from argosy.aws.cell import TIME_WAS_UP, AwsDeployment, Cell
from argosy.aws.ecs_requests import (
    STAGE_TAG,
    UnusableDefinition,
    architecture_of_definition,
    definition_content,
    needs_of_definition,
    ports_of_definition,
    takes_exec,
    usable_container,
)
from argosy.aws.errors import AWS_ERRORS, FailureKind, classify
from argosy.aws.items import S3ItemsReader, passes
from argosy.aws.markers import remove_former_failure
from argosy.layout import items_uri, overrides_uri, spec_uri, split_s3
from argosy.model.actions import DeregisterDefinition
from argosy.model.arns import cell_of, family_of
from argosy.model.attempts import AttemptKey
from argosy.model.events import DefinitionDeregistered, Event, NotCarriedOut, RunNotPrepared, RunPrepared
from argosy.model.resources import Resources
from argosy.model.run_terms import Port
from argosy.model.runs import Run
from argosy.model.setbacks import Act, Subject
from argosy.ports import ItemsUnreadable
from argosy.spec.overrides import length_faults, shortened
from argosy.spec.templates import item_faults


class EcsDefinitions:
    """`ports.DefinitionReader`. ecs: gives the boto3 client, which is made only when a spec names a definition."""

    def __init__(self, ecs: Callable[[], Any]) -> None:
        self._ecs = ecs

    def describe(self, name: str) -> dict[str, Any] | None:
        """Raises AWS_ERRORS other than "there is none of this name"."""
        return described(self._ecs(), name)


def described(ecs: Any, name: str) -> dict[str, Any] | None:
    """The revision, or a family's newest active one; None if there is none. Raises AWS_ERRORS."""
    try:
        return dict(ecs.describe_task_definition(taskDefinition=name)["taskDefinition"])
    except AWS_ERRORS as error:
        if classify(error).kind is FailureKind.NOT_FOUND:
            return None
        raise


HASH_DIGITS = 12  # of the content's hash, in the name of a definition of ours
NEEDED_AGAIN = "a run that is being prepared needs this definition"


class NoRateLeft(Exception):
    """The rate of registrations leaves no room before the deadline."""


class RunPreparation:
    """Prepares runs. Equal task definitions are registered once in each cell, and their ARNs are remembered."""

    def __init__(self, deployment: AwsDeployment, cells: Mapping[str, Cell], s3: Any, items: S3ItemsReader) -> None:
        self._deployment, self._cells, self._s3, self.items = deployment, cells, s3, items
        self._arns: dict[tuple[str, str], str] = {}  # (cell, family or run id) -> ARN of the revision
        self._gone: set[str] = set()  # ARNs of revisions that were found deregistered

    def prepare(self, run: Run, deadline: float) -> Event:
        """RunPrepared, or RunNotPrepared with a sentence. It is safe to do this twice."""
        try:
            first, *others = self._cells.values()
            prepared = self._resolve(run, first, deadline)
            everywhere = [prepared, *(self._resolve(run, cell, deadline) for cell in others)]
            self._fill_folder(run)
            return replace(prepared, takes_exec=all(each.takes_exec for each in everywhere))
        except AWS_ERRORS as error:
            fault = classify(error)
            final = fault.final or fault.kind is FailureKind.NOT_FOUND
            return RunNotPrepared(run.id, f"the run could not be prepared: {fault.text}", final, fault.passing)
        except (UnusableDefinition, ItemsUnreadable) as fault:
            final = not (isinstance(fault, ItemsUnreadable) and passes(fault))
            return RunNotPrepared(run.id, str(fault), final)
        except NoRateLeft:
            return RunNotPrepared(run.id, "waits for its turn to register a task definition", final=False, queued=True)

    def arn_in(self, run: Run, cell: Cell, deadline: float) -> str:
        """The ARN of the run's definition in a cell: the prepared revision, or an equal one in another region or in
        place of one that is gone.

        Raises AWS_ERRORS, UnusableDefinition, NoRateLeft.
        """
        if cell_of(run.task_definition) == cell.name and run.task_definition not in self._gone:
            return run.task_definition
        if (cell.name, run.id) not in self._arns:
            self._arns[cell.name, run.id] = self._resolve(run, cell, deadline).task_definition
        return self._arns[cell.name, run.id]

    def shortened(self, request: dict[str, Any], run: Run, key: AttemptKey) -> dict[str, Any]:
        """The request for a task with a runner. What is too long for ECS is written to an object first, the same each
        time. Raises AWS_ERRORS."""
        address = overrides_uri(run.output, key.index, key.attempt)
        short, document = shortened(request["overrides"]["containerOverrides"][0], address)
        if document is None:
            return request
        bucket, name = split_s3(address)
        body = json.dumps(document, sort_keys=True).encode()
        self._s3.put_object(Bucket=bucket, Key=name, Body=body, ContentType="application/json")
        return {**request, "overrides": {"containerOverrides": [short]}}

    def replaces(self, run: Run, arn: str) -> bool:
        """ECS says that this revision of the run is deregistered. Returns whether `arn_in` gives another one from now
        on; a user's own definition has no other. Safe to call from several threads."""
        if run.terms.task_definition:
            return False
        self._gone.add(arn)
        self._forget(lambda known: known == arn)
        return True

    def deregister(self, action: DeregisterDefinition, waiting: Iterable[Run], deadline: float) -> Event:
        """Every active revision in every cell; none counts the same. A refusal in one cell does not delay other cells.

        waiting: runs that are about to get a definition; theirs stay.
        """
        if not re.fullmatch(f"{re.escape(self._deployment.prefix)}-[0-9a-f]{{{HASH_DIGITS}}}", action.family):
            return DefinitionDeregistered(action.family)
        if any(self._family(run) == action.family for run in waiting if not run.terms.task_definition):
            return NotCarriedOut(NEEDED_AGAIN, about=Subject(Act.DEREGISTER, action.family), passing=True)
        self._forget(lambda known: family_of(known) == action.family)
        faults = [self._deregistered(cell, action.family, deadline) for cell in self._cells.values()]
        return next(filter(None, faults), DefinitionDeregistered(action.family))

    def _deregistered(self, cell: Cell, family: str, deadline: float) -> NotCarriedOut | None:
        """The obstacle, if any."""
        about = Subject(Act.DEREGISTER, family)
        try:
            while (arn := self._active(cell, family)) is not None:
                self._deregister(cell, arn, deadline)
        except AWS_ERRORS as error:
            fault = classify(error)
            reason = f"the task definition {family} could not be deregistered in {cell.name}: {fault.text}"
            return NotCarriedOut(reason, about=about, passing=fault.passing)
        except NoRateLeft:
            return NotCarriedOut(TIME_WAS_UP, about=about, passing=True)
        return None

    def _deregister(self, cell: Cell, arn: str, deadline: float) -> None:
        """Raises AWS_ERRORS, NoRateLeft."""
        if not cell.rates.definitions.take_at_once(deadline):
            raise NoRateLeft
        try:
            cell.ecs.deregister_task_definition(taskDefinition=arn)
        except AWS_ERRORS as error:
            if classify(error).kind is FailureKind.THROTTLED:
                cell.rates.definitions.throttled()
            raise
        self._gone.add(arn)

    def _forget(self, is_meant: Callable[[str], bool]) -> None:
        for key, arn in list(self._arns.items()):
            if is_meant(arn):
                self._arns.pop(key, None)

    def _resolve(self, run: Run, cell: Cell, deadline: float) -> RunPrepared:
        if run.terms.task_definition:
            return self._users_own(run, cell)
        arn = self._registered(run, cell, deadline)
        prepared = _prepared(run.id, arn, run.container, run.needs, run.host_ports)
        return replace(prepared, takes_exec=self._deployment.allow_exec)

    def _users_own(self, run: Run, cell: Cell) -> RunPrepared:
        definition = cell.ecs.describe_task_definition(taskDefinition=run.terms.task_definition)["taskDefinition"]
        container, needs = usable_container(definition), needs_of_definition(definition)
        ports = ports_of_definition(definition)
        prepared = _prepared(run.id, str(definition["taskDefinitionArn"]), container, needs, ports)
        return replace(
            prepared,
            architecture=architecture_of_definition(definition),
            takes_exec=self._deployment.allow_exec and takes_exec(definition, container),
        )

    def _registered(self, run: Run, cell: Cell, deadline: float) -> str:
        family = self._family(run)
        known = self._arns.get((cell.name, family))
        if known is None:
            content = definition_content(run, cell.name, self._deployment)
            known = self._active(cell, family) or self._register(cell, family, content, deadline)
            self._arns[cell.name, family] = known
        return known

    def _family(self, run: Run) -> str:
        """The same in every cell, whose contents differ in the Region of the log only."""
        content = definition_content(run, next(iter(self._cells)), self._deployment)
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return f"{self._deployment.prefix}-{hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]}"

    def _active(self, cell: Cell, family: str) -> str | None:
        """The ARN of the family's latest active revision, or None. Raises AWS_ERRORS.

        For up to 10 minutes ECS may count a deregistered revision as active:
        https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_DeregisterTaskDefinition.html
        """
        definition = described(cell.ecs, family)
        if definition is None or definition.get("status", "ACTIVE") != "ACTIVE":
            return None
        arn = str(definition["taskDefinitionArn"])
        return None if arn in self._gone else arn

    def _register(self, cell: Cell, family: str, content: Mapping[str, Any], deadline: float) -> str:
        if not cell.rates.definitions.take(deadline, urgent=True):
            raise NoRateLeft
        tags = [{"key": STAGE_TAG, "value": self._deployment.stage}]
        answer = cell.ecs.register_task_definition(family=family, tags=tags, **content)
        return str(answer["taskDefinition"]["taskDefinitionArn"])

    def _fill_folder(self, run: Run) -> None:
        """Write spec.json and the pinned copy of the items. Raises AWS_ERRORS, ItemsUnreadable.

        A reopened run loses its failure marker and keeps its items.
        """
        if run.terms.items_from and not (run.retries and self._has_pinned(run)):
            self._pin_items(run)
        if run.retries:
            remove_former_failure(self._s3, run)
        bucket, key = split_s3(spec_uri(run.output))
        body = json.dumps(run.spec, indent=2, ensure_ascii=False).encode()
        self._s3.put_object(Bucket=bucket, Key=key, Body=body, ContentType="application/json")

    def _has_pinned(self, run: Run) -> bool:
        """Raises ItemsUnreadable when AWS does not answer."""
        try:
            self.items.fetch(items_uri(run.output))
        except ItemsUnreadable as error:
            if passes(error):
                raise
            return False
        return True

    def _pin_items(self, run: Run) -> None:
        source = run.terms.items_from
        items = self.items.read_items(source)
        if len(items) != run.piece_count:
            raise ItemsUnreadable(f"{source} had {run.piece_count} items at submission and has {len(items)} now")
        for fault in (*item_faults(run.spec, items, source), *length_faults(run.spec, items)):
            raise ItemsUnreadable(f"{fault.path} {fault.message}")
        bucket, key = split_s3(items_uri(run.output))
        lines = "".join(json.dumps(item, separators=(",", ":"), ensure_ascii=False) + "\n" for item in items)
        self._s3.put_object(Bucket=bucket, Key=key, Body=lines.encode(), ContentType="application/jsonl")


def _prepared(run_id: str, arn: str, container: str, needs: Resources, ports: tuple[Port, ...]) -> RunPrepared:
    return RunPrepared(run_id, arn, container, needs.cpu_units, needs.memory_mib, needs.gpus, ports)
