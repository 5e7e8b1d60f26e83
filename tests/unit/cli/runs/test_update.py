"""`argosy update`: the request to the api, the output, refusals, and the output of `status`."""

from __future__ import annotations

import pytest

from tests.fakes.cli import RUN_ID, World, api_error, run_view

CHANGES = {"priority": 5, "budgetUsd": 20.0, "deadline": None}


def test_update_says_what_is_changed_and_what_to_type_next() -> None:
    view = run_view(created=True, changes=CHANGES)
    world = World().answers("UpdateRun", view)
    options = ("--priority", "5", "--budget-usd", "20", "--unset", "deadline", "--reason", "it is urgent")
    result = world.argosy("update", RUN_ID, *options)
    assert result.stdout.splitlines() == [
        f"{RUN_ID} changes with the next tick: priority 5, budgetUsd 20.0, no deadline.",
        f"next: argosy status {RUN_ID}",
    ]
    (request,) = world.functions.requests
    assert request == {
        "action": "UpdateRun", "runId": RUN_ID, "changes": CHANGES, "clientToken": "token-1", "reason": "it is urgent",
    }  # fmt: skip


def test_every_field_that_may_change_has_an_option() -> None:
    world = World().answers("UpdateRun", run_view(created=False))
    result = world.argosy(
        "update", RUN_ID, "--queue", "prod", "--max-hourly-cost", "2.5", "--max-instances", "3",
        "--max-concurrent-tasks", "4", "--deadline", "2h", "--client-token", "mine",
    )  # fmt: skip
    assert "this client token was already used to change it; nothing is changed twice" in result.stdout
    (request,) = world.functions.requests
    assert request["clientToken"] == "mine"
    assert request["changes"] == {
        "queue": "prod", "maxHourlyCost": 2.5, "deadline": "2h", "maxInstances": 3, "maxConcurrentTasks": 4,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "Say what to change."),
        (("--unset", "priority"), "--unset priority is unknown; known: budget-usd, max-hourly-cost, deadline, "),
        (("--unset", "--deadline", "--deadline", "2h"), "--unset --deadline contradicts --deadline: give one of them."),
    ],
)
def test_what_says_nothing_or_contradicts_itself_is_refused(options: tuple[str, ...], said: str) -> None:
    world = World()
    result = world.argosy("update", RUN_ID, *options)
    assert (result.exit_code, world.functions.requests) == (2, [])
    assert said in result.stderr


def test_a_refusal_is_printed_as_it_is() -> None:
    refused = api_error(409, "ConflictException", f"{RUN_ID} has ended as FAILED: only an open run can be changed")
    result = World().answers("UpdateRun", refused).argosy("update", RUN_ID, "--priority", "5")
    assert (result.exit_code, result.stderr) == (
        2,
        f"error: {RUN_ID} has ended as FAILED: only an open run can be changed\n",
    )


def test_status_shows_what_was_changed() -> None:
    view = run_view(changes={"priority": 5, "deadline": None}, changeReason="it is urgent")
    shown = World().answers("DescribeRun", view).argosy("status", RUN_ID).stdout
    assert "priority 5, no deadline" in " ".join(shown.split())
