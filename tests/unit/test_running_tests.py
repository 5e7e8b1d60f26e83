"""How tests/run lists, orders and reports: which files, the longest first, and a closing line that .ci/run finds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.run.__main__ import OK, Run, closing, faults, files_of, groups, tell

ROOT = Path(__file__).resolve().parents[2]
HERE = "tests/unit/test_running_tests.py"


def test_a_folder_means_its_files_and_a_named_test_itself() -> None:
    assert HERE in files_of(["tests/unit"])
    assert files_of([f"{HERE}::test_a", f"{HERE}::test_b"]) == {HERE: [f"{HERE}::test_a", f"{HERE}::test_b"]}


def test_what_took_longest_comes_first_and_what_shares_an_engine_stays_together() -> None:
    files = files_of(["tests/contract/test_container_engines.py", HERE, "tests/e2e/test_local_engine.py"])
    first, second = groups(files, {HERE: 70.0})
    assert first == [HERE]
    assert second == ["tests/contract/test_container_engines.py", "tests/e2e/test_local_engine.py"]


def test_what_needs_the_cdk_is_run_by_one_process() -> None:
    [group] = groups(files_of(["tests/stacks", "tests/unit/stacks/test_boot_order.py"]), {})
    assert "tests/stacks/test_home.py" in group


def test_without_times_a_file_that_starts_local_mode_comes_before_a_unit_test() -> None:
    assert groups(files_of([HERE, "tests/e2e/test_demo.py"]), {})[0] == ["tests/e2e/test_demo.py"]


def test_files_that_wait_and_files_that_compute_run_side_by_side() -> None:
    waiting = {f"tests/e2e/test_{name}.py": 9.0 for name in ("demo", "exec", "retry", "skill")}
    computing = {f"tests/unit/market/test_{name}.py": 1.0 for name in ("floors", "allocation")}
    order = [
        waits
        for (file,) in groups(files_of([*waiting, *computing]), waiting | computing)
        for waits in [file in waiting]
    ]
    assert order == [True, True, False, True, True, False]


def test_the_closing_line_is_one_that_the_push_check_finds() -> None:
    [pattern] = re.findall(r"grep -E '([^']+)'", (ROOT / ".ci" / "run").read_text())
    line = closing({"passed": 310, "failed": 2, "error": 2}, 61.2)
    assert line == "2 failed, 310 passed, 2 errors in 61.20s"
    assert re.search(pattern, line)


def test_of_a_log_failures_are_shown_and_of_a_worker_that_was_killed_the_end() -> None:
    log = "..F\n===== FAILURES =====\nassert 1 == 2\n1 failed, 2 passed in 0.10s\n"
    assert faults(log, 1) == "===== FAILURES =====\nassert 1 == 2\n"
    assert faults("...\nSegmentation fault", -11) == "...\nSegmentation fault\n"
    assert faults("...\n3 passed in 0.10s\n", 0) == ""


def test_a_worker_that_fails_fails_the_run_and_one_without_tests_does_not() -> None:
    assert tell([], [0, 5], ["", ""], 1.0) == 0
    assert tell([], [0, -9], ["", "Killed"], 1.0) != 0
    assert tell([], [5], [""], 1.0) == 5
    assert tell([], [], [], 1.0) != 0  # none was started


@pytest.mark.slow
def test_a_worker_whose_last_file_has_no_selected_test_did_run_tests(tmp_path: Path) -> None:
    shares = [[HERE], ["tests/unit/test_prose.py"]]
    run = Run(tmp_path, shares, by_test=False, coverage=False)
    assert run.wait(run.start(1, ["-k", "closing_line or folder_of_a_test"])) == [OK]
    assert [bool(record["counts"].get("passed")) for record in run.records()] == [True, False]
    assert [*tmp_path.glob("tmp0/*/")]  # no worker sweeps what another one uses


def test_the_folder_of_a_test_is_empty(tmp_path: Path) -> None:
    assert [*tmp_path.iterdir()] == []
