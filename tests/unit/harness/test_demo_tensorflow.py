"""The TensorFlow demo: its requests, its needs, and the content of its summary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from argosy.cli.here.examples import example
from argosy.cli.runs import spec_source
from argosy.spec import parse as spec
from argosy.spec import shards
from tests.fakes.cli import ended, tasks
from tests.harness.demo_tensorflow import __main__ as demo_tensorflow
from tests.harness.demo_tensorflow.report import ClassifiedRows, closing_table, rows_of, summary

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def tensorflow(*words: str) -> Any:
    return CliRunner().invoke(demo_tensorflow.app, list(words))


def loaded(name: str) -> dict[str, Any]:
    return spec_source.load(example(name))[0]


def test_the_inference_run_covers_every_image_in_few_shards() -> None:
    changed = demo_tensorflow.inference_changes("s3://b/i/", "s3://b/m/")(loaded(demo_tensorflow.INFERENCE))
    form = spec.to_json(spec.parse_spec(changed))
    assert shards.task_count(form) == 6
    spans = [shards.task_range(form, index) for index in range(6)]
    assert (spans[0], spans[-1]) == ((0, 300), (1500, 1797))
    assert form["container"]["environment"]["INFERENCE_IMAGES"] == "s3://b/i/"


@pytest.mark.parametrize("file", demo_tensorflow.BENCHMARKS, ids=str)
def test_the_benchmarks_keep_their_task_definitions_and_train_a_tiny_network(file: str) -> None:
    form = spec.to_json(spec.parse_spec(demo_tensorflow.benchmark_changes(loaded(file))))
    assert form["taskDefinition"].startswith("tensorflow-")
    assert form["container"]["command"][:4] == ["--output", "${part}", "--model", "tiny"]


def test_without_tensorflow_it_says_what_to_type(tmp_path: Path) -> None:
    answer = tensorflow("--out", str(tmp_path), "--python", str(tmp_path / "python"))
    assert answer.exit_code == 2
    assert "There is no Python with TensorFlow at" in answer.stderr
    assert "next: type `make tensorflow`" in answer.stderr


def test_a_training_that_fails_ends_the_demo_with_its_last_lines(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no memory >&2\nexit 3\n")
    python.chmod(0o755)
    answer = tensorflow("--out", str(tmp_path / "out"), "--python", str(python))
    assert answer.exit_code == 1
    assert "The training failed." in answer.stderr
    assert "no memory" in answer.stderr


def row(index: int, label: str) -> dict[str, Any]:
    return {"index": index, "top": [{"label": label, "score": 0.9}]}


def test_accuracy_counts_errors_as_wrong_and_refuses_an_image_twice() -> None:
    found = ClassifiedRows([row(0, "5"), row(1, "4"), {"index": 2, "error": "HTTP 404"}, row(3, "7")], [5, 5, 5, 7])
    assert (found.accuracy(), found.accuracy(first=2)) == (0.5, 0.5)
    assert ClassifiedRows([], []).accuracy() == 0.0
    with pytest.raises(ValueError, match="twice"):
        ClassifiedRows([row(0, "5"), row(0, "5")], [5]).accuracy()


def test_the_summary_is_counted_from_parts_and_records() -> None:
    view = ended(name="inference", tasks=tasks(succeeded=2), attempts=3, interruptions=1, costUsd=0.004)
    facts = [
        {"images": 3.0, "errors": 0.0, "resumed": 2.0, "seconds": 0.5},
        {"images": 1.0, "errors": 0.0, "resumed": 0.0, "seconds": 0.5},
    ]
    measured = [{"pinnedGpus": ["a", "b"]}, {"pinnedGpus": ["b"]}]
    rows = [row(number, "1") for number in range(4)]
    found = summary(view, [], facts, ClassifiedRows(rows, [1, 1, 1, 0]), measured)
    assert (found["rows"], found["images"], found["accuracy"], found["interruptions"]) == (4, 4, 0.75, 1)
    assert (found["rowsFromCheckpoints"], found["imagesPerSecond"]) == (2, 2.0)
    assert found["usdPerMillionImages"] == pytest.approx(1000)
    assert found["gpusPinnedTwice"] == 1
    assert closing_table({**found, "seconds": 12.0}, Path("out")).row_count == 10


def test_rows_are_read_from_all_parts_in_order(tmp_path: Path) -> None:
    for number in (1, 0):
        part = tmp_path / "parts" / f"part-000000{number}.jsonl"
        part.parent.mkdir(exist_ok=True)
        part.write_text(json.dumps(row(number, "1")) + "\n")
    assert [each["index"] for each in rows_of(tmp_path)] == [0, 1]
