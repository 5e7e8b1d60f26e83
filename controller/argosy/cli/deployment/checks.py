"""All checks of `argosy doctor` in their order: the account's, each cell's, the deployment's."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from argosy.cli.deployment.account import ACCOUNT_CHECKS, CELL_CHECKS
from argosy.cli.deployment.checked_account import CheckedAccount, settings_for
from argosy.cli.deployment.findings import Finding, looked_at, missing, note, ok, wrong
from argosy.cli.deployment.remedies import DEPLOY, publish
from argosy.client.deployment import prefix_of
from argosy.client.errors import ArgosyError

if TYPE_CHECKING:
    from argosy.cli.session import Session
    from argosy.settings.settings import Settings


def run_checks(
    session: Session,
    *,
    cells: str | None = None,
    settings: str | None = None,
    may_fix: bool = False,
    account_only: bool = False,
) -> list[Finding]:
    """All findings in order; without credentials, only that one. An AWS on this machine has no account to check.

    cells: Regions with commas between them, instead of those of the settings. settings: JSON of those of a deployment
    that is about to be made. account_only: leaves the deployment out. Raises ArgosyError for faulty settings.
    """
    findings = looked_at("credentials", partial(credentials, session))
    if findings[0].state == "wrong":
        return findings
    if not session.connection.is_loopback:
        findings += _of_account(session, settings_for(session, cells, settings), may_fix)
    if not account_only:
        for name, check in DEPLOYMENT_CHECKS.items():
            findings += looked_at(name, partial(check, session))
    return findings


def _of_account(session: Session, settings: Settings, may_fix: bool) -> list[Finding]:
    account = str(session.client("sts").get_caller_identity()["Account"])
    checked, findings = CheckedAccount(session, settings, account, may_fix), []
    for name, check in ACCOUNT_CHECKS.items():
        findings += looked_at(name, partial(check, checked))
    for cell in settings.cells:
        for name, look in CELL_CHECKS.items():
            found = looked_at(name, partial(look, checked, cell))
            findings += [replace(each, name=f"{each.name} in {cell}") for each in found]
    return findings


def credentials(session: Session) -> list[Finding]:
    identity = session.client("sts").get_caller_identity()
    return ok("credentials", f"account {identity['Account']}, {identity['Arn']}")


def deployment(session: Session) -> list[Finding]:
    """A missing deployment is not a fault: the doctor comes before the first deployment."""
    try:
        found = session.deployment
    except ArgosyError as error:
        if session.connection.is_loopback:
            raise
        return note("deployment", error.message, DEPLOY)
    return ok("deployment", f"cluster {found.cluster} in {found.region}, results in s3://{found.bucket}/")


def images(session: Session) -> list[Finding]:
    """Whether each published name `argosy/NAME` resolves to an image that can be pulled."""
    path = f"/{prefix_of(session.connection.stage)}/images"
    pages = session.client("ssm").get_paginator("get_parameters_by_path").paginate(Path=path)
    published = {each["Name"].rpartition("/")[2]: each["Value"] for page in pages for each in page["Parameters"]}
    if not published:
        return note("images", "no argosy/NAME image is published; runs can use any other image", publish(["digits"]))
    absent = [name for name, uri in published.items() if not _reachable(session, uri)]
    if absent:
        return wrong("images", f"missing from ECR: {', '.join(absent)}", publish(list(published)))
    return ok("images", ", ".join(f"argosy/{name}" for name in published))


def _reachable(session: Session, uri: str) -> bool:
    """Only private ECR can be queried; ECS will report on others."""
    from argosy.aws.image_sizes import described_by

    if (asked := described_by(uri)) is None:
        return True
    try:
        session.client("ecr").describe_images(**asked[1])
    except Exception as fault:
        if missing(fault, "ImageNotFoundException", "RepositoryNotFoundException"):
            return False
        raise
    return True


DEPLOYMENT_CHECKS = {"deployment": deployment, "images": images}
