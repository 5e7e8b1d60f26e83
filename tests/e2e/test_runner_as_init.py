"""The runner as process 1 of real containers: an image with only a busybox, run under the usual restrictions.

podman gets it by an option, Docker as on an instance: its daemon's `init-path`. They need one of the engines, and the
runner of `make runner`; what is missing is skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from argosy.local.containers.engine import EngineRuntime
from argosy.local.containers.engine_run import ContainerEngine, ContainerPort, run_arguments
from argosy.local.containers.process import Isolation, Program
from argosy.local.gpus import Gpu
from tests.container_engines import hello, start, static_busybox, use
from tests.docker_daemon import private_docker
from tests.fakes.nvidia_smi import install_nvidia_smi
from tests.fakes.serving import served
from tests.fakes.signed_s3 import SignedS3, signed_s3
from tests.fakes.waiting import until
from tests.runners import OUTPUT, PART, RunnerUnderTest, built_runner

pytestmark = [pytest.mark.e2e, pytest.mark.engine]

IMAGE = "argosy/runner-as-init"
STRICT = ["--user=10001:10001", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"]
# What ecs-init gives the agent's container, which it starts with Init (`ecs-init/docker` of aws/amazon-ecs-agent).
AGENT = {
    "ECS_LOGFILE": "/log/ecs-agent.log",
    "ECS_DATADIR": "/data",
    "ECS_AGENT_CONFIG_FILE_PATH": "/etc/ecs/ecs.config.json",
    "ECS_UPDATE_DOWNLOAD_DIR": "/var/cache/ecs",
    "ECS_UPDATES_ENABLED": "true",
    "ECS_AVAILABLE_LOGGING_DRIVERS": '["json-file","syslog","awslogs","fluentd","none"]',
    "ECS_ENABLE_TASK_IAM_ROLE": "true",
    "ECS_ENABLE_TASK_IAM_ROLE_NETWORK_HOST": "true",
    "ECS_AGENT_LABELS": "",
    "ECS_VOLUME_PLUGIN_CAPABILITIES": '["efsAuth"]',
    "ECS_ENABLE_TASK_ENI": "true",
}
# Orphans that have ended are gone, and not only dead: besides process 1 and this shell nothing is left.
ORPHANS = """
for n in 1 2 3; do (/bin/busybox sh -c "echo >/dev/shm/$n" &); done
tries=0
while :; do
    set -- /proc/[0-9]*
    [ -e /dev/shm/1 ] && [ -e /dev/shm/2 ] && [ -e /dev/shm/3 ] && [ $# = 2 ] && exit 0
    tries=$((tries + 1)); [ $tries = 200 ] && echo "$@" && exit 1
    /bin/busybox usleep 50000
done
"""


class Box:
    """Containers of the image, with the runner as their init."""

    def __init__(self, engine: str, runner: Path) -> None:
        self._words = [engine, "run", "--rm", "--network=host", "--init"]
        self._words += [f"--init-path={runner}"] if engine == "podman" else []
        self.engine = engine

    def run(self, *words: str, **more: object) -> subprocess.CompletedProcess[bytes]:
        command = self.command(*words, **more)
        return subprocess.run(command, capture_output=True, check=False, timeout=120)

    def shell(self, script: str, **more: object) -> subprocess.CompletedProcess[bytes]:
        return self.run("/bin/sh", "-c", script, **more)

    def command(self, *words: str, options: object = (), told: object = None, name: str = "") -> list[str]:
        assert isinstance(options, (list, tuple))
        environment = told if isinstance(told, dict) else {}
        given = [f"--env={key}={value}" for key, value in environment.items()]
        if self.engine == "podman" and "--read-only" in options:
            given.append("--read-only-tmpfs=false")
        return [*self._words, *([f"--name={name}"] if name else []), *options, *given, IMAGE, *words]

    def signal(self, name: str, number: str) -> None:
        subprocess.run([self.engine, "kill", f"--signal={number}", name], check=True, capture_output=True)


@pytest.fixture(scope="module", params=["podman", "docker"])
def box(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    runner = built_runner()
    if runner is None:
        pytest.skip("the Go runner of this source is not built: make runner")
    folder = tmp_path_factory.mktemp("image")
    with pytest.MonkeyPatch.context() as shell:
        engine = use(request.param, folder, shell) if request.param == "podman" else with_init(runner.resolve(), shell)
        shutil.copy(static_busybox() or "", folder / "busybox")
        (folder / "Dockerfile").write_text("FROM scratch\nCOPY busybox /bin/busybox\nCOPY busybox /bin/sh\n")
        built = subprocess.run(
            [engine, "build", "--tag", IMAGE, str(folder)], capture_output=True, text=True, check=False
        )
        assert built.returncode == 0, built.stderr
        yield Box(engine, runner.resolve())
        subprocess.run([engine, "rmi", "--force", IMAGE], capture_output=True, check=False)


def with_init(runner: Path, shell: pytest.MonkeyPatch) -> str:
    """A Docker daemon whose containers have this init."""
    own = private_docker(runner)
    if isinstance(own, str):
        pytest.skip(own)
    if static_busybox() is None:
        pytest.skip("there is no static busybox (Debian: busybox-static)")
    for variable, value in own.items():
        shell.setenv(variable, value)
    return "docker"


@pytest.fixture
def s3() -> Iterator[SignedS3]:
    with signed_s3() as store:
        yield store
        assert not store.refused, store.refused


@pytest.fixture
def task(s3: SignedS3, tmp_path: Path) -> RunnerUnderTest:
    """The variables that give a runner its task."""
    return RunnerUnderTest([], s3, tmp_path)


def told(task: RunnerUnderTest, **protocol: object) -> dict[str, str]:
    environment = {name: value for name, value in task.environment().items() if name.startswith(("AWS_", "ARGOSY_"))}
    return environment | task.protocol(**protocol)  # type: ignore[arg-type]


def test_exit_codes_are_the_programs(box: Box) -> None:
    assert box.shell("exit 7").returncode == 7
    assert box.shell("kill -9 $$").returncode == 137
    missing = box.run("/no-such-program")
    assert (missing.returncode, missing.stderr.count(b"/no-such-program")) == (127, 1)
    assert box.run("/bin").returncode == 126


def test_nothing_inside_can_end_process_1(box: Box) -> None:
    ended = box.shell("kill -9 1; kill -15 1; trap 'echo told' TERM; echo alive")
    assert (ended.returncode, ended.stdout[:5]) == (0, b"alive") or ended.returncode == 143


def test_orphans_are_reaped(box: Box) -> None:
    ended = box.shell(ORPHANS)
    assert ended.returncode == 0, ended.stdout


@pytest.mark.parametrize("options", [[], STRICT], ids=["plain", "strict"])
def test_a_signal_reaches_the_program(box: Box, options: list[str], tmp_path: Path) -> None:
    name = f"argosy-runner-{uuid4().hex[:8]}"
    script = "trap 'echo saved; exit 9' TERM; echo ready; while :; do /bin/busybox usleep 20000; done"
    log = tmp_path / "log"
    with log.open("wb") as out:
        command = box.command("/bin/sh", "-c", script, options=options, name=name)
        with subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL) as process:
            until(lambda: b"ready" in log.read_bytes(), 60)
            box.signal(name, "TERM")
            assert process.wait(60) == 9
    assert log.read_bytes() == b"ready\nsaved\n"


@pytest.mark.parametrize(("options", "words"), [([], ["./run"]), (STRICT, ["sh", "run"])], ids=["as root", "strict"])
def test_a_program_comes_into_an_empty_image_and_its_result_out_of_it(
    box: Box, task: RunnerUnderTest, options: list[str], words: list[str]
) -> None:
    job = task.job(task.program({"run": '#!/bin/sh\nread -r n < "$ARGOSY_IN/n.txt"; echo "$n $1" > "$ARGOSY_OUT/$1"'}))
    environment = told(task, result="folder", job=job, inputs=[task.s3.put("n.txt", b"seven\n")])
    ended = box.run("argosy:program", *words, "result.txt", options=options, told=environment)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert task.s3.body(f"{OUTPUT}result.txt") == b"seven result.txt\n"


def test_standard_output_is_the_result_and_what_stays_behind_is_ended(box: Box, task: RunnerUnderTest) -> None:
    script = "(/bin/busybox setsid /bin/busybox sleep 300 &); echo '{\"n\": 1}'"
    ended = box.run("argosy:program", "/bin/sh", "-c", script, options=STRICT, told=told(task, result="stdout"))
    assert (ended.returncode, ended.stdout) == (0, b'{"n": 1}\n')
    assert task.s3.body(PART) == b'{"n": 1}\n'
    assert json.loads(task.s3.body(PART)) == {"n": 1}


def test_a_program_on_a_mount_without_execution_fails_with_the_reason(box: Box, task: RunnerUnderTest) -> None:
    """On a read-only root only /dev/shm is writable, because Docker and podman mount it that way."""
    job = task.job(task.program({"run": "#!/bin/sh\n"}))
    ended = box.run("argosy:program", "./run", options=STRICT, told=told(task, result="none", job=job))
    assert ended.returncode == 126
    assert b"nothing below /dev/shm may be executed" in ended.stderr


def test_a_full_disk_is_reported(box: Box, task: RunnerUnderTest) -> None:
    """/dev/shm is small."""
    big = task.s3.put("big.bin", os.urandom(2 << 20))
    environment = told(task, result="none", inputs=[big])
    ended = box.shell("true", options=[*STRICT, "--shm-size=1m"], told=environment)
    assert ended.returncode == 75
    assert ended.stderr.startswith(b"argosy: ")
    assert b"no space left" in ended.stderr


def test_the_agents_own_container_ends_and_stops_as_under_any_init(box: Box, tmp_path: Path) -> None:
    """ecs-init takes the agent's exit codes as its orders (5: do not start again; 42: take the update)."""
    rights = ["--cap-add=NET_ADMIN", "--cap-add=SYS_ADMIN", "--userns=host"]
    for code in (0, 5, 42):
        assert box.shell(f"exit {code}", options=rights, told=AGENT).returncode == code
    seen = box.shell("/bin/busybox env", options=rights, told=AGENT).stdout.decode().splitlines()
    assert {f"{name}={value}" for name, value in AGENT.items()} <= set(seen)
    assert not [line for line in seen if line.startswith("ARGOSY")]
    name, log = f"argosy-agent-{uuid4().hex[:8]}", tmp_path / "log"
    with log.open("wb") as out:
        command = box.command(
            "/bin/sh", "-c", "echo ready; /bin/busybox sleep 600", options=rights, told=AGENT, name=name
        )
        with subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL) as process:
            until(lambda: b"ready" in log.read_bytes(), 60)
            box.signal(name, "TERM")
            assert process.wait(60) == 143


def test_process_1_measures_its_container_and_its_gpus_and_reaps_what_it_asked(
    box: Box, task: RunnerUnderTest, tmp_path: Path
) -> None:
    install_nvidia_smi(tmp_path)
    environment = told(task, result="none") | {"NVIDIA_VISIBLE_DEVICES": "GPU-a"}
    driver = f"--volume={tmp_path}/nvidia-smi:/bin/nvidia-smi:ro"
    ended = box.shell(
        "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; /bin/busybox sleep 2; exit 6",
        options=[driver],
        told=environment,
    )
    assert (ended.returncode, ended.stderr) == (6, b"")
    assert json.loads(task.s3.body("run/attempts/gpu-use/0000007/2.json"))["use"] == [37]
    used = json.loads(task.s3.uses["run/attempts/use/0000007/2.json"].body)
    assert 0.0 < used["vcpus"][0] < 2.0
    assert 1 <= used["memoryMib"][0] < 100


def test_docker_says_which_init_its_containers_have(box: Box) -> None:
    """What the boot script asks before an instance gets its attribute."""
    if box.engine == "podman":
        pytest.skip("podman has no daemon")
    asked = ["docker", "info", "--format", "{{.InitBinary}}"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    runner = built_runner()
    assert runner is not None
    assert said == str(runner.resolve())


def test_docker_takes_the_words_for_gpus_and_refuses_where_it_has_none(box: Box) -> None:
    if box.engine == "podman":
        pytest.skip("podman's are devices")
    gpus = Gpu("GPU-a", "0", "NVIDIA L4", 23_034), Gpu("GPU-b", "1", "NVIDIA L4", 23_034)
    words = run_arguments(
        ContainerEngine("docker"),
        f"argosy-gpu-{uuid4().hex[:8]}",
        Program(["true"], {}, Path("/"), 64, isolation=Isolation(IMAGE, gpus=gpus)),
    )
    words[words.index("bridge")] = "none"
    refused = subprocess.run([*words[:2], "--rm", *words[2:]], capture_output=True, text=True, check=False)
    assert refused.returncode == 125
    assert 'could not select device driver "" with capabilities: [[gpu]]' in refused.stderr


def test_local_mode_runs_a_users_program_under_a_docker_with_our_init(
    box: Box, task: RunnerUnderTest, tmp_path: Path
) -> None:
    if box.engine == "podman":
        pytest.skip("tests/contract/test_container_engines.py has podman")
    folder = tmp_path / "containers" / "engine-test"
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text(f"FROM {IMAGE}\n")
    environment, box_of = told(task, result="none"), {"entry_point": "argosy:program"}
    with served(hello) as server:
        door = ContainerPort(server.port, server.serve_too)
        runtime = EngineRuntime("docker", folder.parent, door=door, runner=built_runner())
        try:
            for words, code in (("/bin/sh", 0), ("/no/such/program", 127)):
                assert start(runtime, words, environment, isolation=box_of, has_runner=True).end().exit_code == code
        finally:
            runtime.close()
