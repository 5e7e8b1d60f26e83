"""The runs of one tick in which none has a cap on money: each can pay for everything that it asks for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from argosy.market.order import Shortfall
from argosy.model.actions import CapRun, Claim, HaltRun
from argosy.model.moment import Moment
from argosy.scheduler.buying.orders import MarketView
from argosy.scheduler.buying.whole_limits import out_of_reach
from argosy.scheduler.placing.places import Places
from argosy.scheduler.placing.run_places import RunPlaces
from argosy.scheduler.turns.asks import Bound


@dataclass(slots=True)
class UncappedRuns:
    """The questions of a tick's phases about money. `budget.CappedRuns` answers where a run has a cap."""

    moment: Moment
    ended: Collection[str] = ()  # ids of runs that stop, or give up tasks, in this tick
    sentences: dict[str, str] = field(default_factory=dict)  # by run id, why its tasks wait for money; "" = it ends
    unaffordable: set[str] = field(default_factory=set)  # ids of runs that no price or limit admits now

    def at_most(self, market: MarketView, unpaid: Mapping[str, int] | None = None) -> dict[str, Bound]:
        """By run id, what it may ask for, where that is limited: nothing for a run that ends. unpaid: what `unpaid`
        found."""
        return dict.fromkeys(self.ended, Bound(0))

    def allowed(self, places: Places) -> Places:
        """Without the launches that their runs cannot afford."""
        return places

    def unpaid(self, places: Places) -> dict[str, int]:
        """By run id, how many of its launches a run within the cap of a queue can pay for, if it could not pay for all
        of them."""
        return {}

    def exhausted(self, runs: Iterable[tuple[RunPlaces, Shortfall]], places: Places) -> list[CapRun | HaltRun]:
        """The ends of runs that can pay for nothing more. The reasons of others that never fit go to `sentences`."""
        short = [its for its, shortfall in runs if shortfall.tasks and its.run.id not in self.ended]
        found = out_of_reach(self.moment, short) if short else []
        self.sentences |= {each.run_id: each.sentence for each in found}
        self.unaffordable |= {each.run_id for each in found if each.is_idle}
        return [each.end for each in found if each.end is not None]

    def claims(self, places: Places) -> Iterator[Claim]:
        """Unused instances, each for the first run that now counts on it and can pay for it. If only one run has
        places, it gets them in any case."""
        state = self.moment.state
        unused = (
            each for each in state.instances.values() if not (each.bought_for or each.work.keys() - state.daemons)
        )
        busy = state.working_instances()
        free = {each.id for each in unused if each.alive and each.owned and each.id.encode() not in busy}
        for its in places.runs:
            is_alone = len(places.runs) == 1
            found = [name for name in sorted(free & its.instances) if is_alone or self.can_start(its.run.id, name)]
            if found:
                yield Claim(its.run.id, tuple(found))
                free -= {*found}

    def can_start(self, run_id: str, instance_id: str) -> bool:
        """Whether the run pays for the start of the instance. The money is committed."""
        return True

    def can_lose(self, run_id: str, usd: float) -> bool:
        """Whether the run can pay for others' work that is lost for it."""
        return True

    def lose(self, run_id: str, usd: float) -> None:
        """Commit that money."""
