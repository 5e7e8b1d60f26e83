"""The work before and after the program of one attempt, which its caller starts, and the objects that it reads."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from argosy.model.exit_codes import NO_RESULT, TEMPORARY, WRONG_REQUEST
from argosy.runner.checkpoints import Checkpoints
from argosy.runner.folders import WorkFolder
from argosy.runner.input_files import fetch_inputs
from argosy.runner.job import PROGRAM, WHEEL, Job, read_job
from argosy.runner.objects import Objects
from argosy.runner.order import NOT_EXECUTABLE, NOT_FOUND, Result, RunnerFault, RunnerOrder
from argosy.runner.result import left_in, upload_folder, upload_part
from argosy.runner.saver import CheckpointSaver, restored_line
from argosy.runner.set_cache import SetCache

T = TypeVar("T")
_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True, slots=True)
class ProgramStart:
    """The start of the program. folder: None, where the container starts it. setup: a shell's text."""

    environment: dict[str, str]
    folder: Path | None
    setup: str | None
    copy_stdout_to: Path | None


class Attempt:
    """One attempt: `prepare`, then within `saving` the program and `finish`. All raise RunnerFault only.

    shared: archives that other attempts of this process have unpacked, or will need; None = this attempt alone uses its
    archives.
    """

    def __init__(self, order: RunnerOrder, work: WorkFolder, objects: Objects, shared: SetCache | None = None) -> None:
        self._order = order
        self._work = work
        self._objects = objects
        self._shared = shared
        self._job = Job()
        self._checkpoints: Checkpoints | None = None
        self._saver: CheckpointSaver | None = None
        self._lines: list[str] = []  # for the log
        self._tell: Callable[[str], None] = self._lines.append

    def prepare(self, environment: Mapping[str, str]) -> ProgramStart:
        """Fetch and unpack. environment: the container's own."""
        with _disk_faults():
            if self._order.job is not None:
                self._job = read_job(self._objects.read(self._order.job, "the job"), self._order.job)
            folder, wheels = self._program(), self._wheels()
            fetch_inputs(self._order.inputs, self._work.inputs, self._objects)
            self._restore()
        stdout = self._work.stdout if self._order.result is Result.STDOUT else None
        return ProgramStart(self._told(environment, wheels), folder, self._job.setup, stdout)

    @property
    def needs_saving(self) -> bool:
        """Whether `finish` has work although the program failed."""
        return self._order.checkpoint is not None

    @contextmanager
    def saving(self, environment: Mapping[str, str], tell: Callable[[str], None]) -> Iterator[None]:
        """In its block, the folder of checkpoints is saved as ordered. tell: takes lines for the log."""
        order, self._tell = self._order.checkpoint, tell
        if order is None or self._checkpoints is None:
            yield
            return
        for line in self._lines:
            tell(line)
        abandoned = threading.Event()
        self._checkpoints.use(Objects(environment, abandoned))
        self._saver = CheckpointSaver(self._checkpoints, self._work.checkpoint, order.every_s, abandoned)
        with self._saver.running(tell):
            yield

    def finish(self, code: int, *, was_stopped: bool, was_killed: bool) -> None:
        """Upload the results of a program that succeeded; otherwise save its checkpoint."""
        try:
            if code == 0:
                self.deliver()
        except RunnerFault:
            self._save_last(was_stopped, was_killed)
            raise
        if code:
            self._save_last(was_stopped, was_killed)
        elif self._saver is not None and self._checkpoints is not None:
            self._saver.abandon()
            self._saver.join()
            self._checkpoints.use(self._objects)
            with suppress(RunnerFault):  # they do no harm
                self._checkpoints.clear()

    def _save_last(self, was_stopped: bool, was_killed: bool) -> None:
        if self._saver is not None:
            self._saver.end(was_stopped=was_stopped, was_killed=was_killed)

    def _restore(self) -> None:
        if self._order.checkpoint is None:
            return
        self._work.checkpoint.mkdir()
        self._checkpoints = Checkpoints(
            self._order.checkpoint, self._work.checkpoint, self._work.staging, self._objects
        )
        found = self._checkpoints.restore()
        self._lines = [restored_line(found)] if found is not None else []

    def deliver(self) -> None:
        """Upload the program's results."""
        if self._order.result is Result.NONE:
            return None
        with _disk_faults():
            if self._order.result is Result.FOLDER:
                found = left_in(self._work.out, self._job, self._tell)
                return upload_folder(found, self._order, self._objects)
            if self._work.stdout.stat().st_size == 0:
                sentence = "the program succeeded but wrote nothing to its standard output, which is its result"
                raise RunnerFault(NO_RESULT, sentence)
            return upload_part(self._work.stdout, self._order, self._objects)

    def _program(self) -> Path | None:
        archives = self._job.of(PROGRAM)
        if not archives:
            return None
        if self._shared is None:
            return SetCache(self._work.archives).get(archives, self._objects, self._work.root)
        return self._shared.lend(archives, self._objects, self._work.root)

    def _wheels(self) -> Path | None:
        archives = self._job.of(WHEEL)
        if not archives:
            return None
        if self._shared is None:
            return SetCache(self._work.archives).get(archives, self._objects, self._work.root)
        return self._shared.lend(archives, self._objects, self._work.root)

    def _told(self, environment: Mapping[str, str], wheels: Path | None) -> dict[str, str]:
        told = {"PYTHONUNBUFFERED": "1", "HOME": str(self._work.home), **environment}
        told |= {"ARGOSY_IN": str(self._work.inputs), "ARGOSY_OUT": str(self._work.out)}
        if self._order.checkpoint is not None:
            told["ARGOSY_CHECKPOINT"] = str(self._work.checkpoint)
        if not os.access("/tmp", os.W_OK):
            told["TMPDIR"] = str(self._work.scratch)
        if wheels is not None:
            told["PYTHONPATH"] = os.pathsep.join(filter(None, (str(wheels), environment.get("PYTHONPATH"))))
        return told


def setup_fault(code: int) -> RunnerFault:
    """The message if the text that prepares the program's folder ended with this exit code."""
    return RunnerFault(code, f"the setup ended with exit code {code}, so the program was not started")


def begun(words: list[str], start: Callable[[list[str]], T]) -> T:
    """The result of `start`, which starts a program of these words. Raises RunnerFault.

    A script whose first line names no interpreter is run by the shell, as with execvp(3).
    """
    try:
        try:
            return start(words)
        except OSError as fault:
            if fault.errno != errno.ENOEXEC:
                raise
            found = None if "/" in words[0] else shutil.which(words[0])
            return start(["/bin/sh", found or words[0], *words[1:]])
    except OSError as fault:
        raise _not_begun(words, fault) from fault


def _not_begun(words: list[str], fault: OSError) -> RunnerFault:
    """The message if the operating system does not start a program; the exit code is a shell's."""
    code = NOT_FOUND if isinstance(fault, FileNotFoundError) else NOT_EXECUTABLE
    return RunnerFault(code, f"the program {words[0]} cannot be started: {fault.strerror or fault}")


@contextmanager
def _disk_faults() -> Iterator[None]:
    """Inside, a refusal by the operating system becomes a RunnerFault."""
    try:
        yield
    except OSError as fault:
        code = TEMPORARY if fault.errno in _FULL else WRONG_REQUEST
        raise RunnerFault(code, f"{fault.filename or 'the disk'}: {fault.strerror or fault}") from fault
