"""How often the account's own spot instances of a pool were interrupted lately: EC2 Capacity Manager, once a day.

Its figures cover all spot instances of the account, those of other programs too, if the owner has enabled Capacity
Manager. They take the place of the Spot Instance Advisor's band for a pool of which the deployment has no count of its
own yet (`lifecycle/pools.py`).
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import Any, NamedTuple

from argosy.aws.cell import Cell, CheckTime, pages
from argosy.aws.kept_answers import KeptAnswers
from argosy.aws.placement_scores import PlacementScores
from argosy.model.pools import SpotRecord

FRESH_S = 86_400.0
LOOKED_BACK_S = 14 * 86_400.0
INTERRUPTIONS, HOURS = "spot-total-interruptions-inst", "spot-total-usage-hrs-inst"

PoolRecords = dict[tuple[str, str], SpotRecord]  # by type and zone


class AccountRates:
    """The account's record of each pool; the last known one when EC2 does not answer."""

    def __init__(self) -> None:
        self._kept = KeptAnswers[PoolRecords]("interruption rates", FRESH_S, FRESH_S)

    def of(self, cell: Cell, now: float, check_time: CheckTime) -> PoolRecords:
        """Raises what `check_time` raises. Without the right, or where Capacity Manager is off, there is none."""
        return self._kept.of(cell, now, lambda: _records(cell, now, check_time), {})


def _records(cell: Cell, now: float, check_time: CheckTime) -> PoolRecords:
    def call(**asked: Any) -> Any:
        check_time()
        return cell.ec2.get_capacity_manager_metric_data(**asked)

    check_time()
    zones = {each["ZoneId"]: each["ZoneName"] for each in cell.ec2.describe_availability_zones()["AvailabilityZones"]}
    sums: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    request = {
        "MetricNames": [INTERRUPTIONS, HOURS],
        "StartTime": datetime.fromtimestamp(now - LOOKED_BACK_S, UTC),
        "EndTime": datetime.fromtimestamp(now, UTC),
        "Period": int(FRESH_S),
        "GroupBy": ["instance-type", "availability-zone-id"],
        "FilterBy": [
            {"DimensionCondition": {"Dimension": "resource-region", "Comparison": "equals", "Values": [cell.name]}}
        ],
    }
    for page in pages(call, **request):
        for result in page["MetricDataResults"]:
            pool = result["Dimension"]
            if zone := zones.get(pool.get("AvailabilityZoneId", "")):
                for value in result["MetricValues"]:
                    sums[pool.get("InstanceType", ""), zone][value["Metric"]] += value["Value"]
    return {key: SpotRecord(found[INTERRUPTIONS], found[HOURS]) for key, found in sums.items() if found[HOURS] > 0}


class SpotAdvice(NamedTuple):
    """What AWS is asked about pools, besides spot prices; None = it is not asked. prices: OnDemandPrices."""

    scores: PlacementScores | None = None
    rates: AccountRates | None = None
    prices: Any = None


NO_ADVICE = SpotAdvice()
