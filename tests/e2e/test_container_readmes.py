"""The commands in the READMEs of some images work as typed, and a sweep ends in one table."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.containers import s3
from tests.fakes.local_mode import local_aws
from tests.readmes import CONTAINERS, PYTORCH, Shell, command_lines, local_options, needs_pytorch

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with local_aws(local_options()) as aws:
        yield aws.endpoint_url


@pytest.fixture
def shell(endpoint: str, tmp_path: Path) -> Shell:
    return Shell(tmp_path, {"ARGOSY_ENDPOINT_URL": endpoint})


@pytest.mark.pages
def test_the_digits_readme(shell: Shell) -> None:
    said = {line: shell.type(line) for line in command_lines("digits")}
    submitted = [text for line, text in said.items() if line.startswith("argosy submit")]
    assert [("18 of 18" in text or "18/18" in text, "SUCCEEDED" in text) for text in submitted[:1]] == [(True, True)]
    assert len((shell.folder / "part.jsonl").read_text().splitlines()) == 50


@pytest.mark.pages
def test_the_sweep_readme_ends_in_a_table_and_its_best_points(shell: Shell) -> None:
    said = {line: shell.type(line) for line in command_lines("sweep")}
    rows = list(csv.DictReader((shell.home / "table.csv").read_text().splitlines()))
    assert [int(row["index"]) for row in rows] == list(range(20))
    assert len({(row["alpha"], row["lambda"]) for row in rows}) == 20
    best = next(text for line, text in said.items() if " best " in line)
    assert best.startswith("20 points\nlowest deviance: ")
    lowest = min(rows, key=lambda row: float(row["deviance"]))
    assert f"alpha {float(lowest['alpha']):g}, lambda {float(lowest['lambda']):g}" in best.splitlines()[1]
    merged = next(text for line, text in said.items() if "--merge" in line)
    assert "20 rows of 20 of 20 tasks" in merged
    again = shell.type("argosy results RUN --merge --output -")  # from standard output, as JSON lines
    assert again.count("\n") == 20


@pytest.mark.engine
@needs_pytorch
def test_the_pytorch_training_readme_trains_on_digits_and_text(endpoint: str, tmp_path: Path) -> None:
    path = f"{PYTORCH}:{Path(sys.executable).parent}:/usr/bin:/bin"
    shell = Shell(tmp_path, {"ARGOSY_ENDPOINT_URL": endpoint, "PATH": path})
    said = {line: shell.type(line) for line in command_lines("pytorch-training")}
    report = next(text for line, text in said.items() if " report " in line)
    assert "IMAGES/S" in report
    by_hand = [json.loads(text.splitlines()[-2]) for line, text in said.items() if line.startswith("python")]
    assert [(each["unit"], each["gpus"]) for each in by_hand] == [("images", 1), ("tokens", 2)]
    assert by_hand[0]["accuracy"] > 0.9
    shell.type("argosy results RUN --download got")
    assert len([*shell.folder.rglob("got/**/model.pt")]) == 1


@pytest.mark.engine
@needs_pytorch
def test_the_pytorch_inference_readme_classifies_digits_by_hand_and_in_tasks(endpoint: str, tmp_path: Path) -> None:
    path = f"{PYTORCH}:{Path(sys.executable).parent}:/usr/bin:/bin"
    shell = Shell(tmp_path, {"ARGOSY_ENDPOINT_URL": endpoint, "PATH": path})
    *by_hand, submit, report = command_lines("pytorch-inference")
    for line in by_hand:
        shell.type(line)
    out = shell.folder / "out"
    rows, truth = (out / "part.jsonl").read_text().splitlines(), json.loads((out / "truth.json").read_text())
    right = [row["top"][0]["label"] == str(truth[row["index"]]) for row in map(json.loads, rows)]
    assert (len(right), sum(right) / len(right) > 0.9) == (297, True)
    bucket = s3.make_bucket(endpoint, "my-bucket")
    for number in range(8):
        bucket.put(f"images/{number:04d}.png", (out / "images" / f"{number:04d}.png").read_bytes())
    bucket.put("model.pt", (out / "model.pt").read_bytes())
    shell.folder = shell.home
    assert "SUCCEEDED" in shell.type(f"{submit} --batch-size 4 --num-batches 2")
    merged = [json.loads(row) for row in shell.type("argosy results RUN --merge --output -").splitlines()]
    assert [(row["index"], len(row["top"])) for row in merged] == [(number, 5) for number in range(8)]
    measured = json.loads(shell.type(f"{report} --json"))["measurements"]
    assert [(row["batchPerGpu"], row["setting"]["framework"]) for row in measured] == [(32, "PyTorch")] * 2


@pytest.mark.parametrize("name", sorted(path.parent.name for path in CONTAINERS.glob("*/Dockerfile")))
def test_the_build_lines_fit_their_dockerfiles(name: str) -> None:
    """Building needs the internet; checking the folder, the tag and the arguments does not."""
    text = (CONTAINERS / name / "README.md").read_text()
    assert f"`docker build -t argosy/{name} -f containers/{name}/Dockerfile containers`" in re.sub(r"\s+", " ", text)
    arguments = re.findall(r"^ARG (\w+)", (CONTAINERS / name / "Dockerfile").read_text(), re.MULTILINE)
    assert set(re.findall(r"--build-arg (\w+)=", text)) <= set(arguments)
    assert set(re.findall(r"`ARG (\w+)`", text)) <= set(arguments)
