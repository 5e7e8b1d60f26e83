"""The command itself: its list, commands that are imported late, the version, faults of our own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer

from argosy.cli import main
from argosy.cli.main import LazyCommand, LazyGroup, load
from tests.fakes.cli import World


def test_help_lists_every_command_by_topic() -> None:
    result = World().argosy("--help")
    assert result.exit_code == 0
    for command in (
        "submit",
        "watch",
        "status",
        "runs",
        "cancel",
        "explain",
        "results",
        "logs",
        "validate",
        "schema",
        "cluster",
        "prices",
        "doctor",
        "access",
        "local",
        "demo",
    ):
        assert f"\n  {command} " in result.stdout
    assert "..." not in result.stdout.partition("\n")[2]  # every line of help fits


@pytest.mark.parametrize("name", main.Commands.late)
def test_a_late_command_is_listed_with_the_first_line_of_its_help(name: str) -> None:
    late = main.Commands.late[name]
    assert load(name, late).get_short_help_str(limit=200) == late.help


def test_a_mistyped_command_is_answered_with_the_nearest() -> None:
    result = World().argosy("statsu")
    assert (result.exit_code, "Did you mean 'status'?" in result.stderr) == (2, True)


def test_the_version_is_printed() -> None:
    assert World().argosy("--version").stdout.startswith("argosy ")


def late_app(*names: str) -> typer.Typer:
    class Group(LazyGroup):
        late = {name: LazyCommand(f"late_{name}", f"Help of {name}.", "Late ones") for name in names}  # noqa: RUF012

    app = typer.Typer(cls=Group, rich_markup_mode=None, add_completion=False)

    @app.callback()
    def root() -> None:
        """A program."""

    return app


@pytest.fixture
def late_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    text = "def register(app):\n    @app.command('there')\n    def there(number: int):\n        print('got', number)\n"
    (tmp_path / "late_there.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "late_there", raising=False)
    return "late_there"


def test_a_late_command_is_listed_without_being_imported(late_module: str) -> None:
    from typer.testing import CliRunner

    result = CliRunner().invoke(late_app("there"), ["--help"])
    assert "Help of there." in result.stdout
    assert late_module not in sys.modules


def test_a_late_command_is_imported_when_it_is_used(late_module: str) -> None:
    from typer.testing import CliRunner

    assert CliRunner().invoke(late_app("there"), ["there", "7"]).stdout == "got 7\n"
    assert CliRunner().invoke(late_app("there"), ["there", "seven"]).exit_code == 2


def test_help_of_a_late_command_is_as_plain_as_the_others(late_module: str) -> None:
    from typer.testing import CliRunner

    help_text = CliRunner().invoke(late_app("there"), ["there", "--help"]).stdout
    assert "Options:\n" in help_text


def test_a_fault_of_argosy_exits_3_with_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """1 means that the run has failures, so it cannot also mean this."""

    def broken() -> None:
        raise ZeroDivisionError("oh")

    with pytest.raises(SystemExit) as stop:
        main.main(broken)
    said = capsys.readouterr().err
    assert stop.value.code == 3
    assert "ZeroDivisionError: oh" in said
    assert "a bug in Argosy" in said


def test_listing_the_commands_imports_nothing_heavy() -> None:
    """The rules that keep `argosy --help` under 0.3 s; tests/benchmarks checks the time itself."""
    reading = "argosy.cli.schedules.command, argosy.cli.cluster.prices"
    code = f"import sys; from argosy.cli.main import app; print(*sys.modules); import {reading}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    listing, reading = done.stdout.splitlines()
    assert not set(reading.split()) & {"boto3", "botocore", "numpy", "argosy.settings.settings"}
    assert not set(listing.split()) & {
        "boto3",
        "botocore",
        "numpy",
        "pydantic",
        "rich",
        "ruamel",
        "moto",
        "lark",
        "argosy.spec.parse",
        "argosy.cli.session",
        "argosy.cli.runs.status",
    }
