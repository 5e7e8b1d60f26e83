"""Does this account and region have everything that Argosy needs? One line each: what is wrong and what to type.

All calls only read. The checks themselves are in `checks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.problems import AWS_FAULT
from argosy.cli.session import Session

if TYPE_CHECKING:
    from argosy.cli.deployment.findings import Finding

_MARKS = {
    "ok": ("ok     ", "green"),
    "note": ("note   ", "yellow"),
    "wrong": ("wrong  ", "red"),
    "denied": ("denied ", "yellow"),
}


def register(app: typer.Typer) -> None:
    command(app, "doctor", panel=panels.SETUP)(doctor)


def doctor(session: Session) -> None:
    """What is missing here, and what to type. It only reads, and exits 3 when something is wrong."""
    from argosy.cli.deployment.checks import run_checks

    findings = run_checks(session)
    is_well = not any(each.state == "wrong" for each in findings)
    if session.wants_json:
        session.print_json({"ok": is_well, "checks": [each.as_json() for each in findings]})
    else:
        _print(session, findings, is_well)
    if not is_well:
        raise typer.Exit(AWS_FAULT)


def _print(session: Session, findings: list[Finding], is_well: bool) -> None:
    from argosy.cli.console import PlainText

    console = session.console
    wrong = sum(each.state == "wrong" for each in findings)
    console.print(
        "All is well: runs can work here." if is_well else f"{wrong} of {len(findings)} checks found a fault."
    )
    for each in findings:
        word, colour = _MARKS[each.state]
        console.print(PlainText().append(word, colour).append(f"{each.name}: ", "bold").append(each.says))
        if each.type_this:
            console.print(PlainText(f"       next: {each.type_this}", "dim"))
