"""Daemons in local mode, with real processes: every command of docs/guides/daemons.md, as it is typed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.typed_pages import embedded, typed

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def local() -> Iterator[Cluster]:
    with embedded() as found:
        yield found


@pytest.mark.pages
def test_every_command_of_the_page_works_as_it_is_typed(local: Cluster, tmp_path: Path) -> None:
    said = typed(local, "daemons.md", tmp_path, "watching")
    for told in (
        "watch created, revision 1",
        "deployment 1 to revision 1: COMPLETED",
        "deployment 2 to revision 2: COMPLETED",
        "watch is a daemon, which runs one task on each matching instance",
        "as expected",
    ):
        assert told in said
    local.until(lambda: not local.ask("ListEnvironments")["environments"])
