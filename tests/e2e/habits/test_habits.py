"""The public reports and a new user's programs, typed at one local mode: each has the right verdict.

Those that need no task, or a quick one, are in `make test`; the others are deep.
"""

from __future__ import annotations

import inspect
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.habits.findings import FINDINGS
from tests.e2e.habits.habit import Habit
from tests.e2e.habits.programs import PROGRAMS
from tests.e2e.habits.reports import REPORTS

pytestmark = pytest.mark.e2e
HABITS = [*REPORTS, *PROGRAMS]
TESTS = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "habit",
    [pytest.param(each, id=each.number, marks=[pytest.mark.deep] * each.is_deep) for each in HABITS],
)
def test_a_habit_has_the_right_verdict(habit: Habit, tmp_path: Path, environment: dict[str, str]) -> None:
    habit.show(tmp_path, environment)


PROC_OPENED: list[str] = []  # by others than psutil, which reads it on Linux alone


def _note_proc(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in ("open", "os.listdir", "os.scandir") or not str(arguments[0]).startswith("/proc"):
        return
    frame = inspect.currentframe()
    while frame is not None and "/psutil/" not in frame.f_code.co_filename:
        frame = frame.f_back
    if frame is None:
        PROC_OPENED.append(str(arguments[0]))


@pytest.mark.deep  # the hook stays
def test_a_task_runs_with_what_macos_has(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    monkeypatch.delattr(os, "waitid")
    sys.addaudithook(_note_proc)
    REPORTS[0].show(tmp_path, environment)
    noted, PROC_OPENED[:] = [*PROC_OPENED], []
    Path("/proc/self/stat").read_bytes()
    assert (noted, PROC_OPENED) == ([], ["/proc/self/stat"])


def test_each_finding_names_a_habit_or_a_test_that_there_is() -> None:
    habits = {each.number for each in HABITS}
    for finding, shown_by in FINDINGS.items():
        file, _, name = shown_by.partition("::")
        is_there = shown_by in habits or f"def {name}(" in (TESTS / file).read_text(encoding="utf-8")
        assert is_there, finding
