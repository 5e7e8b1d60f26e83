"""One execution environment of a function: one process, one invocation at a time, killed on timeout."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from argosy.local.forks import Forks
from argosy.local.lambdas.function_log import FunctionLog

EXIT_S = 2.0  # from the end of its output to its own


@dataclass(frozen=True, slots=True)
class InvocationOutcome:
    """The result of an invocation; `error` is Lambda's X-Amz-Function-Error."""

    payload: bytes
    error: str | None = None


class LambdaProcess:
    """A worker process. Only `kill` is thread-safe."""

    def __init__(self, forks: Forks, handler: str, environment: Mapping[str, str], log: FunctionLog) -> None:
        self._process = forks.start("argosy.local.lambdas.worker.main", [handler], environment)
        self._log = log.follow(self._process.stderr)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can take another invocation."""
        return self._process.poll() is None

    def run(self, event: Any, context: dict[str, Any]) -> InvocationOutcome:
        """One invocation; a process that dies or overruns its deadline (epoch seconds) is an unhandled error."""
        request_id, deadline_s = context["aws_request_id"], context["deadline_s"]
        try:
            self._process.stdin.write(json.dumps({"event": event, "context": context}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return self._died(request_id)
        # The reply is one line written at once, so that a readable pipe means a reply or the end.
        replies = select.poll()
        replies.register(self._process.stdout, select.POLLIN | select.POLLHUP)
        if not replies.poll(max(0.0, deadline_s - time.time()) * 1000):
            self.kill()
            return _unhandled(request_id, "Task timed out", "Sandbox.Timedout")
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            return self._died(request_id)
        reply = json.loads(line)
        return InvocationOutcome(reply["payload"].encode(), reply.get("error"))

    def kill(self) -> None:
        """SIGKILL the process and whatever it started."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):  # it has ended, or another thread was quicker
                os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()  # so that it is not taken for alive

    def close(self) -> None:
        """Kill and reap."""
        self.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            _close_quietly(pipe)
        self._log.join()  # its output ends with it

    def _died(self, request_id: str) -> InvocationOutcome:
        """Its output has ended, so it is about to end, with a status that says why."""
        try:
            code = self._process.wait(EXIT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._process.wait()
        what = f"signal: {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        return _unhandled(request_id, f"Runtime exited with error: {what}", "Runtime.ExitError")


def _close_quietly(pipe: Any) -> None:
    try:
        pipe.close()
    except BrokenPipeError:
        return  # the buffered bytes were for a process that is gone


def _unhandled(request_id: str, message: str, kind: str) -> InvocationOutcome:
    body = {"errorMessage": f"RequestId: {request_id} Error: {message}", "errorType": kind}
    return InvocationOutcome(json.dumps(body).encode(), "Unhandled")
