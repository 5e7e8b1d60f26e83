"""A user's program runs as a process, and what the runner does around it is done by this process."""

from __future__ import annotations

import json
import os
import queue
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from argosy.local.containers.container import HostSettings, container_of
from argosy.local.containers.followers import Followers
from argosy.local.containers.images import ImageStore
from argosy.local.containers.process import OUT_OF_MEMORY, Exit
from argosy.local.containers.runtime import Container
from argosy.model.run_terms import PROGRAM_ENTRY_POINT
from argosy.runner.set_cache import CLONED_BYTES
from tests.fakes.signed_s3 import SignedS3, signed_s3
from tests.runners import OUTPUT, PART, RunnerUnderTest, member, tar, wheel

pytestmark = pytest.mark.slow


@pytest.fixture
def s3() -> Iterator[SignedS3]:
    with signed_s3() as store:
        yield store
        assert not store.refused, store.refused
        assert not store.uploads


class Tasks:
    """Local mode's processes, as the agent starts them: from a task definition and its overrides."""

    def __init__(self, s3: SignedS3, folder: Path) -> None:
        self.given = RunnerUnderTest([], s3, folder)  # the runner's variables are tested in the contract
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        self.followers = Followers()
        self.images = ImageStore(folder / "images", scratch=self.scratch, followers=self.followers)

    def start(
        self,
        *words: str,
        image: str = "argosy/python",
        changes: Any = None,
        on_line: Any = None,
        on_end: Any = None,
        **told: Any,
    ) -> Task:
        environment = self.given.environment() | self.given.protocol(**told) | (changes or {})
        pairs = [{"name": name, "value": value} for name, value in environment.items()]
        override = {"name": "main", "command": list(words), "environment": pairs}
        definition = {
            "name": "main",
            "image": image,
            "entryPoint": [PROGRAM_ENTRY_POINT],
            "memory": 200,
            "stopTimeout": 1,
        }
        task = {"taskArn": "arn:task/1", "overrides": {"containerOverrides": [override]}}
        made = container_of(definition, task, self.images.pull(image), HostSettings({}, ()))
        return Task(lambda line, end: self.images.start(made.program, on_line or line, on_end or end))

    def shell(self, script: str, **told: Any) -> Task:
        return self.start("sh", "-c", script, **told)

    @property
    def left(self) -> list[str]:
        """Folders of attempts that are still there."""
        return [each.name for each in self.scratch.iterdir() if each.name not in ("unpacked", "python")]


class Task:
    """One of them, its lines and its end."""

    def __init__(self, start: Callable[[Any, Any], Container]) -> None:
        self._lines: queue.Queue[str] = queue.Queue()
        self._ends: queue.Queue[Exit] = queue.Queue()
        self.running = start(self._lines.put, self._ends.put)

    def line(self) -> str:
        return self._lines.get(timeout=30)

    def end(self) -> Exit:
        ended = self._ends.get(timeout=30)
        self.running.join(120)
        return ended

    def lines(self) -> list[str]:
        """All that have not been requested."""
        return [self._lines.get_nowait() for _ in range(self._lines.qsize())]


@pytest.fixture
def tasks(s3: SignedS3, tmp_path: Path) -> Iterator[Tasks]:
    made = Tasks(s3, tmp_path)
    yield made
    made.followers.close()


def test_a_programs_output_is_its_log_and_its_result(tasks: Tasks, s3: SignedS3) -> None:
    before = set(threading.enumerate())
    task = tasks.shell("echo one; echo aside >&2; echo two", result="stdout")
    assert task.end() == Exit(0)
    assert sorted(task.lines()) == ["aside", "one", "two"]
    assert s3.body(PART) == b"one\ntwo\n"
    assert tasks.left == []
    others = "process_request", "argosy-first-samples"  # of the server, and of all tasks: it ends within a second
    left = [each.name for each in threading.enumerate() if each not in before]
    assert not [name for name in left if not any(each in name for each in others)]


def test_python_is_the_one_that_runs_local_mode(tasks: Tasks) -> None:
    script = "import sys; print(sys.base_prefix)"
    for words in (["python", "-c", script], ["python3", "-c", script], ["sh", "-c", f"python -c '{script}'"]):
        task = tasks.start(*words, result="none")
        assert task.end() == Exit(0)
        assert task.line() == sys.base_prefix


@pytest.mark.parametrize("image", ["argosy/python", "argosy/python:3.12", "argosy/python:latest"])
def test_a_program_without_archives_begins_in_an_empty_folder(tasks: Tasks, image: str) -> None:
    task = tasks.shell("ls -A; pwd; touch mine", image=image, result="none")
    assert task.end() == Exit(0)
    assert task.line().startswith(str(tasks.scratch))
    assert tasks.left == []


def test_a_program_in_another_image_of_this_deployment_begins_there(tasks: Tasks) -> None:
    folder = tasks.images.root / "tool"
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text('FROM x\nENV COLOUR=red\nENTRYPOINT ["no"]')
    task = tasks.shell("pwd; echo $COLOUR", image="argosy/tool", result="none")
    assert task.end() == Exit(0)
    assert task.lines() == [str(folder), "red"]


def test_archives_are_fetched_and_unpacked_once_for_all_tasks(tasks: Tasks, s3: SignedS3) -> None:
    given = tasks.given
    job = given.job(
        given.program({"main.py": "import shown; print(shown.NAME)"}),
        given.archive(wheel({"shown.py": "NAME = 'wheel'"}), "wheel"),
    )
    running = [tasks.start("python", "main.py", result="stdout", job=job) for _ in range(3)]
    assert [each.end() for each in running] == [Exit(0)] * 3
    assert s3.asked("GET", r".*\.tar\.gz") == s3.asked("GET", r".*\.whl") == 1
    assert s3.body(PART) == b"wheel\n"


def test_files_that_a_task_writes_next_to_its_program_are_its_own(tasks: Tasks) -> None:
    job = tasks.given.job(tasks.given.program({"count.txt": "1"}))
    for _ in range(2):
        task = tasks.shell("cat count.txt; echo; echo 2 > count.txt; touch more; ls", result="none", job=job)
        assert task.end() == Exit(0)
        assert task.lines() == ["1", "count.txt", "more"]


WRITES = """
import numbers_of, pathlib
for each in ("large.bin", "small.txt", numbers_of.__file__):
    print(pathlib.Path(each).read_bytes()[:5])
    with open(each, "r+b") as file:
        file.write(b"later")
pathlib.Path("added.txt").write_text("later")
"""


def test_what_a_program_writes_into_its_folder_and_packages_no_other_sees(tasks: Tasks) -> None:
    """Large files were shared between attempts, and packages too: tasks of a later run saw an earlier one's bytes."""
    data = tar(member("large.bin", b"x" * CLONED_BYTES, mode=0o644), member("small.txt", b"first"))
    packages = tasks.given.archive(wheel({"numbers_of.py": b"a = 1\n"}), "wheel")
    job = tasks.given.job(tasks.given.archive(data), packages)
    held = tasks.start("python", "-c", f"{WRITES}\nimport time; time.sleep(600)", result="none", job=job)
    saw = [held.line() for _ in range(3)]
    assert saw == ["b'xxxxx'", "b'first'", "b'a = 1'"]
    for _ in range(2):
        later = tasks.start(
            "python", "-c", WRITES + "print(len(list(pathlib.Path().iterdir())))", result="none", job=job
        )
        assert later.end() == Exit(0)
        assert later.lines() == [*saw, "3"]
    held.running.kill()
    held.end()


def test_a_folder_that_is_left_as_it_was_is_used_again(tasks: Tasks) -> None:
    job = tasks.given.job(tasks.given.archive(tar(member("a.py", b"print(__file__)"))))
    found = [tasks.start("python", "-c", "import a", result="none", job=job) for _ in range(2)]
    first = {task.line() for task in found if task.end() == Exit(0)}
    assert len(first) == 2
    again = tasks.start("python", "-c", "import a", result="none", job=job)
    assert again.end() == Exit(0)
    assert again.line() in first


OURS = "import importlib.util as u, sys; print([m for m in ('argosy', 'moto', 'boto3', 'numpy') if u.find_spec(m)])"


@pytest.mark.parametrize("words", [["python", "-c", OURS], ["sh", "-c", f'python3 -c "{OURS}"']])
def test_a_program_finds_none_of_our_packages(tasks: Tasks, words: list[str]) -> None:
    """As on AWS, where the image has Python and nothing else."""
    task = tasks.start(*words, result="none", changes={"PATH": os.environ["PATH"], "VIRTUAL_ENV": sys.prefix})
    assert task.end() == Exit(0)
    assert task.lines() == ["[]"]


def test_a_container_of_the_stock_image_without_a_runner_finds_none_either(tasks: Tasks) -> None:
    definition = {"name": "main", "image": "argosy/python", "command": ["python", "-c", OURS], "memory": 200}
    around = HostSettings({"PATH": os.environ["PATH"]}, ())
    tasks.images.root.mkdir()
    made = container_of(definition, {"taskArn": "arn:task/1"}, tasks.images.pull("argosy/python"), around)
    task = Task(lambda line, end: tasks.images.start(made.program, line, end))
    assert task.end() == Exit(0)
    assert task.lines() == ["[]"]


INSTALLS = "import sys; print(sys.prefix); import pip; open(sys.prefix + '/lib/mark', 'x')"


def test_what_a_program_installs_is_its_own(tasks: Tasks) -> None:
    """pip is there, as in the image, and installs into an environment of this attempt."""
    found = [tasks.start("python", "-c", INSTALLS, result="none") for _ in range(2)]
    assert [task.end() for task in found] == [Exit(0), Exit(0)]
    prefixes = {task.line() for task in found}
    assert len(prefixes) == 2
    assert sys.prefix not in prefixes
    later = tasks.start("python", "-c", INSTALLS, result="none")
    assert later.end() == Exit(0)  # "x": the mark is not there


NEWER = {
    "jmespath/__init__.py": b"__version__ = '99.0'\n",
    "jmespath-99.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: jmespath\nVersion: 99.0\n",
    "jmespath-99.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "jmespath-99.0.dist-info/RECORD": b"jmespath/__init__.py,,\n",
}
INSTALL = "pip install --quiet --no-deps --no-index --no-compile --disable-pip-version-check"
VERSION = "import jmespath; print(jmespath.__version__)"


def test_pip_in_a_program_of_an_image_leaves_local_modes_packages_as_they_are(tasks: Tasks, tmp_path: Path) -> None:
    """They were links in its environment, and pip wrote through them."""
    lent = distribution("jmespath")
    files = {each: each.stat() for each in Path(str(lent.locate_file("jmespath"))).glob("*.py")}
    (tasks.images.root / "tool").mkdir(parents=True)
    (tasks.images.root / "tool" / "Dockerfile").write_text("FROM x\nRUN pip install jmespath\n")
    new = tmp_path / "jmespath-99.0-py3-none-any.whl"
    new.write_bytes(wheel(NEWER))
    script = f"python -c '{VERSION}'; {INSTALL} {new} && python -c '{VERSION}'"
    task = tasks.shell(script, image="argosy/tool", result="none", changes={"PATH": os.environ["PATH"]})
    assert task.end() == Exit(0)
    said = task.lines()
    assert (said[0], said[-1]) == (lent.version, "99.0")
    assert {each: each.stat() for each in files} == files != {}
    other = tasks.start("python", "-c", VERSION, image="argosy/tool", result="none")
    assert other.end() == Exit(0)
    assert other.lines() == [lent.version]  # another task does not see it either


def test_a_setup_that_fails_is_reported_in_the_log(tasks: Tasks) -> None:
    job = tasks.given.job(tasks.given.program({"a": "a"}), setup="echo no such package; exit 9")
    task = tasks.shell("echo ran", result="none", job=job)
    assert task.end() == Exit(9)
    said, sentence = task.lines()
    assert said == "no such package"
    assert sentence.startswith("argosy: ")


def test_a_setup_prepares_the_programs_folder(tasks: Tasks) -> None:
    job = tasks.given.job(tasks.given.program({"a": "a"}), setup="cp a b")
    task = tasks.shell("cat b", result="none", job=job)
    assert task.end() == Exit(0)
    assert task.lines() == ["a"]


def test_a_program_that_is_not_there_is_named(tasks: Tasks) -> None:
    task = tasks.start("no-such-program", result="none")
    assert task.end() == Exit(127)
    assert "no-such-program" in task.line()


def test_a_program_that_takes_too_much_memory_is_killed_for_it_and_leaves_nothing(tasks: Tasks, s3: SignedS3) -> None:
    script = "print('half'); x = bytearray(400 << 20); x[::4096] = b'x' * len(x[::4096]); import time; time.sleep(60)"
    assert tasks.start("python", "-c", script, result="stdout").end() == Exit(137, OUT_OF_MEMORY)
    assert s3.names() == []


def test_a_task_that_is_stopped_while_it_fetches_ends(tasks: Tasks, s3: SignedS3) -> None:
    s3.put("x.txt", b"x")
    held = s3.trouble("GET", "x.txt", "held")
    task = tasks.shell("echo ran", result="none", inputs=["s3://results/x.txt"])
    assert held.reached.wait(30)
    task.running.stop()
    assert task.end() == Exit(143)
    assert task.line().startswith("argosy: ")
    assert tasks.left == []


def test_a_program_is_asked_to_stop_before_it_is_killed(tasks: Tasks, s3: SignedS3) -> None:
    task = tasks.shell("trap 'echo saved; exit 9' TERM; echo ready; while :; do sleep 0.05; done", result="stdout")
    assert task.line() == "ready"
    task.running.stop()
    assert task.end() == Exit(9)
    assert s3.names() == []


def test_a_program_that_does_not_listen_is_killed(tasks: Tasks) -> None:
    task = tasks.shell("trap '' TERM; echo ready; while :; do sleep 0.05; done", result="stdout")
    assert task.line() == "ready"
    task.running.stop()
    assert task.end() == Exit(137)


def test_an_upload_may_not_outlive_the_grace_period(tasks: Tasks, s3: SignedS3) -> None:
    held = s3.trouble("PUT", PART, "held")
    task = tasks.shell("trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done", result="stdout")
    assert task.line() == "ready"
    task.running.stop()
    assert held.reached.wait(30)
    assert task.end() == Exit(143)


@pytest.mark.parametrize("what", ["stop", "kill"])
def test_a_task_that_is_ended_while_it_uploads_leaves_no_part(tasks: Tasks, s3: SignedS3, what: str) -> None:
    held = s3.trouble("PUT", f"{OUTPUT}a", "held")
    task = tasks.shell("cd $ARGOSY_OUT; echo a > a; echo p > part.jsonl", result="folder")
    assert held.reached.wait(30)
    getattr(task.running, what)()
    assert task.end() == Exit(143)
    assert PART not in s3.names()


def test_a_task_that_is_ended_during_its_setup_does_not_start_its_program(tasks: Tasks) -> None:
    job = tasks.given.job(setup="echo busy; sleep 60")
    task = tasks.shell("echo ran", result="none", job=job)
    assert task.line() == "busy"
    task.running.kill()
    assert task.end() == Exit(143)
    assert [each for each in task.lines() if not each.startswith("argosy: ")] == []


def test_stopping_what_has_ended_is_harmless(tasks: Tasks) -> None:
    task = tasks.shell("true", result="none")
    task.end()
    task.running.stop()
    task.running.kill()


def test_an_s3_that_is_not_there_is_temporary(tasks: Tasks) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    changes = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_MAX_ATTEMPTS": "2"}
    task = tasks.shell("echo ran", changes=changes, result="stdout")
    assert task.end() == Exit(75)
    assert task.lines()[-1].startswith("argosy: ")


def test_a_wrong_order_is_reported_in_the_log(tasks: Tasks) -> None:
    task = tasks.shell("echo ran", changes={"ARGOSY_INPUTS": json.dumps("x")}, result="none")
    assert task.end() == Exit(64)
    assert "ARGOSY_INPUTS" in task.line()


def test_a_fault_of_local_mode_still_ends_the_task(tasks: Tasks, capfd: pytest.CaptureFixture[str]) -> None:
    ends: queue.Queue[Exit] = queue.Queue()

    def broken(line: str) -> None:
        raise KeyError(line)

    tasks.shell("echo a line", result="none", on_line=broken, on_end=ends.put)
    assert ends.get(timeout=30) == Exit(75)
    assert "KeyError: 'a line'" in capfd.readouterr().err


def test_a_stopped_program_leaves_its_folder_of_checkpoints_to_the_next_attempt(tasks: Tasks, s3: SignedS3) -> None:
    at = {"ARGOSY_CHECKPOINT_URI": "s3://results/run/checkpoints/0000007/"}
    script = 'cd "$ARGOSY_CHECKPOINT"; trap "exit 143" TERM; echo 41 > step; echo ready; while :; do sleep 0.02; done'
    first = tasks.shell(script, changes={**at, "ARGOSY_TASK_ATTEMPT": "1"}, result="none")
    assert first.line() == "ready"
    first.running.stop()
    assert first.end() == Exit(143)
    assert "run/checkpoints/0000007/1/000001.json" in s3.names()
    second = tasks.shell('cat "$ARGOSY_CHECKPOINT/step"', changes={**at, "ARGOSY_TASK_ATTEMPT": "2"}, result="none")
    assert second.end() == Exit(0)
    assert second.lines() == ["argosy: restored the checkpoint of attempt 1: 1 files, 3 bytes", "41"]
    assert s3.names() == [] == tasks.left


def test_a_program_of_a_lost_instance_is_not_saved(tasks: Tasks, s3: SignedS3) -> None:
    at = {"ARGOSY_CHECKPOINT_URI": "s3://results/run/checkpoints/0000007/"}
    task = tasks.shell('echo 1 > "$ARGOSY_CHECKPOINT/step"; echo ready; exec sleep 60', changes=at, result="none")
    assert task.line() == "ready"
    task.running.kill()
    assert task.end().exit_code in (137, 143)
    assert s3.names() == [] == tasks.left
