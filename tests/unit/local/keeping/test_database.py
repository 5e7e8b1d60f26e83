"""Committed data survives any kill; half-written data does not."""

from __future__ import annotations

import errno
import resource
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from argosy.emulator.dynamodb import DynamoModel, Item
from argosy.local.keeping.database import Database
from argosy.local.keeping.objects import SMALL_BYTES, KeptBodies
from argosy.local.keeping.store import LEASE, KeptLines, from_text, keep_table, to_text
from argosy.local.moto.logs import StreamName

TABLE = "argosy-state"
STREAM = StreamName("us-east-1", "/ecs", "a")
# Commits pairs of items, each with a log line and an object, and says so afterwards.
COMMITS = """
import sys
from pathlib import Path
from argosy.emulator.dynamodb import DynamoModel
from argosy.local.keeping.database import Database
from argosy.local.keeping.store import KeptLines
from argosy.local.keeping.objects import KeptBodies
from argosy.local.keeping.store import keep_table
from argosy.local.moto.logs import StreamName
folder = Path(sys.argv[1])
database = Database(folder / "state.db")
model, lines, bodies = DynamoModel(), KeptLines(database), KeptBodies(database, folder / "objects")
keep_table(model, database)
stream = StreamName("us-east-1", "/ecs", "a")
lines.opened(stream)
for number in range(100_000):
    put = [{"Put": {"TableName": "argosy-state", "Item": {"pk": {"S": pk}, "sk": {"S": "1"}, "n": {"N": str(number)}}}}
           for pk in ("A", "B")]
    model.transact_write_items(TransactItems=put)
    lines.append(stream, [{"timestamp": number, "message": str(number)}])
    bodies.put("results", "latest", {"n": number}, str(number).encode() * (20_000 if number % 2 else 1))
    print(number, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("patience", [1, 40])
def test_what_was_committed_before_a_kill_is_there_and_whole(tmp_path: Path, patience: int) -> None:
    command = [sys.executable, "-c", COMMITS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [int(process.stdout.readline()) for _ in range(patience)][-1]
        process.send_signal(signal.SIGKILL)
    database = Database(tmp_path / "state.db")
    model = DynamoModel()
    keep_table(model, database)
    numbers = {pk: int(model.tables[TABLE][pk]["1"]["n"]["N"]) for pk in ("A", "B")}
    assert numbers["A"] == numbers["B"] >= said
    kept = [line["message"] for line in KeptLines(database).lines(STREAM)]
    assert kept == [str(number) for number in range(len(kept))]
    assert len(kept) > said
    (stored,) = KeptBodies(database, tmp_path / "objects").objects()
    number = stored.about["n"]
    assert number >= said
    assert stored.read() == str(number).encode() * (20_000 if number % 2 else 1)
    assert len(list((tmp_path / "objects").iterdir())) == number % 2
    database.close()


def test_items_are_kept_with_their_bytes_and_without_the_lease_of_a_controller_that_is_gone(tmp_path: Path) -> None:
    database = Database(tmp_path / "state.db")
    model = DynamoModel()
    keep_table(model, database)
    item: Item = {"pk": {"S": "A"}, "sk": {"S": "1"}, "body": {"B": b"\x00\xff"}, "more": {"M": {"=": {"S": "x"}}}}
    lease = {"pk": {"S": LEASE[0]}, "sk": {"S": LEASE[1]}, "owner": {"S": "gone"}}
    gone = {"pk": {"S": "B"}, "sk": {"S": "1"}}
    for each in (item, lease, gone):
        model.put_item(TableName=TABLE, Item=each)
    model.delete_item(TableName=TABLE, Key=gone)
    again = DynamoModel()
    keep_table(again, database)
    assert again.scan(TableName=TABLE)["Items"] == [item]
    assert from_text(to_text(item)) == item
    database.close()


def test_a_change_that_cannot_be_written_down_does_not_show(tmp_path: Path) -> None:
    database = Database(tmp_path / "state.db")
    model = DynamoModel()
    keep_table(model, database)
    database.close()
    item = {"pk": {"S": "A"}, "sk": {"S": "1"}}
    with pytest.raises(sqlite3.Error):
        model.put_item(TableName=TABLE, Item=item)
    assert model.get_item(TableName=TABLE, Key=item) == {}


def test_of_several_changes_all_are_written_or_none(tmp_path: Path) -> None:
    database = Database(tmp_path / "state.db")
    add = "INSERT INTO buckets VALUES (?, ?)"
    with pytest.raises(sqlite3.IntegrityError):
        database.write([(add, ("a", "r")), (add, ("a", "r"))])
    assert database.rows("SELECT * FROM buckets") == []
    database.write([(add, ("a", "r"))])
    assert database.rows("SELECT * FROM buckets") == [("a", "r")]
    database.close()


def test_bodies_that_nothing_names_go_and_those_of_a_bucket_go_with_it(tmp_path: Path) -> None:
    database, folder = Database(tmp_path / "state.db"), tmp_path / "objects"
    bodies = KeptBodies(database, folder)
    bodies.add_bucket("a", "us-east-1")
    large = b"x" * (SMALL_BYTES + 1)
    for content in (large, b"small", large):
        bodies.put("a", "k", {}, content)
    assert len(list(folder.iterdir())) == 1
    (folder / "of a kill").write_bytes(large)
    again = KeptBodies(database, folder)
    assert [(each.size, each.read()) for each in again.objects()] == [(len(large), large)]
    assert len(list(folder.iterdir())) == 1
    again.drop("a", "nobody")
    again.drop_bucket("a")
    assert (list(again.objects()), again.buckets(), list(folder.iterdir())) == ([], [], [])
    database.close()


def test_streams_are_listed_in_the_order_in_which_they_were_opened(tmp_path: Path) -> None:
    database = Database(tmp_path / "state.db")
    lines = KeptLines(database)
    for name in ("b", "a", "b"):
        lines.opened(StreamName("us-east-1", "/ecs", name))
    assert lines.streams("us-east-1", "/ecs") == ["b", "a"]
    assert lines.streams("eu-west-1", "/ecs") == []
    database.close()


def test_a_full_disk_is_reported_and_later_lines_are_written(tmp_path: Path) -> None:
    database = Database(tmp_path / "state.db")
    bodies = KeptBodies(database, tmp_path / "objects")
    (pages,) = database.rows("PRAGMA page_count")[0]
    database.rows(f"PRAGMA max_page_count = {pages + 2}")
    large = b"x" * (SMALL_BYTES + 1)
    with pytest.raises(OSError, match="No space left") as full:
        bodies.put("a", "b" * 100_000, {}, large)
    assert (full.value.errno, full.value.filename) == (errno.ENOSPC, str(tmp_path / "state.db"))
    assert list((tmp_path / "objects").iterdir()) == []  # it takes no room itself
    database.rows("PRAGMA max_page_count = 100000")
    bodies.put("a", "b" * 100_000, {}, large)
    assert [each.read() for each in bodies.objects()] == [large]
    database.close()


def test_a_body_that_finds_no_room_leaves_nothing_and_says_where(tmp_path: Path) -> None:
    database = Database(tmp_path / "state.db")
    bodies = KeptBodies(database, tmp_path / "objects")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write fails then, as on a full disk
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, limits[1]))
    try:
        with pytest.raises(OSError, match="too large") as refused:
            bodies.put("a", "k", {}, b"x" * 2_000_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert refused.value.filename == str(tmp_path / "objects")
    assert (list((tmp_path / "objects").iterdir()), list(bodies.objects())) == ([], [])
    database.close()


@pytest.mark.parametrize("cut", [True, False], ids=["cut", "gone"])
def test_an_object_with_an_incomplete_body_is_reported_as_lost_and_the_others_remain(tmp_path: Path, cut: bool) -> None:
    database, folder = Database(tmp_path / "state.db"), tmp_path / "objects"
    bodies = KeptBodies(database, folder)
    bodies.put("results", "a", {}, b"x" * (SMALL_BYTES + 1))
    (file,) = folder.iterdir()
    bodies.put("results", "b", {"etag": "1"}, b"y" * (SMALL_BYTES + 1))
    if cut:
        file.write_bytes(b"x")
    else:
        file.unlink()
    said: list[str] = []
    again = KeptBodies(database, folder, said.append)
    assert [(each.key, each.about) for each in again.objects()] == [("b", {"etag": "1"})]
    assert [line.partition(" is lost")[0] for line in said] == ["s3://results/a"]
    assert [each.key for each in KeptBodies(database, folder, said.append).objects()] == ["b"]
    assert len(said) == 1
    database.close()
