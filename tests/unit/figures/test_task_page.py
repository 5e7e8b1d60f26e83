"""The page of a task: its attempts, and the end of a log that may be long, hostile, or out of reach."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest

from argosy.figures.document import Page, parts
from argosy.figures.task import LINES_SHOWN, LogEnd, attempt_of, chosen, task_page
from tests.fakes.cli import NOW

JSON = dict[str, Any]
RUN = "digits-261121-062733-k3f9"
HOSTILE = "</pre><img src=x onerror=alert(1)>\x1b[2J\u202e"


def attempt(number: int, **changes: Any) -> JSON:
    times = {"startedAt": "2026-11-21T06:27:00.000Z", "stoppedAt": "2026-11-21T06:27:12.500Z"}
    about = {"outcome": "FAILED", "exitCode": 139, "reason": "Essential container in task exited", "instance": "i-0a"}
    return {"attempt": number, **times, **about, **changes}


def reply(*attempts: JSON) -> JSON:
    return {"runId": RUN, "index": 7, "status": "RUNNING", "attempts": list(attempts), "attemptsLeftOut": 0}


def events(*lines: str) -> list[JSON]:
    return [{"timestamp": 1000 * NOW + place, "message": line} for place, line in enumerate(lines)]


ALIVE = attempt(2, outcome=None, exitCode=None, reason=None, stoppedAt=None)


def page_of(log: LogEnd, *attempts: JSON, number: int = 0) -> Page:
    told = reply(*attempts)
    return task_page(told, chosen(told, number), log, NOW)


def log_of(page: Page) -> str:
    return unescape(re.sub(r"<[^>]+>", " ", parts(page)["log"]))


def test_the_latest_attempt_is_shown_unless_another_is_asked_for() -> None:
    log = LogEnd(events("hello"))
    assert "Log of attempt 2" in log_of(page_of(log, attempt(1), ALIVE))
    first = page_of(log, attempt(1), ALIVE, number=1)
    assert "Log of attempt 1" in log_of(first)
    assert 'href="?attempt=2"' in parts(first)["attempts"]
    assert first.next_steps == [("The whole log:", f"argosy logs {RUN} --task 7 --attempt 1")]
    assert "Log of attempt 2" in log_of(page_of(log, attempt(1), ALIVE, number=9))


def test_lines_have_their_times_and_a_log_that_grows_says_so() -> None:
    alive = page_of(LogEnd(events("one", "two\n")), ALIVE)
    assert re.findall(r"06:27:33 (one|two)", log_of(alive)) == ["one", "two"]
    assert "2 lines; new ones appear as they arrive." in log_of(alive)
    assert "1 line." in log_of(page_of(LogEnd(events("one")), attempt(1)))


def test_an_attempt_says_why_it_ended_and_how_long_it_took() -> None:
    told = unescape(re.sub(r"<[^>]+>", " ", parts(page_of(LogEnd(), attempt(1), ALIVE))["attempts"]))
    assert "SIGSEGV" in told
    assert "12 s" in told
    assert "33 s" in told  # so far


def test_a_log_is_bounded_by_lines_and_by_characters_and_the_end_is_what_stays() -> None:
    full = log_of(page_of(LogEnd(events(*map(str, range(LINES_SHOWN)))), ALIVE))
    assert f"The last {LINES_SHOWN} lines" in full
    wide = page_of(LogEnd(events(*(f"{row} {'x' * 300_000}" for row in range(LINES_SHOWN)))), ALIVE)
    assert len(parts(wide)["log"]) < 210_000
    assert f"06:27:33 {LINES_SHOWN - 1} xxx" in log_of(wide)
    assert "The last 99 lines" in log_of(wide)


def test_hostile_lines_stay_text() -> None:
    html = parts(page_of(LogEnd(events(HOSTILE)), attempt(1, reason=HOSTILE)))
    assert not any(sign in "".join(html.values()) for sign in ("<img", "\x1b", "\u202e"))
    assert "&lt;img" in html["log"]


@pytest.mark.parametrize(
    ("log", "attempts", "said"),
    [
        (LogEnd(), [], "No attempt has been made yet."),
        (LogEnd(), [ALIVE], "No line has arrived yet."),
        (LogEnd(), [attempt(1)], "There is no line."),
        (LogEnd(why_not="not allowed"), [ALIVE], "not allowed"),
    ],
)
def test_a_log_without_lines_says_why(log: LogEnd, attempts: list[JSON], said: str) -> None:
    assert said in log_of(page_of(log, *attempts))


def test_a_task_that_waits_names_the_command_that_says_why() -> None:
    assert page_of(LogEnd()).next_steps == [("Why it waits:", f"argosy explain {RUN} --task 7")]


@pytest.mark.parametrize(
    ("query", "number"), [("", 0), ("attempt=3", 3), ("attempt=-3", 0), ("attempt=٣", 0), ("a=1", 0)]
)
def test_an_address_names_an_attempt_by_its_number(query: str, number: int) -> None:
    assert attempt_of(query) == number
