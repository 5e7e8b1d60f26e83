"""How does a spec become a question for the planner: its size, its seconds, and where it could be bought?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from argosy.api.admission import Admission
from argosy.api.caps import budget_warnings, hourly_faults, market_of
from argosy.model import documents
from argosy.model.policy import Policy
from argosy.model.resources import Resources
from argosy.model.run_record import RunRecord
from argosy.model.run_terms import needs_of
from argosy.model.state import State
from argosy.planning.durations import seconds_of
from argosy.planning.plan import plan_run
from argosy.planning.question import PlanQuestion
from argosy.ports import Store
from argosy.spec.faults import Fault, SpecError

PAST_RUNS_READ = 200  # the newest; a page of the store


class Asked(Protocol):
    """What a plan needs of a deployment: the api has it."""

    @property
    def store(self) -> Store: ...
    @property
    def now(self) -> Callable[[], float]: ...
    @property
    def policy(self) -> Policy: ...
    @property
    def fleets(self) -> Sequence[tuple[str, str, str]]: ...
    @property
    def cells(self) -> Sequence[str]: ...
    def whole_state(self) -> State: ...


def answer(asked: Asked, admission: Admission) -> dict[str, Any]:
    """The reply of PlanRun. Raises SpecError when the size of a task is not known."""
    form = admission.form
    records = list(_past(asked.store, form))
    market = market_of(asked.whole_state(), asked.fleets, asked.now(), asked.policy)
    about_money = [*(fault.text() for fault in hourly_faults(form, market)), *budget_warnings(form, market)]
    question = PlanQuestion(
        moment=market,
        form=form,
        task_count=admission.task_count,
        needs=_needs(form, records),
        seconds=seconds_of(form, records),
        fleets=asked.fleets,
        home=asked.cells[0],
        warnings=[*about_money, *admission.notes],
    )
    return plan_run(question)


def _past(store: Store, form: Mapping[str, Any]) -> Iterator[RunRecord]:
    """Records of earlier runs of the same name, newest first."""
    page, _ = store.page(documents.RUNS, PAST_RUNS_READ)
    return (record for _, body in page if (record := documents.record_from(body)).name == form["name"])


def _needs(form: Mapping[str, Any], records: Sequence[RunRecord]) -> Resources:
    """What a task takes: from the spec, or, for a registered task definition, from an earlier run of the same name."""
    if "taskDefinition" not in form:
        return needs_of(form)
    family = form["taskDefinition"].partition(":")[0]
    for record in records:
        if f":task-definition/{family}:" in record.task_definition:
            return record.needs
    sentence = "what its tasks take is known once a run of this name was submitted: until then it cannot be planned"
    raise SpecError([Fault("taskDefinition", sentence)])
