"""The run of a service's revision, as the commands about runs show it: no end is promised."""

from __future__ import annotations

from pathlib import Path

import pytest

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


def test_watching_a_service_says_that_it_does_not_end_and_what_to_do_instead() -> None:
    result = World().answers("DescribeRun", RUN).argosy("watch", RUN_ID)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines() == [
        f"error: {RUN_ID} is the run of a revision of the service web: it does not end on its own.",
        "next: argosy env status web",
    ]


def test_its_results_are_never_complete_and_that_is_reported() -> None:
    result = World().answers("DescribeRun", RUN).argosy("results", RUN_ID)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[0].endswith("whose tasks keep running: its results are never complete.")


@pytest.mark.parametrize(
    ("kind", "summary"),
    [
        ("service: {desired: 3}", "web, a service: 3 tasks of 0.5 vCPU, 256 MiB"),
        ("daemon: {}", "web, a daemon: one task on each matching instance of 0.5 vCPU, 256 MiB"),
    ],
)
def test_a_spec_of_what_is_kept_running_is_valid_as_that(tmp_path: Path, kind: str, summary: str) -> None:
    file = tmp_path / "web.yaml"
    form = (
        f"version: 1\nkind: {kind.partition(':')[0]}\nname: web\ncontainer: {{image: argosy/web, command: [serve]}}\n"
    )
    file.write_text(form + f"resources: {{vcpus: 0.5, memory: 256}}\n{kind}\n")
    said = World().argosy("validate", str(file)).stdout
    assert summary in said
    assert "argosy env create" in said
