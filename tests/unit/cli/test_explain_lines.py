"""What does a person read when a task waits?"""

from __future__ import annotations

from controller.cli.explain import lines_of
from controller.placement.demand import Batch
from controller.placement.explain import explain
from controller.placement.supply import InstanceRow, Supply

SUPPLY = Supply.of(
    [InstanceRow("i-1", 1024, 900, 0, 2048, 4096, 0, {}), InstanceRow("i-2", 512, 700, 0, 2048, 4096, 0, {})]
)


def test_a_waiting_task_is_explained_line_by_line() -> None:
    assert lines_of(explain(Batch(1024, 1000, 0, 1), SUPPLY)) == [
        "Waiting: none of 2 instances takes it.",
        "     2 refuse: needs 1000 MiB of memory; most free is 900 on i-1 (1 for this alone)",
        "     1 refuse: needs 1024 cpu units; most free is 1024 on i-1 (0 for this alone)",
        "It would fit if it asked for 900 MiB of memory instead of 1000.",
    ]


def test_a_rule_has_no_best_and_the_impossible_says_so() -> None:
    lines = lines_of(explain(Batch(9999, 9999, 0, 1, constraints=("attribute:a exists",)), SUPPLY))
    assert lines[0] == "Can never run here: none of 2 instances takes it."
    assert lines[-1] == "     2 refuse: attribute:a exists (0 for this alone)"


def test_what_fits_is_one_line() -> None:
    assert lines_of(explain(Batch(1, 1, 0, 1), SUPPLY)) == ["2 of 2 instances would take it now"]
