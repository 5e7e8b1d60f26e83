"""How does a spec become a question for the planner: its size, its seconds, and where it could be bought?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from argosy.api.admission import Admission
from argosy.api.caps import budget_warnings, hourly_faults, market_of
from argosy.api.means import Means
from argosy.model import documents
from argosy.model.resources import Resources
from argosy.model.run_record import RunRecord
from argosy.model.run_terms import needs_of
from argosy.planning.durations import seconds_of
from argosy.planning.plan import plan_run
from argosy.planning.question import PlanQuestion
from argosy.ports import Store
from argosy.spec.faults import Fault, SpecError

PAST_RUNS_READ = 200  # the newest; a page of the store


def answer(means: Means, admission: Admission) -> dict[str, Any]:
    """The reply of PlanRun. Raises SpecError when the size of a task is not known."""
    form = admission.form
    records = list(_past(means.store, form))
    market = market_of(means.whole_state(), means.fleets, means.now(), means.policy)
    about_money = [*(fault.text() for fault in hourly_faults(form, market)), *budget_warnings(form, market)]
    question = PlanQuestion(
        moment=market,
        form=form,
        task_count=admission.task_count,
        needs=_needs(form, records),
        seconds=seconds_of(form, records),
        fleets=means.fleets,
        home=means.cells[0],
        warnings=[*about_money, *admission.notes],
        owner=means.owner,
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
