"""`run`: a program of the user's own in one command."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from argosy.cli.problems import CliError
from argosy.cli.runs.run import with_dashes
from argosy.spec.file import check_text
from tests.fakes.cli import OUTPUT, RUN_ID, World, api_error, ended, run_view, tasks

PART = "parts/part-0000000.jsonl"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current one, with a script, a module next to it, an executable and a file that is not executable."""
    home = tmp_path / "home" / "me"
    work = home / "work"
    work.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(work)
    (work / "My_primes.py").write_text("import sieve\n")
    (work / "sieve.py").write_text("")
    (work / "simulate.sh").write_text("#!/bin/sh\n")
    (work / "simulate.sh").chmod(0o755)
    (work / "notes.txt").write_text("")
    return work


def dry(*words: str) -> dict[str, Any]:
    result = World().argosy("run", "--dry-run", "--json", *words)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def refused(*words: str) -> list[str]:
    result = World().argosy("run", *words)
    assert result.exit_code == 2, result.output
    lines: list[str] = result.stderr.splitlines()
    return lines


def accepting(**changes: Any) -> World:
    view = run_view(status="SUBMITTED", tasks=tasks(pending=18), created=True)
    plain: dict[str, Any] = {"name": "x", "tasks": 1, "image": None, "output": OUTPUT, "warnings": []}
    return World().answers("ValidateRun", plain).answers("SubmitRun", view).answers("DescribeRun", ended(**changes))


def submitted(world: World) -> dict[str, Any]:
    (request,) = [each for each in world.functions.requests if each["action"] == "SubmitRun"]
    found: dict[str, Any] = request["spec"]
    return found


def test_a_script_is_run_by_python_in_its_folder(folder: Path) -> None:
    assert dry("My_primes.py", "${start}", "${end}", "--range", "0:1000", "--shard-size", "50") == {
        "version": 1,
        "name": "my-primes",
        "run": ["python", "My_primes.py", "${start}", "${end}"],
        "workdir": ".",
        "array": {"range": "0:1000", "shardSize": 50},
    }


def test_every_option_has_its_field(folder: Path) -> None:
    found = dry(
        *("./simulate.sh", "--size", "7", "--vcpus", "2", "--memory", "4096", "--gpu-model", "T4", "--name", "mine"),
        *("--with", "pandas,torch>=2,<3", "--with", "x[a,b]", "--image", "argosy/python:3.13", "--setup", "make"),
        *("--input", "s3://data/${index}/", "--input", "s3://data/x1", "--env", "A=1=2", "--result", "stdout"),
        *("--budget", "5", "--deadline", "2h", "--attempts", "3", "--", "--verbose", "-x"),
    )
    assert found == {
        "version": 1,
        "name": "mine",
        "container": {"image": "argosy/python:3.13", "environment": {"A": "1=2"}},
        "run": ["./simulate.sh", "--verbose", "-x"],
        "workdir": ".",
        "setup": "make",
        "packages": ["pandas", "torch>=2,<3", "x[a,b]"],
        "inputs": ["s3://data/${index}/", "s3://data/x1"],
        "result": "stdout",
        "array": {"size": 7},
        "resources": {"vcpus": 2.0, "memory": 4096, "gpus": 1, "gpuModel": "T4"},
        "capacity": {"budgetUsd": 5.0, "deadline": "2h"},
        "retryStrategy": {"attempts": 3},
    }


def test_a_share_of_a_gpu_of_a_model_asks_for_no_whole_gpu(folder: Path) -> None:
    found = dry("./simulate.sh", "--size", "7", "--gpu-share", "8000", "--gpu-model", "T4")
    assert found["resources"] == {"gpuShare": {"memoryMib": 8000}, "gpuModel": "T4"}


@pytest.mark.parametrize(
    ("words", "run", "workdir"),
    [
        (["sort", "-k1"], ["sort", "-k1"], None),
        (["python", "-m", "sieve"], ["python", "-m", "sieve"], "."),
        (["python", "-m", "package"], ["python", "-m", "package"], "."),
        (["python", "-m", "json.tool"], ["python", "-m", "json.tool"], None),
        (["/usr/local/bin/in-the-image"], ["/usr/local/bin/in-the-image"], None),
        (["sort < notes.txt | uniq"], "sort < notes.txt | uniq", "."),
        (["seq 3 | sort"], "seq 3 | sort", None),
        (["python", "My_primes.py"], ["python", "My_primes.py"], "."),
        (["cat", "/etc/hosts"], ["cat", "/etc/hosts"], None),
        (["sort notes.txt | uniq", "--upload", "."], "sort notes.txt | uniq", "."),
        (["work/My_primes.py", "--upload", "work"], ["python", "My_primes.py"], "work"),
        (["work/My_primes.py"], ["python", "My_primes.py"], "work"),
        (["work/My_primes.py", "--upload", "."], ["python", "work/My_primes.py"], "."),
    ],
)
def test_how_the_program_argument_is_interpreted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], run: Any, workdir: str | None
) -> None:
    if any("work" in word for word in words):
        monkeypatch.chdir(folder.parent)
    (folder / "package").mkdir(exist_ok=True)
    (folder / "package" / "__main__.py").write_text("")
    found = dry(*words)
    assert (found["run"], found.get("workdir"), found["array"]) == (run, workdir, {"size": 1})


@pytest.mark.parametrize(
    ("words", "own"),
    [
        (["--lr", "0.1", "--epochs=3"], ["--lr", "0.1", "--epochs=3"]),
        (["--size", "2", "--lr", "0.1", "-x", "-1"], ["--lr", "0.1", "-x", "-1"]),
        (["a", "--size=2", "b", "--lr", "a"], ["a", "b", "--lr", "a"]),
        (["--output", "x"], ["--output", "x"]),
        (["--", "--name", "x", "--rnage"], ["--name", "x", "--rnage"]),
        (["-", "--size", "2"], ["-"]),
    ],
)
def test_the_first_option_that_is_not_argosys_begins_the_programs(
    folder: Path, words: list[str], own: list[str]
) -> None:
    found = dry("My_primes.py", *words)
    assert found["run"] == ["python", "My_primes.py", *own]
    assert found["array"] == {"size": 2 if any("--size" in word for word in words) else 1}
    assert found["name"] == "my-primes"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--lr", "0.1", "--size", "2"], "error: --size comes after --lr, which belongs to the program"),
        (["--lr", "0.1", "--name=x"], "error: --name comes after --lr, which belongs to the program"),
        (["-x", "-d"], "error: -d comes after -x, which belongs to the program"),
        (["--rnage", "0:10"], "error: argosy run has no option --rnage; did you mean --range?"),
        (["--lr", "1", "--mem=5"], "error: argosy run has no option --mem; did you mean --memory?"),
    ],
)
def test_an_option_that_could_be_argosys_is_not_guessed_about(folder: Path, words: list[str], said: str) -> None:
    found = refused("My_primes.py", *words)
    assert found[0].startswith(said)
    assert "write -- before the program's own options" in found[1]


@pytest.mark.parametrize("option", ["--depth", "--count", "--seed", "--outputs", "--lr", "--data", "--epochs"])
def test_an_option_that_is_no_misspelt_one_is_the_programs(folder: Path, option: str) -> None:
    result = accepting().argosy("run", "My_primes.py", option, "3")
    assert f"each task runs: python My_primes.py {option} 3\n" in result.stderr
    meant = "warning: --count is passed to the program; Argosy's option is --size, before PROGRAM\n"
    assert result.stderr.startswith(meant) == (option == "--count")


@given(st.sampled_from(["--range", "--memory", "--size"]), st.integers(2, 7), st.sampled_from("abcxyz"))
def test_one_slip_of_a_finger_is_near(known: str, at: int, letter: str) -> None:
    """Oracle: all that one insertion, deletion, change or swap makes of an option."""
    at = min(at, len(known) - 1)
    slips = {known[:at] + letter + known[at:], known[:at] + known[at + 1 :], known[:at] + letter + known[at + 1 :]}
    slips |= {known[:at] + known[at + 1] + known[at] + known[at + 2 :]} if at + 1 < len(known) else set()
    for slip in slips - {known}:
        with pytest.raises(CliError, match=f"has no option {slip}; did you mean {known}"):
            with_dashes(["x.py", slip], {known: True})


@pytest.mark.parametrize("words", [["--lr", "My_primes.py"], ["My_primes.py", "--lr", "--", "x"], ["--lr"]])
def test_before_the_program_and_before_dashes_options_are_argosys(folder: Path, words: list[str]) -> None:
    assert "No such option: --lr" in World().argosy("run", *words).stderr


def test_it_says_what_a_task_runs(folder: Path) -> None:
    told = accepting().argosy("run", "My_primes.py", "${index}", "--lr", "0.1").stderr
    assert "each task runs: python My_primes.py '${index}' --lr 0.1\n" in told
    assert accepting().argosy("run", "echo $HOME").stderr == "each task runs: echo $HOME\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xcf\xfa\xed\xfe\x07\0\0\x01", "error: x is neither a script nor a Linux program."),
        (b"#!/bin/sh\r\necho hi\r\n", "error: x has Windows line endings"),
    ],
)
def test_a_file_that_no_kernel_starts_is_not_sent(folder: Path, content: bytes, said: str) -> None:
    (folder / "x").write_bytes(content)
    (folder / "x").chmod(0o755)
    assert refused("./x")[0].startswith(said)


@pytest.mark.parametrize("content", [b"echo hi\n", b"#!/bin/sh\n", b"\x7fELF\2\1\1\0\0", b""])
def test_a_script_without_a_first_line_is_the_shells(folder: Path, content: bytes) -> None:
    (folder / "x").write_bytes(content)
    (folder / "x").chmod(0o755)
    assert dry("./x")["run"] == ["./x"]


def test_memory_with_a_unit_is_suggested_in_mib(folder: Path) -> None:
    assert "4096" in refused("--dry-run", "My_primes.py", "--memory", "4GB")[1]


def test_a_file_name_is_never_substituted(folder: Path) -> None:
    (folder / "a${b}.py").write_text("")
    assert dry("a${b}.py")["run"] == ["python", "a$${b}.py"]


def test_a_folder_elsewhere_is_named_in_full(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "x.py").write_text("")
    assert dry(str(other / "x.py"))["workdir"] == str(other)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nope.py"], "error: There is no file nope.py."),
        (["./nope"], "error: There is no file nope."),
        (["notes.txt"], "error: notes.txt is not executable."),
        (["../work/"], "error: ../work is not a file."),
        (["My_primes.py", "--upload", "nowhere"], "error: nowhere is not a folder."),
        (["My_primes.py", "--env", "A"], "error: --env 'A' must be NAME=VALUE."),
        (["My_primes.py", "--items", "nope"], "error: Cannot read nope: No such file or directory."),
        (
            ["My_primes.py", "--items", "bad.jsonl"],
            "error: bad.jsonl:2: not JSON: Expecting value",
        ),
        (["My_primes.py", "--items", "empty"], "error: empty has no items."),
        (["My_primes.py", "--items", "binary"], "error: Cannot read binary: it is not UTF-8 text."),
        (["My_primes.py", "--detach", "--out", "x"], "error: --detach does not wait for results"),
        (["My_primes.py", "--result", "none", "--merge", "x"], "error: --result none leaves no results"),
        (["My_primes.py", "--merge", "-", "--out", "x"], "error: --merge - and --out would both write"),
        (["My_primes.py", "--merge", "nowhere/x.csv"], "error: --merge nowhere/x.csv cannot be written at the end"),
        (["My_primes.py", "--out", "notes.txt"], "error: --out notes.txt cannot be written at the end: it is a file"),
    ],
)
def test_an_impossible_option_is_one_sentence(folder: Path, words: list[str], said: str) -> None:
    (folder / "bad.jsonl").write_text("1\nx\n")
    (folder / "empty").write_text("\n")
    (folder / "binary").write_bytes(b"\xff\xfe")
    assert refused(*words)[0].startswith(said)


def test_a_script_outside_of_the_folder_that_travels_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    assert refused("My_primes.py", "--upload", str(tmp_path / "other"))[0].startswith("error: My_primes.py is not in ")


def test_a_home_folder_is_not_uploaded_unasked(folder: Path) -> None:
    (folder.parent / "x.py").write_text("")
    said = refused("../x.py")
    assert said[0] == f"error: x.py is in {folder.parent}, and that whole folder would be uploaded."
    assert "--upload DIR" in said[1]
    assert dry("../x.py", "--upload", "..")["workdir"] == str(folder.parent)


def test_gpus_are_a_number_or_all(folder: Path) -> None:
    asked = [dry("My_primes.py", "--gpus", count)["resources"]["gpus"] for count in ("2", "ALL")]
    assert asked == [2, "ALL"]


def test_faults_are_reported_by_option(folder: Path) -> None:
    said = refused(
        "--dry-run", "My_primes.py", "${start}", "--gpus", "-1", "--with", "../x", "--range", "5:1", "--size", "3"
    )
    assert said[0] == "error: The command line has 4 faults; nothing was submitted."
    assert [line.strip().split(": ")[0] for line in said[1:]] == [
        "--with", "--gpus", "--range", "--range, --size, --items",
    ]  # fmt: skip


def test_faults_that_only_the_deployment_finds_come_before_anything_is_uploaded(folder: Path) -> None:
    refusal = api_error(400, "ValidationException", "1 field is invalid", ("resources.gpus", "no instance has 16 GPUs"))
    world = World().answers("ValidateRun", refusal)
    result = world.argosy("run", "My_primes.py", "--gpus", "16")
    assert result.exit_code == 2
    assert "  --gpus: no instance has 16 GPUs" in result.stderr.splitlines()
    assert world.objects.written == []


def test_the_folder_is_uploaded_and_the_run_followed_to_its_end(folder: Path) -> None:
    world = accepting()
    result = world.argosy("run", "My_primes.py", "--range", "0:18")
    assert result.exit_code == 0, result.output
    spec = submitted(world)
    assert "workdir" not in spec
    job = json.loads(world.objects.bodies["argosy-results", spec["job"].removeprefix("s3://argosy-results/")])
    archive = world.objects.bodies["argosy-results", job["archives"][0]["uri"].removeprefix("s3://argosy-results/")]
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        assert packed.getnames() == ["My_primes.py", "notes.txt", "sieve.py", "simulate.sh"]
    assert f"packing {folder}: 4 files" in result.stderr
    assert "uploaded " in result.stderr
    assert f"{RUN_ID} submitted" in result.stdout


def test_detached_it_says_what_to_type_next(folder: Path) -> None:
    result = accepting().argosy("run", "echo", "hi", "--detach")
    assert result.stdout.splitlines()[-1] == f"next: argosy watch {RUN_ID}"


def test_a_run_with_failures_exits_1(folder: Path) -> None:
    assert accepting(status="FAILED", tasks=tasks(failed=1)).argosy("run", "false").exit_code == 1


def with_rows() -> World:
    world = accepting(tasks=tasks(succeeded=1))
    entry = {"index": 0, "status": "SUCCEEDED", "attempt": 1, "keys": [f"{RUN_ID}/{PART}"], "bytes": 8}
    head = json.dumps({"runId": RUN_ID, "output": OUTPUT})[:-1] + ', "entries": [\n'
    world.objects.put(f"{OUTPUT}manifest.json", f"{head}{json.dumps(entry)}\n]}}\n")
    world.objects.put(f"{OUTPUT}{PART}", '{"a": 1}')
    return world


def test_items_are_lines_or_json(folder: Path) -> None:
    (folder / "lines").write_text("a b\n\n1\n")
    (folder / "rows.jsonl").write_text('{"k": 1}\n"x"\n')
    assert dry("My_primes.py", "--items", "lines")["array"] == {"items": ["a b", "1"]}
    assert dry("My_primes.py", "--items", "rows.jsonl")["array"] == {"items": [{"k": 1}, "x"]}


def test_a_table_is_items_by_the_names_of_its_heading(folder: Path) -> None:
    (folder / "grid.csv").write_bytes(b'\xef\xbb\xbfrate,name\r\n0.1,"a, b"\r\n\r\n0.2,\r\n')
    (folder / "grid.TSV").write_text("rate\tname\n1\tx\n")
    rows = [{"rate": "0.1", "name": "a, b"}, {"rate": "0.2", "name": ""}]
    assert dry("My_primes.py", "${item.rate}", "--items", "grid.csv")["array"] == {"items": rows}
    assert dry("My_primes.py", "${item.rate}", "--items", "grid.TSV")["array"] == {
        "items": [{"rate": "1", "name": "x"}]
    }


@pytest.mark.parametrize("name", ["lines", "rows.jsonl"])
def test_a_byte_order_mark_is_no_part_of_an_item(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"\xef\xbb\xbf1\r\n2\r\n")
    items = ["1", "2"] if name == "lines" else [1, 2]
    assert dry("My_primes.py", "--items", name)["array"] == {"items": items}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a,b\n1\n", "t.csv:2: 1 values, but the heading has 2 names."),
        ("a,a\n1,2\n", "t.csv:1: the heading needs a different name for each column: a, a."),
        ("a,\n1,2\n", "t.csv:1: the heading needs a different name for each column: a, ."),
        ('a\n"x', "t.csv:2: not CSV: unexpected end of data."),
        ("a,b\n", "t.csv has no items."),
    ],
)
def test_a_table_that_is_none_is_one_sentence(folder: Path, text: str, why: str) -> None:
    (folder / "t.csv").write_text(text)
    assert refused("echo", "${item.a}", "--items", "t.csv")[0] == f"error: {why}"


@pytest.mark.parametrize(
    ("pattern", "base", "names"),
    [
        ("clips", "clips/", [".hidden", "a 1.mp4", "b.mp4", "deep/c.mp4"]),
        ("./clips/", "./clips/", [".hidden", "a 1.mp4", "b.mp4", "deep/c.mp4"]),
        ("clips/*.mp4", "clips/", ["a 1.mp4", "b.mp4"]),
        ("clips/**/*.mp4", "clips/", ["a 1.mp4", "b.mp4", "deep/c.mp4"]),
        ("clips/[!a]*", "clips/", ["b.mp4"]),
        ("*.py", "./", ["My_primes.py", "sieve.py"]),
        ("s3://data/in/", "s3://data/in/", ["deep/z.jpg", "x.jpg", "y.png"]),
        ("s3://data/in/*.jpg", "s3://data/in/", ["x.jpg"]),
        ("s3://data/in/**/*.jpg", "s3://data/in/", ["deep/z.jpg", "x.jpg"]),
        ("s3://data/in/[!x]?*", "s3://data/in/", ["y.png"]),
    ],
)
def test_a_pattern_is_a_task_per_file(folder: Path, pattern: str, base: str, names: list[str]) -> None:
    (folder / "clips" / "deep").mkdir(parents=True)
    for name in ("a 1.mp4", "b.mp4", "deep/c.mp4", ".hidden"):
        (folder / "clips" / name).write_text(name)
    world = World()
    for key in ("in/x.jpg", "in/y.png", "in/deep/z.jpg", "in/marker/", "inner.jpg"):
        world.objects.put(f"s3://data/{key}", b"")
    result = world.argosy("run", "--dry-run", "--json", "echo", "${item}", "--input-each", pattern)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["array"], found["inputs"]) == ({"items": names}, [base + "${item}"])


def test_a_shard_of_a_pattern_is_a_task_for_so_many_files(folder: Path) -> None:
    world = World()
    for key in ("a.jpg", "b.jpg", "c.jpg", "in/c.jpg"):
        world.objects.put(f"s3://data/{key}", b"")
    shards = ("--shard-size", "2", "--input-each")
    found = json.loads(world.argosy("run", "--dry-run", "--json", "true", *shards, "s3://data/*.jpg").stdout)
    assert found["array"] == {"items": [["a.jpg", "b.jpg"], ["c.jpg"]]}
    refused = world.argosy("run", "--dry-run", "true", *shards, "s3://data/**")
    assert "c.jpg and in/c.jpg would be the same file of a task" in refused.stderr


def test_of_a_pattern_the_named_files_alone_are_uploaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGOSY_CACHE", str(folder.parent / "cache"))
    (folder / "clips").mkdir()
    (folder / "clips" / "a.mp4").write_text("clip")
    (folder / "clips" / "b.txt").write_text("a long text")
    world = accepting()
    result = world.argosy("run", "echo", "${item}", "--input-each", "clips/*.mp4", "--detach")
    assert result.exit_code == 0, result.output
    assert "clips/: 1 file, 4 bytes; uploaded" in result.stderr
    assert submitted(world)["inputs"][0].endswith("/${item}")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--input-each", "none/*.x"), "error: No file matches none/*.x."),
        (("--input-each", "notes.txt"), "error: --input-each notes.txt is one file."),
        (("--input-each", "s3://data/x"), "error: --input-each s3://data/x is one object."),
        (("--input-each", "s3://data/x/"), "error: No file matches s3://data/x/."),
        (("--input-each", ".", "--size", "3"), "error: --input-each makes a task per file: leave out --items"),
    ],
)
def test_a_pattern_without_files_is_one_sentence(folder: Path, words: tuple[str, ...], why: str) -> None:
    assert refused(*words, "echo", "${item}")[0].startswith(why)


def test_many_items_become_an_object(folder: Path) -> None:
    (folder / "lines").write_text("".join(f"item number {number}\n" for number in range(6_000)))
    world = accepting()
    assert world.argosy("run", "echo", "${item}", "--items", "lines", "--detach").exit_code == 0
    address = submitted(world)["array"]["itemsFrom"]
    assert address.endswith(".jsonl")
    stored = world.objects.bodies["argosy-results", address.removeprefix("s3://argosy-results/")].splitlines()
    assert (len(stored), json.loads(stored[-1])) == (6_000, "item number 5999")


def test_what_a_dry_run_prints_is_a_file_to_submit(folder: Path) -> None:
    result = World().argosy("run", "My_primes.py", "${item}", "--items", "notes", "--dry-run")
    assert result.exit_code == 2
    (folder / "notes").write_text("a: b\n- c\n")
    text = World().argosy("run", "My_primes.py", "${item}", "--items", "notes", "--dry-run").stdout
    assert YAML(typ="safe").load(text)["array"] == {"items": ["a: b", "- c"]}
    check_text(text)
    (folder / "run.yaml").write_text(text)
    world = accepting()
    assert world.argosy("submit", "run.yaml", "--detach").exit_code == 0
    assert submitted(world)["job"].startswith("s3://argosy-results/argosy/programs/jobs/")


def test_a_plan_packs_nothing(folder: Path) -> None:
    (folder / "run.yaml").write_text(World().argosy("run", "My_primes.py", "--with", "numpy", "--dry-run").stdout)
    world = World().answers("PlanRun", api_error(400, "ValidationException", "no", ("array", "nope")))
    assert world.argosy("plan", "run.yaml").exit_code == 2
    (request,) = world.functions.requests
    assert not {"workdir", "packages"} & set(request["spec"])
    assert world.objects.written == []


def test_a_folder_that_cannot_travel_is_a_fault_of_the_spec_file(folder: Path) -> None:
    (folder / "run.yaml").write_text("version: 1\nname: n\nrun: [python, x.py]\nworkdir: work\narray: {size: 1}\n")
    said = World().argosy("validate", "run.yaml").stderr.splitlines()
    assert said[1].strip() == "run.yaml:4:1: workdir: work is not a folder"
    (folder / "work").mkdir()
    said = World().argosy("validate", "run.yaml").stderr.splitlines()
    assert said[1].strip() == "run.yaml:3:1: run: x.py is not among the files that are uploaded"
    (folder / "work" / "x.py").write_text("")
    assert World().argosy("validate", "run.yaml").exit_code == 0
    (folder / "work" / "out").symlink_to("/etc")
    assert "points outside" in World().argosy("validate", "run.yaml").stderr
    world = accepting()
    assert "points outside" in world.argosy("submit", "run.yaml").stderr
    assert not [each for each in world.functions.requests if each["action"] == "SubmitRun"]


def test_results_are_merged_at_the_end_and_stay_out_of_the_next_upload(folder: Path) -> None:
    for _ in range(2):
        world = with_rows()
        result = world.argosy("run", "My_primes.py", "--merge", "rows.jsonl")
        assert result.exit_code == 0, result.output
        assert (folder / "rows.jsonl").read_text().strip() == '{"a": 1}'
        assert f"packing {folder}: 4 files" in result.stderr


def test_rows_on_standard_output_are_alone_there(folder: Path) -> None:
    result = with_rows().argosy("run", "My_primes.py", "--merge", "-")
    assert result.exit_code == 0, result.output
    assert f"{RUN_ID} submitted" in result.stderr
    both = World().argosy("run", "My_primes.py", "--merge", "-", "--json")
    assert (both.exit_code, both.stderr.splitlines()[0][:26]) == (2, "error: --json and --merge ")


def test_results_are_copied_at_the_end_and_stay_out_of_all_later_uploads(folder: Path) -> None:
    result = with_rows().argosy("run", "My_primes.py", "--out", "results")
    assert result.exit_code == 0, result.output
    assert (folder / "results/000000/part.jsonl").read_text() == '{"a": 1}'
    world = accepting()
    world.argosy("run", "My_primes.py")
    assert f"packing {folder}: 4 files" in world.argosy("run", "My_primes.py").stderr


@pytest.mark.parametrize("options", [["--merge", "rows.jsonl"], ["--out", "results"]])
def test_what_the_command_itself_brings_is_not_proposed(folder: Path, options: list[str]) -> None:
    assert "next: argosy results" in with_rows().argosy("run", "My_primes.py").stdout
    assert "next: argosy results" not in with_rows().argosy("run", "My_primes.py", *options).stdout
