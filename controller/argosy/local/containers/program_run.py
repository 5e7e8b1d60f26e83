"""A user's program as a process, with the work of the runner before and after it in this process's threads.

So a task starts one process, its own, and not a second one that would spend a second on loading an AWS library.
Archives are unpacked once for all tasks of a job.
"""

from __future__ import annotations

import os
import threading
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from argosy.client.entering.way_in import WayIn
from argosy.local.containers import bare_python
from argosy.local.containers.followers import Followers
from argosy.local.containers.process import ContainerProcess, Exit, Program
from argosy.model.exit_codes import TEMPORARY
from argosy.model.run_terms import OVERRIDES_VARIABLE
from argosy.runner.attempt import Attempt, ProgramStart, begun, setup_fault
from argosy.runner.folders import WorkFolder, work_folder
from argosy.runner.objects import Objects
from argosy.runner.order import STOPPED, RunnerFault, RunnerOrder, order_from, overridden, words_of
from argosy.runner.set_cache import LentFolders, SetCache
from argosy.runner.task_use import measured
from argosy.runner.transfers import started

ABORT_S = 5.0  # for uploads in parts to be given up
BEFORE_ITS_START = "the task was stopped before its program started"
T = TypeVar("T")


class ProgramFolders:
    """The folders of programs on this machine: attempts' own folders, and shared archives."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.unpacked = SetCache(root / "unpacked")
        self._shared: dict[tuple[str, ...] | None, Path] = {}
        self._own: dict[str, _Environments] = {}  # by the folder of the interpreter that they stand in for
        self._guard = threading.Lock()

    def python_of(self, packages: tuple[str, ...] | None) -> Path:
        """The interpreter of images that install these packages, all that their programs find; None = all that local
        mode has. Programs that neither bring one nor get an attempt folder share it."""
        with self._guard:
            if packages not in self._shared:
                folder = self.root / "python" / uuid.uuid4().hex
                lent = bare_python.lend(packages, folder.with_suffix(".packages"))
                self._shared[packages] = bare_python.make(folder, lent)
                self._own[str(folder / "bin")] = _Environments(folder.parent, lent)
            return self._shared[packages]

    def own_python(self, program: Program, user: Path) -> Program:
        """The program, using a private interpreter instead of the shared one. user: the attempt's folder."""
        path = program.environment.get("PATH", "")
        shared = path.partition(os.pathsep)[0]
        if shared not in self._own:
            return program
        own = str(self._own[shared].lend(user) / "bin")
        words = [own + word.removeprefix(shared) if word.startswith(shared) else word for word in program.arguments]
        environment = {**program.environment, "PATH": path.replace(shared, own, 1)}
        return replace(program, arguments=words, environment=environment)


class _Environments:
    """Environments below a folder, each of which one attempt has at a time. lent: folders of packages that all find."""

    def __init__(self, folder: Path, lent: Sequence[Path]) -> None:
        self._folder, self._lent, self._made = folder, lent, LentFolders()

    def lend(self, user: Path) -> Path:
        if found := self._made.take(user):
            return found
        folder = self._folder / uuid.uuid4().hex
        bare_python.make(folder, self._lent)
        return self._made.add(folder, user)


class _AttemptThreads:
    """Threads of attempts. The end of one makes room for the next, which then begins on the same thread: waking another
    takes longer than short programs do."""

    def __init__(self) -> None:
        self._here = threading.local()

    def begin(self, work: Callable[[], None]) -> None:
        """Do this on a thread, which is the caller's once it has returned if the caller is at an end."""
        if getattr(self._here, "is_free", False):
            self._here.is_free, self._here.next = False, work
        else:
            threading.Thread(target=self._run, args=(work,), name="argosy-program").start()

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Nothing follows what the block does."""
        self._here.is_free = True
        try:
            yield
        finally:
            self._here.is_free = False

    def _run(self, work: Callable[[], None] | None) -> None:
        while work is not None:
            self._here.next = None
            try:
                work()
            except Exception:  # noqa: BLE001 - the next one still has to begin; the fault is ours and is printed
                traceback.print_exc()
            work = self._here.next


_THREADS = _AttemptThreads()


class ProgramRun:
    """A Running: one attempt from its first fetch to its last upload."""

    def __init__(
        self,
        program: Program,
        folders: ProgramFolders,
        on_line: Callable[[str], None],
        on_end: Callable[[Exit], None],
        followers: Followers | None = None,
    ) -> None:
        """Starts at once, on its own thread; `followers` as for a ContainerProcess."""
        self._program = program
        self._followers = followers
        self._folders = folders
        self._on_line, self._on_end = on_line, on_end
        self._stopped = threading.Event()  # nothing is fetched or sent any more
        self._asked = False
        self._was_killed = False
        self._guard = threading.Lock()
        self._child: ContainerProcess | None = None
        self._wake = threading.Event()
        self._objects = Objects(program.environment, self._stopped)
        self._over = threading.Event()
        _THREADS.begin(self._run)

    def stop(self) -> None:
        """Signals the program while it runs; before and afterwards, the end of the attempt. Returns at once."""
        with self._guard:
            self._asked = True
            child = self._child
        if child is not None:
            child.stop()
        else:
            self._stopped.set()
            self._wake.set()

    def kill(self) -> None:
        """SIGKILL, and nothing is fetched or sent any more."""
        with self._guard:
            self._asked = True
            child = self._child
        self._stopped.set()
        self._wake.set()
        if child is not None:
            child.kill()

    def join(self, timeout_s: float) -> None:
        """Wait until it has ended and all its callbacks have returned."""
        self._over.wait(timeout_s)

    def way_in(self) -> WayIn | None:
        """See Container: while inputs are fetched or results sent, there is no program."""
        child = self._child
        return None if child is None else child.way_in()

    def _run(self) -> None:
        ended = Exit(TEMPORARY)  # in case of a fault of ours
        try:
            ended = self._attempt()
        except RunnerFault as fault:
            self._on_line(fault.line)
            ended = Exit(fault.code)
        except Exception:  # noqa: BLE001 - the task still has to end; the fault is ours and is printed
            traceback.print_exc()
        finally:
            with _THREADS.ending():
                self._on_end(ended)
            self._over.set()

    def _attempt(self) -> Exit:
        """Raises RunnerFault."""
        self._take_overrides()
        order = order_from(self._program.environment)
        words = words_of(list(self._program.arguments))
        if order is None:  # a program without the protocol: the runner is a plain init
            return self._main(self._program)
        with work_folder([self._folders.root]) as work:
            self._program = self._folders.own_python(self._program, work.root)
            words = words_of(list(self._program.arguments))
            attempt = Attempt(order, work, self._objects, self._folders.unpacked)
            ready = self._prepared(attempt, order)
            program = replace(
                self._program,
                arguments=words,
                environment=ready.environment,
                folder=self._folder(ready, work),
                copy_stdout_to=ready.copy_stdout_to,
            )
            self._set_up(ready, program)
            with attempt.saving(program.environment, self._on_line):
                ended = self._main(program)
                code = 0 if ended == Exit(0) else ended.exit_code or 1
                if code == 0 or attempt.needs_saving:
                    self._unless_stopped(
                        lambda: attempt.finish(code, was_stopped=self._asked, was_killed=self._was_killed)
                    )
            return ended

    def _take_overrides(self) -> None:
        """The command and the variables of the task, where they are too long for ECS."""
        if not self._program.environment.get(OVERRIDES_VARIABLE):
            return
        words, environment = self._unless_stopped(lambda: overridden(self._program.environment, self._objects.read))
        self._program = replace(self._program, arguments=words, environment=environment)
        self._objects = Objects(environment, self._stopped)

    def _prepared(self, attempt: Attempt, order: RunnerOrder) -> ProgramStart:
        """If there is nothing to fetch, no thread is needed."""
        if order.job is None and not order.inputs and order.checkpoint is None:
            return attempt.prepare(self._program.environment)
        return self._unless_stopped(lambda: attempt.prepare(self._program.environment))

    def _folder(self, ready: ProgramStart, work: WorkFolder) -> Path:
        """The folder in which the program begins: with its archives, or the image's own."""
        if ready.folder is not None or not self._program.bare:
            return ready.folder or self._program.folder
        work.program.mkdir()
        return work.program

    def _set_up(self, ready: ProgramStart, program: Program) -> None:
        if ready.setup is None:
            return
        ended = self._started(replace(program, arguments=["sh", "-c", ready.setup], copy_stdout_to=None))
        if self._asked:
            raise RunnerFault(STOPPED, BEFORE_ITS_START)
        if ended.exit_code:
            raise setup_fault(ended.exit_code)

    def _main(self, program: Program) -> Exit:
        """As `_started`, while its use is measured."""
        with measured(program.environment, lambda: self._child.pid if self._child else None, sees_processes=True):
            return self._started(program)

    def _started(self, program: Program) -> Exit:
        """How it ended. Raises RunnerFault if it could not be started, or its output could not be kept."""
        ends: list[Exit] = []
        here = _OwnThreadFollower(self._followers)
        with self._guard:
            if self._asked:
                raise RunnerFault(STOPPED, BEFORE_ITS_START)
            child = self._child = begun(
                list(program.arguments),
                lambda words: ContainerProcess(replace(program, arguments=words), self._on_line, ends.append, here),
            )
        try:
            here.until_its_end()
        finally:
            with self._guard:
                self._child = None
            if not ends:  # through a fault of ours
                child.sweep_up()
        [ended] = ends
        self._was_killed = child.was_killed
        if child.output_fault is not None and ended == Exit(0):
            raise RunnerFault(TEMPORARY, f"standard output could not be kept: {child.output_fault.strerror}")
        return ended

    def _unless_stopped(self, work: Callable[[], T]) -> T:
        """The result of the work. A stop ends it: its thread is left behind, once no upload is half done."""
        self._wake.clear()
        done = started(work, self._wake.set)
        self._wake.wait(self._program.stop_timeout_s if self._asked else None)
        if not done.done():
            self._stopped.set()
            self._objects.wait_for_aborts(ABORT_S)
            raise RunnerFault(STOPPED, "the task was stopped before it finished")
        return done.result()


class _OwnThreadFollower:
    """A ProgramFollower: the thread of the attempt follows its program, too, and no other has to be woken."""

    def __init__(self, followers: Followers | None) -> None:
        self._followers = followers
        self._work: Callable[[], None] = lambda: None

    def follow(self, group: int, work: Callable[[], None]) -> Future[None]:
        if self._followers is not None:
            self._followers.begun(group)
        self._work = work
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def forget(self, group: int) -> None:
        if self._followers is not None:
            self._followers.forget(group)

    def until_its_end(self) -> None:
        """Run the work."""
        self._work()


def program_environment(environment: Mapping[str, str], python: str) -> dict[str, str]:
    """`python` in a shell's text means that of the image."""
    environment = bare_python.without_ours(environment)
    first = str(Path(python).parent)
    path = environment.get("PATH")
    return {**environment, "PATH": f"{first}:{path}" if path else first}
