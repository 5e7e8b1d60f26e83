"""boto3 clients, made from the user's own configuration or with dummy keys for an AWS on this machine."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from argosy.client.errors import InvalidInput
from argosy.client.local_key import key_for, running_here
from argosy.model.entrances import QUEUE_NAME

DEFAULT_REGION = "us-east-1"
API_TIMEOUT_S = 70  # the api function may take a minute; botocore's own default would retry at 60 s
CONNECT_TIMEOUT_S = 60  # botocore's own
_ABOUT_CREDENTIALS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
)
_NAMING = ("AWS_PROFILE", "AWS_ACCESS_KEY_ID")
_SESSIONS: dict[Any, Any] = {}
_GUARD = Lock()
POOL_SIZE = 32  # parallel GETs of results


@dataclass(frozen=True)
class Connection:
    """Which AWS and which deployment. None means "as boto3 finds it" (environment, profile)."""

    endpoint_url: str | None = None
    region: str | None = None
    profile: str | None = None
    stage: str = "main"
    entrance: str = ""  # the queue whose entrance is called; "" = the caller may change the whole deployment
    signs: bool = True  # whether it proves the caller's identity, where the deployment can verify that
    patience_s: float | None = None  # how long a call may take; None = as long as the api function may

    def check(self) -> None:
        """Raises InvalidInput for an endpoint that is not an address, and for an impossible queue name."""
        if self.entrance and not re.fullmatch(QUEUE_NAME, self.entrance):
            raise InvalidInput(
                f"{self.entrance[:63]!r} is not a name of a queue.", next_step="type `argosy queues` without it"
            )
        url = self.endpoint_url
        if url is None:
            return
        if "://" not in url:
            raise InvalidInput(f"The endpoint {url} has no scheme.", next_step=f"write http://{url}")
        try:
            found = urlsplit(url)
            is_address = found.scheme in ("http", "https") and bool(found.hostname) and found.port != 0
        except ValueError:  # the port is not a number, or too large
            is_address = False
        if not is_address:
            raise InvalidInput(f"The endpoint {url} is not a URL.", next_step="write it like http://127.0.0.1:4566")

    @property
    def is_loopback(self) -> bool:
        """True for an AWS on this machine, such as `argosy local`."""
        host = urlsplit(self.endpoint_url or "").hostname or ""
        return host in ("localhost", "::1") or host.startswith("127.")


def with_local_mode(connection: Connection, say: Callable[[str], object]) -> Connection:
    """Where nothing names an AWS (no endpoint, profile or access key): the local mode of this user that runs.

    say: what tells the user. Raises InvalidInput if several run.
    """
    is_named = connection.endpoint_url or connection.profile or any(map(os.environ.get, _NAMING))
    found = [] if is_named else running_here()
    if len(found) > 1:
        raise InvalidInput(
            f"{len(found)} local modes run on this machine.",
            next_step="name one, or AWS: " + ", ".join(f"--endpoint-url {url}" for url in found) + ", --profile NAME",
        )
    if not found:
        return connection
    say(f"Using the local mode at {found[0]}; --profile NAME uses AWS.")
    return replace(connection, endpoint_url=found[0])


def find_credentials(connection: Connection) -> Any:
    """The credentials that a client of this connection signs with, as botocore has them; None if there are none."""
    found = _session(connection).get_credentials()
    return None if found is None else found.get_frozen_credentials()


def _session(connection: Connection) -> Any:
    """One session for the process, so that a user types an MFA code once."""
    import boto3

    found = tuple(map(os.environ.get, _ABOUT_CREDENTIALS)), connection.profile, connection.region
    with _GUARD:
        if found not in _SESSIONS:
            _SESSIONS[found] = boto3.Session(profile_name=connection.profile, region_name=connection.region)
        return _SESSIONS[found]


def make_client(connection: Connection, service: str) -> Any:
    """A boto3 client. One of a local mode of this user signs with its key, whatever keys or profile are set.

    Any other loopback endpoint gets dummy credentials unless a profile or keys are set: it needs no real ones, and
    searching the instance metadata for them would take a second. No proxy stands before this machine.
    """
    from botocore.config import Config

    session = _session(connection)
    keys: dict[str, str] = {}
    if connection.is_loopback and (key := key_for(connection.endpoint_url or "")):
        # A session token of the environment belongs to another key.
        keys = {"aws_access_key_id": key.id, "aws_secret_access_key": key.secret, "aws_session_token": ""}
    elif connection.is_loopback and not connection.profile and not os.environ.get("AWS_ACCESS_KEY_ID"):
        keys = {"aws_access_key_id": "local", "aws_secret_access_key": "local"}
    hurried = connection.patience_s is not None
    config = Config(
        connect_timeout=connection.patience_s or CONNECT_TIMEOUT_S,
        read_timeout=connection.patience_s or API_TIMEOUT_S,
        max_pool_connections=POOL_SIZE,
        retries={"mode": "standard", "max_attempts": 1 if hurried else 4},
        user_agent_extra="argosy-cli",
        s3={"addressing_style": "path"} if connection.is_loopback else {},
        proxies={} if connection.is_loopback else None,
    )
    with _GUARD:  # a session makes one client at a time
        client = session.client(
            service,
            region_name=session.region_name or DEFAULT_REGION,
            endpoint_url=connection.endpoint_url,
            config=config,
            **keys,
        )
    if service == "logs":
        client.meta.events.register("before-parse.cloudwatch-logs.GetLogEvents", _take_lines)
    return client


def _take_lines(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: object) -> None:
    """Lines of a log are what their JSON says: botocore compares each with its description, in five times the time."""
    if response_dict["status_code"] == HTTPStatus.OK:
        document = json.loads(response_dict["body"])
        customized_response_dict["events"] = document.pop("events", [])
        response_dict["body"] = json.dumps(document).encode()
