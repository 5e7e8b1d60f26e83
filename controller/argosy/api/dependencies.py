"""May a run wait for these runs, and where are their results?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from argosy.api import reading
from argosy.api.admission import Admission
from argosy.api.means import Means
from argosy.model.dependencies import Dependency
from argosy.model.run_record import RunRecord
from argosy.model.runs import RunStatus
from argosy.spec.faults import Fault, SpecError, shown
from argosy.spec.outputs import name_of
from argosy.spec.overrides import length_faults
from argosy.spec.templates import fill_outputs


def with_dependencies(means: Means, admission: Admission) -> Admission:
    """The run as it is stored: with the places of the results that it names. Raises SpecError with every fault.

    What is asked of the other runs is asked again by the controller, for they go on meanwhile."""
    wanted = [Dependency.of(each) for each in admission.form.get("dependsOn", ())]
    if not wanted:
        return admission
    records = {each.run_id: reading.run(means.store, each.run_id) for each in wanted}
    faults = [
        fault
        for number, each in enumerate(wanted)
        for fault in _faults(f"dependsOn[{number}]", each, records[each.run_id], admission.task_count)
    ]
    if faults:
        raise SpecError(faults)
    outputs = {name_of(run_id): record.output for run_id, record in records.items() if record is not None}
    form = fill_outputs(admission.form, outputs)
    if faults := list(length_faults(form)):
        raise SpecError(faults)
    return replace(admission, form=form)


def _faults(path: str, dependency: Dependency, record: RunRecord | None, tasks: int) -> Iterator[Fault]:
    if record is None:
        yield Fault(f"{path}.run", f"there is no run {shown(dependency.run_id)}")
        return
    if record.healthy_s is not None:
        yield Fault(f"{path}.run", f"{record.id} is of the service {record.name}, which never ends")
    if dependency.one_to_one and record.task_count != tasks:
        sizes = f"{record.id} has {record.task_count:,} tasks and this run {tasks:,}"
        yield Fault(f"{path}.type", f"N_TO_N needs as many tasks in both runs: {sizes}")
    failed = record.has_ended and record.status is not RunStatus.SUCCEEDED
    if failed and not (dependency.on_end or dependency.one_to_one):
        step = f"`argosy retry {record.id}` tries it again, and on: end would wait for any end"
        yield Fault(f"{path}.run", f"{record.id} has ended {record.status.value}: {step}")
