"""A cell is left out, destroyed or orphaned: its instances end, nothing is bought there again, the others work on."""

from __future__ import annotations

import pytest

from argosy.aws import cell_records
from argosy.aws.cell_guard import CellInUse
from argosy.model.runs import RunStatus
from argosy.ports import Switches
from tests.builders import CELL
from tests.scenarios.deployed_cells import BOTH, DeployedCells
from tests.scenarios.two_cells import AWAY

OTHER_RUN, THIRD_RUN = "other-261121-062733-k3f9", "third-261121-062733-k3f9"

CHEAP_AWAY = {CELL: 0.09, AWAY: 0.05}


def at_work() -> DeployedCells:
    """Three instances at work in the further cell, and none at home."""
    cluster = DeployedCells(CHEAP_AWAY, work_s=1800.0)
    cluster.submit(12)
    cluster.run_for(400)
    assert (cluster.alive_in(CELL), cluster.alive_in(AWAY)) == (0, 3)
    return cluster


def test_a_deployment_that_leaves_out_a_busy_cell_is_refused_and_the_work_continues() -> None:
    cluster = at_work()
    with pytest.raises(
        CellInUse, match=f"no longer name the cell {AWAY}.*still has 3 instances.*make destroy-cell CELL={AWAY}"
    ):
        cluster.deploy(CELL)
    assert cluster.store.switches() == Switches()
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert cluster.ran_in(cluster.record().id) == {AWAY: 12}


def test_six_hours_after_a_cell_was_dropped_behind_the_guards_back_nothing_is_left_of_it() -> None:
    """The settings lost a cell, as before there was a guard: its instances stayed indefinitely."""
    cluster = at_work()
    cluster.named = (CELL,)
    cluster.controllers = [cluster.controller()]
    cell_records.forget(cluster.dynamodb, "argosy-state", AWAY)
    cluster.tick_s = 60.0
    cluster.run_for(6 * 3600)
    assert (cluster.alive_in(AWAY), cluster.targets_in(AWAY)) == (0, 0)
    assert {record["message"] for record in cluster.freed} == {"the home Region does not have this cell"}
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED


def test_a_destroyed_cells_work_is_done_again_elsewhere_and_the_others_never_stop() -> None:
    cluster = at_work()
    at_home = cluster.submit(4, run_id=OTHER_RUN, capacity={"cells": [CELL]})
    took_s = cluster.destroy(AWAY)
    assert took_s < 600
    assert (cluster.alive_in(AWAY), cluster.targets_in(AWAY)) == (0, 0)
    assert cluster.alive_in(CELL)  # launched while the teardown was under way
    cluster.deploy(CELL)
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert cluster.record(at_home).status == RunStatus.SUCCEEDED
    assert cluster.ran_in(cluster.record().id) == {CELL: 12}
    assert cluster.targets_in(AWAY) == 0
    assert cluster.store.switches() == Switches()  # and the cell is forgotten


def test_while_the_settings_still_name_a_destroyed_cell_nothing_is_bought_there() -> None:
    cluster = DeployedCells(CHEAP_AWAY)
    cluster.destroy(AWAY)
    cluster.submit(8)
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert cluster.ran_in(cluster.record().id) == {CELL: 8}
    assert not cluster.world_of(AWAY).ec2.ledger.instances


def test_lost_tasks_of_a_destroyed_cell_are_found_although_its_cluster_is_gone() -> None:
    cluster = DeployedCells(CHEAP_AWAY, work_s=600.0)
    cluster.destroy(AWAY)
    away = cluster.world_of(AWAY)
    away.ecs_client().delete_cluster(cluster=away.cluster)
    cluster.submit(4)
    cluster.run_for(300)
    cluster.events.lose = lambda message: True
    for instance in list(cluster.world.ec2.ledger.instances.values()):
        cluster.world.ec2.lose(instance.instance_id)
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED


def test_a_drained_cell_may_be_left_out_and_named_again() -> None:
    cluster = at_work()
    cluster.run_to_rest()
    cluster.deploy(CELL)
    assert cluster.store.switches().cells == {AWAY: cell_records.LEFT_OUT}
    cluster.submit(4, run_id=OTHER_RUN)
    cluster.run_to_rest()
    assert cluster.ran_in(OTHER_RUN) == {CELL: 4}
    cluster.deploy(*BOTH)
    third = cluster.submit(4, run_id=THIRD_RUN)
    cluster.run_to_rest()
    assert cluster.ran_in(third) == {AWAY: 4}


def test_an_old_controller_that_still_names_a_cell_that_was_left_out_buys_nothing_there() -> None:
    """A loop that is under way keeps its settings for up to fifteen minutes."""
    cluster = DeployedCells(CHEAP_AWAY)
    old = cluster.controllers
    cluster.deploy(CELL)
    cluster.controllers = old
    cluster.submit(4)
    cluster.run_to_rest()
    assert cluster.ran_in(cluster.record().id) == {CELL: 4}


def test_the_end_of_home_ends_the_cells_that_the_settings_have_forgotten() -> None:
    cluster = at_work()
    cluster.named = (CELL,)
    cluster.controllers = []
    cluster.destroy(CELL)
    assert (cluster.alive_in(AWAY), cluster.targets_in(AWAY)) == (0, 0)


def test_a_run_pinned_to_a_closed_cell_says_why_it_waits() -> None:
    cluster = DeployedCells(CHEAP_AWAY)
    cluster.destroy(AWAY)
    pinned = cluster.submit(4, capacity={"cells": [AWAY]})
    cluster.run_for(300)
    assert cluster.record(pinned).status == RunStatus.PROVISIONING
    assert cluster.run.waiting == f"only closed cells could hold it: {AWAY} ({cell_records.DESTROYED})"
    assert not cluster.world_of(AWAY).ec2.ledger.instances


def test_when_home_and_its_table_are_gone_the_cells_own_watchdog_ends_what_is_left() -> None:
    cluster = at_work()
    cluster.lose_home()
    cluster.run_for(1200)
    assert (cluster.alive_in(AWAY), cluster.targets_in(AWAY)) == (0, 0)
    assert {record["message"] for record in cluster.freed} == {"the home Region's table is gone"}
