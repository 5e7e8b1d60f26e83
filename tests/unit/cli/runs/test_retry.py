"""`argosy retry`: the request to the api, the output, and refusals."""

from __future__ import annotations

from tests.fakes.cli import RUN_ID, World, api_error, run_view, tasks


def reopened(created: bool = True, **changes: object) -> dict[str, object]:
    counts = tasks(succeeded=14, failed=3, cancelled=1)
    return run_view(**{"status": "SUBMITTED", "tasks": counts, "created": created, "tasksToRetry": 3, **changes})


def test_retry_says_how_many_tasks_run_again_and_what_to_type_next() -> None:
    world = World().answers("RetryRun", reopened())
    result = world.argosy("retry", RUN_ID, "--failed")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"{RUN_ID} is retried: 3 tasks of 18; 14 results kept.",
        "1 cancelled task stays cancelled: add --cancelled next time.",
        f"next: argosy watch {RUN_ID}",
    ]
    (request,) = world.functions.requests
    assert request == {
        "action": "RetryRun", "runId": RUN_ID, "failed": True, "cancelled": False, "clientToken": "token-1",
    }  # fmt: skip


def test_retry_says_which_upload_the_tasks_run() -> None:
    version = {"version": 1, "sha256": "4f2a9c01" + "0" * 56, "addedAt": "2026-11-21T13:51:00.000Z"}
    told = World().answers("RetryRun", reopened(program=version)).argosy("retry", RUN_ID, "--failed").stdout
    said = " ".join(told.split())
    assert "They run version 1 of the program, uploaded 2026-11-21 13:51" in said
    assert "(4f2a9c01); --with-program DIR uploads another." in said


def test_retry_of_cancelled_tasks_with_a_token_of_ones_own() -> None:
    world = World().answers("RetryRun", reopened(tasks=tasks(cancelled=2), tasksToRetry=2))
    result = world.argosy("retry", RUN_ID, "--cancelled", "--client-token", "mine")
    assert result.stdout.splitlines()[0] == f"{RUN_ID} is retried: 2 tasks of 2."
    assert (world.functions.requests[0]["cancelled"], world.functions.requests[0]["clientToken"]) == (True, "mine")


def test_retry_with_a_token_that_has_done_so_says_so() -> None:
    result = World().answers("RetryRun", reopened(created=False)).argosy("retry", RUN_ID, "--failed")
    assert "this client token was already used to retry it; nothing is started twice" in result.stdout


def test_retry_of_a_run_that_could_only_not_be_closed() -> None:
    view = reopened(tasksToRetry=0, tasks=tasks(succeeded=18))
    assert "could not be closed" in World().answers("RetryRun", view).argosy("retry", RUN_ID, "--failed").stdout


def test_retry_prints_the_reply_as_json() -> None:
    view = World().answers("RetryRun", reopened()).document("retry", RUN_ID, "--failed")
    assert (view["created"], view["tasksToRetry"]) == (True, 3)


def test_retry_requires_a_choice_of_tasks() -> None:
    result = World().argosy("retry", RUN_ID)
    assert result.exit_code == 2
    assert "--failed, --cancelled, or both" in result.stderr
    assert f"argosy retry {RUN_ID} --failed" in result.stderr


def test_a_refusal_is_printed_without_advice_about_tokens() -> None:
    refused = api_error(409, "ConflictException", f"{RUN_ID} is RUNNING: only a run that has ended can be retried")
    result = World().answers("RetryRun", refused).argosy("retry", RUN_ID, "--failed")
    assert result.exit_code == 2
    assert "only a run that has ended" in result.stderr
    assert "client-token" not in result.stderr


def test_retry_with_another_budget_sends_it() -> None:
    world = World().answers("RetryRun", reopened())
    assert world.argosy("retry", RUN_ID, "--cancelled", "--budget", "2.5").exit_code == 0
    assert world.functions.requests[0]["budgetUsd"] == 2.5


def test_chosen_tasks_are_tried_again_with_more() -> None:
    world = World().answers("RetryRun", reopened())
    result = world.argosy("retry", RUN_ID, "--tasks", "3, 7-12", "--memory", "8192", "--vcpus", "2", "--budget", "5")
    assert "stays cancelled" not in result.stdout
    (request,) = world.functions.requests
    assert request == {
        "action": "RetryRun", "runId": RUN_ID, "tasks": [[3, 3], [7, 12]], "memory": 8192, "vcpus": 2.0,
        "budgetUsd": 5.0, "clientToken": "token-1",
    }  # fmt: skip


def test_invalid_or_repeated_task_numbers_are_refused() -> None:
    for options, said in (
        (("--tasks", "3,x"), "--tasks: 'x' is neither an index nor a range: write 3,7-12."),
        (("--tasks", "3", "--failed"), "--tasks selects tasks whatever their outcome"),
    ):
        world = World()
        result = world.argosy("retry", RUN_ID, *options)
        assert (result.exit_code, world.functions.requests) == (2, [])
        assert said in result.stderr
