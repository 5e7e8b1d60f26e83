"""Forty commands beside a running local mode print, as forks, what they print when they are started the plain way."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.waiting import until

pytestmark = [pytest.mark.deep, pytest.mark.e2e]
PATIENCE_S = 60.0
ROOT = Path(__file__).resolve().parents[2]
DIGITS = str(ROOT / "containers/digits/run.yaml")
ARGOSY = [
    sys.executable,
    *(["-B"] if sys.flags.dont_write_bytecode else []),
    "-c",
    "from argosy.cli.start import main; main()",
]
FIXED = [
    "schema", "catalogue", "catalogue --type c7i.*", "validate /nowhere", f"validate {DIGITS}", f"plan {DIGITS}",
    "run --help", "access --help", "statsu", "status nope", "logs nope", "cancel nope", "retry nope --failed",
    "runs --limit 0", "runs --json", "runs --stage other", "runs --profile nope", "runs --endpoint-url http://127.0.0.1:1",
    "tasks", "events", "events --json-lines", "env list", "env status web", "schedule list", "data list", "queues",
    "queues --json", "cluster", "cluster --json", "instances", "query memory>1000", "run --dry-run true --size 3",
    "run --size x true", "run --sise 3 true", "submit /nowhere.yaml", "exec", "report run nope", "interrupt nope",
    "access nope", "put /nowhere name",
]  # fmt: skip


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    data = tmp_path_factory.mktemp("data")
    usual = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    usual = {**usual, "HOME": str(data), "XDG_DATA_HOME": str(data)}
    with subprocess.Popen([*ARGOSY, "local", "--port", "0", "--no-state"], env=usual, stdout=subprocess.PIPE) as local:
        assert local.stdout is not None
        started = [
            *ARGOSY[:-1],
            "from argosy.client.forked_command import take; take(); print('the plain way')",
            "schema",
        ]
        until(lambda: b"the plain way" not in subprocess.check_output(started, env=usual), PATIENCE_S)
        endpoint = local.stdout.readline().split()[5].decode()
        yield {**usual, "ARGOSY_ENDPOINT_URL": endpoint, "COLUMNS": "70"}
        local.terminate()
    assert local.returncode == 0
    assert list((data / "argosy" / "commands").iterdir()) == []


def outcome(line: str, environment: dict[str, str]) -> tuple[int, bytes, bytes]:
    done = subprocess.run([*ARGOSY, *line.split()], env=environment, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "more", [{}, {"AWS_PROFILE": "nope"}, {"ARGOSY_STAGE": "Nope!"}, {"NO_COLOR": "1"}, {"TZ": "Asia/Tokyo"}]
)
def test_the_environment_of_a_forked_command_is_its_own(more: dict[str, str], environment: dict[str, str]) -> None:
    given = {**environment, **more}
    assert outcome("runs", given) == outcome("runs", {**given, "ARGOSY_NO_WARM": "1"})


@pytest.mark.parametrize("line", FIXED)
def test_a_forked_command_says_what_the_plain_one_says(line: str, environment: dict[str, str]) -> None:
    assert outcome(line, environment) == outcome(line, {**environment, "ARGOSY_NO_WARM": "1"})


def test_a_reader_that_leaves_early_ends_the_command_alike(environment: dict[str, str]) -> None:
    words = " ".join(["'" + each.replace("'", "'\\''") + "'" for each in [*ARGOSY, "schema"]])
    line = ["bash", "-c", f"{words} | head -c 10; echo; echo ${{PIPESTATUS[0]}}"]
    plain = {**environment, "ARGOSY_NO_WARM": "1"}
    found = [subprocess.run(line, env=each, capture_output=True, check=True) for each in (environment, plain)]
    assert (found[0].stdout, found[0].stderr) == (found[1].stdout, found[1].stderr)
