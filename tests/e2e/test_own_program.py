"""A program of the user's own, without an image and without a line about S3, from its folder to its results."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.client.access import Access
from argosy.client.aws_clients import Connection
from argosy.client.packing.program import pack
from tests.e2e.cluster import Cluster, cluster
from tests.fakes.commands import outcome_of

pytestmark = pytest.mark.e2e

MAIN = """
import json, os, sys
from beside import square

start, end = map(int, sys.argv[1:])
names = sorted(os.listdir(os.environ["ARGOSY_IN"]))
with open(os.path.join(os.environ["ARGOSY_OUT"], "part.jsonl"), "w") as part:
    for n in range(start, end):
        part.write(json.dumps({"n": n, "square": square(n), "inputs": names}) + "\\n")
"""


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("local"), linger_s=5.0) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "main.py").write_text(MAIN)
    (tmp_path / "beside.py").write_text("def square(n): return n * n\n")
    return tmp_path


def submitted(local: Cluster, folder: Path, **fields: Any) -> str:
    spec = {
        "version": 1,
        "name": "own",
        "array": {"range": "0:20", "shardSize": 5},
        "resources": {"vcpus": 1, "memory": 256},
        **fields,
    }
    sent = pack(spec, folder, Access(Connection(endpoint_url=local.aws.endpoint_url)))
    return str(local.ask("SubmitRun", spec=sent)["runId"])


def test_a_folder_with_inputs_becomes_results(local: Cluster, folder: Path) -> None:
    local.s3.put_object(Bucket="argosy-results", Key="data/shared.txt", Body=b"x")
    local.s3.put_object(Bucket="argosy-results", Key="data/2/own.txt", Body=b"x")
    for index in (0, 1, 3):
        local.s3.put_object(Bucket="argosy-results", Key=f"data/{index}/own.txt", Body=b"x")
    inputs = ["s3://argosy-results/data/shared.txt", "s3://argosy-results/data/${index}/"]
    run_id = submitted(local, folder, run=["python", "main.py", "${start}", "${end}"], workdir=".", inputs=inputs)
    view = local.finished(run_id)
    assert (view["status"], view["attempts"]) == ("SUCCEEDED", 4), view
    parts = [local.read(f"{run_id}/parts/part-{index:07d}.jsonl") for index in range(4)]
    rows = [json.loads(line) for part in parts for line in part.splitlines()]
    assert rows == [{"n": n, "square": n * n, "inputs": ["own.txt", "shared.txt"]} for n in range(20)]


def test_a_folder_of_this_machine_is_an_input(
    local: Cluster, folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGOSY_CACHE", str(tmp_path_factory.mktemp("cache")))
    clips = tmp_path_factory.mktemp("clips")
    for index in range(3):
        (clips / f"{index}.bin").write_bytes(bytes([index]) * 1_000_000 * (index + 1))
    run = 'cd "$ARGOSY_IN"; sha256sum *'
    inputs = [f"{clips}/${{index}}.bin", str(folder / "beside.py")]
    run_id = submitted(local, folder, run=run, result="stdout", inputs=inputs, array={"size": 3})
    assert local.finished(run_id)["status"] == "SUCCEEDED"
    for index in range(3):
        line = local.read(f"{run_id}/parts/part-{index:07d}.jsonl").decode().splitlines()
        digest = hashlib.sha256((clips / f"{index}.bin").read_bytes()).hexdigest()
        assert [line[0], line[1].split()[1]] == [f"{digest}  {index}.bin", "beside.py"]


def test_standard_output_of_a_shells_text_is_a_result(local: Cluster, folder: Path) -> None:
    run_id = submitted(local, folder, run="echo ${start} | sed s/$/!/; echo aside >&2", result="stdout")
    assert local.finished(run_id)["status"] == "SUCCEEDED"
    assert local.read(f"{run_id}/parts/part-0000003.jsonl") == b"15!\n"


def test_a_request_that_is_wrong_is_not_repeated_and_says_why(local: Cluster, folder: Path) -> None:
    missing = ["s3://argosy-results/nothing/${index}.csv"]
    run_id = submitted(local, folder, run=["true"], inputs=missing, array={"size": 1}, retryStrategy={"attempts": 3})
    view = local.finished(run_id)
    assert (view["status"], view["attempts"]) == ("FAILED", 1), view
    assert view["failures"][0]["exitCode"] == 64


def test_a_program_that_writes_nothing_has_failed(local: Cluster, folder: Path) -> None:
    run_id = submitted(local, folder, run=["true"], array={"size": 1})
    view = local.finished(run_id)
    assert (view["status"], view["failures"][0]["exitCode"]) == ("FAILED", 65), view


def test_a_run_stops_early_if_the_logs_of_its_failures_say_the_same_and_only_then(local: Cluster, folder: Path) -> None:
    terms = {"result": "none", "array": {"size": 4}, "retryStrategy": {"attempts": 1, "stopAfterAlike": 2}}
    said = "case ${index} in 0) echo no such record;; 1) echo disk is full;; *) echo something else;; esac; exit 3"
    runs = [
        submitted(local, folder, run=script, **terms, placement={"maxConcurrentTasks": 1})
        for script in ("echo row ${index} has no name; exit 3", said)
    ]
    alike, others = map(local.finished, runs)
    assert "failed alike (exit code 3)" in alike["statusReason"]
    assert "the last line of a log: row 1 has no name" in alike["statusReason"]
    assert (alike["tasks"]["failed"], alike["tasks"]["cancelled"]) == (2, 2)
    assert (others["tasks"]["failed"], others["statusReason"]) == (4, None)


PLANTED = {"SERVICE_PASSWORD": "correct-horse", "PLAIN": "battery-staple", "SHORT": "1"}
SIGNED = "https://x.s3.amazonaws.com/k?X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2Fs3&X-Amz-Signature=0a1b2c3d4e5f"


def test_the_dump_for_a_bug_report_holds_what_happened_and_no_secret(local: Cluster, folder: Path) -> None:
    words = ["python", "-c", f"print('battery-staple {SIGNED}'); raise SystemExit(3)"]
    container = {"environment": PLANTED}
    run_id = submitted(local, folder, run=words, container=container, array={"items": ["mine-alone"]})
    assert local.finished(run_id)["status"] == "FAILED"
    done = outcome_of(["argosy", "debug-dump", run_id, "--json"], folder, ARGOSY_ENDPOINT_URL=local.aws.endpoint_url)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["notRead"] == {}
    with zipfile.ZipFile(folder / said["file"]) as file:
        parts = {Path(name).stem: json.loads(file.read(name)) for name in file.namelist()}
        everything = "\n".join(file.read(name).decode() for name in file.namelist())
    for secret in ("correct-horse", "battery-staple", "0a1b2c3d4e5f", "AKIAIOSFODNN7", "mine-alone", "123456789012"):
        assert secret not in everything, secret
    assert parts["run-spec"]["container"]["environment"] == dict.fromkeys(PLANTED, "<redacted>")
    assert parts["settings"]["allowExec"]
    assert parts["deployment"]["bucket"] == "argosy-results"
    assert parts["run"]["runId"] == run_id
    assert parts["run-attempts"][0]["exitCode"] == 3
    assert parts["run-tasks"]["tasks"][0]["status"] == "FAILED"
    assert parts["run-explain"]["verdict"] == "done"
    assert {"run.closed", "task.ended"} <= {each["type"] for each in parts["run-events"]}
    assert any(each["instanceType"] for each in parts["instances"]["instances"])
    assert "docker-restart-blocks" in {each["reading"] for each in parts["cluster"]["readings"]}
    assert {each["name"] for each in parts["doctor"]} >= {"credentials", "deployment"}
    assert any('"message":"tick"' in line for each in parts["controller-log"] for line in each["lines"])


def test_a_fixed_program_runs_for_the_failed_tasks_alone_and_everything_says_which_version(
    local: Cluster, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    program = folder / "main.py"
    program.write_text(
        "import sys\nn = int(sys.argv[1])\nif n in (1, 3): sys.exit(f'bad record {n}')\nprint('old', n)\n"
    )
    run_id = submitted(
        local, folder, run=["python", "main.py", "${index}"], workdir=".", array={"size": 4}, result="stdout"
    )
    assert local.finished(run_id)["tasks"]["failed"] == 2
    there = ["--endpoint-url", local.aws.endpoint_url]
    unnoticed = outcome_of(["argosy", "retry", run_id, "--failed", *there])
    assert "version 1 of" in unnoticed.stdout, unnoticed.stderr
    assert local.finished(run_id)["tasks"]["failed"] == 2
    program.write_text("import sys\nprint('new', int(sys.argv[1]))\n")
    told = outcome_of(["argosy", "retry", run_id, "--failed", "--with-program", str(folder), *there])
    assert "They run version 2 of the program, uploaded " in told.stdout, told.stderr
    assert local.finished(run_id)["status"] == "SUCCEEDED"
    parts = [local.read(f"{run_id}/parts/part-{index:07d}.jsonl") for index in range(4)]
    assert parts == [b"old 0\n", b"new 1\n", b"old 2\n", b"new 3\n"]
    entries = json.loads(local.read(f"{run_id}/manifest.json"))["entries"]
    assert [each["program"] for each in entries] == [1, 2, 1, 2]
    attempts = json.loads(outcome_of(["argosy", "attempts", run_id, "--json", *there]).stdout)["attempts"]
    assert sorted((each["index"], each["attempt"], each["program"]) for each in attempts if each["index"] == 1) == [
        (1, 1, 1), (1, 2, 1), (1, 3, 2),
    ]  # fmt: skip
    assert "2 results of 2 attempts" in outcome_of(["argosy", "status", run_id, *there]).stdout
    assert "version 2 of the program: " in outcome_of(["argosy", "cost", run_id, *there]).stdout
    page = tmp_path_factory.mktemp("page") / "run.html"
    outcome_of(["argosy", "report", "run", run_id, "--html", str(page), *there])
    assert "Versions of the program" in page.read_text()
