"""Changes of the reasons why runs wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from argosy.market.cover import alike
from argosy.market.limits import AT_ONCE
from argosy.model.actions import Remark
from argosy.model.moment import Moment
from argosy.model.run_terms import Dependency
from argosy.model.runs import Run
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.model.wording import date_and_time
from argosy.placement.demand import Batch
from argosy.scheduler.buying.orders import OrderedPlaces
from argosy.scheduler.buying.reasons import BACKS_OFF, why_all_back_off, why_nothing_is_bought
from argosy.scheduler.buying.refusals import waits_for_answer, why_refused
from argosy.scheduler.buying.uncapped_runs import UncappedRuns
from argosy.scheduler.upkeep.pending import why_all_wait, why_not_running

ORDERED = "waiting for ordered instances to join the cluster"
NOT_ORDERED = "no instance is ordered for it yet: a tick orders {} at most, and other runs came first"
TAKEN_DOWN = "nothing more is started or bought: the deployment is being taken down"
NAMED = 3  # runs named in one sentence


def why_held(state: State) -> Iterator[Remark]:
    """For runs that may not start yet, when the reason has changed. Failed preparation comes first."""
    for run in state.runs.values():
        if not run.held or run.halted or run.complete or Subject(Act.PREPARE, run.id) in state.setbacks:
            continue
        sentence = _sentence(state, run)
        if sentence != run.waiting:
            yield Remark(run.id, sentence, unaffordable=False)


def why_none_may_start(state: State, run: Run) -> str:
    """For a run whose pending tasks each wait for a task of another run; otherwise ""."""
    if not (run.unmet and run.tasks.must_meet):
        return ""
    pending = run.tasks["status"] == TaskStatus.PENDING.value
    if not pending.any() or (run.tasks["met"][pending] == run.tasks.must_meet).any():
        return ""
    awaited = [each for each in run.terms.depends_on if each.one_to_one and each.run_id in run.unmet]
    return f"each of its pending tasks waits for its own task of {_names(awaited)}{_standing_still(state, awaited)}"


def _sentence(state: State, run: Run) -> str:
    if run.not_before:
        return f"does not start before {date_and_time(run.not_before)}"
    awaited = [each for each in run.terms.depends_on if not each.one_to_one and each.run_id in run.unmet]
    what = "end" if all(each.on_end for each in awaited) else "succeed"
    return f"waits for {_names(awaited)} to {what}{_standing_still(state, awaited)}"


def _names(awaited: Sequence[Dependency]) -> str:
    shown = [each.run_id for each in awaited[:NAMED]]
    if more := len(awaited) - len(shown):
        shown.append(f"{more} more")
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]


def _standing_still(state: State, awaited: Sequence[Dependency]) -> str:
    """For runs that the controller has suspended."""
    still = [each for each in awaited if each.run_id in state.suspended]
    return f"; the controller fails to process {_names(still)} and retries" if still else ""


def last_remarks(state: State) -> list[Remark]:
    """The reason of open runs once the deployment is being taken down."""
    runs = [run for run in state.runs.values() if not (run.complete or run.halted or run.waiting == TAKEN_DOWN)]
    return [Remark(run.id, TAKEN_DOWN, unaffordable=False) for run in runs]


def remarks(moment: Moment, ordered: OrderedPlaces, money: UncappedRuns) -> list[Remark]:
    """Why a run's tasks wait, when that has changed."""
    found, short_of_money, full = [], money.sentences, why_all_wait(moment)
    known: dict[tuple[Batch, str], str] = {}  # many small runs may be alike
    sending = {launch.key.run_id for launch in ordered.places.launches}
    for its, shortfall in ordered.runs():
        run, limit = its.run, shortfall.reason
        is_refused = moment.state.setbacks and waits_for_answer(moment, run, run.id in sending)
        if run.complete or (is_refused and not run.waiting.startswith(BACKS_OFF)):
            continue  # its reason describes its closing, or what AWS refuses
        sentence = short_of_money.get(run.id, "")
        if run.id not in short_of_money and shortfall.tasks and limit != AT_ONCE:
            key = alike(its.left_over), limit
            if key not in known:
                known[key] = why_nothing_is_bought(moment, its.left_over, limit)
            sentence = known[key]
        elif run.id not in short_of_money and (its.left_over.count or its.coming):
            is_ordered = its.coming or shortfall.tasks < its.left_over.count
            sentence = ORDERED if is_ordered else NOT_ORDERED.format(moment.policy.growth_per_tick)
            if moment.state.setbacks:
                sentence = why_refused(moment, its.left_over, coming=its.coming > 0) or sentence
        elif run.id not in short_of_money:
            sentence = why_all_back_off(run, moment.now) or why_none_may_start(moment.state, run)
            if not sentence and run.tasks.counts()[TaskStatus.STARTING]:
                sentence = full or why_not_running(moment, run)
        unaffordable = run.id in money.unaffordable
        if sentence != run.waiting or unaffordable != bool(run.unaffordable_since):
            found.append(Remark(run.id, sentence, unaffordable))
    return found
