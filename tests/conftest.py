"""Rules for every test: loopback only, invented AWS keys, and seeded randomness."""

from __future__ import annotations

import atexit
import gc
import ipaddress
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Neither a test nor a process it starts may find real credentials or wait for an instance's metadata service.
for _name in [name for name in os.environ if name.startswith(("AWS_", "ARGOSY_"))]:
    del os.environ[_name]
os.environ.update(
    AWS_ACCESS_KEY_ID="testing",
    AWS_SECRET_ACCESS_KEY="testing",
    AWS_REGION="us-east-1",
    AWS_DEFAULT_REGION="us-east-1",
    AWS_EC2_METADATA_DISABLED="true",
    AWS_CONFIG_FILE=os.devnull,
    AWS_SHARED_CREDENTIALS_FILE=os.devnull,
    NO_PROXY="127.0.0.1,localhost",
    XDG_DATA_HOME=(_DATA := tempfile.mkdtemp(prefix="argosy-tests-data-")),  # the keys of local modes
    JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION="20",
)

atexit.register(shutil.rmtree, _DATA, ignore_errors=True)

# Tests start hundreds of processes. Without byte code on the disk each of them compiles all that it imports, libraries
# included: the simulation takes 1.8 s of CPU time to import then, instead of 0.7.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# What was imported and collected is a million objects that stay. To look through them for garbage repeatedly took
# a sixth of the CPU time of trials, and a third where tests make boto3 clients.
gc.set_threshold(50_000, 20, 20)

from argosy.local.clients import share_models  # noqa: E402 - it looks into the environment

share_models()


def pytest_collection_finish() -> None:
    """Objects that exist now are never searched again."""
    gc.collect()
    gc.freeze()


# One processor here may be busy with other tests: a deadline per example would fail by chance.
_SLOW = [HealthCheck.too_slow]
settings.register_profile("ci", derandomize=True, deadline=None, suppress_health_check=_SLOW)
settings.register_profile("deep", deadline=None, max_examples=2_000, suppress_health_check=_SLOW, print_blob=True)
settings.load_profile("ci")


class NetworkBlocked(RuntimeError):
    """A test tried to reach a host other than this one."""


_HOST_AT = {"socket.getaddrinfo": 0, "socket.gethostbyname": 0, "socket.connect": 1, "socket.sendto": 1}


def _is_here(host: Any) -> bool:
    """Whether `host` (text, bytes or None) is loopback or "any address"; names other than localhost are not."""
    name = host.decode() if isinstance(host, bytes) else host
    if name in (None, "", "localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _loopback_only(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook, which sees every socket however it is made, and cannot be undone by a test."""
    if event not in _HOST_AT:
        return
    target = arguments[_HOST_AT[event]]
    host = target[0] if isinstance(target, tuple) else target
    if event in ("socket.connect", "socket.sendto") and not isinstance(target, tuple):
        return  # a Unix socket: its address is a path
    if not _is_here(host):
        raise NetworkBlocked(f"{event} to {host!r}: tests use 127.0.0.1 only")


sys.addaudithook(_loopback_only)


@pytest.fixture(autouse=True)
def _states_are_consistent(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever a test did to the states that it built: they do not contradict themselves."""
    yield
    builders = sys.modules.get("tests.builders")
    if builders is None:
        return
    from tests.state_invariants import check

    built, builders.BUILT[:] = [*builders.BUILT], []
    if request.node.get_closest_marker("benchmark"):
        return  # its states are columns filled in by hand, full size
    for state in built:
        check(state)
