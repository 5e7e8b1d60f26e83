"""The run of a service's revision, as the commands about runs show it: no end is promised."""

from __future__ import annotations

from tests.fakes.cli import RUN_ID, World, api_error, run_view, tasks

RUN = run_view(name="web", environment="web", tasks=tasks(running=3, cancelled=2))


def test_its_status_counts_what_runs_and_leads_to_the_environment() -> None:
    said = World().answers("DescribeRun", RUN).argosy("status", RUN_ID).stdout
    assert "3 tasks of the environment web running" in said
    assert "succeeded" not in said
    assert said.splitlines()[-2:] == ["next: argosy env status web", f"next: argosy tasks {RUN_ID}"]


def test_the_list_of_runs_says_that_it_is_a_service() -> None:
    row = World().answers("ListRuns", {"runs": [RUN], "nextToken": None}).argosy("runs").stdout.splitlines()[1]
    assert row.split()[:3] == [RUN_ID, "RUNNING", "service"]


def test_a_refusal_to_cancel_it_advises_no_token() -> None:
    refused = api_error(409, "ConflictException", "the run belongs to the environment web")
    result = World().answers("CancelRun", refused).argosy("cancel", RUN_ID)
    assert (result.exit_code, result.stderr) == (2, "error: the run belongs to the environment web\n")


def test_who_watches_it_is_told_that_it_does_not_end_and_what_to_look_at() -> None:
    result = World().answers("DescribeRun", RUN).argosy("watch", RUN_ID)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines() == [
        f"error: {RUN_ID} is the run of a revision of the service web: it does not end by itself.",
        "next: argosy env status web",
    ]
