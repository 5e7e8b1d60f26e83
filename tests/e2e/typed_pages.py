"""Types every command of a page of docs/guides/ against an embedded AWS with real processes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from argosy.local.clients import LocalClients
from tests.e2e.cluster import Cluster
from tests.fakes.commands import outcome_of
from tests.fakes.local_mode import local_aws
from tests.readmes import local_options

DOCS = Path(__file__).resolve().parents[2] / "docs" / "guides"
_BLOCK = re.compile(r"(?:`(?P<file>[\w.]+)`:\n\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)


@contextmanager
def embedded() -> Iterator[Cluster]:
    """The AWS that a page reaches."""
    with local_aws(local_options()) as aws:
        clients = LocalClients(aws.endpoint_url, "us-east-1", aws.key)
        try:
            yield Cluster(aws, clients)
        finally:
            clients.close()


def typed(local: Cluster, page: str, home: Path, folder: str) -> str:
    """The output of the commands of docs/guides/PAGE; fails the test unless every line exits 0. folder: the one that
    the first block makes in `home`, with the files of the page."""
    said, there = "", home / folder
    for block in _BLOCK.finditer((DOCS / page).read_text(encoding="utf-8")):
        if block["language"] == "yaml":
            (there / str(block["file"])).write_text(block["text"])
        else:
            lines = re.sub(r"^export ARGOSY_ENDPOINT_URL=.*$", "", block["text"], flags=re.MULTILINE)
            said += _shell(local, lines, there if there.is_dir() else home)
    return said


def _shell(local: Cluster, text: str, folder: Path) -> str:
    done = outcome_of(text, folder, ARGOSY_ENDPOINT_URL=local.aws.endpoint_url)
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr
