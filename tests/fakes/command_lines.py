"""Checks a command line without running it: `argosy` by its parser, `make` and `aws` by a dry run."""

from __future__ import annotations

import contextlib
import io
import shlex
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any

from typer.main import get_command, get_group

from argosy.cli.main import Commands, app, load

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = {**get_group(app).commands, **{name: load(name, late) for name, late in Commands.late.items()}}
PROGRAMS = ("argosy", "aws", "make")


def parsed(words: list[str]) -> dict[str, Any]:
    """The values that `argosy WORDS` gives its command; raises typer's error for a bad one.

    `python -m tests.harness...` is understood as well.
    """
    if words[0] == "python":
        return _of_the_harness(words[2], words[3:])
    with get_command(app).make_context("argosy", ["--help"], resilient_parsing=True) as context:
        name, rest = words[0], words[1:]
        values: dict[str, Any] = COMMANDS[name].make_context(name, rest, parent=context).params
        return values


def _of_the_harness(module: str, words: list[str]) -> dict[str, Any]:
    entry = import_module(f"{module}.__main__" if (ROOT / module.replace(".", "/")).is_dir() else module)
    command: Any = get_command(entry.app)
    if words and words[0] in getattr(command, "commands", ()):
        command, words = command.commands[words[0]], words[1:]
    values: dict[str, Any] = command.make_context(module, words).params
    return values


def commands_in(line: str) -> list[list[str]]:
    """The words of each command of a shell line, without its comment: `a && b` are two."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="&|;>")
    lexer.whitespace_split = True
    commands: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set("&|;>"):
            commands.append([])
        else:
            commands[-1].append(word)
    return [words for words in commands if words]


def understand(words: list[str]) -> None:
    """Raises when the program, which is one of PROGRAMS, would not take these words. They have no effect."""
    program = Path(words[0]).name
    {"argosy": _argosy, "aws": _aws, "make": _make}[program](words[1:])


def _argosy(words: list[str]) -> None:
    """A command that is named alone, without its arguments, has to exist."""
    if len(words) == 1:
        assert words[0] in COMMANDS
    else:
        parsed(words)


def _aws(words: list[str]) -> None:
    """AWS's own command reads the line and prints the form of the request instead of sending it.

    Its set-up commands and those that move files have no such form.
    """
    if words[0] in ("configure", "login", "s3", "sso"):
        known = ("configure", "configure list-profiles", "configure sso", "login", "s3 sync", "sso login")
        assert " ".join(words[:2]) in known
        return
    from awscli.clidriver import create_clidriver

    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = create_clidriver().main([*words, "--generate-cli-skeleton", "input"])
    assert status == 0, said.getvalue()


def _make(words: list[str]) -> None:
    """`make -n`, and the arguments for the CDK have to be settings. ENGINE: else podman is asked, which is slow."""
    line = ["make", "-n", "ENGINE=docker", *words]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    from aws_cdk import App  # starts a process of node: not where nobody understands such a line

    from stacks.arguments import settings_of
    from stacks.stays import context_of

    given = [word.removeprefix("ARGS=") for word in words if word.startswith("ARGS=")]
    for arguments in given:
        settings_of(App(context=context_of(shlex.split(arguments))))
