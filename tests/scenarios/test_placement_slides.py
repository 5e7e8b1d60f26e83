"""Do the placement cases of the public ECS slides come out as their pictures show?

The cluster of the pictures, as numbers: three zones with t2.small, t2.medium and g2.2xlarge instances.
"""

from __future__ import annotations

from collections import Counter

from argosy.placement.demand import Batch
from argosy.placement.place import place
from argosy.placement.supply import InstanceRow, Supply

SIZES = {"t2.small": (1024, 2048, 0), "t2.medium": (2048, 4096, 0), "g2.2xlarge": (8192, 15360, 1)}
FLEET = [
    InstanceRow(
        f"i-{zone}-{kind}",
        *SIZES[kind] * 2,
        attributes={"ecs.instance-type": kind, "ecs.availability-zone": f"us-east-1{zone}"},
    )
    for zone in "acd"
    for kind in SIZES
]


def picture(batch: Batch, by: str = "id") -> dict[str, int]:
    """Tasks by instance, or by an attribute."""
    plan, found = place([batch], Supply.of(FLEET)), Counter[str]()
    assert plan.placed == batch.count
    for row, count in zip(plan.row.tolist(), plan.count.tolist(), strict=True):
        found[FLEET[row].id if by == "id" else FLEET[row].attributes[by]] += count
    return dict(found)


def tasks(count: int, *constraints: str, strategy: tuple[str, ...] = (), gpus: int = 0, group: str = "g") -> Batch:
    return Batch(512, 512, gpus, count, group=group, constraints=constraints, strategy=strategy, keep_gpus_free=False)


def test_five_tasks_on_one_instance_type() -> None:
    found = picture(tasks(5, "attribute:ecs.instance-type == g2.2xlarge"), by="ecs.instance-type")
    assert found == {"g2.2xlarge": 5}


def test_tasks_on_a_family_of_types() -> None:
    found = picture(tasks(6, "attribute:ecs.instance-type matches t2.*"), by="ecs.instance-type")
    assert sum(found.values()) == 6
    assert set(found) <= {"t2.small", "t2.medium"}


def test_tasks_on_a_family_of_types_in_one_zone() -> None:
    expression = "attribute:ecs.instance-type =~ t2.* and attribute:ecs.availability-zone == us-east-1a"
    found = picture(tasks(6, expression, strategy=("binpack:memory",)))
    assert found == {"i-a-t2.small": 2, "i-a-t2.medium": 4}


def test_five_tasks_on_two_types_outside_one_zone() -> None:
    expression = (
        "(attribute:ecs.instance-type == t2.small or attribute:ecs.instance-type == t2.medium) "
        "and attribute:ecs.availability-zone != us-east-1d"
    )
    assert picture(tasks(5, expression, strategy=("spread:instanceId",))) == {
        "i-a-t2.small": 2,
        "i-a-t2.medium": 1,
        "i-c-t2.small": 1,
        "i-c-t2.medium": 1,
    }


def test_types_by_list_or_pattern_outside_one_zone() -> None:
    expression = (
        "(attribute:ecs.instance-type in [t2.small, t2.medium] or attribute:ecs.instance-type matches g2.*) "
        "and attribute:ecs.availability-zone != us-east-1d"
    )
    assert picture(tasks(6, expression, strategy=("spread:instanceId",)), by="ecs.availability-zone") == {
        "us-east-1a": 3,
        "us-east-1c": 3,
    }


def test_nine_tasks_spread_over_three_zones() -> None:
    chain = ("spread:attribute:ecs.availability-zone",)
    assert picture(tasks(9, strategy=chain), by="ecs.availability-zone") == {
        "us-east-1a": 3,
        "us-east-1c": 3,
        "us-east-1d": 3,
    }


def test_nine_tasks_spread_over_zones_then_packed_by_memory() -> None:
    """In each zone the smallest instance is filled (two tasks fit its cpu), then the next."""
    chain = ("spread:attribute:ecs.availability-zone", "binpack:memory")
    assert picture(tasks(9, strategy=chain)) == {
        f"i-{zone}-{kind}": count for zone in "acd" for kind, count in (("t2.small", 2), ("t2.medium", 1))
    }


def test_a_service_of_three_on_distinct_gpu_instances() -> None:
    batch = tasks(3, "attribute:ecs.instance-type matches g2.*", "distinctInstance", gpus=1, group="service:gpu")
    assert picture(batch) == {"i-a-g2.2xlarge": 1, "i-c-g2.2xlarge": 1, "i-d-g2.2xlarge": 1}


def test_a_fourth_finds_no_distinct_gpu_instance() -> None:
    batch = tasks(4, "attribute:ecs.instance-type matches g2.*", "distinctInstance", gpus=1)
    assert place([batch], Supply.of(FLEET)).unplaced.tolist() == [1]
