"""`results --merge`: the parts that the manifest names become one file, in order, each once, or nothing at all."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from argosy.cli import figures
from tests.fakes.cli import OUTPUT, RUN_ID, World, ended, refusal, run_view, tasks

PREFIX = f"{RUN_ID}/"


def part(index: int, suffix: str = ".jsonl") -> str:
    return f"parts/part-{index:07d}{suffix}"


def entry(index: int, *names: str, **changes: Any) -> dict[str, Any]:
    return {"index": index, "status": "SUCCEEDED", "attempt": 1, "keys": [PREFIX + n for n in names], **changes}


def world(files: Mapping[str, str | bytes], entries: list[dict[str, Any]] | None = None, **view: Any) -> World:
    """A run that has ended with `files`. Without `entries` each of them is the part of one task, in order."""
    named = [entry(i, name) for i, name in enumerate(sorted(files))] if entries is None else [*map(dict, entries)]
    made = World().answers("DescribeRun", ended(tasks=tasks(succeeded=len(named)), **view))
    for name, text in files.items():
        made.objects.put(OUTPUT + name, text)
    for each in named:
        sizes = [len(made.objects.bodies.get(("argosy-results", key), b"")) for key in each["keys"]]
        each.setdefault("bytes", sum(sizes))
    head = json.dumps({"runId": RUN_ID, "output": OUTPUT})[:-1] + ', "entries": [\n'
    made.objects.put(f"{OUTPUT}manifest.json", head + ",\n".join(map(json.dumps, named)) + "\n]}\n")
    return made


ROWS = {part(i): f'{{"index": {2 * i}}}\n{{"index": {2 * i + 1}}}\n' for i in range(40)}


def test_the_rows_stand_in_the_order_of_the_tasks_as_the_programs_wrote_them(tmp_path: Path) -> None:
    result = world(ROWS).argosy("results", RUN_ID, "--merge", "--output", str(tmp_path / "all.jsonl"))
    assert (result.exit_code, result.stderr) == (0, "")
    assert (tmp_path / "all.jsonl").read_text() == "".join(ROWS[part(i)] for i in range(40))
    assert result.stdout.splitlines() == [
        f"{RUN_ID} SUCCEEDED: 80 rows of 40 of 40 tasks, {figure(tmp_path / 'all.jsonl')}",
        f"merged into {tmp_path / 'all.jsonl'}",
    ]


def figure(path: Path) -> str:
    from argosy.cli.figures import size

    return size(path.stat().st_size)


def test_by_default_the_file_is_named_after_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    world(ROWS).argosy("results", RUN_ID, "--merge")
    world({part(0): "{}"}).argosy("results", RUN_ID, "--merge", "--format", "csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{RUN_ID}.csv", f"{RUN_ID}.jsonl"]


def test_what_the_manifest_does_not_name_is_never_among_the_rows(tmp_path: Path) -> None:
    """A zombie's files, and a part that was there before the run's own."""
    files = {part(0): '{"a":1}\n', "attempts/0/1/rows.jsonl": '{"a":2}\n', part(1): '{"a":3}\n'}
    merged = world(files, [entry(0, part(0))])
    assert merged.argosy("results", RUN_ID, "--merge", "-o", "-").stdout == '{"a":1}\n'


def test_a_task_that_wrote_its_part_and_more_is_asked_for_its_part(tmp_path: Path) -> None:
    files = {
        "attempts/0/1/notes.txt": "no rows",
        part(0): '{"a":1}\n',
        "attempts/1/1/a.jsonl": "2",
        "attempts/1/1/b": "3",
    }
    entries = [entry(0, "attempts/0/1/notes.txt", part(0)), entry(1, "attempts/1/1/a.jsonl", "attempts/1/1/b")]
    assert world(files, entries).argosy("results", RUN_ID, "--merge", "-o", "-").stdout == '{"a":1}\n2\n3\n'


def test_standard_output_holds_the_rows_only(tmp_path: Path) -> None:
    result = world(ROWS).argosy("results", RUN_ID, "--merge", "--output", "-")
    assert result.stdout.count("\n") == 80
    assert "80 rows of 40 of 40 tasks" in result.stderr


def test_a_missing_newline_an_empty_line_and_an_empty_part_do_no_harm() -> None:
    files = {part(0): '{"a":1}', part(1): "", part(2): '\n{"a":2}\r\n\n'}
    assert world(files).argosy("results", RUN_ID, "--merge", "-o", "-").stdout == '{"a":1}\n{"a":2}\n'


@pytest.mark.parametrize("layout", ["one line", "indented"])
def test_a_manifest_laid_out_otherwise_is_read_too(layout: str) -> None:
    merged = world(ROWS)
    manifest = json.loads(merged.objects.bodies["argosy-results", f"{PREFIX}manifest.json"])
    merged.objects.put(f"{OUTPUT}manifest.json", json.dumps(manifest, indent=None if layout == "one line" else 2))
    assert merged.argosy("results", RUN_ID, "--merge", "-o", "-").stdout.count("\n") == 80


def test_a_table_has_every_column_in_the_order_of_appearance() -> None:
    files = {part(0): '{"b":1,"a":"x,y"}\n', part(1): '{"a":null,"c":[1,2],"d":{"e":"ü"}}\n7\n'}
    result = world(files).argosy("results", RUN_ID, "--merge", "--format", "csv", "-o", "-")
    assert list(csv.reader(io.StringIO(result.stdout))) == [
        ["b", "a", "c", "d", "value"],
        ["1", "x,y", "", "", ""],
        ["", "", "[1, 2]", '{"e": "ü"}', ""],
        ["", "", "", "", "7"],
    ]


def test_a_table_of_nothing_is_empty() -> None:
    assert world({part(0): ""}).argosy("results", RUN_ID, "--merge", "--format", "csv", "-o", "-").stdout == ""


def test_a_byte_order_mark_is_no_part_of_a_row() -> None:
    mark = b"\xef\xbb\xbf"
    names = [part(0), part(1), part(2, ".csv"), part(3, ".json")]
    bodies = [b'{"a": 1}\n', b'\n{"a": 2}\n', b"a\n3\n", b'{"a": 4}']
    made = world(dict(zip(names, (mark + each for each in bodies), strict=True)), [*map(entry, range(4), names)])
    made.objects.metadata[f"{RUN_ID}/{part(1)}"] = {"argosy-rows": "1"}
    result = made.argosy("results", RUN_ID, "--merge", "-o", "-")
    assert [json.loads(line)["a"] for line in result.stdout.splitlines()] == [1, 2, "3", 4], result.stderr


def test_parts_may_be_tables_or_single_documents() -> None:
    files = {part(0, ".csv"): 'a,b\n1,"x\ny"\n2,z\n', part(1, ".json"): '{\n "a": 3\n}\n'}
    merged = world(files, [entry(0, part(0, ".csv")), entry(1, part(1, ".json"))])
    lines = merged.argosy("results", RUN_ID, "--merge", "-o", "-").stdout.splitlines()
    assert [json.loads(line) for line in lines] == [{"a": "1", "b": "x\ny"}, {"a": "2", "b": "z"}, {"a": 3}]


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        (part(0), '{"a":1}\n{"a":\n', "line 2 is not JSON"),
        (part(0, ".json"), "{", "the document is not JSON"),
        (part(0, ".csv"), "a,b\n1\n", "more or fewer values"),
        (part(0, ".csv"), "a,b\n1,2,3\n", "more or fewer values"),
        (part(0, ".csv"), b"a\n\xff\n", "not CSV"),
        (part(0, ".csv"), 'a\n"1', "not CSV"),
    ],
)
def test_a_part_that_holds_no_rows_is_named_and_nothing_is_written(
    tmp_path: Path, name: str, content: str | bytes, complaint: str
) -> None:
    result = world({name: content}, [entry(0, name)]).argosy("results", RUN_ID, "--merge", "-o", str(tmp_path / "x"))
    assert result.exit_code == 1
    assert "The part of task 0 cannot be merged" in result.stderr
    assert complaint in result.stderr
    assert name in result.stderr
    assert list(tmp_path.iterdir()) == []


BAD = [
    (part(1), '{"a":1}\n{"a":\n', "line 2 is not JSON"),
    (part(1, ".csv"), "a,b\n1,2\n1\n", "more or fewer values"),
    (part(1, ".json"), "{", "the document is not JSON"),
]


@pytest.mark.parametrize("form", ["jsonl", "csv"])
@pytest.mark.parametrize(("name", "content", "complaint"), BAD)
def test_partial_skips_a_bad_part_and_reports_it(name: str, content: str, complaint: str, form: str) -> None:
    parts = [entry(0, part(0)), entry(1, name), entry(2, part(2))]
    there = world({part(0): '{"a":0}\n', name: content, part(2): '{"a":2}\n'}, parts)
    there.objects.metadata[PREFIX + name] = {"argosy-rows": "2"} if name.endswith(".csv") else {}
    result = there.argosy("results", RUN_ID, "--merge", "--partial", "--format", form, "-o", "-")
    assert result.exit_code == 0
    assert result.stdout == ('{"a":0}\n{"a":2}\n' if form == "jsonl" else "a\n0\n2\n")
    assert "  task 1: it holds something else: " in result.stderr
    assert complaint in result.stderr


def test_a_bad_part_is_refused_with_commands_that_can_be_typed() -> None:
    refused = world({part(0): "{"}, [entry(0, part(0))]).argosy("results", RUN_ID, "--merge", "-o", "-")
    assert f"`argosy results {RUN_ID} --merge --partial` merges the others" in refused.stderr
    assert f"`argosy logs {RUN_ID} --task 0`" in refused.stderr
    assert "RUN " not in refused.stderr


INCOMPLETE = [
    entry(0, part(0)),
    entry(1, status="FAILED"),
    entry(2),
    entry(3, part(3)),
    entry(4, part(4), bytes=99),
    *(entry(i, status="CANCELLED") for i in range(5, 14)),
]


def test_missing_results_are_named_and_nothing_is_written(tmp_path: Path) -> None:
    files = {part(0): '{"a":0}\n', part(4): '{"a":4}\n'}
    target = tmp_path / "all.jsonl"
    target.write_text("of yesterday")
    result = world(files, INCOMPLETE).argosy("results", RUN_ID, "--merge", "--output", str(target))
    assert result.exit_code == 1
    assert result.stderr.splitlines()[:6] == [
        f"error: 13 tasks of 14 in {RUN_ID} have no result: nothing was written.",
        "  task 1: FAILED",
        "  task 2: it left no result",
        f"  task 3: {PREFIX}{part(3)} is gone",
        "  task 4: it has 8 bytes now, 99 when the run ended",
        "  task 5: CANCELLED",
    ]
    assert "and 3 more" in result.stderr
    assert f"argosy results {RUN_ID} --merge --partial" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["all.jsonl"]
    assert target.read_text() == "of yesterday"


def test_partial_merges_the_others_and_says_which_are_missing(tmp_path: Path) -> None:
    files = {part(0): '{"a":0}\n', part(3): '{"a":3}\n'}
    arguments = ["results", RUN_ID, "--merge", "--partial", "--output", str(tmp_path / "x")]
    result = world(files, INCOMPLETE).argosy(*arguments)
    assert result.exit_code == 0
    assert (tmp_path / "x").read_text() == '{"a":0}\n{"a":3}\n'
    assert "2 rows of 2 of 14 tasks" in result.stdout
    assert "  task 1: FAILED" in result.stdout
    document = json.loads(world(files, INCOMPLETE).argosy(*arguments, "--json").stdout)
    assert document["tasks"] == {"total": 14, "merged": 2, "missing": 12}
    assert document["missing"][0] == {"index": 1, "why": "FAILED"}
    assert (document["rows"], document["format"], document["mergedTo"]) == (2, "jsonl", str(tmp_path / "x"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (part(1), '{"a":1}\n\n{"a":2}\n'),
        (part(1, ".csv"), "a\n1\n2\n"),
        (part(1, ".json"), '{"a":[1,2]}'),
    ],
    ids=["jsonl", "csv", "json"],
)
def test_a_part_with_other_rows_than_its_metadata_says_does_not_count_as_there(
    tmp_path: Path, name: str, content: str
) -> None:
    """As long as the manifest says, but cut before it was written, say, by a program that dropped rows."""
    merged = world({part(0): '{"a":0}\n', name: content})
    merged.objects.metadata = {PREFIX + part(0): {"argosy-rows": "1"}, PREFIX + name: {"argosy-rows": "3"}}
    rows = 1 if name.endswith(".json") else 2
    refused = merged.argosy("results", RUN_ID, "--merge", "-o", str(tmp_path / "x"))
    assert refused.exit_code == 1
    assert f"  task 1: it has {figures.counted(rows, 'row')}, its metadata says 3" in refused.stderr
    assert list(tmp_path.iterdir()) == []
    result = merged.argosy("results", RUN_ID, "--merge", "--partial", "-o", "-")
    assert result.stdout == '{"a":0}\n'
    assert "1 row of 1 of 2 tasks" in result.stderr
    merged.objects.metadata[PREFIX + name] = {"argosy-rows": str(rows)}
    assert merged.argosy("results", RUN_ID, "--merge", "-o", "-").exit_code == 0


@pytest.mark.parametrize("said", ["", "many", "-1"])
def test_metadata_that_is_no_count_says_nothing(said: str) -> None:
    merged = world({part(0): '{"a":0}\n'})
    merged.objects.metadata[PREFIX + part(0)] = {"argosy-rows": said}
    assert merged.argosy("results", RUN_ID, "--merge", "-o", "-").stdout == '{"a":0}\n'


def test_an_uncountable_part_is_reported_like_an_unreadable_one() -> None:
    merged = world({part(0, ".csv"): "a,b\n1\n"}, [entry(0, part(0, ".csv"))])
    merged.objects.metadata[PREFIX + part(0, ".csv")] = {"argosy-rows": "1"}
    assert "The part of task 0 cannot be merged" in merged.argosy("results", RUN_ID, "--merge", "-o", "-").stderr


def test_two_merges_into_one_file_at_once_are_each_whole_and_the_last_one_stays(tmp_path: Path) -> None:
    target, merged = tmp_path / "all.jsonl", world(ROWS)
    words = ("results", RUN_ID, "--merge", "--output", str(target))
    get, seen = merged.objects.get_object, []

    def get_while_another_merges(**request: str) -> dict[str, Any]:
        if request["Key"].endswith(part(20)) and not seen:
            seen.append(world({part(0): '{"other":1}\n'}).argosy(*words))
            assert target.read_text() == '{"other":1}\n'
        return get(**request)

    merged.objects.get_object = get_while_another_merges  # type: ignore[method-assign]
    result = merged.argosy(*words)
    assert (result.exit_code, seen[0].exit_code) == (0, 0), result.stderr
    assert target.read_text() == "".join(ROWS[part(i)] for i in range(40))
    assert list(tmp_path.iterdir()) == [target]


def test_a_merged_file_has_the_permissions_of_the_shells_umask(tmp_path: Path) -> None:
    world(ROWS).argosy("results", RUN_ID, "--merge", "--output", str(tmp_path / "x"))
    (tmp_path / "plain").touch()
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_the_finished_parts_of_an_open_run_are_available() -> None:
    running = World().answers("DescribeRun", run_view(tasks=tasks(succeeded=2, running=2)))
    for index in (1, 3):
        running.objects.put(OUTPUT + part(index), f'{{"a":{index}}}\n')
    running.objects.put(f"{OUTPUT}{part(3)}.copy", '{"a":3}\n')
    running.objects.put(f"{OUTPUT}parts/notes", "no part")
    refused = running.argosy("results", RUN_ID, "--merge", "-o", "-")
    assert refused.exit_code == 2
    result = running.argosy("results", RUN_ID, "--merge", "--partial", "-o", "-")
    assert result.stdout == '{"a":1}\n{"a":3}\n'
    assert "  task 0: not available yet\n  task 2: not available yet" in result.stderr


def test_the_manifest_of_an_earlier_end_is_not_used_for_a_run_that_was_reopened() -> None:
    reopened = world({part(0): '{"a":0}\n', part(1): '{"a":1}\n'}, [entry(0, part(0)), entry(1, status="FAILED")])
    reopened.answers("DescribeRun", run_view(tasks=tasks(succeeded=2, running=1)))
    refused = reopened.argosy("results", RUN_ID, "--merge", "-o", "-")
    assert (refused.exit_code, refused.stdout) == (2, "")
    result = reopened.argosy("results", RUN_ID, "--merge", "--partial", "-o", "-")
    assert result.stdout == '{"a":0}\n{"a":1}\n'
    assert "  task 2: not available yet" in result.stderr


def in_parts(made: World, *bounds: int) -> World:
    """The same run, with its manifest as the controller writes that of a large run."""
    document = json.loads(made.objects.bodies["argosy-results", f"{PREFIX}manifest.json"])
    entries = document.pop("entries")
    parts = []
    for first, end in pairwise(bounds):
        name = f"manifest/0/{first:07d}-{end:07d}.json"
        head = json.dumps({"runId": RUN_ID, "from": first, "to": end})[:-1] + ', "entries": [\n'
        made.objects.put(OUTPUT + name, head + ",\n".join(map(json.dumps, entries[first:end])) + "\n]}\n")
        parts.append({"key": name, "from": first, "to": end})
    made.objects.put(f"{OUTPUT}manifest.json", json.dumps({**document, "parts": parts}) + "\n")
    return made


def test_a_manifest_in_parts_is_read_like_one_in_a_piece() -> None:
    whole, divided = (
        made.argosy("results", RUN_ID, "--merge", "-o", "-")
        for made in (world(ROWS), in_parts(world(ROWS), 0, 17, 18, 40))
    )
    assert divided.stdout == whole.stdout == "".join(ROWS[part(index)] for index in range(40))


def test_a_manifest_with_a_truncated_or_missing_part_is_refused() -> None:
    for bounds, complaint in (((0, 17, 39), "names 39 tasks"), ((1, 17, 40), "has entry 1 where entry 0 was expected")):
        result = in_parts(world(ROWS), *bounds).argosy("results", RUN_ID, "--merge", "--partial", "-o", "-")
        assert (result.exit_code, complaint in result.stderr) == (3, True)
    broken = in_parts(world(ROWS), 0, 17, 40)
    name = f"{OUTPUT}manifest/0/0000017-0000040.json"
    broken.objects.put(name, broken.objects.bodies["argosy-results", name.removeprefix("s3://argosy-results/")][:-4])
    assert "is truncated" in broken.argosy("results", RUN_ID, "--merge", "--partial", "-o", "-").stderr


def test_a_run_without_manifest_is_refused() -> None:
    result = World().answers("DescribeRun", ended()).argosy("results", RUN_ID, "--merge", "-o", "-")
    assert result.exit_code == 3
    assert "has no manifest" in result.stderr


@pytest.mark.parametrize(
    ("manifest", "complaint"),
    [
        ('{"runId": "x", "entries": [\n{"index": 0, "status": "SUCCEEDED", "keys": []},\n', "is truncated"),
        ('{"entries": [\n{"index": 1, "status": "FAILED"}\n]}\n', "has entry 1 where entry 0 was expected"),
        (
            '{"entries": [\n{"index": 0, "status": "FAILED"},\n{"index": 0, "status": "FAILED"}\n]}\n',
            "entry 1 was expected",
        ),
        ('{"entries": [\n{"index": 0, "keys": [], "bytes": 0, "more": true}\n]}\n', "entry 0 is not continued"),
        (
            '{"entries": [\n{"index": 0, "keys": [], "bytes": 0, "more": true},\n{"index": 1, "keys": []}\n]}\n',
            "entry 0 is not continued",
        ),
        ('{"entries": [\n{"index":\n]}\n', "cannot be read"),
        ('{"entry": []}', "cannot be read"),
        ('{"entries": [\n{"index": 0, "status": "FAILED"}\n]}\n', "names 1 tasks, the run has 18"),
    ],
)
def test_a_manifest_that_is_not_whole_is_refused(manifest: str, complaint: str) -> None:
    """This includes one that would name a task twice."""
    broken = World().answers("DescribeRun", ended())
    broken.objects.put(f"{OUTPUT}manifest.json", manifest)
    result = broken.argosy("results", RUN_ID, "--merge", "--partial", "-o", "-")
    assert (result.exit_code, result.stdout) == (3, "")
    assert complaint in result.stderr


def test_a_refusal_by_aws_is_reported_and_leaves_no_file(tmp_path: Path) -> None:
    for failing in ("manifest.json", part(1)):
        denied = world(ROWS)
        denied.objects.refuses[PREFIX + failing] = refusal("AccessDenied", operation="GetObject")
        result = denied.argosy("results", RUN_ID, "--merge", "-o", str(tmp_path / "x"))
        assert result.exit_code == 3
        assert "AccessDenied" in result.stderr
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--merge", "--format", "xml"], "jsonl or csv, not xml"),
        (["--format", "csv"], "need --merge"),
        (["--output", "x"], "need --merge"),
        (["--merge", "--download", "d"], "choose one"),
        (["--merge", "--json", "--output", "-"], "both write"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words: list[str], complaint: str) -> None:
    result = world(ROWS).argosy("results", RUN_ID, *words)
    assert result.exit_code == 2
    assert complaint in result.stderr


@pytest.mark.parametrize("target", ["/dev/null/x", "folder"])
def test_an_unwritable_file_is_reported(tmp_path: Path, target: str) -> None:
    (tmp_path / "folder").mkdir()
    result = world(ROWS).argosy("results", RUN_ID, "--merge", "--output", str(tmp_path / target))
    assert result.exit_code == 2
    assert f"{tmp_path / target} cannot be written" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_results(tmp_path: Path) -> None:
    """9 MB of rows in 60 parts: only a few parts are in memory, never all."""
    row = json.dumps({"text": "x" * 1_000}) + "\n"
    merged = world({part(i): row * 150 for i in range(60)})
    tracemalloc.start()
    try:
        for form in ("jsonl", "csv"):
            merged.argosy("results", RUN_ID, "--merge", "--format", form, "-o", str(tmp_path / form))
        assert tracemalloc.get_traced_memory()[1] < 5e6
    finally:
        tracemalloc.stop()
    assert (tmp_path / "csv").stat().st_size > 9e6
