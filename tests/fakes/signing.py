"""Requests to a local mode that botocore signs: the key of tests, and headers for clients that are not boto3."""

from __future__ import annotations

import requests
from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from argosy.client.local_key import LocalKey

KEY = LocalKey("testing", "testing", "us-east-1")  # as in the environment of tests
REGION = "us-east-1"


def signed(
    method: str, url: str, service: str = "s3", body: bytes = b"", headers: dict[str, str] | None = None,
    key: LocalKey = KEY,
) -> dict[str, str]:  # fmt: skip
    """The headers of this request, with its signature."""
    request = AWSRequest(method=method, url=url, data=body, headers=headers or {})
    kind = S3SigV4Auth if service == "s3" else SigV4Auth
    kind(Credentials(key.id, key.secret), service, REGION).add_auth(request)
    return dict(request.headers.items())


def send(
    method: str, url: str, service: str = "s3", body: bytes = b"", headers: dict[str, str] | None = None
) -> requests.Response:
    """This request, signed."""
    return requests.request(method, url, data=body, headers=signed(method, url, service, body, headers), timeout=300)
