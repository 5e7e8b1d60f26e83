"""The demo's container program, run as Argosy runs it: as a process, judged by its output and exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.fakes.commands import outcome_of

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).resolve().parents[3] / "containers" / "digits"
BUCKET = "results"


def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    """The real program, which does its imports itself."""
    return subprocess.Popen(
        [sys.executable, "-m", "digits", *arguments],
        cwd=FOLDER,
        env=dict(os.environ) | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*arguments: str, **environment: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    process = outcome_of(["program", "digits", *arguments], FOLDER, **environment)
    return process.returncode, process.stdout, process.stderr


def rows(text: str) -> list[dict[str, int]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    s3(url).create_bucket(Bucket=BUCKET)
    yield url
    server.stop()


def s3(url: str) -> Any:
    return boto3.client("s3", endpoint_url=url, region_name="us-east-1")


def part(url: str, key: str) -> tuple[list[dict[str, int]], Mapping[str, str]]:
    found = s3(url).get_object(Bucket=BUCKET, Key=key)
    return rows(found["Body"].read().decode()), found["Metadata"]


def test_the_whole_range_has_one_row_per_image_true_labels_and_few_errors(tmp_path: Path) -> None:
    from sklearn.datasets import load_digits

    code, out, err = run("--range", "900:1797", "--output", str(tmp_path / "part.jsonl"))
    assert (code, err) == (0, "")
    found = rows((tmp_path / "part.jsonl").read_text())
    assert [row["index"] for row in found] == list(range(900, 1797))
    assert [row["label"] for row in found] == load_digits().target[900:].tolist()
    assert sum(row["label"] == row["predicted"] for row in found) / len(found) >= 0.97
    assert "images/s" in out


def test_the_images_are_scikit_learns() -> None:
    """The program reads the data file itself; this holds it to what the library's own loader gives."""
    from sklearn.datasets import load_digits

    code = "from digits.classifier import load_digits; import numpy; i, l = load_digits(); print(i.sum(), l.sum())"
    process = subprocess.run([sys.executable, "-c", code], cwd=FOLDER, capture_output=True, text=True, check=True)
    library = load_digits()
    assert process.stdout.split() == [str((library.data / 16).sum()), str(library.target.sum())]


def test_shards_give_the_same_rows_as_the_whole(tmp_path: Path) -> None:
    for bounds in ("900:1000", "900:950", "950:1000"):
        assert run("--range", bounds, "--output", str(tmp_path / bounds))[0] == 0
    shards = (tmp_path / "900:950").read_text() + (tmp_path / "950:1000").read_text()
    assert shards == (tmp_path / "900:1000").read_text()


def test_a_part_goes_to_s3_with_attempt_and_gpus(endpoint: str) -> None:
    code, out, err = run(
        AWS_ENDPOINT_URL=endpoint,
        ARGOSY_RANGE="917:920",
        ARGOSY_PART_URI=f"s3://{BUCKET}/run/parts/part-0000000.jsonl",
        ARGOSY_TASK_ATTEMPT="2",
        NVIDIA_VISIBLE_DEVICES="GPU-0a,GPU-0b",
    )
    assert (code, err) == (0, "")
    found, metadata = part(endpoint, "run/parts/part-0000000.jsonl")
    assert [row["index"] for row in found] == [917, 918, 919]
    assert metadata == {"argosy-attempt": "2", "argosy-rows": str(len(found)), "argosy-gpus": "GPU-0a,GPU-0b"}
    assert "GPUs GPU-0a,GPU-0b" in out


@pytest.mark.parametrize("devices", ["", "none", "void"])
def test_no_gpu_is_no_metadata(endpoint: str, devices: str) -> None:
    key = f"none/{devices or 'empty'}"
    address = f"s3://{BUCKET}/{key}"
    code, out, _ = run("--range", "0:1", "--output", address, AWS_ENDPOINT_URL=endpoint, NVIDIA_VISIBLE_DEVICES=devices)
    assert code == 0
    assert part(endpoint, key)[1] == {"argosy-attempt": "1", "argosy-rows": "1"}
    assert "GPUs none" in out


def test_the_first_attempt_to_write_wins_and_the_second_succeeds(endpoint: str) -> None:
    arguments = ("--range", "900:903", "--output", f"s3://{BUCKET}/first-wins")
    for attempt, said in (("1", "wrote"), ("2", "already there")):
        code, out, _ = run(*arguments, AWS_ENDPOINT_URL=endpoint, ARGOSY_TASK_ATTEMPT=attempt)
        assert code == 0
        assert said in out
    assert part(endpoint, "first-wins")[1] == {"argosy-attempt": "1", "argosy-rows": "3"}


def test_a_file_is_not_written_over_either(tmp_path: Path) -> None:
    target = tmp_path / "part.jsonl"
    target.write_text("the winner's\n")
    code, out, _ = run("--range", "900:903", "--output", str(target))
    assert code == 0
    assert "already there" in out
    assert target.read_text() == "the winner's\n"


def test_a_saved_model_predicts_as_the_trained_one_does(endpoint: str, tmp_path: Path) -> None:
    model = f"s3://{BUCKET}/model.npz"
    assert run("--save-model", model, AWS_ENDPOINT_URL=endpoint)[0] == 0
    assert run("--save-model", model, AWS_ENDPOINT_URL=endpoint)[1].startswith("model was there already")
    trained, loaded = tmp_path / "trained", tmp_path / "loaded"
    assert run("--range", "900:1000", "--output", str(trained))[0] == 0
    assert run("--range", "900:1000", "--output", str(loaded), "--model", model, AWS_ENDPOINT_URL=endpoint)[0] == 0
    assert trained.read_text() == loaded.read_text()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--output", "x"], "--range is missing"),
        (["--range", "0:5"], "--output is missing"),
        (["--range", "5", "--output", "x"], "not START:END"),
        (["--range", "5:5", "--output", "x"], "must begin before it ends"),
        (["--range", "1790:1798", "--output", "x"], "end at 1797 or before"),
        (["--range", "-1:5", "--output", "x"], "expected one argument"),
        (["--range", "0:5", "--output", "x", "--seconds-per-image", "-1"], "0 or more"),
        (["--range", "0:5", "--output", "x", "--seconds-per-image", "nan"], "0 or more"),
        (["--range", "0:5", "--output", "x", "--seconds-per-image", "soon"], "invalid float"),
        (["--range", "0:5", "--output", "x", "--digits", "3"], "unrecognized arguments"),
    ],
)
def test_bad_arguments_exit_64_with_one_sentence(arguments: list[str], complaint: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (64, "")
    assert complaint in err
    assert "Traceback" not in err


def test_a_bad_attempt_number_exits_64() -> None:
    code, _, err = run("--range", "0:1", "--output", "x", ARGOSY_TASK_ATTEMPT="first")
    assert code == 64
    assert "'first' is not a number" in err


@pytest.mark.parametrize("content", [b"", b"no model", b"PK\x03\x04 cut off"])
def test_something_else_than_a_model_exits_64(tmp_path: Path, content: bytes) -> None:
    model = tmp_path / "model.npz"
    model.write_bytes(content)
    code, _, err = run("--range", "0:1", "--output", str(tmp_path / "x"), "--model", str(model))
    assert code == 64
    assert "not a saved model" in err


def test_a_model_of_another_shape_exits_64(tmp_path: Path) -> None:
    import numpy as np

    np.savez(tmp_path / "model.npz", support=np.zeros((3, 9)), weights=np.zeros((3, 10)))
    code, _, err = run("--range", "0:1", "--output", str(tmp_path / "x"), "--model", str(tmp_path / "model.npz"))
    assert code == 64
    assert "arrays of (3, 9) and (3, 10)" in err


@pytest.mark.parametrize("model", ["s3://results/missing.npz", "s3://results", "/nonexistent/model.npz"])
def test_a_model_that_is_not_there_exits_1(endpoint: str, model: str, tmp_path: Path) -> None:
    code, _, err = run("--range", "0:1", "--output", str(tmp_path / "x"), "--model", model, AWS_ENDPOINT_URL=endpoint)
    assert code == 1
    assert model in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("output", "endpoint_url", "complaint"),
    [
        ("s3://no-such-bucket/x", None, "NoSuchBucket"),
        ("/dev/null/x", None, "/dev/null"),
        ("s3://results/x", "nowhere", "Invalid endpoint"),
    ],
)
def test_an_output_that_cannot_be_written_exits_1(
    endpoint: str, output: str, endpoint_url: str | None, complaint: str
) -> None:
    code, _, err = run("--range", "0:1", "--output", output, AWS_ENDPOINT_URL=endpoint_url or endpoint)
    assert code == 1
    assert complaint in err
    assert "Traceback" not in err


class Busy(BaseHTTPRequestHandler):
    """An S3 that answers every PUT with the status in its path: /503/key."""

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        status = int(self.path.split("/")[1][1:])
        code = {409: "ConditionalRequestConflict", 503: "SlowDown"}[status]
        body = f"<Error><Code>{code}</Code><Message>later</Message></Error>".encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""


@pytest.fixture
def busy() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Busy)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join(timeout=60)
    server.server_close()


@pytest.mark.parametrize(("bucket", "complaint"), [("b503", "SlowDown"), ("b409", "ConditionalRequestConflict")])
def test_a_busy_s3_exits_75(busy: str, bucket: str, complaint: str) -> None:
    code, _, err = run("--range", "0:1", "--output", f"s3://{bucket}/x", AWS_ENDPOINT_URL=busy)
    assert code == 75
    assert complaint in err


def test_an_s3_that_cannot_be_reached_exits_75() -> None:
    code, _, err = run("--range", "0:1", "--output", "s3://results/x", AWS_ENDPOINT_URL="http://127.0.0.1:9")
    assert code == 75
    assert "Could not connect" in err


def test_sigterm_ends_the_work_at_once_with_nothing_written(tmp_path: Path) -> None:
    process = start("--range", "0:50", "--output", str(tmp_path / "x"), "--seconds-per-image", "60")
    wait_until_it_sleeps(process.pid)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "SIGTERM" in err
    assert list(tmp_path.iterdir()) == []


def wait_until_it_sleeps(pid: int) -> None:
    """Until the program pretends to work: it has then used CPU time and is using no more."""
    import psutil

    process = psutil.Process(pid)
    pause = threading.Event()
    used = -1.0
    for _ in range(300):
        now = process.cpu_times().user
        if now == used and now > 0.05:
            return
        used = now
        pause.wait(0.1)
    raise AssertionError("the program never came to rest")


def test_the_program_starts_light(endpoint: str) -> None:
    """Tasks are short, so each of them pays the cost of a start. Measured 0.4 s with S3, 0.17 s without."""
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = start("--range", "900:950", "--output", f"s3://{BUCKET}/light", AWS_ENDPOINT_URL=endpoint)
    process.communicate(timeout=60)
    assert process.returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.5


@pytest.mark.parametrize(("name", "tasks", "gpus"), [("run.yaml", 18, 0), ("run-gpu.yaml", 8, 1)])
def test_the_run_specs_next_to_the_program_are_valid(name: str, tasks: int, gpus: int) -> None:
    from argosy.spec import parse as spec
    from argosy.spec import shards
    from argosy.spec.file import check_text

    form = spec.to_json(check_text((FOLDER / name).read_text())[0])
    assert shards.task_count(form) == tasks
    assert form["resources"]["gpus"] == gpus
    assert form["container"]["image"] == "argosy/digits"
    assert "${part}" in form["container"]["command"]
