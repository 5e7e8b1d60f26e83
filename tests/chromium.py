"""How does a test open a page in a real browser? In Debian's chromium, without a window, in a profile of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
)


@contextmanager
def page(url: str, profile: Path, resolve: dict[str, str]) -> Iterator[None]:
    """Chromium with this page open. resolve: name -> address. Skips the test where there is no chromium."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("there is no chromium on PATH (Debian: apt-get install chromium)")
    rules = ", ".join(f"MAP {name} {address}" for name, address in resolve.items())
    said = profile.with_suffix(".log").open("wb")
    command = [program, *FLAGS, f"--user-data-dir={profile}", f"--host-resolver-rules={rules}", url]
    with said, subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True) as process:
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
