"""Planted bugs: the journal's lines about commits, and its readers."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from argosy.engine.tick import Engine
from argosy.lifecycle import cluster_history
from argosy.model.journal import capacity, tasks
from argosy.model.journal import tasks as ranges_module
from argosy.model.journal.items import CHANGES, JournalItem, Place
from argosy.model.run_record import RunRecord
from argosy.model.runs import Run
from argosy.ports import AlreadyExists
from tests.fakes.api import Desk
from tests.mutations.catalogue import Patch, planted, scenario

READERS = "tests.unit.api.test_changes"


@planted("lines are written before the commit that they tell of, and stay when it fails")
def lines_before_their_commit(patch: Patch) -> None:
    real = Engine._commit

    def commit(engine: Engine, state: Any, puts: Mapping[Any, bytes], expires_at: Any, effects: bool) -> None:
        lines = {key: body for key, body in puts.items() if key[0] == CHANGES}
        with suppress(AlreadyExists):
            engine.store.create(lines, {key: at for key, at in expires_at.items() if key in lines})
        real(engine, state, {key: body for key, body in puts.items() if key[0] != CHANGES}, {}, effects)

    patch.setattr(Engine, "_commit", commit)


@planted("a task that changes without the end of an attempt has no line")
def verified_without_a_line(patch: Patch) -> None:
    patch.setattr(tasks, "_settled", lambda *rest: iter(()))


@planted("a line names its tasks from the first to the last one, whether or not those between them are meant")
def ranges_have_no_gaps(patch: Patch) -> None:
    patch.setattr(ranges_module, "ranges", lambda indexes: [[int(indexes[0]), int(indexes[-1])]])


@planted("a controller that restarts reports every run again", "crash", "bad-program")
def loads_forget_what_was_committed(patch: Patch) -> None:
    real = RunRecord.to_run

    def to_run(record: RunRecord, *rest: Any) -> Run:
        run = real(record, *rest)
        run.committed = None
        return run

    patch.setattr(RunRecord, "to_run", to_run)


@planted("an instance that EC2 has taken back is gone without a line", "interruption", "host-loss", "storm")
def instances_go_without_a_line(patch: Patch) -> None:
    real = capacity.instance_lines
    patch.setattr(
        "argosy.model.journal.commit.instance_lines",
        lambda *rest: (line for line in real(*rest) if line["type"] != "instance.gone"),
    )


@planted("lines do not expire")
def lines_are_kept_for_ever(patch: Patch) -> None:
    real = Engine._commit

    def commit(engine: Engine, state: Any, puts: Any, expires_at: Any, effects: bool) -> None:
        real(engine, state, puts, {}, effects)

    patch.setattr(Engine, "_commit", commit)


@planted(
    "what DynamoDB has not deleted yet is read, though it has expired",
    check=scenario(READERS, "test_expired_changes_are_reported_with_the_oldest_complete_place", Desk(), 2),
)
def expired_lines_are_read(patch: Patch) -> None:
    patch.setattr(JournalItem, "is_kept", lambda item, now: True)


@planted("a reader that stops in the middle of a commit goes on behind it")
def readers_skip_half_a_commit(patch: Patch) -> None:
    patch.setattr(Place, "to_text", lambda place: str(place.version))


@planted("the cluster is sampled once, and never again", "interruption")
def the_cluster_is_sampled_once(patch: Patch) -> None:
    patch.setattr(cluster_history, "EVERY_S", 1e9)


@planted("a sample of the cluster leaves out the tasks that run", "interruption")
def samples_leave_out_what_runs(patch: Patch) -> None:
    patch.setattr(cluster_history, "_RUNNING", ())


@planted("what was ordered is not noted", "interruption")
def orders_are_not_noted(patch: Patch) -> None:
    patch.setattr(cluster_history, "_orders", lambda state, now: [])
