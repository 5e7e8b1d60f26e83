"""boto3 clients of this process's own endpoint, and the environment with which its children reach it."""

from __future__ import annotations

import os
from functools import cache
from threading import Lock
from typing import Any

import boto3
import botocore.session
from botocore.config import Config
from botocore.loaders import Loader

from argosy.client.local_key import LocalKey

_KEPT = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TZ", "VIRTUAL_ENV")


class _Folders(list[str]):
    """Each once, although each session of boto3 adds its own."""

    def append(self, folder: str) -> None:
        if folder not in self:
            super().append(folder)


@cache
def share_models() -> None:
    """From now on all sessions of this process have one loader of service models. Each of the seventy that boto3 and
    moto make looks for its own and parses them: a second of CPU time at the start of local mode."""
    loader = Loader(extra_search_paths=_Folders())

    def shared(folders: str | None = None) -> Loader:
        for folder in filter(None, (folders or "").split(os.pathsep)):  # the AWS CLI adds its own service models
            loader.search_paths.append(folder)
        return loader

    botocore.session.create_loader = shared


class LocalClients:
    """boto3 clients of one endpoint, each made once; thread-safe."""

    def __init__(self, endpoint: str, region: str, key: LocalKey) -> None:
        # No proxies: the loopback interface is reached directly, whatever the environment says.
        self._config = Config(proxies={}, retries={"mode": "standard", "max_attempts": 3}, max_pool_connections=32)
        self._session = boto3.Session(key.id, key.secret, region_name=region)
        self.endpoint = endpoint
        self._clients: dict[tuple[str, str | None], Any] = {}
        self._guard = Lock()

    def __call__(self, service: str, region: str | None = None) -> Any:
        """The client of a service, e.g. "s3". region: when it is not the home Region."""
        with self._guard:
            if (service, region) not in self._clients:
                made = self._session.client(
                    service, region_name=region, endpoint_url=self.endpoint, config=self._config
                )
                self._clients[service, region] = made
            return self._clients[service, region]

    def close(self) -> None:
        """Close every connection."""
        with self._guard:
            for client in self._clients.values():
                client.close()


def child_environment(endpoint: str, region: str, key: LocalKey) -> dict[str, str]:
    """For functions and tasks: our endpoint and key, and nothing of the user's own AWS configuration."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {
        **kept,
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_ACCESS_KEY_ID": key.id,
        "AWS_SECRET_ACCESS_KEY": key.secret,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
        "PYTHONUNBUFFERED": "1",
    }


def container_environment(endpoint: str, region: str, key: LocalKey) -> dict[str, str]:
    """The same for programs in a container, without the variables that only make sense on this machine."""
    return {name: value for name, value in child_environment(endpoint, region, key).items() if name not in _KEPT}
