"""Opens a page in a real browser: Debian's chromium, headless, with its own profile."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

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
    """Chromium with this page open. resolve: name -> address. Skips the test if there is no chromium."""
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


class Tab:
    """A page in Chromium, controlled over the DevTools protocol through a pipe, without a port that others could reach.
    complaints: the browser's messages about the page: exceptions, errors, violations of its policy.
    """

    def __init__(self, process: subprocess.Popen[bytes], into: IO[bytes], out: IO[bytes]) -> None:
        self._process, self._into, self._out = process, into, out
        self._number = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        self.requested: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The result. Raises AssertionError when the browser refuses."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        message |= {"sessionId": self._session} if self._session else {}
        self._into.write(json.dumps(message).encode() + b"\0")
        self._into.flush()
        while True:
            said = self._next()
            if said.get("id") == self._number:
                assert "error" not in said, said
                result: dict[str, Any] = said["result"]
                return result

    def open(self, url: str) -> None:
        """Until it is loaded."""
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def value(self, expression: str) -> Any:
        """Of JavaScript, awaited. Raises AssertionError when it throws."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression: str, seconds: float = 30.0) -> None:
        """Until the expression is true. Raises AssertionError when it never is."""
        deadline = time.monotonic() + seconds
        while not self.value(f"Boolean({expression})"):
            assert time.monotonic() < deadline, f"never true: {expression}; {self.complaints}"

    def key(self, key: str) -> None:
        """Pressed and released. A letter types itself."""
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def passes(self, minutes: float) -> None:
        """Advances the page's time at once: its timers run, and requests are awaited. Then its clock stops."""
        until = self.value("performance.now()") + 60_000 * minutes
        budget = {"policy": "pauseIfNetworkFetchesPending", "budget": 60_000 * minutes}
        self.call("Emulation.setVirtualTimePolicy", **budget)
        self.until(f"performance.now() >= {until - 1}")

    def looks(self, *, width: int = 1280, dark: bool = False, script: bool = True) -> None:
        """The display of the next page."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Emulation.setScriptExecutionDisabled", value=not script)

    def _next(self) -> dict[str, Any]:
        text = bytearray()  # a picture is a message of megabytes
        while not text.endswith(b"\0"):
            piece = self._out.read(1)
            assert piece, "chromium has ended"
            text += piece
        said: dict[str, Any] = json.loads(text[:-1])
        self._note(said.get("method", ""), said.get("params", {}))
        return said

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        if method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{params['entry']['source']}: {params['entry']['text']}")
        if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.complaints.append(str(params["args"]))
        if method == "Network.requestWillBeSent":
            self.requested.append(params["request"]["url"])


@contextmanager
def tab(profile: Path) -> Iterator[Tab]:
    """An empty tab. Skips the test if there is no chromium."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("there is no chromium on PATH (Debian: apt-get install chromium)")
    theirs_in, ours_in = os.pipe()
    ours_out, theirs_out = os.pipe()
    # Chromium reads from descriptor 3 and writes to 4; bash puts ours there (dash knows one digit).
    moved = ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash"]
    command = [*moved, program, *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
    with (
        profile.with_suffix(".log").open("wb") as said,
        subprocess.Popen(
            command, stdout=said, stderr=said, start_new_session=True, pass_fds=(theirs_in, theirs_out)
        ) as process,
        os.fdopen(ours_in, "wb") as into,
        os.fdopen(ours_out, "rb") as out,
    ):
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            yield Tab(process, into, out)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
