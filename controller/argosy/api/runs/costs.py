"""The cost of a run as users see it, while it is open and afterwards.

A run's record holds the charges to it. An instance is charged when it ends, or when the run does. Until then its cost
so far is computed from the cluster, with the same arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from argosy.api import reading
from argosy.api.admission.specs import OWN_NAMESPACE
from argosy.api.views import JSON
from argosy.catalogue.lookup import image_gb, log_gb_per_attempt, logs_usd_per_gb, transfer_usd_per_gb
from argosy.model.costs import Costs, summed
from argosy.model.money.ledger import not_charged
from argosy.model.money.reserve import Reserves, to_come_usd
from argosy.model.policy import Policy
from argosy.model.run_record import RunRecord
from argosy.ports import Store


@dataclass(frozen=True, slots=True)
class LiveCosts:
    """The costs until now of the live instances, by run."""

    pending: Mapping[int, Mapping[str, Costs]]
    reserves: Reserves
    now: float
    policy: Policy

    @classmethod
    def of(cls, store: Store, now: float, policy: Policy) -> LiveCosts:
        state, run_ids = reading.cluster(store)
        needs = reading.needs_by_number(store, run_ids)
        return cls(not_charged(state, needs, now), Reserves(state, needs, now), now, policy)

    def brought_up_to_now(self, record: RunRecord) -> RunRecord:
        """The record of an open run, with the costs that are not charged yet."""
        pending = self.pending.get(record.number, {})
        more = summed(pending.values())
        expected_s = record.expected_s or self.policy.attempt_s
        _, held_per_hour, reserved_usd = self.reserves.held(record.number, expected_s).sums()
        idle = self.reserves.idle.get(record.number, ())
        to_come = sum(to_come_usd(each, self.policy.boot_s, expected_s, self.now) for each in idle)
        return replace(
            record,
            cost_usd=record.cost_usd + more.total,
            on_demand_cost_usd=record.on_demand_cost_usd + more.on_demand,
            costs={
                market: summed(ledger[market] for ledger in (record.costs, pending) if market in ledger)
                for market in [*record.costs, *(market for market in pending if market not in record.costs)]
            },
            reserved_usd=to_come + reserved_usd,
            usd_per_hour=sum(each.price_usd_per_hour for each in idle) + held_per_hour,
        )


def is_spending(record: RunRecord) -> bool:
    """Whether instances may be at work for the run: it is folded in and not over."""
    return bool(record.number) and not record.has_ended


def up_to_now(store: Store, records: Iterable[RunRecord], now: float, policy: Policy) -> list[RunRecord]:
    """The records with their costs until now. The cluster is read only if a run is open."""
    listed = list(records)
    if not any(map(is_spending, listed)):
        return listed
    books = LiveCosts.of(store, now, policy)
    return [books.brought_up_to_now(record) if is_spending(record) else record for record in listed]


def of_run(store: Store, record: RunRecord, now: float, policy: Policy) -> RunRecord:
    """The record with the run's cost until now. Charges between two reads are counted once, because the record is read
    again after the cluster."""
    for _ in range(3 if is_spending(record) else 0):
        [shown] = up_to_now(store, [record], now, policy)
        again = reading.run(store, record.id)
        if again is None or again.cost_usd == record.cost_usd:
            return shown
        record = again
    return record


def start_up_view(record: RunRecord) -> JSON:
    """What starting has taken, as a mean, under the names of PlanRun's `startUp`; None = none was seen. usd: of boots,
    and of its attempts' parts of instances while these pulled its image."""
    seen = record.start_ups
    return {
        "bootSeconds": _mean(seen.boot_s, seen.boots),
        "pullSeconds": _mean(seen.pull_s, seen.pulls),
        "startSeconds": _mean(seen.start_s, seen.starts),
        "boots": seen.boots,
        "pulls": seen.pulls,
        "starts": seen.starts,
        "usd": summed(record.costs.values()).boot + seen.pull_usd,
    }


def _mean(total: float, count: int) -> float | None:
    return total / count if count else None


def estimates(record: RunRecord, home: str) -> JSON:
    """USD beyond the run's ledger. home: the Region of the deployment's registry; "" if traffic is not priced."""
    shares = _shares(record)
    logs = sum(share * logs_usd_per_gb(cell) for cell, share in shares.items())
    traffic = sum(share * transfer_usd_per_gb(home, cell) for cell, share in shares.items()) if home else 0.0
    pulled_gb = record.instance_count * image_gb(record.needs.gpus > 0) if _comes_from(record.image, home) else 0.0
    return {
        "logsUsd": record.attempts * log_gb_per_attempt() * logs,
        "imageTransferUsd": pulled_gb * traffic,
        "assumed": {"logGbPerAttempt": log_gb_per_attempt(), "imageGb": image_gb(record.needs.gpus > 0)},
    }


def _shares(record: RunRecord) -> dict[str, float]:
    """The run's instance time in each cell. Attempts and instances are assumed to be distributed like the time."""
    seconds: dict[str, float] = {}
    for market, costs in record.costs.items():
        cell, divider, _ = market.partition("/")
        if divider:
            seconds[cell] = seconds.get(cell, 0.0) + costs.instance_seconds
    total = sum(seconds.values())
    return {cell: each / total for cell, each in seconds.items()} if total else {}


def _comes_from(image: str | None, home: str) -> bool:
    """Whether the image is pulled from the registry of the home Region."""
    return bool(home and image) and (str(image).startswith(OWN_NAMESPACE) or f".dkr.ecr.{home}." in str(image))
