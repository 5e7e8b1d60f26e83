"""What EC2 offers in each cell, read before a deployment is made, so that no fleet is of a type that is withdrawn.

`app.py` reads it in the commands that may deploy, within five seconds, if the CDK has found credentials. `make deploy`
reads it once more after the doctor's checks, with more time. Both keep it in cdk.context.json, where the next synthesis
finds it without an account. Without an answer the offers that were read last count, else the catalogue's.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import aws_cdk as cdk
import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from argosy.catalogue.lookup import as_of
from argosy.settings.live_offers import LiveOffers
from argosy.settings.settings import Settings
from stacks.arguments import LIVE_OFFERS, offers_kept

CONTEXT = Path("cdk.context.json")
ACCOUNT = "CDK_DEFAULT_ACCOUNT"  # set by the CDK's command where its credentials are valid
BUNDLED = "aws:cdk:bundling-stacks"  # in the context: not empty where the CDK's command may need assets
LIMIT_S = 5.0
_PATIENT_S = 30.0  # in `make deploy`, after the checks
Ask = Callable[[str, Iterable[str]], LiveOffers]


def ask_ec2(region: str, names: Iterable[str], account: str | None = None, profile: str | None = None) -> LiveOffers:
    """account: the one that the deployment goes to; zones have other names in another. Raises botocore's errors."""
    session = boto3.Session(profile_name=profile)
    config = Config(connect_timeout=LIMIT_S, read_timeout=LIMIT_S, retries={"total_max_attempts": 2})
    here = session.client("sts", region_name=region, config=config).get_caller_identity()["Account"] if account else ""
    if here != (account or ""):
        error = {"Code": "OtherAccount", "Message": f"these credentials are of {here}, the CDK's of {account}"}
        raise ClientError({"Error": error}, "GetCallerIdentity")
    return LiveOffers.read(session.client("ec2", region_name=region, config=config), names)


def offers_for(app: cdk.App, ask: Ask | None = None) -> Callable[[Settings], Mapping[str, LiveOffers]]:
    """For `settings_of`: EC2's offers if this command may deploy and has credentials, else those that are kept. `ls`
    and `destroy` need none."""
    account = os.environ.get(ACCOUNT)
    if not account or not app.node.try_get_context(BUNDLED):
        return lambda _: offers_kept(app)
    asking = ask or (lambda region, names: ask_ec2(region, names, account))
    return lambda settings: {**offers_kept(app), **refreshed(settings, asking, LIMIT_S)}


def refresh(settings: Settings, profile: str | None, ask: Ask | None = None) -> None:
    """Read and keep the offers for a deployment that follows."""
    refreshed(settings, ask or (lambda region, names: ask_ec2(region, names, profile=profile)), _PATIENT_S)


def refreshed(settings: Settings, ask: Ask, limit_s: float) -> Mapping[str, LiveOffers]:
    """EC2's answers for each cell, which are kept in cdk.context.json. One line says which cells gave none."""
    found, faults = _answers(settings, ask, limit_s)
    if faults:
        reasons = "; ".join(f"{cell}: {fault}" for cell, fault in faults.items())
        date = as_of()["offered"]
        print(
            f"EC2's list of offered types was not read ({reasons}). Fleets follow the list in {CONTEXT}, else the "
            f"catalogue of {date}.",
            file=sys.stderr,
        )
    stored = json.loads(CONTEXT.read_text()) if CONTEXT.is_file() else {}
    after = {**stored.get(LIVE_OFFERS, {}), **{cell: each.to_json() for cell, each in found.items()}}
    if after != stored.get(LIVE_OFFERS, {}):
        CONTEXT.write_text(json.dumps({**stored, LIVE_OFFERS: after}, indent=2) + "\n")
    return found


def _answers(settings: Settings, ask: Ask, limit_s: float) -> tuple[dict[str, LiveOffers], dict[str, str]]:
    """The answers and faults by cell. A cell that does not answer in time is left behind."""
    found: dict[str, LiveOffers] = {}
    faults = dict.fromkeys(settings.cells, f"no answer within {limit_s:g} s")

    def read(cell: str) -> None:
        try:
            found[cell] = ask(cell, settings.instance_types.all)
        except (BotoCoreError, ClientError) as fault:
            faults[cell] = " ".join(str(fault).split())

    threads = [threading.Thread(target=read, args=(cell,), daemon=True) for cell in settings.cells]
    until = time.monotonic() + limit_s
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    in_time = dict(found)
    return in_time, {cell: fault for cell, fault in faults.items() if cell not in in_time}
