"""The parts of an ARN, and ARNs that are derived from one."""

from __future__ import annotations

from argosy.model.arns import arn_of, cell_of, cluster_of, name_of, task_arn
from tests.builders import CELL, container_instance, instance_id
from tests.builders import task_arn as built

INSTANCE = container_instance(1).arn


def test_an_arn_names_its_region_its_cluster_and_its_resource() -> None:
    assert (cell_of(INSTANCE), name_of(INSTANCE)) == (CELL, f"{1:032x}")
    assert cluster_of(INSTANCE) == (f"arn:aws:ecs:{CELL}:123456789012", "argosy")
    assert cluster_of(built(7)) == cluster_of(INSTANCE)


def test_what_is_no_arn_has_no_region() -> None:
    assert (cell_of(""), cell_of(instance_id(1))) == ("", "")


def test_the_task_of_an_instance_is_in_its_cluster() -> None:
    assert task_arn(INSTANCE, f"{7:032x}") == built(7)
    assert task_arn("", "abc") is task_arn(INSTANCE, "") is None


def test_an_arn_is_made_of_its_parts() -> None:
    assert arn_of("iam", "", "123456789012", "role/a") == "arn:aws:iam::123456789012:role/a"
