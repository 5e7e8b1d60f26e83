"""Runs that wait for each other in local mode, as in docs/guides/dependencies.md."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.local.clients import LocalClients
from tests.e2e.cluster import Cluster
from tests.fakes.commands import outcome_of
from tests.fakes.local_mode import local_aws
from tests.readmes import local_options

pytestmark = pytest.mark.e2e
PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "dependencies.md"
_SPEC = re.compile(r"```yaml\n(version: 1\nname: (\w+)\n.*?)```", re.DOTALL)
_PROGRAM = re.compile(r"`(\w+\.py)`[^`]*`[^`]*`:\n\n```python\n(.*?)```", re.DOTALL)
_TYPED = re.compile(r"```\n(argosy .*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def local() -> Iterator[Cluster]:
    with local_aws(local_options()) as aws:
        clients = LocalClients(aws.endpoint_url, "us-east-1", aws.key)
        try:
            yield Cluster(aws, clients)
        finally:
            clients.close()


def shell(local: Cluster, text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return outcome_of(text, folder, ARGOSY_ENDPOINT_URL=local.aws.endpoint_url)


@pytest.mark.pages
def test_the_pages_three_runs_follow_each_other_and_hand_their_results_on(local: Cluster, tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    for text, name in _SPEC.findall(page):
        (tmp_path / f"{name}.yaml").write_text(text)
    [(name, program)] = _PROGRAM.findall(page)
    (tmp_path / name).write_text(program)
    [typed] = _TYPED.findall(page)
    done = shell(local, typed, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    submitted = re.findall(r"^(\w+)-\S+ submitted", done.stdout, re.MULTILINE)
    assert submitted == ["prepare", "square", "total"]
    assert int(done.stdout.splitlines()[-1]) == sum(number**2 for number in range(12))


def test_a_fault_in_the_last_file_starts_none_of_them(local: Cluster, tmp_path: Path) -> None:
    for text, name in _SPEC.findall(PAGE.read_text(encoding="utf-8")):
        (tmp_path / f"{name}.yaml").write_text(text.replace("dependency.square", "dependency.cube"))
    before = local.ask("ListRuns")["runs"]
    done = shell(local, "argosy submit prepare.yaml square.yaml total.yaml -d", tmp_path)
    assert done.returncode == 2
    assert "${dependency.cube.output} is not a run of dependsOn; known: dependency.square.output" in done.stderr
    done = shell(local, "argosy submit prepare.yaml square.yaml --set array.size=2", tmp_path)
    assert done.returncode == 2
    assert "--set applies to one file, but 2 were given." in done.stderr
    for text, name in _SPEC.findall(PAGE.read_text(encoding="utf-8")):
        (tmp_path / f"{name}.yaml").write_text(text)
    square = (tmp_path / "square.yaml").read_text()
    (tmp_path / "square.yaml").write_text(re.sub(r"array: \{size: \d+\}", "array: {size: 2}", square))
    done = shell(local, "argosy submit prepare.yaml square.yaml total.yaml -d", tmp_path)
    assert done.returncode == 2
    assert "N_TO_N needs as many tasks in both runs" in done.stderr
    assert local.ask("ListRuns")["runs"] == before
