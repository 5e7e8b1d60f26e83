"""Planted bugs: cells that come and go."""

from __future__ import annotations

from typing import Any

from argosy.aws import cell_guard, teardown, watchdog
from argosy.engine import steps
from tests.mutations.catalogue import Patch, planted, scenario

CELLS = "tests.scenarios.test_cells_come_and_go"


@planted(
    "a cell is bought in while its stack is being destroyed",
    check=scenario(CELLS, "test_an_old_controller_that_still_names_a_cell_that_was_left_out_buys_nothing_there"),
)
def closed_cells_are_used(patch: Patch) -> None:
    patch.setattr(steps, "close_cells", lambda state, closed: None)


@planted(
    "a deployment leaves out a cell that is at work",
    check=scenario(CELLS, "test_a_deployment_that_leaves_out_a_busy_cell_is_refused_and_the_work_continues"),
)
def cells_are_left_out_unseen(patch: Patch) -> None:
    patch.setattr(cell_guard, "_refuse_if_in_use", lambda home, region: None)


@planted(
    "the controller's heartbeat alone counts, even for a cell that no controller manages",
    check=scenario(CELLS, "test_six_hours_after_a_cell_was_dropped_behind_the_guards_back_nothing_is_left_of_it"),
)
def orphaned_cells_are_left_alone(patch: Patch) -> None:
    patch.setattr(watchdog, "_nobodys", lambda region, records: "")


@planted(
    "the end of home frees home's Region only",
    check=scenario(CELLS, "test_the_end_of_home_ends_the_cells_that_the_settings_have_forgotten"),
)
def only_home_is_freed(patch: Patch) -> None:
    def only_its_own(cell: Any) -> dict[str, str | None]:
        return {cell.region: None}

    patch.setattr(teardown, "_regions", only_its_own)
