"""The invocations of a function: their concurrency, their queue and their failures.

As in Lambda, a synchronous call over the reserved concurrency is throttled; an asynchronous one waits in a queue and is
tried at most three times. Processes are reused, and replaced when they die.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from argosy.local.forks import Forks
from argosy.local.lambdas.function_log import FunctionLog
from argosy.local.lambdas.process import InvocationOutcome, LambdaProcess

ASYNC_RETRIES = 2  # Lambda's default


class ThrottledError(Exception):
    """All of a function's reserved concurrency is in use."""


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """One function as deployed."""

    name: str
    handler: str  # module.function
    arn: str
    environment: Mapping[str, str]  # the whole environment of the process
    concurrency: int  # processes at once
    throttles: bool  # reserved concurrency: refuse beyond it; otherwise wait for a free process
    timeout_s: float
    retry_delay_s: float = 1.0  # AWS waits 1 and 2 minutes
    memory_mib: int = 512


@dataclass(slots=True)
class _WaitingCall:
    payload: bytes
    request_id: str
    alias: str
    tries: int = field(default=0)


class LambdaFunction:
    """One function with its processes; thread-safe."""

    def __init__(
        self, spec: FunctionSpec, forks: Forks, log: Path, failed: Callable[[str, Path], None] = lambda *_: None
    ) -> None:
        """failed: called with (what happened, where the log is) for every failed invocation, except those that `kill`
        or `close` ended.
        """
        self.spec, self._forks = spec, forks
        self.latest = b""  # the answer of the last invocation that ended
        self.on_wait: Callable[[], None] = lambda: None  # called when an asynchronous call has to wait for another
        self._log, self._failed = FunctionLog(log), failed
        self._killed: set[int] = set()
        self._slots = threading.BoundedSemaphore(spec.concurrency)
        self._guard = threading.Lock()
        self._idle: list[LambdaProcess] = []
        self._busy: set[LambdaProcess] = set()
        self._closed = threading.Event()
        self._queue: queue.Queue[_WaitingCall | None] = queue.Queue()
        self._thread = threading.Thread(target=self._drain, name=f"argosy-{spec.name}-async")
        self._thread.start()

    @property
    def is_busy(self) -> bool:
        """Whether an invocation is running or waiting."""
        return bool(self._busy) or self._queue.unfinished_tasks > 0

    @property
    def waits(self) -> bool:
        """Whether an asynchronous call waits for its turn."""
        return not self._queue.empty()

    def invoke(self, payload: bytes, request_id: str, alias: str = "") -> InvocationOutcome:
        """RequestResponse. alias: with which it is invoked. Raises ThrottledError if concurrency is reserved and
        used up."""
        if not self._slots.acquire(blocking=not self.spec.throttles):
            raise ThrottledError(self.spec.name)
        try:
            return self._run(payload, request_id, alias)
        finally:
            self._slots.release()

    def invoke_later(self, payload: bytes, request_id: str, alias: str = "") -> None:
        """Event: returns at once."""
        self._queue.put(_WaitingCall(payload, request_id, alias))
        if self._busy:
            self.on_wait()

    def warm(self) -> None:
        """Start a process now unless there is one, so that the first call need not wait for its imports."""
        with self._guard:
            if not self._idle and not self._busy and not self._closed.is_set():
                self._idle.append(LambdaProcess(self._forks, self.spec.handler, self.spec.environment, self._log))

    def kill(self) -> list[int]:
        """SIGKILL every process of the function, as a crash would; returns their ids."""
        with self._guard:
            processes = [*self._busy, *self._idle]
        self._killed.update(process.pid for process in processes)
        for process in processes:
            process.kill()
        return [process.pid for process in processes]

    def close(self) -> None:
        """End everything; queued calls are dropped."""
        self._closed.set()
        self._queue.put(None)
        self.kill()
        self._thread.join()
        with self._guard:
            for process in self._idle:
                process.close()
            self._idle.clear()

    def _run(self, payload: bytes, request_id: str, alias: str) -> InvocationOutcome:
        process = self._take()
        try:
            spec = self.spec
            context = {
                "aws_request_id": request_id,
                "function_name": spec.name,
                "invoked_function_arn": f"{spec.arn}:{alias}" if alias else spec.arn,
                "memory_limit_in_mb": str(spec.memory_mib),
                "deadline_s": time.time() + spec.timeout_s,
            }
            outcome = process.run(json.loads(payload), context)
            if outcome.error is not None and process.pid not in self._killed and not self._closed.is_set():
                self._failed(f"{spec.name} failed: {_reason(outcome)}", self._log.path)
            self.latest = outcome.payload
            return outcome
        finally:
            self._give_back(process)

    def _take(self) -> LambdaProcess:
        with self._guard:
            process = self._idle.pop() if self._idle else None
            if process is not None and not process.alive:
                process.close()
                process = None
            if process is None:
                process = LambdaProcess(self._forks, self.spec.handler, self.spec.environment, self._log)
            self._busy.add(process)
        if self._closed.is_set():
            process.kill()
        return process

    def _give_back(self, process: LambdaProcess) -> None:
        with self._guard:
            self._busy.discard(process)
            if process.alive and not self._closed.is_set():
                self._idle.append(process)
                return
        process.close()

    def _drain(self) -> None:
        while (waiting := self._queue.get()) is not None and not self._closed.is_set():
            with self._slots:  # a throttled event waits for its turn, as in Lambda's own queue
                outcome = self._run(waiting.payload, waiting.request_id, waiting.alias)
            waiting.tries += 1
            if outcome.error is not None and waiting.tries <= ASYNC_RETRIES:
                self._closed.wait(self.spec.retry_delay_s)
                self._queue.put(waiting)
            self._queue.task_done()  # until then the function is busy, also while its process begins


def _reason(outcome: InvocationOutcome) -> str:
    """The first line of Lambda's message."""
    document = json.loads(outcome.payload)
    text = f"{document.get('errorType', '')}: {document.get('errorMessage', '')}"
    return text.strip().split("\n")[0]
