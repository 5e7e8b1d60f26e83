"""The short programs of docs/examples, each unchanged, all at once in one local mode."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import argosy
from tests.fakes.commands import outcome_of
from tests.fakes.local_mode import local_aws
from tests.readmes import local_options

pytestmark = [pytest.mark.e2e, pytest.mark.pages]

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"
LINES_MAX = 25
ALL_REDUCE = "all_reduce.py"  # a whole exchange between instances; tests/e2e/test_gangs.py runs it
PATIENCE_S = 300.0
ROWS = {
    "hello.yaml": [{"task": 0, "of": 3}, {"task": 1, "of": 3}, {"task": 2, "of": 3}],
    "sweep.yaml": [
        {"rate": 0.1, "depth": 2, "loss": 50},
        {"rate": 0.1, "depth": 8, "loss": 12},
        {"rate": 0.01, "depth": 2, "loss": 50},
        {"rate": 0.01, "depth": 8, "loss": 12},
    ],
    "checkpoint.yaml": [{"step": 1000, "sum": 499_500, "resumed": 600}],
    "budget.yaml": [{"from": 0, "to": 20}, {"from": 20, "to": 40}],
}
SAID = {
    "map.py": r"100 areas, the last is 30790\.7\n",
    "dependencies.py": r"\{'rows': 12\}\n",
    "schedule.py": r"next: \d{4}-\d\d-\d\d 0[123]:00:00.*\nSUCCEEDED \[\{'made': '\d{4}-\d\d-\d\d'\}\]\n",
    "service.py": r"healthy: 2\n",
    "frame.py": r"40 rows, the squares add up to 20540\n",
}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with local_aws(local_options()) as aws:
        yield aws.endpoint_url


def said_by(program: str, endpoint: str, folder: Path) -> str:
    done = outcome_of(["script", str(EXAMPLES / program)], folder, ARGOSY_ENDPOINT_URL=endpoint)
    return done.stdout + done.stderr


def submitted(name: str, client: argosy.Client) -> Any:
    """`packages` would need a package index: the Python of local mode has them already."""
    spec = YAML(typ="safe").load(EXAMPLES / name)
    spec.pop("packages", None)
    if "workdir" in spec:
        spec["workdir"] = str(EXAMPLES / spec["workdir"])
    return client.submit(spec)


def test_every_example_does_what_it_says(endpoint: str, tmp_path: Path) -> None:
    client = argosy.Client(endpoint_url=endpoint)
    with ThreadPoolExecutor(len(SAID)) as shells:
        said = {name: shells.submit(said_by, name, endpoint, tmp_path) for name in SAID}
        runs = {name: submitted(name, client) for name in [*ROWS, "gpu.yaml"]}
    assert {name: text for name in SAID if not re.fullmatch(SAID[name], text := said[name].result())} == {}
    assert {name: list(runs[name].wait(timeout=PATIENCE_S).rows()) for name in ROWS} == ROWS
    devices = [row["devices"].split(",") for row in runs["gpu.yaml"].wait(timeout=PATIENCE_S).rows()]
    assert [len(each) for each in devices] == [2, 2]
    assert len(runs["checkpoint.yaml"].attempts()) == 2


def test_every_example_is_short_tested_and_on_the_page() -> None:
    files = {path.name: path for path in EXAMPLES.iterdir() if path.is_file()}
    page = (ROOT / "docs/guides/examples.md").read_text(encoding="utf-8")
    assert files.keys() == {*ROWS, *SAID, "gpu.yaml", "checkpoint.py", ALL_REDUCE}
    assert set(re.findall(r"^\[([\w.]+)\]\(\.\./examples/\1\)$", page, re.MULTILINE)) == files.keys()
    assert {name for name, path in files.items() if path.read_text().count("\n") > LINES_MAX} == {ALL_REDUCE}


def test_every_folder_of_an_image_is_on_the_page() -> None:
    page = (ROOT / "docs/guides/examples.md").read_text(encoding="utf-8")
    images = {path.parent.name for path in ROOT.glob("containers/*/Dockerfile")}
    assert set(re.findall(r"^\| \[containers/([\w-]+)\]", page, re.MULTILINE)) == images
