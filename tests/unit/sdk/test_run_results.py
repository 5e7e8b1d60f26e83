"""The results of a run, by task, as rows and as a data frame."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import argosy
from argosy import layout
from argosy.client.extras import installing
from tests.fakes.cli import OUTPUT, RUN_ID, World, ended, run_view, tasks
from tests.fakes.sdk import client_of


def entry(index: int, status: str = "SUCCEEDED", *keys: str, size: int = 0) -> dict[str, Any]:
    return {"index": index, "status": status, "keys": list(keys), "bytes": size}


def run_with(world: World, *entries: dict[str, Any], **view: Any) -> argosy.Run:
    manifest = {"runId": RUN_ID, "output": OUTPUT, "entries": list(entries)}
    world.objects.put(f"{OUTPUT}manifest.json", json.dumps(manifest))
    ran = ended(**{"tasks": tasks(succeeded=len(entries)), **view})
    world.answers("ListRuns", {"runs": [ran], "nextToken": None})
    return client_of(world).runs(1)[0]


def part(world: World, index: int, *rows: Any) -> dict[str, Any]:
    key, body = layout.part_uri("", index), "".join(json.dumps(row) + "\n" for row in rows)
    world.objects.put(OUTPUT + key, body)
    return entry(index, "SUCCEEDED", key, size=len(body))


def test_each_task_is_a_result_that_can_be_read() -> None:
    world = World()
    first, second = run_with(world, part(world, 0, 1), entry(1, "FAILED")).results()
    assert (first.index, first.status, first.read()) == (0, "SUCCEEDED", b"1\n")
    assert first.keys == (f"{RUN_ID}/{layout.part_uri('', 0)}",)
    assert (second.index, second.status, second.keys) == (1, "FAILED", ())


def test_a_task_with_several_objects_is_read_by_their_keys() -> None:
    world = World()
    world.objects.put(f"{OUTPUT}attempts/000000/1/a.txt", "a")
    world.objects.put(f"{OUTPUT}attempts/000000/1/b.txt", "b")
    keys = ["attempts/000000/1/a.txt", "attempts/000000/1/b.txt"]
    [result] = run_with(world, entry(0, "SUCCEEDED", *keys)).results()
    assert [result.read(key) for key in result.keys] == [b"a", b"b"]
    with pytest.raises(argosy.ArgosyError, match="Task 0 has left 2 objects: name one"):
        result.read()
    with pytest.raises(argosy.ArgosyError, match="Task 0 has no result object 'c'"):
        result.read("c")


def test_a_task_without_a_result_has_nothing_to_read() -> None:
    [result] = run_with(World(), entry(0, "FAILED")).results()
    with pytest.raises(argosy.ArgosyError, match="Task 0 is FAILED and has no results to read"):
        result.read()


def test_an_object_that_is_gone_is_a_sentence() -> None:
    [result] = run_with(World(), entry(0, "SUCCEEDED", "parts/part-000000.jsonl")).results()
    with pytest.raises(argosy.ArgosyError, match="AWS refused the call"):
        result.read()


def test_results_of_an_open_run_are_not_complete() -> None:
    world = World().answers("ListRuns", {"runs": [run_view()], "nextToken": None})
    run = client_of(world).runs(1)[0]
    with pytest.raises(argosy.ArgosyError, match="is still RUNNING: its results are not complete") as refused:
        list(run.results())
    assert refused.value.next_step == "wait for it with run.wait()"
    with pytest.raises(argosy.ArgosyError, match="is still RUNNING"):
        list(run.rows())


def test_a_run_without_a_manifest_yet_says_so() -> None:
    world = World().answers("ListRuns", {"runs": [ended()], "nextToken": None})
    with pytest.raises(argosy.ArgosyError, match="has no manifest"):
        list(client_of(world).runs(1)[0].results())


def test_rows_come_in_the_order_of_the_tasks() -> None:
    world = World()
    run = run_with(world, part(world, 0, {"n": 1}, {"n": 2}), part(world, 1, {"n": 3}))
    assert list(run.rows()) == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_the_files_of_a_run_are_copied_by_task(tmp_path: Path) -> None:
    world = World()
    run = run_with(world, part(world, 0, {"n": 1}))
    assert run.download(tmp_path) == [tmp_path / "000000/part.jsonl"]
    assert run.download(str(tmp_path), flat=True)[0].read_text() == '{"n": 1}\n'


def test_no_row_is_given_where_some_are_missing() -> None:
    world = World()
    run = run_with(world, part(world, 0, 1), *(entry(number, "FAILED") for number in range(1, 8)))
    with pytest.raises(argosy.ArgosyError, match=r"lacks results of 7 of 8 tasks \(task 1: FAILED; .*and 2 more\)"):
        next(iter(run.rows()))
    assert list(run.rows(partial=True)) == [1]


def test_rows_there_are_can_be_had_while_it_runs() -> None:
    world = World()
    part(world, 1, {"n": 3})
    world.answers("ListRuns", {"runs": [run_view()], "nextToken": None})
    assert list(client_of(world).runs(1)[0].rows(partial=True)) == [{"n": 3}]


@pytest.mark.slow
def test_rows_become_a_data_frame() -> None:
    world = World()
    frame = run_with(world, part(world, 0, {"n": 1, "s": "a"}, {"n": 2}), part(world, 1, 7)).dataframe()
    assert list(frame.columns) == ["n", "s", "value"]
    assert frame["n"].tolist()[:2] == [1, 2]
    assert frame["value"].tolist()[2] == 7


def test_without_pandas_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)  # type: ignore[arg-type]
    world = World()
    run = run_with(world, part(world, 0, 1))
    with pytest.raises(argosy.MissingPackage, match="pandas, which is not installed") as missing:
        run.dataframe()
    assert missing.value.__notes__ == [f"next: {installing('frame')}"]
