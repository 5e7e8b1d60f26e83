"""`tasks` and `instances`: what they ask for, and what they print."""

from __future__ import annotations

import re
from typing import Any

from tests.fakes.cli import RUN_ID, World, api_error, instance, task_row


def page(what: str, rows: list[Any], token: str | None = None) -> dict[str, Any]:
    return {what: rows, "asOf": 7, "nextToken": token}


def test_the_filters_of_tasks_are_asked_for_and_the_tasks_shown() -> None:
    world = World().answers("ListTasks", page("tasks", [task_row(3, status="FAILED", exitCode=3, reason="broken")]))
    said = world.argosy("tasks", RUN_ID, "--status", "failed", "--instance", "i-0abc", "--exit-code", "0").stdout
    assert world.functions.requests == [
        {
            "action": "ListTasks",
            "runId": RUN_ID,
            "status": ["FAILED"],
            "instance": "i-0abc",
            "exitCode": 0,
            "maxResults": 1000,
        }
    ]
    assert "broken" in said
    assert said.endswith("1 task.\n")


def test_pages_of_tasks_are_put_together_up_to_the_limit() -> None:
    pages = [page("tasks", [task_row(number) for number in range(begin, begin + 2)], "more") for begin in (0, 2)]
    world = World().answers("ListTasks", *pages)
    found = world.document("tasks", RUN_ID, "--limit", "4")
    assert [each["index"] for each in found["tasks"]] == [0, 1, 2, 3]
    assert found["nextToken"] == "more"
    assert [(each["maxResults"], each.get("nextToken")) for each in world.functions.requests] == [
        (4, None),
        (2, "more"),
    ]


def test_an_empty_page_with_a_token_is_not_the_end() -> None:
    world = World().answers("ListTasks", page("tasks", [], "more"), page("tasks", [task_row(9)]))
    assert [each["index"] for each in world.document("tasks", RUN_ID)["tasks"]] == [9]


def test_rows_beyond_the_limit_are_mentioned() -> None:
    world = World().answers("ListTasks", page("tasks", [task_row(0)], "more"))
    said = world.argosy("tasks", RUN_ID, "--limit", "1").stdout
    assert said.endswith("1 task; --limit 2 shows more.\n")
    world.answers("ListInstances", page("instances", [instance()], "more"))
    assert "; --limit 2 shows more" in world.argosy("instances", "--limit", "1").stdout


def test_the_filters_of_instances_are_asked_for_and_the_instances_shown() -> None:
    world = World().answers("ListInstances", page("instances", [instance()]))
    words = ("--where", "attribute:stack == prod", "--type", "c5.*", "--status", "active", "--purchase", "spot")
    said = world.argosy("instances", *words).stdout
    [request] = world.functions.requests
    assert request == {
        "action": "ListInstances",
        "where": "attribute:stack == prod",
        "type": "c5.*",
        "purchase": "spot",
        "status": ["ACTIVE"],
        "maxResults": 1000,
    }
    assert "i-0a1b2c3d4e5f60718" in said
    assert said.endswith("1 instance.\n")


def test_instances_that_have_ended_come_last() -> None:
    rows = [instance(status="GONE"), instance(instanceId="i-0b"), instance(status="GONE", instanceId="i-0c")]
    said = World().answers("ListInstances", page("instances", rows)).argosy("instances").stdout
    assert re.findall("GONE|ACTIVE", said) == ["ACTIVE", "GONE", "GONE"]


def test_nothing_that_fits_is_a_count_of_none() -> None:
    world = World().answers("ListInstances", page("instances", [])).answers("ListTasks", page("tasks", []))
    assert world.argosy("instances").stdout == "0 instances.\n"
    assert world.argosy("tasks", RUN_ID).stdout == "0 tasks.\n"


def test_json_is_the_api_s_body() -> None:
    body = page("instances", [instance()])
    assert World().answers("ListInstances", body).document("instances") == body


def test_an_expression_that_is_none_is_refused_with_its_place() -> None:
    refused = api_error(400, "ValidationException", "1 field is invalid", ("where", "is not a cluster query"))
    result = World().answers("ListInstances", refused).argosy("instances", "--where", "attribute:")
    assert result.exit_code == 2
    assert "where: is not a cluster query" in result.stderr
