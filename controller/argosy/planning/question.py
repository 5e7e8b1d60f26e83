"""The question of a plan: a run, the size and length of its tasks, the cluster and the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from argosy.lifecycle.apply import apply
from argosy.model import events
from argosy.model.columns import ChangedIds
from argosy.model.inbox import SubmitRequest
from argosy.model.moment import Moment
from argosy.model.pools import not_seen_yet
from argosy.model.resources import Resources
from argosy.model.run_terms import RunTerms
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.planning.forecast import Forecast, Seconds, forecast, pull_seconds

PLANNED = "plan-000000-000000-plan"  # the id of the run that is never stored


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """One question of PlanRun. The moment's state is never changed."""

    moment: Moment
    terms: RunTerms
    task_count: int
    needs: Resources  # of one task
    seconds: Seconds  # of one task
    fleets: Sequence[tuple[str, str, str]]  # (cell, instance type, zone) of all that are deployed, seen yet or not
    home: str  # the home cell
    warnings: Sequence[str] = ()  # what the run's submitter would be warned of
    owner: str = ""  # proven; "" = unproven
    image_bytes: int = 0  # of the run's image, compressed; 0 = unknown
    pulled_s: float | None = None  # how long earlier runs pulled it on average; None = none did

    @property
    def pull_s(self) -> float:
        """How long a new instance pulls the image; 0 = not known."""
        return pull_seconds(self.image_bytes) if self.pulled_s is None else self.pulled_s

    def on_copy(self, terms: RunTerms, needs: Resources | None = None) -> tuple[Moment, Run]:
        """A moment with a copy of the state in which the run is prepared and waits for places. needs: None = the
        question's own."""
        moment, run = with_run(self.moment, terms, needs or self.needs, self.task_count)
        run.proven_owner = self.owner
        moment.state.pools.update(not_seen_yet(moment.state.pools, self.fleets))
        return moment, run

    def forecast(self, terms: RunTerms, needs: Resources | None = None, offers_at: float | None = None) -> Forecast:
        """For the run with other terms or other needs than the question's. offers_at: as in `forecast.forecast`."""
        moment, run = self.on_copy(terms, needs)
        return forecast(moment, run, self.seconds, offers_at, self.pull_s)


def with_run(moment: Moment, terms: RunTerms, needs: Resources, task_count: int = 1) -> tuple[Moment, Run]:
    """A moment with a copy of the state in which a run of these terms is prepared and waits for places."""
    copy = _copy(moment.state)
    request = SubmitRequest(PLANNED, moment.now, {}, terms, task_count, "", "s3://none/", False)
    apply(copy, events.RunSubmitted(request), moment.now, moment.policy)
    run = copy.runs[PLANNED]
    run.task_definition, run.needs = "planned", needs
    return replace(moment, state=copy), run


def _copy(state: State) -> State:
    """Copies only what planning changes: the dictionaries, and the pools."""
    return replace(
        state,
        runs=dict(state.runs),
        pools={key: replace(pool) for key, pool in state.pools.items()},
        setbacks={},
        new_runs=set(),
        changed_runs=set(),
        changed_instances=ChangedIds(),
    )
