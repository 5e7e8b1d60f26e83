"""The only source of boto3 clients; each is created at its first use.

boto3 reads AWS_ENDPOINT_URL, credentials and the rest of the environment by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, ClassVar

CONNECT_TIMEOUT_S = 3
READ_TIMEOUT_S = 15
LONG_POLL_S = 20  # the longest that SQS lets a receive wait
CONNECTIONS = 16  # more than the threads of one tick

# ECS gets fewer attempts: launches and stops have their own token buckets (`call_rates`), which must learn of
# throttling, and ten attempts of one call would outlast a tick. The next tick settles the rest.
_RETRIES = {
    "ecs": {"mode": "standard", "total_max_attempts": 3},
    "s3": {"mode": "standard", "total_max_attempts": 5},
}
_CONTROL_RETRIES = {"mode": "adaptive", "total_max_attempts": 10}


def _boto3s(service: str, region: str, usual: Callable[[], Any]) -> Any:
    return usual()


class AwsClients:
    """boto3 clients by service and region, each created once. Creating them is not thread-safe."""

    made: ClassVar[Callable[[str, str, Callable[[], Any]], Any]] = _boto3s
    """How this process gets the client of a service in a Region; the last argument makes boto3's."""

    def __init__(self, region: str) -> None:
        self.region = region
        self._clients: dict[tuple[str, str], Any] = {}
        self._session: Any = None

    def get(self, service: str, region: str = "") -> Any:
        key = (service, region or self.region)
        if key not in self._clients:
            self._clients[key] = AwsClients.made(*key, partial(self._boto3, *key))
        return self._clients[key]

    def _boto3(self, service: str, region: str) -> Any:
        if self._session is None:
            self._session = _session()
        return self._session.client(service, region_name=region, config=_config(service))


def _session() -> Any:
    """With the service models of this process, which local mode's functions find loaded."""
    import boto3  # slow, so it is not imported with this module
    import botocore.session

    session = botocore.session.get_session()
    session.register_component("data_loader", _models())
    return boto3.Session(botocore_session=session)


@cache
def _models() -> Any:
    from botocore.loaders import create_loader

    return create_loader()


def _config(service: str) -> Any:
    from botocore.config import Config

    return Config(
        retries=_RETRIES.get(service, _CONTROL_RETRIES),
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=READ_TIMEOUT_S + (LONG_POLL_S if service == "sqs" else 0),
        max_pool_connections=CONNECTIONS,
    )
