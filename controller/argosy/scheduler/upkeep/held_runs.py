"""What is a user told of a run that waits for a time, or for other runs?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from argosy.model.actions import Remark
from argosy.model.dependencies import Dependency
from argosy.model.runs import Run
from argosy.model.setbacks import Subject, What
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.model.wording import date_and_time

NAMED = 3  # runs in one sentence


def why_held(state: State) -> Iterator[Remark]:
    """Of runs of which nothing may start yet, where that has changed. What keeps a run from being prepared comes
    first: somebody may have to mend it."""
    for run in state.runs.values():
        if not run.held or run.halted or Subject(What.PREPARE, run.id) in state.setbacks:
            continue
        sentence = _sentence(state, run)
        if sentence != run.waiting:
            yield Remark(run.id, sentence, unaffordable=False)


def why_none_may_start(state: State, run: Run) -> str:
    """Of a run whose pending tasks all wait for one of another run each; "" for any other."""
    if not (run.unmet and run.tasks.must_meet):
        return ""
    pending = run.tasks["status"] == TaskStatus.PENDING
    if not pending.any() or (run.tasks["met"][pending] == run.tasks.must_meet).any():
        return ""
    awaited = [each for each in run.terms.depends_on if each.one_to_one and each.run_id in run.unmet]
    return f"its pending tasks wait, each for its own one of {_names(awaited)}{_standing_still(state, awaited)}"


def _sentence(state: State, run: Run) -> str:
    if run.not_before:
        return f"starts not before {date_and_time(run.not_before)}"
    awaited = [each for each in run.terms.depends_on if not each.one_to_one and each.run_id in run.unmet]
    what = "end" if all(each.on_end for each in awaited) else "succeed"
    return f"waits for {_names(awaited)} to {what}{_standing_still(state, awaited)}"


def _names(awaited: Sequence[Dependency]) -> str:
    shown = [each.run_id for each in awaited[:NAMED]]
    if more := len(awaited) - len(shown):
        shown.append(f"{more} more")
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]


def _standing_still(state: State, awaited: Sequence[Dependency]) -> str:
    """Of those that the controller does not work on."""
    still = [each for each in awaited if each.run_id in state.suspended]
    return f"; the controller fails at {_names(still)} and tries it again" if still else ""
