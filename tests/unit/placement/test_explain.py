"""Does the explanation name the true reason, with true numbers, and the nearest change that would help?"""

from __future__ import annotations

import json

import pytest

from argosy.placement.demand import Batch
from argosy.placement.explain import explain
from argosy.placement.gpu_shares import GpuUse
from argosy.placement.place import place
from argosy.placement.supply import InstanceRow, Supply

TYPE = "ecs.instance-type"


def row(
    name: str, free: tuple[int, int, int], total: tuple[int, int, int], kind: str = "c5.large", **more: object
) -> InstanceRow:
    return InstanceRow(name, *free, *total, **{"attributes": {TYPE: kind}, **more})  # type: ignore[arg-type]


BUSY = Supply.of(
    [
        row("i-a", (512, 900, 1), (2048, 4096, 2)),
        row("i-b", (1024, 700, 0), (2048, 4096, 0)),
        row("i-c", (2048, 4096, 2), (2048, 4096, 2), status="DRAINING"),
    ]
)


def test_short_gpus_are_counted_with_the_best_there_is() -> None:
    busy = Supply.of([row("i-a", (2048, 4096, 1), (2048, 4096, 4)), row("i-b", (2048, 4096, 0), (2048, 4096, 4))])
    answer = explain(Batch(1024, 512, 2, 1), busy)
    assert not answer.never
    (reason,) = answer.reasons
    assert (reason.kind, reason.refused, reason.only, reason.asked, reason.best, reason.best_instance) == (
        "gpu",
        2,
        2,
        2,
        1,
        "i-a",
    )
    assert answer.sentence() == (
        "waiting: needs 2 GPUs: 2 instances have fewer, most free is 1 on i-a; "
        "it would fit if it asked for 1 GPU instead of 2"
    )


def test_more_than_any_instance_has_can_never_run() -> None:
    answer = explain(Batch(1024, 1, 8, 1), BUSY)
    assert answer.never
    assert answer.sentence().startswith("can never run here: needs 8 GPUs")


def test_each_axis_fitting_some_other_instance_does_not_make_it_possible() -> None:
    split = Supply.of([row("i-a", (1, 4096, 0), (1024, 4096, 0)), row("i-b", (4096, 1, 0), (4096, 1024, 0))])
    assert explain(Batch(4096, 4096, 0, 1), split).never


def test_the_smallest_relaxation_is_the_least_share_of_a_resource() -> None:
    answer = explain(Batch(1024, 1000, 0, 1), BUSY)
    assert answer.relaxation == "it asked for 700 MiB of memory instead of 1000"
    assert place([Batch(1024, 700, 0, 1)], BUSY).placed == 1
    assert place([Batch(1024, 701, 0, 1)], BUSY).placed == 0


def test_a_draining_instance_is_named_when_it_alone_would_do() -> None:
    assert "draining" in explain(Batch(2048, 4096, 2, 1), BUSY).relaxation


def test_a_rule_that_no_instance_meets_is_named() -> None:
    answer = explain(Batch(256, 256, 0, 1, constraints=("attribute:stack == prod",)), BUSY)
    assert answer.never
    assert answer.sentence().startswith("can never run here: attribute:stack == prod: ")
    assert answer.relaxation == "the rule 'attribute:stack == prod' were dropped"


def test_without_a_single_change_that_helps_none_is_named() -> None:
    answer = explain(Batch(9999, 9999, 9, 1, constraints=("attribute:a exists",)), BUSY)
    assert answer.relaxation == ""


@pytest.mark.parametrize(
    ("batch", "kind", "relaxation"),
    [
        (Batch(1, 1, 0, 1, constraints=("attribute:ecs.instance-type == p3.2xlarge",)), "constraint", "p3.2xlarge"),
        (Batch(1, 1, 0, 1, group="g", constraints=("distinctInstance",)), "distinctInstance", "distinctInstance"),
        (Batch(1, 1, 0, 1, host_ports=((80, "tcp"),)), "ports", "host port 80/tcp"),
        (Batch(1, 1, 0, 1, disk_gib=5), "disk", "needs 5 GiB of disk"),
        (Batch(1, 1, 0, 1, group="g", max_per_instance=1), "limit", "more than 1 tasks"),
        (Batch(1, 1, 0, 1, group="h", max_instances=0), "limit", "more instances"),
        (Batch(1, 1, 0, 1, affinity=("absent",)), "affinity", "affinity to absent"),
        (Batch(1, 1, 0, 1, group="h", anti_affinity=("g",)), "antiAffinity", "anti-affinity to g"),
    ],
)
def test_every_rule_is_a_reason_and_can_give_way(batch: Batch, kind: str, relaxation: str) -> None:
    supply = Supply.of(
        [row("i-a", (99, 99, 0), (99, 99, 0), running_by_group={"g": 1}, used_host_ports=frozenset({(80, "tcp")}))]
    )
    assert place([batch], supply).placed == 0
    answer = explain(batch, supply)
    assert [reason.kind for reason in answer.reasons] == [kind]
    assert relaxation in answer.relaxation


def test_an_instance_with_its_most_of_tasks_says_so_and_could_run_it_when_empty() -> None:
    full = [row(f"i-{most}", (99, 99, 0), (99, 99, 0), running_tasks=9, most_tasks=most) for most in (2, 9)]
    supply = Supply.of([*full, row("i-none", (0, 0, 0), (99, 99, 0))])
    answer = explain(Batch(1, 1, 0, 1), supply)
    assert place([Batch(1, 1, 0, 1)], supply).placed == 0
    assert not answer.never
    reasons = {reason.kind: (reason.detail, reason.refused, reason.only) for reason in answer.reasons}
    assert reasons["tasks"] == ("at most 2 to 9 tasks per instance", 2, 2)
    assert answer.relaxation == "more than 2 to 9 tasks were allowed per instance"


def test_an_instance_without_a_host_port_to_spare_says_so() -> None:
    ports = frozenset((port, "udp") for port in range(1_000, 1_093))
    supply = Supply.of([row("i-a", (99, 99, 0), (99, 99, 0), used_host_ports=ports)])
    two, one = (Batch(1, 1, 0, 1, host_ports=each) for each in (((80, "tcp"), (81, "tcp")), ((80, "tcp"),)))
    assert (place([two], supply).placed, place([one], supply).placed, explain(one, supply).fits) == (0, 1, 1)
    assert explain(two, supply).sentence() == (
        "waiting: at most 94 host ports of tasks per instance: 1 instances refuse; "
        "it would fit if the rule 'at most 94 host ports of tasks per instance' were dropped"
    )


def test_running_tasks_do_not_make_it_impossible_for_ever() -> None:
    supply = Supply.of([row("i-a", (99, 99, 0), (99, 99, 0), running_tasks=5)])
    assert not explain(Batch(1, 1, 0, 1, constraints=("runningTasksCount == 0",)), supply).never
    assert explain(Batch(1, 1, 0, 1, constraints=("runningTasksCount == 1",)), supply).never


def test_a_fitting_task_is_reported_to_fit() -> None:
    answer = explain(Batch(1, 1, 0, 1), BUSY)
    assert (answer.fits, answer.never, answer.sentence()) == (2, False, "2 of 3 instances would take it now")


def test_without_instances_there_is_nothing_to_explain() -> None:
    assert explain(Batch(1, 1, 0, 1), Supply.of([])).sentence() == "there are no instances"


def test_the_json_form_is_plain_and_camel_case() -> None:
    document = json.loads(json.dumps(explain(Batch(1, 5000, 0, 1), BUSY).to_json()))
    assert document["never"] is True
    assert document["reasons"][0]["bestInstance"] == "i-c"


def test_a_share_that_no_gpu_is_sure_to_hold_says_so() -> None:
    row = InstanceRow("i-1", 8, 8, 2, 8, 8, 2, {}, gpu_memory_mib=24_000, gpu_use=GpuUse((5_000, 5_000)))
    found = explain(Batch(1, 1, 0, 1, gpu_share_mib=20_000), Supply.of([row]))
    assert found.sentence() == (
        "waiting: no GPU is sure to have 20,000 MiB free: 1 instances refuse;"
        " it would fit if it asked for less memory of a GPU"
    )
    assert explain(Batch(1, 1, 0, 1, gpu_share_mib=25_000), Supply.of([row])).never
