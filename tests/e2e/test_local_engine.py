"""Local mode with a container engine: tasks are containers, and everything else is the same as with processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from argosy.local.clients import LocalClients
from argosy.local.options import LocalOptions
from tests.container_engines import REAL, containers, install_fake, static_busybox, use
from tests.e2e.cluster import WORKER, Cluster
from tests.fakes.local_mode import local_aws

pytestmark = pytest.mark.e2e
# `sh worker.sh MODE PART`: what cluster.py's worker does, with nothing but a shell, nc and sha256sum. Keys of HMACs are
# hexadecimal: a variable of a shell holds no zero bytes.
SHELL_WORKER = r"""
echo "task $ARGOSY_TASK_INDEX sees $NVIDIA_VISIBLE_DEVICES"
if [ "$1" = wait ]; then trap 'echo told to stop; exit 143' TERM; while :; do :; done; fi
case "$1" in exit*) exit "${1#exit}";; esac
bytes() { # HEX, XORED WITH
    local hex=$1 rest
    while [ -n "$hex" ]; do
        rest=${hex#??}
        printf "\\$(printf %03o $((0x${hex%"$rest"} ^ $2)))"
        hex=$rest
    done
}
digest() { /bin/busybox sha256sum | /bin/busybox cut -c 1-64; }
hex() { /bin/busybox od -A n -v -t x1 | /bin/busybox tr -d ' \n'; }
hmac() { # KEY TEXT
    local key=$1 inner
    while [ ${#key} -lt 128 ]; do key=${key}00; done
    inner=$({ bytes "$key" 0x36; printf %s "$2"; } | digest)
    { bytes "$key" 0x5c; bytes "$inner" 0; } | digest
}

host=${AWS_ENDPOINT_URL#http://}
body="$ARGOSY_TASK_INDEX $NVIDIA_VISIBLE_DEVICES"
at=$(/bin/busybox date -u +%Y%m%dT%H%M%SZ)
day=${at%T*}
request=$(printf 'PUT\n/%s\n\nhost:%s\nx-amz-date:%s\n\nhost;x-amz-date\nUNSIGNED-PAYLOAD' "${2#s3://}" "$host" "$at")
text=$(printf 'AWS4-HMAC-SHA256\n%s\n%s/us-east-1/s3/aws4_request\n%s' "$at" "$day" "$(printf %s "$request" | digest)")
key=$(printf %s "AWS4$AWS_SECRET_ACCESS_KEY" | hex)
for each in "$day" us-east-1 s3 aws4_request "$text"; do key=$(hmac "$key" "$each"); done
printf 'PUT /%s HTTP/1.1\r\nHost: %s\r\nContent-Type: text/plain\r\nContent-Length: %s\r\n' \
    "${2#s3://}" "$host" "${#body}" > /tmp/request
printf 'Authorization: AWS4-HMAC-SHA256 Credential=%s/%s/us-east-1/s3/aws4_request, ' \
    "$AWS_ACCESS_KEY_ID" "$day" >> /tmp/request
printf 'SignedHeaders=host;x-amz-date, Signature=%s\r\nx-amz-date: %s\r\n' "$key" "$at" >> /tmp/request
printf 'x-amz-content-sha256: UNSIGNED-PAYLOAD\r\n' >> /tmp/request
printf 'x-amz-meta-argosy-attempt: %s\r\nIf-None-Match: *\r\nConnection: close\r\n\r\n%s' \
    "$ARGOSY_TASK_ATTEMPT" "$body" >> /tmp/request
/bin/busybox nc "${host%:*}" "${host#*:}" < /tmp/request | /bin/busybox head -n 1
"""


def fake_image(folder: Path) -> None:
    """For the fake, whose containers are processes of this machine."""
    (folder / "worker.py").write_text(
        WORKER.replace('if mode == "hog"', 'if mode == "wait":\n    time.sleep(600)\nif mode == "hog"')
    )
    entry = json.dumps([sys.executable, str(folder / "worker.py")])
    (folder / "Dockerfile").write_text(f"FROM scratch\nENTRYPOINT {entry}\n")


def real_image(folder: Path) -> None:
    """Built without pulling anything: a static busybox and a script."""
    busybox = static_busybox()
    assert busybox is not None
    shutil.copy(busybox, folder / "busybox")
    (folder / "worker.sh").write_text(SHELL_WORKER)
    lines = ["FROM scratch", "COPY busybox /bin/busybox", "COPY worker.sh /worker.sh", "COPY Dockerfile /tmp/"]
    entry = json.dumps(["/bin/busybox", "sh", "/worker.sh"])
    (folder / "Dockerfile").write_text("\n".join([*lines, "STOPSIGNAL SIGTERM", f"ENTRYPOINT {entry}", ""]))


def fake_runner(folder: Path) -> Path:
    """The Python runner where the fake's containers expect a file."""
    path = folder / "argosy-runner"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m argosy.runner "$@"\n')
    path.chmod(0o755)
    return path


@pytest.fixture(scope="module", params=["fake", *REAL])
def local(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    home = tmp_path_factory.mktemp("engine")
    folder = home / "containers" / "worker"
    folder.mkdir(parents=True)
    with pytest.MonkeyPatch.context() as shell:
        engine = use(request.param, home, shell)
        (fake_image if request.param == "fake" else real_image)(folder)
        options = LocalOptions(images_root=folder.parent, state_dir=home / "state", engine=engine)
        if request.param == "fake":
            options = replace(options, runner=fake_runner(home))
        with embedded(options) as running:
            yield running
        assert containers(engine, int(running.aws.endpoint_url.rpartition(":")[2])) == []
        if request.param != "fake":
            subprocess.run([engine, "rmi", "--force", "argosy/worker"], capture_output=True, check=False)


@contextmanager
def embedded(options: LocalOptions) -> Iterator[Cluster]:
    with local_aws(replace(options, boot_s=0.2, tick_s=0.3, stop_timeout_s=2.0)) as aws:
        clients = LocalClients(aws.endpoint_url, "us-east-1", aws.key)
        try:
            yield Cluster(aws, clients)
        finally:
            clients.close()


def test_local_mode_ends_after_the_containers_of_instances_that_were_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This one comes first here: a process has one local mode, and the others share theirs."""
    engine = install_fake(tmp_path, monkeypatch)
    folder = tmp_path / "containers" / "worker"
    folder.mkdir(parents=True)
    fake_image(folder)
    options = LocalOptions(images_root=folder.parent, state_dir=tmp_path / "state", engine="podman")
    with embedded(replace(options, runner=fake_runner(tmp_path))) as local:
        run_id = local.submit(["wait", "${part}"], 1)
        (name,) = local.until(lambda: states_in(engine))
        (engine / f"busy-{name}").write_text("12")  # this container is not removed for some seconds
        lose_the_instance_of(local, run_id)
    assert states_in(engine) == []


def test_a_run_in_containers_has_its_parts_its_log_and_its_gpus(local: Cluster) -> None:
    run_id = local.submit(["write", "${part}"], 3, resources={"vcpus": 1, "memory": 64, "gpus": 1})
    view = local.finished(run_id)
    assert (view["status"], view["attempts"]) == ("SUCCEEDED", 3), view
    pinned = {task["index"]: task["gpuIds"] for task in view["taskList"]}
    for index, (gpu,) in pinned.items():
        assert local.read(f"{run_id}/parts/part-{index:07d}.jsonl").decode().split() == [str(index), gpu]


def test_a_failed_container_is_reported_and_an_image_that_cannot_be_built_too(local: Cluster) -> None:
    view = local.finished(local.submit(["exit64", "-"], 1))
    assert (view["status"], view["taskList"][0]["exitCode"]) == ("FAILED", 64)
    other = local.aws.options.images_root / "other"
    other.mkdir()
    (other / "Dockerfile").write_text("FROM scratch\nCOPY missing /\n")
    spec = {"container": {"image": "argosy/other", "command": ["-"]}}
    local.clients("ssm").put_parameter(Name="/argosy/images/other", Value="argosy/other", Type="String")
    run_id = local.submit(["-"], 1, **spec)
    reason = local.until(lambda: next((t["reason"] for t in local.run(run_id)["taskList"] if t["reason"]), None))
    assert "CannotPullContainerError" in reason
    local.ask("CancelRun", runId=run_id)
    local.finished(run_id)


def test_a_cancelled_run_stops_its_containers_and_leaves_none(local: Cluster) -> None:
    run_id = local.submit(["wait", "${part}"], 2)
    local.until(lambda: local.ask("DescribeRun", runId=run_id)["tasks"]["running"] == 2)
    local.ask("CancelRun", runId=run_id)
    assert local.finished(run_id)["status"] == "CANCELLED"
    assert {task["lastStatus"] for task in local.ecs_tasks(run_id)} == {"STOPPED"}


def lose_the_instance_of(local: Cluster, run_id: str) -> None:
    """That of its one task, which runs there."""
    instance = local.until(
        lambda: next((t["instance"] for t in local.run(run_id)["taskList"] if t["status"] == "RUNNING"), None)
    )
    local.aws.interrupt(instance, notice_s=0.1)
    local.until(lambda: local.ask("DescribeRun", runId=run_id)["interruptions"] == 1)


def test_an_instance_that_is_lost_takes_its_containers_with_it(local: Cluster) -> None:
    run_id = local.submit(["wait", "${part}"], 1)
    lose_the_instance_of(local, run_id)
    local.ask("CancelRun", runId=run_id)
    local.finished(run_id)


def test_a_container_is_entered_while_it_runs(local: Cluster) -> None:
    if "FAKE_ENGINE" in os.environ:
        pytest.skip("the stand-in's containers are processes")
    run_id = local.submit(["wait", "${part}"], 1)
    shell = ["/bin/busybox", "sh", "-c", 'echo "in $ARGOSY_TASK_INDEX"; /bin/busybox ls /worker.sh; exit 7']
    endpoint = ["--endpoint-url", local.aws.endpoint_url]
    words = [
        sys.executable,
        "-c",
        "from argosy.cli.main import main; main()",
        "exec",
        run_id,
        "0",
        *endpoint,
        "--",
        *shell,
    ]

    def entered() -> subprocess.CompletedProcess[str] | None:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60)
        return done if done.returncode == 7 else None

    done = local.until(entered)
    assert done.stdout == "in 0\n/worker.sh\n"
    local.ask("CancelRun", runId=run_id)
    local.finished(run_id)


def states_in(engine: Path) -> list[str]:
    """Of the fake's containers."""
    folder = engine / "containers"
    return [path.name for path in folder.iterdir()] if folder.is_dir() else []


def test_a_users_program_in_a_container_has_its_inputs_and_its_result(local: Cluster) -> None:
    options = local.aws.options
    if not options.runner.is_file():
        pytest.skip("the runner is not built: make runner")
    if options.engine == "docker":
        pytest.skip("Docker's containers have the init of its daemon")
    local.s3.put_object(Bucket="argosy-results", Key="inputs/1/x.txt", Body=b"given\n")
    shell = ["sh", "-c"] if "FAKE_ENGINE" in os.environ else ["/bin/busybox", "sh", "-c"]
    busybox = "" if "FAKE_ENGINE" in os.environ else "/bin/busybox "
    script = f'{busybox}cat "$ARGOSY_IN/x.txt"; echo $ARGOSY_TASK_INDEX $HOME; echo aside >&2'
    spec = {
        "version": 1,
        "name": "own",
        "run": [*shell, script],
        "inputs": ["s3://argosy-results/inputs/1/"],
        "result": "stdout",
        "container": {"image": "argosy/worker"},
        "resources": {"vcpus": 1, "memory": 64},
        "array": {"size": 2},
    }
    run_id = local.ask("SubmitRun", spec=spec)["runId"]
    view = local.finished(run_id)
    assert (view["status"], view["attempts"]) == ("SUCCEEDED", 2), view
    lines = local.read(f"{run_id}/parts/part-0000001.jsonl").decode().splitlines()
    assert lines[0] == "given"
    assert lines[1].startswith("1 /")


def test_a_program_that_the_engine_cannot_start_is_not_tried_again(local: Cluster, tmp_path: Path) -> None:
    options = local.aws.options
    if "FAKE_ENGINE" not in os.environ:
        pytest.skip("what is missing is taken away from the stand-in")
    kept = options.runner.rename(tmp_path / "argosy-runner")
    try:
        spec = {"version": 1, "name": "own", "run": ["true"], "result": "none", "array": {"size": 1}}
        spec |= {"container": {"image": "argosy/worker"}, "retryStrategy": {"attempts": 3}}
        view = local.finished(local.ask("SubmitRun", spec=spec)["runId"])
        assert (view["status"], view["attempts"]) == ("FAILED", 1), view
    finally:
        kept.rename(options.runner)


def argosy(*words: str) -> tuple[int, str]:
    from argosy.cli.main import app

    result = CliRunner().invoke(app, list(words))
    return result.exit_code, result.stderr


def test_an_engine_that_is_not_there_or_does_not_work_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, said = argosy("local", "--runtime", "rkt")
    assert (code, "--runtime is process, podman or docker, not rkt" in said) == (2, True)
    engine = install_fake(tmp_path, monkeypatch)
    engine.mkdir()
    (engine / "broken").touch()
    code, said = argosy("local", "--runtime", "podman")
    assert code == 2
    assert "--runtime podman: podman does not work: Cannot connect to the daemon." in said
    assert "without --runtime" in said
