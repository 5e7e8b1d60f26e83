"""Requests to a local mode for what AWS has no API for, such as a spot notice for an instance."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from argosy.client.aws_clients import DEFAULT_REGION, Connection
from argosy.client.errors import ArgosyError
from argosy.client.local_key import LocalKey, key_for

TIMEOUT_S = 30.0
NOTICE_S = 120.0  # from a spot notice to the end, as on AWS


class LocalRequestRefused(ArgosyError):
    """The local mode does not do it, or there is none at the endpoint."""


def running_task(view: Mapping[str, Any], task: int | None) -> Mapping[str, Any] | None:
    """The task of that index, or the first, that runs on an instance. view: DescribeRun with its tasks."""
    running = (each for each in view["taskList"] if each["status"] == "RUNNING" and each["instance"])
    return next((each for each in running if task in (None, each["index"])), None)


def interrupt(connection: Connection, view: Mapping[str, Any], instance: str, notice_s: float) -> list[int]:
    """A spot notice for an instance; the tasks of the run that get SIGTERM. Raises LocalRequestRefused."""
    try:
        local_reply(connection, "interrupt", {"instanceId": instance, "noticeS": notice_s})
    except LocalRequestRefused as why:
        raise LocalRequestRefused(f"{instance} cannot be interrupted: {why}.") from why
    return tasks_on(view, instance)


def tasks_on(view: Mapping[str, Any], instance: str) -> list[int]:
    """The running tasks of a run on an instance."""
    return [each["index"] for each in view["taskList"] if each["instance"] == instance and each["status"] == "RUNNING"]


def local_reply(connection: Connection, action: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """The reply to `POST /argosy/<action>`, signed with the key of the local mode. Raises LocalRequestRefused."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    endpoint = (connection.endpoint_url or "").rstrip("/")
    key, body = key_for(endpoint) or LocalKey("local", "local"), json.dumps(request).encode()
    signed = AWSRequest("POST", f"{endpoint}/argosy/{action}", data=body)
    region = connection.region or key.region or DEFAULT_REGION
    SigV4Auth(Credentials(key.id, key.secret), "argosy", region).add_auth(signed)
    sent = urllib.request.Request(signed.url, body, dict(signed.headers.items()), method="POST")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy stands before this machine
    try:
        with opener.open(sent, timeout=TIMEOUT_S) as reply:
            told: dict[str, Any] = json.load(reply)
            return told
    except urllib.error.HTTPError as fault:
        raise LocalRequestRefused(_said(fault.read()) or f"the endpoint answered {fault.code}") from fault
    except (OSError, ValueError) as fault:
        raise LocalRequestRefused(f"no local mode answers at {endpoint}: {fault}") from fault


def _said(text: bytes) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return ""
