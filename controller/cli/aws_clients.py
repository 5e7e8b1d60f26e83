"""How are boto3 clients made: from the user's own configuration, or with dummy keys for an AWS on this machine?"""

from __future__ import annotations

import os
from typing import Any

from controller.cli.session import DEFAULT_REGION, Place

API_TIMEOUT_S = 70  # the api function may take a minute; botocore's own default would retry at 60 s
POOL_SIZE = 32  # parallel GETs of results


def make_client(place: Place, service: str) -> Any:
    """A boto3 client. Loopback endpoints get dummy credentials unless a profile or keys are set: no others are needed
    there, and looking for them in the instance metadata would only cost a second."""
    import boto3
    from botocore.config import Config

    session = boto3.Session(profile_name=place.profile, region_name=place.region)
    keys: dict[str, str] = {}
    if place.is_loopback and not place.profile and not os.environ.get("AWS_ACCESS_KEY_ID"):
        keys = {"aws_access_key_id": "local", "aws_secret_access_key": "local"}
    config = Config(
        read_timeout=API_TIMEOUT_S,
        max_pool_connections=POOL_SIZE,
        retries={"mode": "standard", "max_attempts": 4},
        user_agent_extra="argosy-cli",
        s3={"addressing_style": "path"} if place.is_loopback else {},
    )
    return session.client(
        service,
        region_name=session.region_name or DEFAULT_REGION,
        endpoint_url=place.endpoint_url,
        config=config,
        **keys,
    )
