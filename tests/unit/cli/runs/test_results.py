"""`results`: follows the manifest, refuses incomplete results, never writes outside the folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.cli import OUTPUT, RUN_ID, World, ended, refusal, run_view, tasks

PARTS = {0: '{"index": 900}\n', 1: '{"index": 950}\n'}


def part(index: int) -> str:
    return f"parts/part-{index:07d}.jsonl"


def entry(index: int, *keys: str) -> dict[str, Any]:
    return {"index": index, "status": "SUCCEEDED", "attempt": 1, "keys": list(keys), "bytes": 15, "instance": "i-0abc"}


def finished(*entries: dict[str, Any]) -> World:
    """A run with two parts, the leftovers of a zombie, and a manifest."""
    world = World().answers("DescribeRun", ended(tasks=tasks(succeeded=2)))
    prefix = f"{RUN_ID}/"
    manifest = {"runId": RUN_ID, "entries": list(entries) or [entry(i, prefix + part(i)) for i in PARTS]}
    world.objects.put(f"{OUTPUT}manifest.json", manifest)
    for index, text in PARTS.items():
        world.objects.put(OUTPUT + part(index), text)
    world.objects.put(f"{OUTPUT}attempts/0/1/zombie.jsonl", "nonsense")
    return world


@pytest.mark.parametrize("options", [[], ["--merge"], ["--download", "r"]])
def test_a_run_that_was_asked_for_no_results_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    world = World().answers("DescribeRun", ended(tasks=tasks(succeeded=1), expectsResult=False))
    nothing = {"index": 0, "status": "SUCCEEDED", "attempt": 1, "keys": [], "bytes": 0}
    head = json.dumps({"runId": RUN_ID, "output": OUTPUT})[:-1] + ', "entries": [\n'
    world.objects.put(f"{OUTPUT}manifest.json", f"{head}{json.dumps(nothing)}\n]}}\n")
    result = world.argosy("results", RUN_ID, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert (
        result.stderr.splitlines()[0]
        == f"error: {RUN_ID} has no results: its spec asks for none (`result: none`, or no `${{part}}`)."
    )
    assert list(tmp_path.iterdir()) == []


def test_results_of_a_run_without_a_result_option_are_still_listed(tmp_path: Path) -> None:
    world = finished()
    world.answers("DescribeRun", ended(tasks=tasks(succeeded=2), expectsResult=False))
    assert "2 files" in world.argosy("results", RUN_ID).stdout


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_download_copies_what_the_manifest_names(tmp_path: Path) -> None:
    result = finished().argosy("results", RUN_ID, "--download", str(tmp_path / "r"))
    assert (result.exit_code, result.stderr) == (0, "")
    assert files(tmp_path / "r") == {part(0), part(1), "manifest.json", ".argosyignore"}
    assert (tmp_path / "r" / part(1)).read_text() == PARTS[1]
    assert result.stdout.splitlines() == [
        f"{RUN_ID} SUCCEEDED: 2 of 2 tasks have a result, 2 files, 30 B",
        f"copied to {tmp_path / 'r'}/: 2 files, 30 B ({tmp_path / 'r' / part(0)}, ...)",
    ]


@pytest.mark.parametrize("option", ["--out", "--download"])
def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path, option: str) -> None:
    (tmp_path / "a file").touch()
    for folder, why in (("a file", "File exists"), ("a file/below", "Not a directory")):
        result = finished().argosy("results", RUN_ID, option, str(tmp_path / folder))
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr == f"error: {tmp_path / folder} cannot be written: {why}.\n"


def test_without_download_it_says_where_they_are() -> None:
    lines = finished().argosy("results", RUN_ID).stdout.splitlines()
    assert lines[1:] == [
        f"in {OUTPUT}",
        f"next: argosy results {RUN_ID} --out digits-results",
        f"  or: argosy results {RUN_ID} --merge    (all rows in one file)",
    ]


LEFT = ["attempts/0000001/2/a/b.txt", "attempts/0000001/2/a%2Fb.txt", "attempts/0000001/2/part.jsonl"]


def with_files() -> World:
    world = finished(entry(0, part(0)), {**entry(1, part(1), *LEFT), "attempt": 2})
    for key in LEFT:
        world.objects.put(OUTPUT + key, key)
    return world


def test_out_lays_the_files_out_task_by_task_and_loses_none(tmp_path: Path) -> None:
    with_files().argosy("results", RUN_ID, "--out", str(tmp_path))
    found = {"000000/part.jsonl", "000001/part.jsonl", "000001/a/b.txt", "000001/a%2Fb.txt", LEFT[2]}
    assert files(tmp_path) == found
    assert (tmp_path / "000001/part.jsonl").read_text() == PARTS[1]


def test_in_one_folder_no_two_files_have_the_same_name(tmp_path: Path) -> None:
    with_files().argosy("results", RUN_ID, "--out", str(tmp_path), "--flat")
    assert files(tmp_path) == {
        "000000-part.jsonl",
        "000001-part.jsonl",
        "000001-a%2Fb.txt",
        "000001-a%252Fb.txt",
        "attempts%2F0000001%2F2%2Fpart.jsonl",
    }


def test_a_repeated_copy_fetches_what_is_missing_or_has_changed(tmp_path: Path) -> None:
    with_files().argosy("results", RUN_ID, "--out", str(tmp_path))
    (tmp_path / "000000/part.jsonl").unlink()
    world = with_files()
    again = world.argosy("results", RUN_ID, "--out", str(tmp_path))
    assert "1 file, 15 B; 4 files there already" in again.stdout
    world = finished(entry(0, part(0)), {**entry(1, part(1)), "attempt": 3})
    world.objects.put(OUTPUT + part(1), '{"index": 951}\n')
    assert "1 file, 15 B; 1 file there already" in world.argosy("results", RUN_ID, "--out", str(tmp_path)).stdout
    assert (tmp_path / "000001/part.jsonl").read_text() == '{"index": 951}\n'


@pytest.mark.parametrize("options", [["--flat"], ["--out", "d", "--download", "d"], ["--out", "d", "--merge"]])
def test_layouts_that_exclude_each_other_are_refused(options: list[str]) -> None:
    assert World().argosy("results", RUN_ID, *options).exit_code == 2


def test_keys_may_be_relative_to_the_run(tmp_path: Path) -> None:
    finished(entry(0, part(0))).argosy("results", RUN_ID, "--download", str(tmp_path))
    assert part(0) in files(tmp_path)


def test_a_second_download_replaces_the_first(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / part(0)).write_text("old")
    finished().argosy("results", RUN_ID, "--download", str(tmp_path))
    assert (tmp_path / part(0)).read_text() == PARTS[0]
    assert not list(tmp_path.rglob("*.unfinished"))


def test_two_downloads_into_one_folder_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    world, seen = finished(), []
    get = world.objects.get_object

    def get_while_another_downloads(**request: str) -> dict[str, Any]:
        answer = get(**request)
        if request["Key"].endswith(part(0)):
            answer["Body"] = Interrupted(answer["Body"], lambda: seen.append(download()))
        return answer

    def download() -> int:
        return int(finished().argosy("results", RUN_ID, "--download", str(tmp_path)).exit_code)

    world.objects.get_object = get_while_another_downloads  # type: ignore[method-assign]
    result = world.argosy("results", RUN_ID, "--download", str(tmp_path))
    assert (result.exit_code, seen) == (0, [0]), result.output
    assert files(tmp_path) == {part(0), part(1), "manifest.json"}
    assert (tmp_path / part(0)).read_text() == PARTS[0]


class Interrupted:
    """A body during whose reading something else happens: at its end, once."""

    def __init__(self, body: Any, act: Callable[[], None]) -> None:
        self._body, self._act = body, act

    def read(self, size: int) -> bytes:
        chunk: bytes = self._body.read(size)
        if not chunk:
            self._act()
        return chunk


def test_what_breaks_off_leaves_no_half_of_a_file(tmp_path: Path) -> None:
    world = finished()
    get = world.objects.get_object

    def breaks(**request: str) -> dict[str, Any]:
        answer = get(**request)
        if request["Key"].endswith(part(0)):
            answer["Body"] = Interrupted(answer["Body"], broken)
        return answer

    def broken() -> None:
        raise refusal("SlowDown", operation="GetObject")

    world.objects.get_object = breaks  # type: ignore[method-assign]
    assert world.argosy("results", RUN_ID, "--download", str(tmp_path)).exit_code == 3
    assert part(0) not in files(tmp_path)
    assert not list(tmp_path.rglob("*.unfinished"))


def test_a_run_that_has_not_ended_is_refused(tmp_path: Path) -> None:
    result = World().answers("DescribeRun", run_view()).argosy("results", RUN_ID, "--download", str(tmp_path / "r"))
    assert result.exit_code == 2
    assert f"{RUN_ID} is still RUNNING: its results are not complete." in result.stderr
    assert "--partial" in result.stderr
    assert not (tmp_path / "r").exists()


def test_partial_takes_the_parts_there_are(tmp_path: Path) -> None:
    world = finished().answers("DescribeRun", run_view())
    del world.objects.bodies["argosy-results", f"{RUN_ID}/manifest.json"]
    result = world.argosy("results", RUN_ID, "--partial", "--download", str(tmp_path))
    assert result.exit_code == 0
    assert files(tmp_path) == {part(0), part(1)}


def test_the_manifest_of_an_earlier_end_is_not_used_for_a_run_that_was_reopened(tmp_path: Path) -> None:
    world = finished(entry(0, part(0)), entry(1)).answers("DescribeRun", run_view())
    result = world.argosy("results", RUN_ID, "--partial", "--download", str(tmp_path))
    assert result.exit_code == 0
    assert files(tmp_path) == {part(0), part(1)}  # the second came after that end


def test_a_run_that_ended_without_manifest_is_an_error() -> None:
    world = World().answers("DescribeRun", ended())
    result = world.argosy("results", RUN_ID)
    assert result.exit_code == 3
    assert "has no manifest" in result.stderr


def test_a_refusal_of_s3_is_not_taken_for_a_missing_manifest() -> None:
    class Closed:
        def get_object(self, **_: Any) -> Any:
            raise refusal("AccessDenied", operation="GetObject")

    world = World(others={"s3": Closed()}).answers("DescribeRun", ended())
    result = world.argosy("results", RUN_ID, "--partial")
    assert result.exit_code == 3
    assert "AccessDenied" in result.stderr


@pytest.mark.parametrize("key", ["attempts/0/1/../../../../../etc/passwd", "/etc/passwd"])
def test_a_key_that_would_leave_the_folder_is_refused(tmp_path: Path, key: str) -> None:
    world = finished(entry(0, f"{RUN_ID}/{key}"))
    result = world.argosy("results", RUN_ID, "--download", str(tmp_path / "r"))
    assert result.exit_code == 3
    assert "nothing was copied" in result.stderr
    assert not (tmp_path / "r").exists()


def test_json_lists_files_and_manifest(tmp_path: Path) -> None:
    result = finished().argosy("results", RUN_ID, "--download", str(tmp_path), "--json")
    document = json.loads(result.stdout)
    assert document["files"][0] == {"key": f"{RUN_ID}/{part(0)}", "path": part(0), "bytes": 15}
    assert document["downloadedTo"] == str(tmp_path)
    assert document["manifest"]["runId"] == RUN_ID


def test_a_run_without_any_result_points_to_its_tasks() -> None:
    world = finished().answers("DescribeRun", ended("FAILED", tasks=tasks(failed=2)))
    world.objects.put(f"{OUTPUT}manifest.json", {"entries": [{"index": 0, "keys": []}]})
    lines = world.argosy("results", RUN_ID).stdout.splitlines()
    assert lines == [
        f"{RUN_ID} FAILED: 0 of 2 tasks have a result, 0 files, 0 B",
        f"next: argosy status {RUN_ID} --tasks",
    ]
