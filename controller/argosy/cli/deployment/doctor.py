"""Does this account have everything that Argosy needs?

One line for each need, and the command to type. It comes before the first deployment, and says afterwards whether runs
can work. All calls only read, except with --fix and --probe. The checks themselves are in `checks` and `probe`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

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


@dataclass(frozen=True)
class DoctorOptions:
    """How far the doctor goes beyond reading the account and the deployment."""

    fix: Annotated[bool, typer.Option("--fix", help="Create missing service-linked roles, which are free.")] = False
    account: Annotated[bool, typer.Option("--account", help="Check only the account, before a deployment.")] = False
    probe: Annotated[
        bool,
        typer.Option("--probe", help="Ask AWS which reading of its contracts holds. Starts nothing, under 0.01 USD."),
    ] = False


_Cells = Annotated[
    str | None,
    typer.Option(
        metavar="REGIONS",
        help="Regions to check, separated by commas. [default: the deployment's, else cdk.json's]",
    ),
]
_Settings = Annotated[str | None, typer.Option(hidden=True, help="Settings that `make deploy` will deploy, as JSON.")]


def doctor(session: Session, extent: DoctorOptions, *, cells: _Cells = None, settings: _Settings = None) -> None:
    """What is missing for a deployment, and what to type. Exits 3 when something is wrong."""
    from argosy.cli.deployment.checks import run_checks
    from argosy.cli.deployment.probe import probe

    findings = run_checks(session, cells=cells, settings=settings, may_fix=extent.fix, account_only=extent.account)
    if extent.probe:
        findings += probe(session)
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
    console.print("No faults found." if is_well else f"{wrong} of {len(findings)} checks found a fault.")
    for each in findings:
        word, colour = _MARKS[each.state]
        console.print(PlainText().append(word, colour).append(f"{each.name}: ", "bold").append(each.says))
        if each.type_this:
            console.print(PlainText(f"       next: {each.type_this}", "dim"))
