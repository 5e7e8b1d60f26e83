"""The owner of a run is shown, and whether it is proven: in `status`, `runs`, `queues` and on pages."""

from __future__ import annotations

from tests.fakes.cli import RUN_ID, World, run_view
from tests.fakes.sharing import queue, sharing


def test_a_run_shows_its_owner_and_whether_the_owner_is_proven() -> None:
    world = World().answers("DescribeRun", run_view(owner="alice", ownerProven=False))
    assert "alice (unproven)" in world.argosy("status", RUN_ID).stdout
    world.answers("DescribeRun", run_view(owner="sso/alice@example.com", ownerProven=True))
    shown = world.argosy("status", RUN_ID).stdout
    assert "sso/alice@example.com" in shown
    assert "unproven" not in shown
    world.answers("DescribeRun", run_view(owner=None, ownerProven=False))
    assert "owner" not in world.argosy("status", RUN_ID).stdout


def test_runs_have_a_column_of_owners_where_any_has_one() -> None:
    found = [run_view(owner="alice", ownerProven=True), run_view(owner="bob", ownerProven=False), run_view()]
    world = World().answers("ListRuns", {"runs": found, "nextToken": None})
    lines = world.argosy("runs").stdout.splitlines()
    assert lines[0].split()[:2] == ["RUN", "OWNER"]
    assert [line.split()[1] for line in lines[1:]] == ["alice", "bob", "-"]
    assert "bob (unproven)" in lines[2]
    world.answers("ListRuns", {"runs": [run_view()], "nextToken": None})
    assert "OWNER" not in world.argosy("runs").stdout


def test_queues_list_the_owners_with_open_runs_where_owners_share_one() -> None:
    owners = [
        {"name": "alice", "proven": True, "runs": 2},
        {"name": "bob", "proven": False, "runs": 1},
        {"name": None, "proven": False, "runs": 3},
    ]
    team = queue("team", within="owners", owners=owners)
    shown = World().answers("DescribeSharing", sharing(queues=[team, queue("default", owners=None)]))
    said = shown.argosy("queues").stdout
    assert (
        "Owners in team: alice 2 runs, bob (unproven) 1 run, no owner (unproven) 3 runs; unproven owners count" in said
    )
    proven = queue("team", within="owners", owners=owners[:1])
    assert (
        "Owners in team: alice 2 runs.\n"
        in World().answers("DescribeSharing", sharing(queues=[proven])).argosy("queues").stdout
    )
