"""Daemons in local mode, with real processes: every command of docs/daemons.md, as it is typed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.local.clients import LocalClients
from argosy.local.cloud import LocalAws
from tests.e2e.cluster import Cluster
from tests.readmes import local_options

pytestmark = pytest.mark.e2e
PAGE = Path(__file__).resolve().parents[2] / "docs" / "daemons.md"
_BLOCK = re.compile(r"(?:`(?P<file>[\w.]+)`:\n\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def local() -> Iterator[Cluster]:
    with LocalAws(options=local_options()) as aws:
        clients = LocalClients(aws.endpoint_url, "us-east-1")
        try:
            yield Cluster(aws, clients)
        finally:
            clients.close()


def shell(local: Cluster, text: str, folder: Path) -> str:
    """What it prints; fails the test unless every line of it exits 0."""
    told = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "ARGOSY_ENDPOINT_URL": local.aws.endpoint_url}
    done = subprocess.run(
        ["bash", "-ec", text], cwd=folder, env={**os.environ, **told}, capture_output=True, text=True, check=False,
        timeout=180,
    )  # fmt: skip
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@pytest.mark.deep
def test_every_command_of_the_page_works_as_it_is_typed(local: Cluster, tmp_path: Path) -> None:
    folder, said = tmp_path / "watching", ""
    for block in _BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        if block["language"] == "yaml":
            (folder / str(block["file"])).write_text(block["text"])
        else:
            typed = re.sub(r"^export ARGOSY_ENDPOINT_URL=.*$", "", block["text"], flags=re.MULTILINE)
            said += shell(local, typed, folder if folder.is_dir() else tmp_path)
    for told in (
        "watch created, revision 1",
        "deployment 1 to revision 1: COMPLETED",
        "deployment 2 to revision 2: COMPLETED",
        "watch is a daemon, of which one task runs on each instance that matches",
        "as expected",
    ):
        assert told in said
    local.until(lambda: not local.ask("ListEnvironments")["environments"])
