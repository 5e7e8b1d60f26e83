"""The behaviour of podman and Docker that local mode relies on: always tested with a fake, and with real engines where
they work."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.local.containers.engine import EngineRuntime, NoEngineError, check
from argosy.local.containers.engine_run import NOT_STARTED, ContainerEngine, ContainerPort, run_arguments
from argosy.local.containers.images import CannotPullError
from argosy.local.containers.process import OUT_OF_MEMORY, Exit, Isolation, Program
from argosy.local.gpus import Gpu, Maker
from tests.container_engines import REAL, Started, asking, calls, containers, hello, leave_a_container, start, use
from tests.fakes.serving import served
from tests.fakes.waiting import until


@pytest.fixture(params=["fake", *REAL])
def engine(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    return use(str(request.param), tmp_path, monkeypatch)


@pytest.fixture
def runtime(engine: str, images: Path, door: ContainerPort) -> Iterator[EngineRuntime]:
    made = EngineRuntime(engine, images, door=door)
    yield made
    made.close()
    if "FAKE_ENGINE" not in os.environ:
        subprocess.run([engine, "rmi", "--force", "argosy/engine-test"], capture_output=True, check=False)


def test_lines_exit_code_and_environment_are_the_programs(
    engine: str, runtime: EngineRuntime, door: ContainerPort
) -> None:
    before = set(threading.enumerate())
    started = start(runtime, 'echo "one $A"; echo two >&2; exit 7', {"A": "x y=z"})
    assert started.end() == Exit(7)
    assert sorted(started.line() for _ in range(2)) == ["one x y=z", "two"]
    assert containers(engine, door.port) == []
    runtime.close()  # Docker's containers share one listener until then
    assert {each for each in set(threading.enumerate()) - before if "process_request" not in each.name} == set()


def test_a_program_sees_nothing_of_this_machines_environment(runtime: EngineRuntime) -> None:
    started = start(runtime, 'echo "[$AWS_SECRET_ACCESS_KEY$VIRTUAL_ENV]"')
    assert started.end() == Exit(0)
    assert started.line() == "[]"


def test_stop_asks_first(engine: str, runtime: EngineRuntime, door: ContainerPort) -> None:
    started = start(runtime, "trap 'exit 143' TERM; echo ready; while :; do :; done")
    assert started.line() == "ready"
    started.container.stop()
    assert started.end() == Exit(143)
    assert containers(engine, door.port) == []


@pytest.mark.parametrize("engine", ["fake"], indirect=True)
def test_an_engine_whose_books_are_late_is_waited_for(engine: str, runtime: EngineRuntime, door: ContainerPort) -> None:
    """Like podman's on a busy machine: `run` ends with 127, and the container is still said to run."""
    assert start(runtime, "exit 7", {"FAKE_LATE": "1"}).end() == Exit(7)
    assert containers(engine, door.port) == []


def test_stop_kills_what_does_not_listen(runtime: EngineRuntime) -> None:
    started = start(runtime, "trap '' TERM; echo ready; while :; do :; done", stop_timeout_s=1.0)
    assert started.line() == "ready"
    started.container.stop()
    assert started.end() == Exit(137)


def test_kill_does_not_ask(engine: str, runtime: EngineRuntime, door: ContainerPort) -> None:
    started = start(runtime, "trap '' TERM; echo ready; while :; do :; done")
    assert started.line() == "ready"
    started.container.kill()
    assert started.end() == Exit(137)
    assert containers(engine, door.port) == []


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_container_that_ends_before_it_has_begun_leaves_nothing(
    engine: str, runtime: EngineRuntime, door: ContainerPort, end: str
) -> None:
    started = start(runtime, "trap '' TERM; while :; do :; done", stop_timeout_s=1.0)
    getattr(started.container, end)()
    assert started.end().exit_code != 0
    assert containers(engine, door.port) == []


def test_stopping_and_killing_what_has_ended_is_harmless(runtime: EngineRuntime) -> None:
    started = start(runtime, "exit 0")
    started.end()
    started.container.stop()
    started.container.kill()
    started.container.join(30)
    assert started.ends.empty()


def test_a_program_that_does_not_exist_could_not_be_started(
    engine: str, runtime: EngineRuntime, door: ContainerPort
) -> None:
    started = start(runtime, "", isolation={"entry_point": "/no/such/program"})
    ended = started.end()
    assert ended.exit_code == 127
    assert ended.reason is not None
    assert ended.reason.startswith("CannotStartContainerError: ")
    assert "/no/such/program" in ended.reason
    assert containers(engine, door.port) == []


@pytest.mark.usefixtures("busybox")
def test_a_container_reaches_the_endpoint_where_it_is_on_this_machine(
    runtime: EngineRuntime, door: ContainerPort
) -> None:
    before = set(threading.enumerate())
    told = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{door.port}"}
    host = "$(echo $AWS_ENDPOINT_URL | cut -d / -f 3 | cut -d : -f 1)"  # under Docker the bridge's address
    host = host if "FAKE_ENGINE" in os.environ else host.replace("cut", "/bin/busybox cut")
    for _ in range(2):  # each in its own network
        started = start(runtime, asking(door.port).replace("127.0.0.1", host), told)
        assert started.line().startswith("HTTP/1.1 204")
        assert started.end() == Exit(0)
    runtime.close()
    assert {each for each in set(threading.enumerate()) - before if "process_request" not in each.name} == set()


@pytest.mark.usefixtures("busybox")
@pytest.mark.parametrize("engine", REAL[:1], indirect=True)
def test_a_container_reaches_no_other_port_of_this_machine_and_no_abstract_socket(runtime: EngineRuntime) -> None:
    """Also as the machine that its network leads to."""
    name = "argosy-test-of-abstract-sockets"
    with served(hello) as other, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{name}")
        route = "/bin/busybox ip route | /bin/busybox awk '/default/ { print $3 }'"
        gateway = asking(other.port).replace("127.0.0.1", f"$({route})")
        started = start(runtime, f"{asking(other.port)}; {gateway}; /bin/busybox grep -c {name} /proc/net/unix")
        ended = started.end()
        said = list(started.lines.queue)
    assert [line for line in said if not line.startswith("nc:")] == ["none", "none", "0"]
    assert ended == Exit(1)  # grep found nothing


@pytest.mark.parametrize("engine", REAL, indirect=True)
@pytest.mark.parametrize("isolation", [{}, {"user": "10001"}], ids=["root", "a user"])
def test_a_container_has_no_rights_beyond_its_own_files(runtime: EngineRuntime, isolation: dict[str, Any]) -> None:
    script = "/bin/busybox grep -E 'NoNewPrivs|CapBnd|CapEff' /proc/self/status; /bin/busybox mknod /tmp0 c 1 3"
    started = start(runtime, f"{script}; exit 0", isolation=isolation)
    assert started.end() == Exit(0)
    said = list(started.lines.queue)
    facts = dict(line.split(":\t") for line in said if ":\t" in line)
    assert facts["NoNewPrivs"] == "1"
    # The numbers of <linux/capability.h>: CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, NET_BIND_SERVICE.
    allowed = sum(1 << number for number in (0, 1, 3, 4, 5, 10))
    for name in ("CapBnd", "CapEff"):
        assert int(facts[name], 16) & ~allowed == 0
    assert any("mknod" in line and "ermi" in line for line in said)  # not permitted, or permission denied


def test_an_image_that_cannot_be_had_says_why_and_is_not_asked_for_again_at_once(
    runtime: EngineRuntime, images: Path
) -> None:
    (images / "broken").mkdir()
    (images / "broken" / "Dockerfile").write_text("FROM scratch\nCOPY missing /\n")
    for reference in ("argosy/broken", "argosy/none"):
        with pytest.raises(CannotPullError, match=reference) as first:
            runtime.pull(reference)
        with pytest.raises(CannotPullError) as second:
            runtime.pull(reference)
        assert str(first.value) == str(second.value)


@pytest.mark.slow
def test_the_containers_of_a_local_mode_that_was_killed_go_when_the_next_one_on_its_port_starts(
    engine: str, images: Path, door: ContainerPort
) -> None:
    leave_a_container(engine, images, door.port)
    with served(hello) as other:
        leave_a_container(engine, images, other.port)
        assert len(containers(engine, door.port, other.port)) == 2
        runtime = EngineRuntime(engine, images, door=door)
        assert len(containers(engine, door.port, other.port)) == 1
        assert start(runtime, "exit 7").end() == Exit(7)
        runtime.close()
        EngineRuntime(engine, images, door=ContainerPort(other.port, other.serve_too)).close()
    assert containers(engine, door.port, other.port) == []


# --- what only the stand-in can show ----------------------------------------------------------------------------------


def started_and_at(fake: Path, command: str, runtime: EngineRuntime) -> Started:
    """A container whose engine is busy with a command."""
    started = start(runtime, "exit 0")
    until(lambda: calls(fake, command))
    return started


def test_the_engine_finishes_what_it_does_for_a_container_that_is_killed_meanwhile(
    fake: Path, images: Path, door: ContainerPort
) -> None:
    """podman has no record of a container whose creation was interrupted."""
    fake.mkdir()
    (fake / "slow-init").touch()
    started = started_and_at(fake, "init", EngineRuntime("podman", images, door=door))
    until((fake / "ignores-signals").exists)
    started.container.kill()
    until(lambda: len(calls(fake, "inspect")) > 2)  # the container may begin after all
    assert started.ends.empty()
    (fake / "slow-init").unlink()
    assert started.end().exit_code == NOT_STARTED
    assert (calls(fake, "start"), containers("podman", door.port)) == ([], [])


def test_a_container_that_starts_although_its_starter_was_stopped_is_killed(
    fake: Path, images: Path, door: ContainerPort
) -> None:
    fake.mkdir()
    (fake / "slow-start").touch()
    started = started_and_at(fake, "start", EngineRuntime("podman", images, door=door))
    started.container.stop()
    assert started.end() == Exit(137)
    assert containers("podman", door.port) == []


def test_a_container_that_the_engine_is_not_done_with_is_removed_later(
    fake: Path, images: Path, door: ContainerPort
) -> None:
    fake.mkdir()
    (fake / "busy").write_text("3")
    assert start(EngineRuntime("podman", images, door=door), "exit 7").end() == Exit(7)
    assert (len(calls(fake, "rm")), containers("podman", door.port)) == (5, [])


def test_limits_user_and_file_system_are_the_definitions(fake: Path, images: Path) -> None:
    box = {
        "cpu_units": 2048,
        "user": "10001",
        "read_only": True,
        "tmpfs": (("/tmp", 64),),
        "shared_memory_mib": 8192,
        "entry_point": "sh",
    }
    started = start(EngineRuntime("podman", images), "exit 0", {"A": "1"}, isolation=box)
    started.end()
    (words,) = calls(fake, "run")
    assert words[words.index("--memory") + 1] == "256m"
    assert words[words.index("--cpu-shares") + 1] == "2048"
    assert words[words.index("--user") + 1] == "10001"
    assert words[words.index("--tmpfs") + 1] == "/tmp:size=64m"
    assert words[words.index("--shm-size") + 1] == "8192m"
    assert words[words.index("--network") + 1] == "private"
    assert words[words.index("--security-opt") + 1] == "no-new-privileges"
    assert {"--cap-drop=NET_RAW", "--cap-drop=SETUID", "--cap-drop=MKNOD"} <= set(words)
    assert "--read-only" in words
    assert "--device" not in words
    assert words[-4:] == ["--entrypoint", "sh", "argosy/engine-test", "exit 0"]


NVIDIA = Gpu("GPU-a", "0", "NVIDIA A", 24_000), Gpu("MIG-c", "1:2", "NVIDIA MIG 1g.18gb", 18_432)
AMD = (Gpu("GPU-0x1", "0", "AMD MI300X", 196_592, Maker.AMD),)


@pytest.mark.parametrize(
    ("engine", "gpus", "flags"),
    [
        ("podman", NVIDIA, ["--device", "nvidia.com/gpu=0", "--device", "nvidia.com/gpu=1:2"]),
        ("docker", NVIDIA, ["--gpus", '"device=GPU-a,MIG-c"']),
        ("docker", AMD, ["--device", "/dev/kfd", "--device", "/dev/dri"]),
    ],
)
def test_a_container_gets_the_gpus_of_this_machine_that_are_its_own(
    tmp_path: Path, engine: str, gpus: tuple[Gpu, ...], flags: list[str]
) -> None:
    told = {"NVIDIA_VISIBLE_DEVICES": "GPU-a,MIG-c", "CUDA_VISIBLE_DEVICES": "GPU-a,MIG-c"}
    program = Program([], told, tmp_path, None, isolation=Isolation("i", gpus=gpus))
    words = run_arguments(ContainerEngine(engine), "n", program)
    start = words.index(flags[0])
    assert words[start : start + len(flags)] == flags
    assert not any(word.startswith("CUDA_VISIBLE_DEVICES") for word in words)


def test_a_container_that_shares_a_gpu_has_the_pipes_of_mps_and_the_machines_shared_memory(
    tmp_path: Path,
) -> None:
    pipes = tmp_path / "pipes"
    box = Isolation("i", gpus=NVIDIA[:1], mps_pipes=pipes, shared_memory_mib=64)
    told = {"CUDA_MPS_PIPE_DIRECTORY": str(pipes)}
    words = run_arguments(ContainerEngine("podman"), "n", Program([], told, tmp_path, None, isolation=box))
    assert words[words.index("--ipc") + 1] == "host"
    assert words[words.index("--volume") + 1] == f"{pipes}:{pipes}"
    assert "--shm-size" not in words  # engines refuse it beside the machine's
    assert f"CUDA_MPS_PIPE_DIRECTORY={pipes}" in words


@pytest.mark.parametrize(("gpus", "is_built"), [(1, True), (1, False), (0, True)])
def test_podmans_containers_with_a_gpu_have_the_runner_for_their_init_if_it_is_built(
    tmp_path: Path, gpus: int, is_built: bool
) -> None:
    runner = tmp_path / "argosy-runner"
    if is_built:
        runner.touch()
    box = Isolation("i", gpus=NVIDIA[:gpus])
    words = run_arguments(ContainerEngine("podman", runner=runner), "n", Program([], {}, tmp_path, None, isolation=box))
    assert ("--init-path" in words) == (gpus > 0 and is_built)  # it measures the use of the GPU


def test_a_program_without_an_image_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no image"):
        run_arguments(ContainerEngine("podman"), "n", Program([], {}, tmp_path, None))


@pytest.mark.parametrize(("engine", "named"), [("podman", "make runner"), ("docker", "/etc/docker/daemon.json")])
def test_a_users_program_is_refused_in_a_sentence_where_there_is_no_runner(
    fake: Path, images: Path, tmp_path: Path, engine: str, named: str
) -> None:
    started = start(EngineRuntime(engine, images, runner=tmp_path / "argosy-runner"), "true", has_runner=True)
    assert started.end() == Exit(64)
    assert named in started.line()
    started.container.stop()
    started.container.kill()


def test_a_users_program_has_the_runner_for_its_init(fake: Path, images: Path, tmp_path: Path) -> None:
    runner = tmp_path / "argosy-runner"
    runner.write_text('#!/bin/sh\necho "init: $*"\n')
    runner.chmod(0o755)
    isolation = {"entry_point": "argosy:program"}
    started = start(EngineRuntime("podman", images, runner=runner), "true", isolation=isolation, has_runner=True)
    assert started.end() == Exit(0)
    assert started.line() == "init: -- argosy:program true"


def test_a_docker_whose_daemon_has_the_runner_for_its_init_may_use_it(fake: Path, images: Path, tmp_path: Path) -> None:
    fake.mkdir(exist_ok=True)
    (fake / "init").write_text(str(tmp_path / "argosy-runner"))
    runtime = EngineRuntime("docker", images, runner=tmp_path / "argosy-runner")
    assert start(runtime, "exit 7", has_runner=True).end() == Exit(7)


def test_a_container_killed_for_its_memory_says_so(fake: Path, images: Path) -> None:
    started = start(EngineRuntime("podman", images), "kill -9 $$", {"FAKE_OOM": "1"})
    assert started.end() == Exit(137, OUT_OF_MEMORY)


@pytest.mark.parametrize(("code", "reason"), [(137, OUT_OF_MEMORY), (1, OUT_OF_MEMORY), (0, None)])
def test_what_our_init_says_of_memory_is_the_reason_of_a_failure(
    fake: Path, images: Path, code: int, reason: str | None
) -> None:
    said = "argosy: killed: out of memory, of which the task may use 60 MiB"
    started = start(EngineRuntime("podman", images), f"echo '{said}' >&2; echo last; exit {code}")
    assert started.end() == Exit(code, reason)


@pytest.mark.parametrize("engine", REAL, indirect=True)
@pytest.mark.usefixtures("busybox")
def test_a_real_container_over_its_memory_says_so(engine: str, runtime: EngineRuntime) -> None:
    """podman gets it only from control groups of version 2; elsewhere the exit code suggests the cause."""
    says_so = engine == "docker" or Path("/sys/fs/cgroup/cgroup.controllers").exists()
    reason = OUT_OF_MEMORY if says_so else None
    assert start(runtime, "/bin/busybox tail /dev/zero; exit $?").end() == Exit(137, reason)


def test_an_image_is_built_once_and_others_are_pulled(fake: Path, images: Path) -> None:
    runtime = EngineRuntime("podman", images)
    assert runtime.names() == ["engine-test"]
    for reference in ("argosy/engine-test", "argosy/engine-test:latest", "argosy/engine-test"):
        assert runtime.pull(reference).reference == "argosy/engine-test"
    assert len(calls(fake, "build")) == 2  # one for each name it was asked by
    with pytest.raises(CannotPullError, match="registry/x: podman pull: Error: registry/x: access"):
        runtime.pull("registry/x")
    (fake / "images" / "registry_y").write_text('["sh"]')
    assert runtime.pull("registry/y").reference == "registry/y"


def test_an_image_whose_folder_has_changed_is_rebuilt_and_that_is_reported(fake: Path, images: Path) -> None:
    said: list[str] = []
    runtime = EngineRuntime("podman", images, tell=said.append)
    for _ in range(2):
        runtime.pull("argosy/engine-test")
    assert (len(calls(fake, "build")), said) == (1, [])
    (images / "engine-test" / "program.sh").write_text("echo new")
    until(lambda: runtime.pull("argosy/engine-test") and len(calls(fake, "build")) == 2)
    assert said == ["argosy/engine-test has changed: it is built again"]


def test_the_flavour_is_always_passed(fake: Path, images: Path) -> None:
    """And only to an image that has one: podman warns about an argument that no Dockerfile uses."""
    (images / "tf").mkdir()
    (images / "tf" / "Dockerfile").write_text('FROM x AS p\nARG FLAVOUR=gpu\nFROM x\nENTRYPOINT ["sh", "-c"]\n')
    runtime = EngineRuntime("podman", images)
    for name in ("tf", "tf-gpu", "engine-test"):
        assert runtime.pull(f"argosy/{name}").reference == f"argosy/{name}"
    tf = str(images / "tf")
    assert calls(fake, "build") == [
        ["--tag", "argosy/tf", "--build-arg", "FLAVOUR=cpu", tf],
        ["--tag", "argosy/tf-gpu", "--build-arg", "FLAVOUR=gpu", tf],
        ["--tag", "argosy/engine-test", str(images / "engine-test")],
    ]
    assert runtime.names() == ["engine-test", "tf", "tf-gpu"]


def test_another_base_is_passed_to_the_images_that_ask_for_one(fake: Path, images: Path) -> None:
    (images / "based").mkdir()
    (images / "based" / "Dockerfile").write_text('ARG BASE=x\nFROM ${BASE}\nENTRYPOINT ["sh", "-c"]\n')
    runtime = EngineRuntime("podman", images, base_image="localhost/base")
    for name in ("based", "engine-test"):
        runtime.pull(f"argosy/{name}")
    based, plain = calls(fake, "build")
    assert based == ["--tag", "argosy/based", "--build-arg", "BASE=localhost/base", str(images / "based")]
    assert plain == ["--tag", "argosy/engine-test", str(images / "engine-test")]


@pytest.mark.parametrize(("printed", "version"), [("3.13", "3.13"), ("no such file", "3.12"), (None, "3.12")])
def test_the_python_of_the_stock_image_is_that_of_the_base(
    fake: Path, images: Path, printed: str | None, version: str
) -> None:
    """If the base cannot say, or does not exist yet, it is the one that the Dockerfile names."""
    if printed is not None:
        (fake / "images").mkdir(parents=True, exist_ok=True)
        (fake / "images" / "localhost_base").write_text(f"sh\x1f-c\x1fecho {printed}\x1f")
    assert EngineRuntime("podman", images, base_image="localhost/base").python == version
    assert EngineRuntime("podman", images).python == "3.12"


def test_an_image_that_shares_files_is_built_from_the_folder_above(fake: Path, images: Path) -> None:
    (images / "engine-test" / "Dockerfile.dockerignore").write_text("*\n!shared/*.py\n")
    EngineRuntime("podman", images).pull("argosy/engine-test")
    dockerfile = str(images / "engine-test" / "Dockerfile")
    assert calls(fake, "build") == [["--tag", "argosy/engine-test", "--file", dockerfile, str(images)]]


def test_an_engine_is_asked_whether_it_works(fake: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    check("podman")
    (fake / "broken").touch()
    with pytest.raises(NoEngineError, match="podman does not work: Cannot connect to the daemon"):
        check("podman")
    (fake / "broken").unlink()
    (fake / "limited").touch()
    with pytest.raises(NoEngineError, match=r"podman starts no container here: .*setrlimit.*containers\.conf"):
        check("podman")
    (tmp_path / "bin" / "podman").write_text("no program")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(NoEngineError, match="podman does not answer"):
        check("podman")
    with pytest.raises(CannotPullError, match="podman: "):
        EngineRuntime("podman", tmp_path).pull("registry/z")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(NoEngineError, match="no podman on PATH"):
        check("podman")
