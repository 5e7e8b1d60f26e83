"""The folder $ARGOSY_CHECKPOINT survives: it is saved while the program runs, and there again in the next attempt."""

from __future__ import annotations

import json
import os
import re
import signal
from typing import Any

import pytest

from tests.fakes.waiting import until
from tests.runners import PART, RUN, RunnerUnderTest, Started

pytestmark = pytest.mark.slow

BASE = f"{RUN}checkpoints/0000007/"
CD = 'cd "$ARGOSY_CHECKPOINT"; '
STEPS = f"{CD}cat step 2>/dev/null; "
COMMIT = "touch .commit; while [ -e .commit ]; do sleep 0.02; done"
WAITS = "while :; do sleep 0.05; done"


def told(attempt: int = 2, every_s: int = 0) -> dict[str, str | None]:
    return {
        "ARGOSY_CHECKPOINT_URI": f"s3://results/{BASE}",
        "ARGOSY_CHECKPOINT_SECONDS": str(every_s),
        "ARGOSY_TASK_ATTEMPT": str(attempt),
    }


def records(runner: RunnerUnderTest) -> list[str]:
    return [name.removeprefix(BASE) for name in runner.s3.names(BASE) if name.endswith(".json")]


def record(runner: RunnerUnderTest, name: str) -> Any:
    return json.loads(runner.s3.body(f"{BASE}{name}"))


def contents(runner: RunnerUnderTest, attempt: int) -> set[bytes]:
    return {runner.s3.body(name) for name in runner.s3.names(f"{BASE}{attempt}/files/")}


def start(runner: RunnerUnderTest, script: str, changes: dict[str, str | None]) -> Started:
    return runner.start("argosy:program", "sh", "-c", script, changes=changes, result="none")


def interrupted(runner: RunnerUnderTest, script: str, attempt: int) -> None:
    """An attempt whose program answers SIGTERM with the rest of its script."""
    started = start(runner, f"{script}; trap 'exit 143' TERM; echo ready; {WAITS}", told(attempt))
    started.said(b"ready")
    started.signal(signal.SIGTERM)
    assert started.end().code == 143


def saved(runner: RunnerUnderTest, script: str, attempt: int) -> None:
    """An attempt whose program fails right after a commit."""
    assert runner.shell(f"{script}; touch .commit; exit 3", told(attempt), result="none").code == 3


def test_what_a_program_leaves_when_it_is_stopped_is_there_in_the_next_attempt(runner: RunnerUnderTest) -> None:
    interrupted(runner, f"{CD}mkdir a; echo 41 > step; echo deep > 'a/ö b'; chmod 755 step", 1)
    assert records(runner) == ["1/000001.json"]
    ended = runner.shell(f"{STEPS} cat 'a/ö b'; test -x step && echo executable", told(2), result="none")
    assert (ended.code, ended.out) == (0, b"41\ndeep\nexecutable\n")
    assert ended.err == b"argosy: restored the checkpoint of attempt 1: 2 files, 8 bytes\n"


def test_times_of_change_survive_since_programs_look_for_the_newest_file(runner: RunnerUnderTest) -> None:
    saved(runner, f"{CD}touch -d '2001-02-03 04:05:06.789 UTC' old; touch new", 1)
    ended = runner.shell(f"{CD} stat -c %.3Y old", told(2), result="none")
    assert ended.out == b"981173106.789\n"


def test_a_task_that_succeeds_leaves_no_checkpoint(runner: RunnerUnderTest) -> None:
    saved(runner, f"{CD}echo 1 > step", 1)
    assert runner.shell("echo done", told(2), result="stdout").code == 0
    assert runner.s3.names(BASE) == []
    assert runner.s3.body(PART) == b"done\n"


def test_a_task_whose_result_is_missing_keeps_its_checkpoint(runner: RunnerUnderTest) -> None:
    saved(runner, f"{CD}echo 1 > step", 1)
    assert runner.shell("true", told(2), result="stdout").code == 65
    assert records(runner) == ["1/000001.json"]


def test_a_commit_is_saved_at_once_and_then_taken_away(runner: RunnerUnderTest) -> None:
    script = f"{CD}echo 1 > step; {COMMIT}; echo 2 > step; exit 3"
    assert runner.shell(script, told(1), result="none").code == 3
    assert records(runner) == ["1/000001.json"]
    assert contents(runner, 1) == {b"1\n"}
    found = record(runner, "1/000001.json")
    assert (found["cause"], found["committed"], found["bytes"], found["sent"]) == ("commit", True, 2, 2)
    assert [each["name"] for each in found["files"]] == ["step"]


def test_a_program_that_commits_is_saved_at_its_commits_only(runner: RunnerUnderTest) -> None:
    script = f"{CD}echo 1 > step; {COMMIT}; echo half > step"
    interrupted(runner, script, 1)
    interrupted(runner, f"{STEPS}echo half > step", 2)
    assert runner.shell(STEPS, told(3), result="none").out == b"1\n"


def test_a_commit_right_before_the_end_of_a_program_that_fails_counts(runner: RunnerUnderTest) -> None:
    assert runner.shell(f"{CD}echo 7 > step; touch .commit; exit 1", told(1), result="none").code == 1
    assert runner.shell(STEPS, told(2), result="none").out == b"7\n"


def test_a_program_that_fails_without_a_commit_leaves_its_last_checkpoint(runner: RunnerUnderTest) -> None:
    """Its files may be the reason."""
    interrupted(runner, f"{CD}echo 1 > step", 1)
    assert runner.shell(f"{CD}echo wrong > step; exit 1", told(2), result="none").code == 1
    assert runner.shell(STEPS, told(3), result="none").out == b"1\n"


def test_files_that_rest_are_saved_at_intervals(runner: RunnerUnderTest) -> None:
    started = start(runner, f"{CD}echo 1 > step; touch -d '1 minute ago' step; {WAITS}", told(1, every_s=1))
    until(lambda: records(runner) == ["1/000001.json"])
    started.signal(signal.SIGTERM)
    started.end()
    assert record(runner, "1/000001.json")["cause"] == "time"


def test_files_that_changed_just_now_wait_for_the_next_moment(runner: RunnerUnderTest) -> None:
    started = start(runner, f"{CD}while :; do echo 1 >> step; sleep 0.05; done", told(1, every_s=1))
    until(lambda: len(list(runner.roots.glob("argosy-*/checkpoint/step"))) == 1)
    step = next(runner.roots.glob("argosy-*/checkpoint/step"))
    until(lambda: step.stat().st_size > 2 * 30)
    started.signal(signal.SIGTERM)
    started.end()
    assert records(runner) == []


def test_a_program_killed_by_the_signal_may_have_left_half_a_file(runner: RunnerUnderTest) -> None:
    started = start(runner, f"{CD}echo half > step; echo ready; exec sleep 60", told(1))
    started.said(b"ready")
    started.signal(signal.SIGTERM)
    assert started.end().code == 143
    assert records(runner) == []


def test_only_files_that_changed_are_sent(runner: RunnerUnderTest) -> None:
    script = f"{CD}echo large > a; touch -d '1 minute ago' a; echo 1 > b; {COMMIT}; echo 22 > b; {COMMIT}; exit 3"
    assert runner.shell(script, told(1), result="none").code == 3
    assert [record(runner, name)["sent"] for name in records(runner)] == [8, 3]
    assert runner.s3.asked("PUT", f"{BASE}1/files/.*") == 3


def test_two_checkpoints_are_kept_and_no_file_that_they_do_not_need(runner: RunnerUnderTest) -> None:
    saved(runner, f"{CD}echo earlier > step", 1)
    script = CD + "".join(f"echo {number} > step; {COMMIT}; " for number in range(4)) + "exit 3"
    assert runner.shell(script, told(2), result="none").code == 3
    assert records(runner) == ["2/000003.json", "2/000004.json"]
    assert contents(runner, 2) == {b"2\n", b"3\n"}


def test_an_attempt_that_was_believed_lost_does_not_touch_its_successors_checkpoint(runner: RunnerUnderTest) -> None:
    saved(runner, f"{CD}echo old > step", 1)
    assert runner.shell(f"{STEPS}{CD}echo new > step; {COMMIT}; exit 3", told(2), result="none").out == b"old\n"
    zombie = "".join(f"echo late{number} > step; {COMMIT}; " for number in range(3))
    assert runner.shell(f"{CD}{zombie}exit 3", told(1), result="none").code == 3
    assert runner.shell(STEPS, told(3), result="none").out == b"new\n"


def test_a_checkpoint_that_is_damaged_is_passed_over(runner: RunnerUnderTest) -> None:
    saved(runner, f"{CD}echo 1 > step", 1)
    saved(runner, f"{CD}echo 2 > step", 2)
    saved(runner, f"{CD}echo 3 > step", 3)
    [changed] = runner.s3.names(f"{BASE}3/files/")
    runner.s3.put(changed, b"damaged")
    assert runner.shell(STEPS, told(4), result="none").out == b"2\n"


@pytest.mark.parametrize("text", [b"", b"{}", b'{"files":[{"name":"../up","sha256":"0","bytes":1}]}'])
def test_a_record_that_is_none_is_passed_over(runner: RunnerUnderTest, text: bytes) -> None:
    runner.s3.put(f"{BASE}1/000001.json", text)
    ended = runner.shell(f"{CD}ls -A", told(2), result="none")
    assert (ended.code, ended.out) == (0, b"")


def test_a_file_that_is_gone_means_an_older_checkpoint(runner: RunnerUnderTest) -> None:
    saved(runner, f"{CD}echo 1 > step", 1)
    saved(runner, f"{CD}echo 2 > step", 2)
    for name in runner.s3.names(f"{BASE}2/files/"):
        del runner.s3.buckets["results"][name]
    assert runner.shell(STEPS, told(3), result="none").out == b"1\n"


def test_s3_that_fails_while_a_checkpoint_is_restored_is_no_lost_work(runner: RunnerUnderTest) -> None:
    saved(runner, f"{CD}echo 1 > step", 1)
    runner.s3.trouble("GET", f"{BASE}1/files/.*", 503)
    ended = runner.shell("echo ran", told(2), result="none")
    assert (ended.code, ended.out) == (75, b"")


def test_a_checkpoint_that_cannot_be_saved_is_said_and_harms_no_task(runner: RunnerUnderTest) -> None:
    runner.s3.trouble("PUT", f"{BASE}.*", 503)
    ended = runner.shell(f"{CD}touch step .commit; exit 3", told(1), result="none")
    assert ended.code == 3
    assert re.fullmatch(rb"argosy: no checkpoint was saved: the checkpoint .* could not be written: .*\n", ended.err)


def test_checkpoints_that_cannot_be_removed_harm_no_task(runner: RunnerUnderTest) -> None:
    saved(runner, f"{CD}echo 1 > step", 1)
    runner.s3.trouble("DELETE", f"{BASE}.*", 403)
    assert runner.shell("echo done", told(2), result="stdout").code == 0


def test_a_link_is_saved_as_its_file_and_what_is_none_is_left_out(runner: RunnerUnderTest) -> None:
    saved(runner, f"{CD}echo 3 > step3; ln -s step3 last; ln -s nowhere odd; mkfifo pipe", 1)
    ended = runner.shell(f"{CD}ls; cat last", told(2), result="none")
    assert ended.out == b"last\nstep3\n3\n"


def test_a_task_without_checkpoints_has_no_folder_for_them(runner: RunnerUnderTest) -> None:
    assert runner.shell('echo "${ARGOSY_CHECKPOINT:-none}"', result="stdout").out == b"none\n"
    assert not [name for _, _, name in runner.s3.requests if "checkpoints" in name]


def test_nothing_is_left_on_the_disk(runner: RunnerUnderTest) -> None:
    interrupted(runner, f"{CD}echo 1 > step", 1)
    assert os.listdir(runner.roots) == []


@pytest.mark.parametrize("seconds", ["-1", "1.5", "often"])
def test_an_interval_that_is_none_is_refused(runner: RunnerUnderTest, seconds: str) -> None:
    ended = runner.shell("echo ran", {**told(), "ARGOSY_CHECKPOINT_SECONDS": seconds}, result="none")
    assert (ended.code, ended.out) == (64, b"")
    assert seconds in ended.sentence
