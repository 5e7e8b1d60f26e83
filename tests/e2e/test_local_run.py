"""The foreground command ends without a trace, however it is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
import requests

from argosy.client.local_key import key_for
from argosy.local.options import package_root
from tests.fakes.signing import signed
from tests.runners import signal_another_thread

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(
    "way", ["SIGTERM", pytest.param("SIGINT", marks=pytest.mark.deep), pytest.param("shutdown", marks=pytest.mark.deep)]
)
def test_it_ends_cleanly(way: str, tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(package_root())}
    command = [sys.executable, "-m", "argosy.local.run", "--port", "0"]
    popen = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    with popen as process, ExitStack() as ended:
        ended.callback(process.kill)
        assert process.stdout is not None
        endpoint = process.stdout.readline().strip()
        assert requests.get(f"{endpoint}/argosy/health", timeout=60).ok
        assert list(tmp_path.glob("argosy-local-*"))
        if way == "shutdown":
            key, address = key_for(endpoint), f"{endpoint}/argosy/shutdown"
            assert key is not None
            assert requests.post(address, headers=signed("POST", address, "argosy", key=key), timeout=60).ok
        else:
            signal_another_thread(process.pid, signal.Signals[way])
        assert process.wait(30) == 0
    assert not list(tmp_path.glob("argosy-local-*"))
