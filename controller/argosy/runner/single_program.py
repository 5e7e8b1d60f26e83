"""The runner as a separate program in front of another one: an init, or a whole attempt.

One thread reads a queue of signals and of the ends of other threads' work. So a signal always arrives in one definite
phase.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from typing import TypeVar

from argosy.model.exit_codes import TEMPORARY
from argosy.model.run_terms import OVERRIDES_VARIABLE
from argosy.runner.attempt import Attempt, ProgramStart, begun, setup_fault
from argosy.runner.copying import Sink, copy_pieces
from argosy.runner.folders import roots_of, work_folder
from argosy.runner.objects import Objects
from argosy.runner.order import STOPPED, RunnerFault, RunnerOrder, order_from, overridden, words_of
from argosy.runner.task_use import measured
from argosy.runner.transfers import started

STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
PASSED_ON = (*STOPS, signal.SIGUSR1, signal.SIGUSR2)
ABORT_S = 5.0  # time for multipart uploads to be aborted
# Python runs a signal's handler in the main thread, and only between two of its steps. A signal arriving just before
# the thread blocks, or at another thread, is handled when the wait ends.
SIGNAL_S = 1.0
_ENDED = 0  # in the queue in place of a signal
T = TypeVar("T")


class SingleProgram:
    """One program, its signals and its end."""

    def __init__(self, arguments: list[str], environment: Mapping[str, str]) -> None:
        self._words, self._environment = arguments, environment
        self._mail: queue.SimpleQueue[int] = queue.SimpleQueue()  # its `put` may be called in a signal handler
        self._stopped = threading.Event()
        self._was_told, self._was_killed = False, False  # asked to stop; killed by a signal that it did not handle
        self._objects = Objects(environment, self._stopped)
        self._process: int | None = None  # the latest program's
        for number in PASSED_ON:
            signal.signal(number, lambda number, _: self._mail.put(number))

    def run(self) -> int:
        """The exit code. Raises RunnerFault."""
        if self._environment.get(OVERRIDES_VARIABLE):
            self._words, self._environment = self._unless_stopped(
                lambda: overridden(self._environment, self._objects.read)
            )
            self._objects = Objects(self._environment, self._stopped)
        self._words, order = words_of(self._words), order_from(self._environment)
        if order is not None:
            return self._attempt(order)
        with self._measured():
            return self._child(self._words)

    def _attempt(self, order: RunnerOrder) -> int:
        with work_folder(roots_of(self._environment)) as work:
            attempt = Attempt(order, work, self._objects)
            ready = self._unless_stopped(lambda: attempt.prepare(self._environment))
            if ready.setup is not None:
                self._set_up(ready.setup, ready)
            with attempt.saving(self._environment, _say):
                with self._measured():
                    code = self._program(ready)
                if code == 0 or attempt.needs_saving:
                    self._unless_stopped(
                        lambda: attempt.finish(code, was_stopped=self._was_told, was_killed=self._was_killed)
                    )
            return code

    def _measured(self) -> AbstractContextManager[None]:
        """In its block, the program's use of resources is measured."""
        return measured(self._environment, lambda: self._process)

    def _set_up(self, text: str, ready: ProgramStart) -> None:
        """Its output goes to the log, because standard output may be the result."""
        code = self._child(["sh", "-c", text], ready, to=sys.stderr.fileno(), ours=True)
        if self._stopped.is_set():
            raise RunnerFault(STOPPED, "the task was stopped before its program started")
        if code:
            raise setup_fault(code)

    def _program(self, ready: ProgramStart) -> int:
        if ready.copy_stdout_to is None:
            return self._child(self._words, ready)
        with ready.copy_stdout_to.open("wb", buffering=0) as file:
            kept, log = Sink(file.fileno()), Sink(sys.stdout.fileno())
            code = self._copied(ready, (kept, log))
        if kept.fault is not None and code == 0:
            raise RunnerFault(TEMPORARY, f"standard output could not be kept: {kept.fault.strerror}")
        return code

    def _copied(self, ready: ProgramStart, sinks: tuple[Sink, ...]) -> int:
        reading, writing = os.pipe()
        over = threading.Event()

        def into(data: bytes) -> None:
            for sink in sinks:
                sink.write(data)

        thread = threading.Thread(target=copy_pieces, args=(reading, into, over.is_set), daemon=True)
        thread.start()
        try:
            return self._child(self._words, ready, to=writing)
        finally:
            os.close(writing)
            over.set()
            thread.join()
            os.close(reading)

    def _child(
        self, words: list[str], ready: ProgramStart | None = None, to: int | None = None, *, ours: bool = False
    ) -> int:
        """The exit code; for a signal, 128 plus its number. ours: a stop signal is meant for the runner, too."""
        folder, environment = (ready.folder, ready.environment) if ready is not None else (None, self._environment)
        process = begun(words, lambda each: subprocess.Popen(each, env=dict(environment), cwd=folder, stdout=to))
        self._process = process.pid
        self._when_done(process.wait)
        while (said := self._next()) != _ENDED:
            if said in STOPS:
                self._was_told = True
                if ours:
                    self._stopped.set()
            process.send_signal(said)
        code = process.wait()
        self._was_killed = code < 0
        return 128 - code if code < 0 else code

    def _unless_stopped(self, work: Callable[[], T]) -> T:
        """The result of the work. A stop signal ends it: its thread is left behind, once no upload is half done."""
        done: Future[T] = self._when_done(work)
        while (said := self._next()) != _ENDED:
            if said in STOPS:
                self._stopped.set()
                self._objects.wait_for_aborts(ABORT_S)
                raise RunnerFault(STOPPED, "the task was stopped before it finished")
        return done.result()

    def _next(self) -> int:
        """The next signal, or `_ENDED`."""
        while True:
            with suppress(queue.Empty):
                return self._mail.get(timeout=SIGNAL_S)

    def _when_done(self, work: Callable[[], T]) -> Future[T]:
        """Run the work in a new thread, which puts a message into the queue when it ends."""
        return started(work, lambda: self._mail.put(_ENDED))


def _say(line: str) -> None:
    os.write(2, f"{line}\n".encode())
