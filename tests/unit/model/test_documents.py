"""The state becomes items and comes back; only changes are written."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from argosy.lifecycle.setbacks import set_back
from argosy.model.damage import FORMAT, CorruptChunk, NewerFormat, OlderFormat, check_format
from argosy.model.events import InterruptionWarned, RunClosed
from argosy.model.run_record import RunRecord
from argosy.model.setbacks import MAX_SETBACKS_STORED, Act, Subject
from argosy.model.stored import documents
from argosy.model.tasks import TaskStatus, TaskTable
from tests.builders import (
    NOW,
    RUN_ID,
    container_instance,
    fleet,
    host,
    instance_id,
    launched,
    prepared,
    read_back,
    state_with,
    state_with_instance,
    stored,
    submitted,
    task,
    told,
)


def test_a_state_reads_back_as_it_was() -> None:
    state = state_with_instance()
    key = launched(state, 3)
    told(state, task(1, "RUNNING"), InterruptionWarned(instance_id(1), NOW))
    state.spent_usd, state.orphans = 1.5, {"arn": "us-east-1"}
    again = stored(state, {})
    assert again.version == 1
    assert again.row_of(key) == state.row_of(key)
    assert again.instances == state.instances
    assert again.pools == state.pools
    assert (again.spent_usd, again.orphans, again.epoch, again.next_wave) == (1.5, {"arn": "us-east-1"}, "testtest", 2)
    run, other = again.runs[RUN_ID], state.runs[RUN_ID]
    assert RunRecord.of(run) == RunRecord.of(other)
    assert run.spec == other.spec
    for name in TaskTable.schema:
        np.testing.assert_array_equal(run.tasks[name], other.tasks[name])


def test_submitting_a_million_tasks_writes_a_handful_of_small_items() -> None:
    state = state_with(submitted(tasks=1_000_000))
    written = documents.changed(state)
    assert len(written) <= 4
    assert sum(map(len, written.values())) < 2_000


def test_only_touched_chunks_are_written() -> None:
    state = state_with_instance(tasks=100_000)
    stored(state, {})
    launched(state, index=99_999)
    kinds = {key[1].split("#")[0] + "#" + key[1].split("#")[-1] for key in documents.changed(state) if "#" in key[1]}
    assert "TASKS#00012" in kinds
    assert "TASKS#00000" not in kinds


def test_a_closed_run_is_kept_for_users_but_no_longer_loaded() -> None:
    state, items = state_with_instance(tasks=1), {}
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=0), RunClosed(RUN_ID))
    again = stored(state, items)
    assert not state.runs
    assert not again.runs
    record = next(documents.decode(body) for (pk, _), body in items.items() if pk == documents.RUNS)
    assert (record["status"], record["counts"][TaskStatus.SUCCEEDED]) == ("SUCCEEDED", 1)


def test_an_instance_that_is_forgotten_leaves_its_bucket() -> None:
    state, items = state_with(fleet(), host(1), container_instance(1)), {}
    stored(state, items)
    del state.instances[instance_id(1)]
    state.changed_instances.add(instance_id(1))
    assert not stored(state, items).instances


def test_a_newer_format_is_refused() -> None:
    root = documents.encode({"format": FORMAT + 1, "runs": []})
    with pytest.raises(NewerFormat, match="deploy the newer version"):
        documents.restore(1, {"ROOT": root}, {})


def test_a_format_from_before_the_last_one_is_refused() -> None:
    root = documents.encode({"format": FORMAT - 2, "runs": []})
    with pytest.raises(OlderFormat, match="deploy an intermediate version first"):
        documents.restore(1, {"ROOT": root}, {})


def test_the_next_format_will_read_this_one_and_none_before_it() -> None:
    """By an invented version that stores one format more; `simulation.next_version` lets it work alongside this one."""
    check_format(FORMAT, newest=FORMAT + 1)
    check_format(FORMAT + 1, newest=FORMAT + 1)
    with pytest.raises(OlderFormat):
        check_format(FORMAT - 1, newest=FORMAT + 1)


def test_a_corrupt_chunk_is_named_and_its_run_left_out() -> None:
    state = state_with_instance()
    launched(state)
    items = documents.changed(state)
    key = next(key for key in items if key[1].startswith("TASKS#"))
    body = bytearray(items[key])
    body[len(body) // 2] ^= 0xFF
    items[key] = bytes(body)
    again = read_back(1, items)
    assert not again.runs
    (damage,) = again.losses.runs
    assert damage.run_id == RUN_ID
    assert "wrong checksum" in damage.sentence
    assert damage.record is not None
    assert damage.record.name == "digits"


def test_set_backs_that_end_in_giving_up_are_stored_the_others_are_not_and_their_number_is_bounded() -> None:
    state = state_with_instance()
    state.next_wave = 4
    for _ in range(7):
        set_back(state, Subject(Act.CLOSE, RUN_ID), "no bucket " * 100, NOW)
    for what in (
        Subject(Act.TARGET, "us-east-1/c5.xlarge/us-east-1a"),
        Subject(Act.RESOLVE, "3"),
        Subject(Act.LAUNCH, RUN_ID),
        Subject(Act.LAUNCH, "unknown-1-1-1"),
        Subject(Act.CLOSE, "unknown-1-1-1"),
    ):
        set_back(state, what, "no", NOW)
    again = stored(state, {})
    assert set(again.setbacks) == {Subject(Act.CLOSE, RUN_ID), Subject(Act.LAUNCH, RUN_ID)}
    assert again.setbacks[Subject(Act.CLOSE, RUN_ID)] == state.setbacks[Subject(Act.CLOSE, RUN_ID)]
    kept = again.setbacks[Subject(Act.CLOSE, RUN_ID)]
    assert (kept.since, kept.refusals, kept.refused_since) == (NOW, 1, NOW)
    many = state_with()
    for number in range(MAX_SETBACKS_STORED + 50):
        run_id = f"run{number}-261121-062733-aaaa"
        told(many, submitted(run_id))
        for round_ in range(1 + number % 7):
            set_back(many, Subject(Act.VERIFY, run_id), "no bucket " * 100, NOW + 60 * round_)
    most = stored(many, {}).setbacks
    assert len(most) == MAX_SETBACKS_STORED
    assert min(setback.count for setback in most.values()) >= 2
    assert len(documents.changed(many)[documents.STATE, documents.ROOT]) < 100_000


def test_a_set_back_of_an_older_version_is_read_and_its_patience_restarts() -> None:
    state = state_with_instance()
    set_back(state, Subject(Act.VERIFY, RUN_ID), "SlowDown", NOW, passing=True)
    items: dict[tuple[str, str], bytes] = {}
    stored(state, items)
    root = documents.decode(items[documents.STATE, documents.ROOT])
    root["setbacks"] = {what: setback[:3] for what, setback in root["setbacks"].items()} | {"repaint:x": [1, 0.0, ""]}
    items[documents.STATE, documents.ROOT] = documents.encode(root)
    again = read_back(1, items)
    assert set(again.setbacks) == {Subject(Act.VERIFY, RUN_ID)}  # what this version does not try is left out
    setback = set_back(again, Subject(Act.VERIFY, RUN_ID), "SlowDown", NOW + 500, passing=True)
    assert (setback.count, setback.since, setback.refusals) == (2, NOW + 500, 0)


def test_a_column_that_an_older_version_did_not_write_reads_as_its_default() -> None:
    class Older(TaskTable):
        schema: ClassVar = {name: kind for name, kind in TaskTable.schema.items() if name != "gpu_mask"}

    old = Older(5)
    old.set(2, status=TaskStatus.RUNNING)
    table = TaskTable(5)
    table.unpack(0, old.pack(0))
    assert table["status"].tolist() == [0, 0, 2, 0, 0]
    assert table["gpu_mask"].tolist() == [0] * 5


def test_host_ports_read_back_and_a_record_from_before_they_were_known_has_none() -> None:
    state = state_with(submitted(), replace(prepared(), host_ports=((53, "udp"), (8080, "tcp"))))
    items: documents.Documents = {}
    assert stored(state, items).runs[RUN_ID].host_ports == ((53, "udp"), (8080, "tcp"))
    key = next(key for key in items if key[0] == documents.RUNS)
    record = documents.decode(items[key])
    del record["host_ports"]
    items[key] = documents.encode(record)
    assert read_back(1, items).runs[RUN_ID].host_ports == ()


def test_preparing_is_remembered() -> None:
    state = state_with(submitted(), prepared())
    assert stored(state, {}).runs[RUN_ID].task_definition == state.runs[RUN_ID].task_definition


@pytest.mark.parametrize("rows", [3, 9])
def test_a_chunk_of_the_wrong_length_is_refused(rows: int) -> None:
    table = TaskTable(5)
    other = TaskTable(rows)
    if rows > 5:
        with pytest.raises(CorruptChunk, match="chunk 0"):
            table.unpack(0, other.pack(0))
    else:
        table.unpack(0, other.pack(0))  # a shorter chunk is one that was written before the table grew


def test_a_chunk_that_is_no_archive_is_refused() -> None:
    import zlib

    body = b"not an archive"
    with pytest.raises(CorruptChunk):
        TaskTable(5).unpack(0, zlib.crc32(body).to_bytes(4, "big") + body)
