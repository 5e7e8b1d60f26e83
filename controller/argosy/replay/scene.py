"""What was the input of one tick's placement, and why was a task placed where it was?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from argosy.market.cover import less
from argosy.model.actions import Launch
from argosy.model.moment import Moment
from argosy.model.pools import as_registered
from argosy.model.setbacks import Act
from argosy.placement.candidates import mix_of
from argosy.placement.demand import Batch, Queue
from argosy.placement.explain import explain
from argosy.placement.fitness import GPU, Fitness, Mix
from argosy.placement.pass_state import PassState
from argosy.placement.ranking import Ranking, ranking
from argosy.placement.strategy import DEFAULT_STRATEGY, own_functions
from argosy.placement.supply import InstanceRow, Supply
from argosy.scheduler.placing.places import emptying
from argosy.scheduler.supply.present import typical_mix
from argosy.scheduler.supply.roster import Roster
from argosy.scheduler.supply.rows import Expectations
from argosy.scheduler.turns.asks import Ask, asks_of

SHOWN = 10  # instances of a ranking


@dataclass(frozen=True, slots=True)
class Scene:
    """The instances that could get work, and the demand, in queue order."""

    now: float
    rows: Sequence[InstanceRow]
    asks: Sequence[Ask]
    machines: Mapping[str, Mapping[str, Any]]  # by instance id: type, zone, purchase, USD per hour
    fitness: Mapping[str, Fitness]
    last_order: Mapping[str, Any] | None
    mix: Mix | None  # the typical tasks with GPUs

    @classmethod
    def of(cls, moment: Moment, fitness: Mapping[str, Fitness]) -> Scene:
        """Of a decision that is about to be made. It keeps nothing that the decision changes."""
        state, now = moment.state, moment.now
        moment = replace(moment, catalogue=as_registered(moment.catalogue, state.pools.values()))
        ready = [run for run in state.runs.values() if run.ready and state.may_try(Act.LAUNCH, run.id, now)]
        runs = [run for run in ready if all(name in fitness for name in own_functions(run.terms.strategy))]
        lineup = Roster().at(moment)
        here = Expectations.of(moment, runs).on(lineup.here, lambda name: state.instances[name].pool)
        expected = zip(here.rows, here.interruption_rate.tolist(), here.finish_at.tolist(), strict=True)
        rows = [replace(row, interruption_rate=rate, finish_at=end) for row, rate, end in expected]
        machines = {
            each.id: {
                "id": each.id, "type": each.instance_type, "zone": each.zone, "purchase": each.purchase.value,
                "usdPerHour": each.price_usd_per_hour,
            }
            for each in state.instances.values()
        }  # fmt: skip
        order = state.last_order
        order_of = order.to_json() if order.at else None
        mix = typical_mix(state, [run for run in runs if not run.is_daemon], lineup.supply)
        return cls(now, rows, asks_of(moment, runs), machines, fitness, order_of, mix)

    def reason_for(self, launch: Launch, launches: Sequence[Launch]) -> dict[str, Any] | None:
        """The reason for the decision, among all `launches` of the tick; None if its run requested nothing.

        The ranking is that of the run's turn: tasks placed for earlier runs in the same tick are subtracted, and tasks
        placed for this run are shown next to it.
        """
        number = self._ask_of(launch)
        if number is None:
            return None
        batch = emptying(replace(self.asks[number].batch, count=1))
        rows = self._left_for(number, launches)
        supply = replace(Supply.of(rows), mix=self.mix)
        state = PassState(supply)
        mix = self.mix or mix_of(Queue.of([ask.batch for ask in self.asks]))
        ranked = ranking(batch, state, mix, self.fitness)
        together = Counter(each.instance_id for each in launches if each.key.run_id == launch.key.run_id)
        lined_up = [rows[row] for row in ranked.rows.tolist()]
        shares = _room_for_shares(batch, state, ranked)
        places = [row.id for row in lined_up]
        answer = explain(batch, supply)
        return {
            "decidedAt": self.now,
            "attempt": launch.key.attempt,
            "instance": self.machines[launch.instance_id],
            "strategy": list(batch.strategy or DEFAULT_STRATEGY),
            "rank": places.index(launch.instance_id) + 1 if launch.instance_id in places else None,
            "fits": answer.fits,
            "instances": answer.instances,
            "refusals": answer.to_json()["reasons"],
            "placedTogether": together.total(),
            "ranked": [
                {**each, **({"gpuShares": shares[each["rank"] - 1]} if shares else {})}
                for each in self._shown(ranked, lined_up, together, launch.instance_id)
            ],
            "gpuShareMib": batch.gpu_share_mib,
            "lastOrder": self.last_order,
        }

    def _ask_of(self, launch: Launch) -> int | None:
        """The request that the launch serves: for a run with two, the one that has its task."""
        for number, ask in enumerate(self.asks):
            if ask.run.id == launch.key.run_id and (ask.among is None or ask.among[launch.key.index]):
                return number
        return None

    def _left_for(self, number: int, launches: Sequence[Launch]) -> list[InstanceRow]:
        """The instances without the places that earlier requests got in the same tick."""
        batches: dict[str, Batch] = {ask.run.id: ask.batch for ask in self.asks[:number]}
        taken = Counter((each.instance_id, each.key.run_id) for each in launches if each.key.run_id in batches)
        rows = {row.id: row for row in self.rows}
        for (instance_id, run_id), count in sorted(taken.items()):
            rows[instance_id] = less(rows[instance_id], batches[run_id], count)
        return list(rows.values())

    def _shown(
        self, ranked: Ranking, lined_up: Sequence[InstanceRow], together: Counter[str], chosen: str
    ) -> list[dict[str, Any]]:
        """The best ones, and the chosen one whatever its rank. lined_up: the rows that are ranked, in their order."""
        shown = []
        for rank, (free, figures) in enumerate(zip(lined_up, ranked.figures.tolist(), strict=True), 1):
            if rank > SHOWN and free.id != chosen:
                continue
            shown.append(
                {
                    "rank": rank,
                    **self.machines[free.id],
                    "free": {"cpuUnits": free.cpu_units, "memoryMib": free.memory_mib, "gpus": free.gpus},
                    "figures": dict(zip(ranked.steps, figures, strict=True)),
                    "placedTogether": together[free.id],
                }
            )
        return shown


def _room_for_shares(batch: Batch, state: PassState, ranked: Ranking) -> list[int]:
    """How many of its tasks share the GPUs of each instance of the ranking; nothing for tasks without a share."""
    if not batch.gpu_share_mib:
        return []
    found: list[int] = state.gpu_shares().room(ranked.rows, state.free[GPU], batch.gpu_share_mib).tolist()
    return found
