"""`report run`, `ui`, and `--html` of plan and cost: a page besides the answer, and refusals in words."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from argosy.cli.main import app
from argosy.cli.session import Tools
from tests.fakes.cli import CLEAN_SHELL, RUN_ID, World, api_error
from tests.fakes.histories import history
from tests.fakes.reader import PLAN

ROOT = Path(__file__).parents[3]
SPEC = str(ROOT / "containers/digits/run.yaml")


def world() -> World:
    view, told, pages = history(5, 60)
    made = World()
    made.answers("DescribeRun", view).answers("DescribeHistory", told).answers("ListAttempts", *pages)
    return made.answers("PlanRun", PLAN)


def test_a_run_is_written_as_a_page(tmp_path: Path) -> None:
    file = tmp_path / "new folder" / "run.html"
    result = world().argosy("report", "run", RUN_ID, "--html", str(file))
    assert (result.exit_code, result.stdout) == (0, "")
    assert str(file) in result.stderr
    assert f"argosy report run {RUN_ID}" in file.read_text()


def test_without_a_file_name_the_page_has_the_name_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert world().argosy("report", "run", RUN_ID).exit_code == 0
    assert (tmp_path / f"{RUN_ID}.html").exists()


def test_an_unknown_run_has_no_report(tmp_path: Path) -> None:
    made = world().answers("DescribeRun", api_error(404, "ResourceNotFoundException", "there is no such run"))
    result = made.argosy("report", "run", "other-261121-062733-aaaa", "--html", str(tmp_path / "x.html"))
    assert (result.exit_code, "There is no run 'other-261121-062733-aaaa'" in result.stderr) == (2, True)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = world().argosy("report", "run", RUN_ID, "--html", str(tmp_path / "file" / "x.html"))
    assert (result.exit_code, "cannot be written" in result.stderr) == (2, True)


@pytest.mark.parametrize(("words", "heading"), [(("plan", SPEC), "Plan of digits"), (("cost", RUN_ID), "Cost of ")])
def test_answers_are_kept_as_pages_and_still_given(tmp_path: Path, words: tuple[str, ...], heading: str) -> None:
    file = tmp_path / "answer.html"
    result = world().argosy(*words, "--html", str(file), "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)
    assert f"<h1>{heading}" in file.read_text()


def test_a_port_that_is_taken_is_refused_with_another() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = world().argosy("ui", "--no-open", "--port", str(port))
    assert result.exit_code == 2
    assert f"argosy ui --port {port + 1}" in result.stderr


def test_the_page_of_an_unknown_run_is_refused_before_anything_is_served() -> None:
    made = world().answers("DescribeRun", api_error(404, "ResourceNotFoundException", "there is no run 'x'"))
    result = made.argosy("ui", "gone-261121-062733-aaaa", "--no-open")
    assert (result.exit_code, "there is no run 'x'" in result.stderr) == (2, True)


def test_the_browser_is_opened_at_the_run_and_ctrl_c_ends_it() -> None:
    opened: list[str] = []

    def stop(address: str) -> None:
        opened.append(address)
        raise KeyboardInterrupt

    made = world()
    tools = Tools(made.client, lambda: made.now, made.sleep, lambda: "t", lambda: False, open_page=stop)
    result: Any = CliRunner().invoke(app, ["ui", RUN_ID], obj=tools, env=CLEAN_SHELL)
    assert result.exit_code == 130
    [address] = opened
    assert f"/runs/{RUN_ID}?token=" in address
    assert address in result.stdout
