#!/usr/bin/env python3
"""A fake of podman and Docker: it keeps their contract as far as local mode relies on it, and records its calls.

Its state is in the folder FAKE_ENGINE: `calls` (one JSON list a line), images/ and containers/. An image is its
Dockerfile's ENTRYPOINT; a container is a process of this machine with only the given environment.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

HOME = Path(os.environ["FAKE_ENGINE"])
WITH_VALUE = {
    "--name", "--network", "--pull", "--memory", "--cpu-shares", "--user", "--tmpfs", "--shm-size", "--device",
    "--gpus", "--env", "--entrypoint", "--security-opt", "--pids-limit", "--label",
    "--init-path",
}  # fmt: skip


def main(words: list[str]) -> int:
    HOME.mkdir(exist_ok=True)
    if (HOME / "slow-start").exists():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # it is waited for
    for folder in ("images", "containers", "created"):
        (HOME / folder).mkdir(exist_ok=True)
    with (HOME / "calls").open("a") as calls:
        calls.write(json.dumps(words) + "\n")
    return COMMANDS[words[0]](words[1:])


def info(words: list[str]) -> int:
    if (HOME / "broken").exists():
        print("Cannot connect to the daemon", file=sys.stderr)
        return 1
    if words[:1] == ["--format"]:
        print((HOME / "init").read_text() if (HOME / "init").exists() else "docker-init")
    return 0


def build(words: list[str]) -> int:
    tag, folder = words[1], Path(words[-1])
    dockerfile = Path(words[words.index("--file") + 1]) if "--file" in words else folder / "Dockerfile"
    lines = dockerfile.read_text().splitlines()
    entry = [line.removeprefix("ENTRYPOINT ") for line in lines if line.startswith("ENTRYPOINT")]
    if not entry:
        print("STEP 1/2: FROM scratch\nError: no such file or directory", file=sys.stderr)
        return 125
    (HOME / "images" / tag.replace("/", "_")).write_text(entry[0])
    return 0


def pull(words: list[str]) -> int:
    print(f"Error: {words[0]}: access to the resource is denied", file=sys.stderr)
    return 125


def image(words: list[str]) -> int:
    return 0 if (HOME / "images" / words[1].replace("/", "_")).exists() else 1


def create(words: list[str]) -> int:
    name = words[words.index("--name") + 1]
    (HOME / "created" / name).write_text(json.dumps(words))
    (HOME / "containers" / name).write_text("created 0 false")
    return 0


def init(words: list[str]) -> int:
    """While `slow-init` exists it is not done, and ignores signals to end, as podman does then."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while (HOME / "slow-init").exists():
        time.sleep(0.02)
    (HOME / "containers" / words[0]).write_text("initialized 0 false")
    return 0


def start(words: list[str]) -> int:
    assert words[0] == "--attach"
    if (HOME / "slow-start").exists():
        return _start_and_go(words[1])
    return run(json.loads((HOME / "created" / words[1]).read_text()))


def _start_and_go(name: str) -> int:
    """When stopped, it ends, but the requested container starts nevertheless."""
    signal.sigwait({signal.SIGTERM})
    program = subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=subprocess.DEVNULL)
    (HOME / "containers" / name).write_text(f"running {program.pid} false 137")
    return 143


def run(words: list[str]) -> int:
    if "--rootfs" in words:  # in an empty folder, where there is no program
        if (HOME / "limited").exists():
            print(
                "Error: crun: setrlimit `RLIMIT_NOFILE`: Operation not permitted: OCI permission denied",
                file=sys.stderr,
            )
            return 126
        return 127
    name = words[words.index("--name") + 1] if "--name" in words else "unnamed"
    (HOME / "created" / name).write_text(json.dumps(words))
    given: dict[str, list[str]] = {}
    while words[0].startswith("--"):
        flag, equals, value = words.pop(0).partition("=")
        given.setdefault(flag, []).append(value if equals else words.pop(0) if flag in WITH_VALUE else "")
    entry = json.loads((HOME / "images" / words[0].replace("/", "_")).read_text())
    program = [*given.get("--entrypoint", entry), *words[1:]]
    program = program[1:] if program[0] == "/bin/busybox" else program  # the shell of this machine stands in
    program = [*given["--init-path"], "--", *program] if "--init-path" in given else program
    state = HOME / "containers" / name
    try:
        process = subprocess.Popen(
            program,
            env={"PATH": os.environ["PATH"], **dict(each.split("=", 1) for each in given.get("--env", ()))},
            start_new_session=True,
        )
    except OSError as fault:
        state.write_text("created 0 false")
        print(f"Error: exec: {program[0]}: {fault.strerror}", file=sys.stderr)
        return 127
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    state.write_text(f"running {process.pid} false")
    code = process.wait()
    out_of_memory = "true" if "FAKE_OOM=1" in given.get("--env", ()) else "false"
    if "FAKE_LATE=1" in given.get("--env", ()):
        state.write_text(f"running {process.pid} false {code}")
        return 127
    state.write_text(f"exited {process.pid} {out_of_memory}")
    return 128 - code if code < 0 else code


def stop(words: list[str]) -> int:
    return _ended(words[2], float(words[1])) if _signalled(words[2], signal.SIGTERM) else 125


def kill(words: list[str]) -> int:
    return 0 if _signalled(words[2], signal.SIGKILL) else 125


def _signalled(name: str, number: int) -> bool:
    state = HOME / "containers" / name
    if not state.exists() or not state.read_text().startswith("running"):
        return False
    try:
        os.kill(int(state.read_text().split()[1]), number)
    except ProcessLookupError:  # its `run` ended before it could write that down
        state.write_text("exited 0 false")
        return False
    return True


def _ended(name: str, patience_s: float) -> int:
    deadline = time.monotonic() + patience_s
    while (HOME / "containers" / name).read_text().startswith("running"):
        if time.monotonic() > deadline:
            _signalled(name, signal.SIGKILL)
            break
        time.sleep(0.02)
    return 0


def inspect(words: list[str]) -> int:
    state = HOME / "containers" / words[2]
    if not state.exists():
        return 125
    status, _, out_of_memory, *_ = state.read_text().split()
    # A process of this machine has its network: that of the caller.
    print(os.getppid() if "Pid" in words[1] else f"{status} {out_of_memory}")
    return 0


def wait(words: list[str]) -> int:
    """The engine's records are updated."""
    state = HOME / "containers" / words[0]
    _, pid, out_of_memory, *code = state.read_text().split()
    state.write_text(f"exited {pid} {out_of_memory}")
    print(*code or [137])
    return 0


def remove(words: list[str]) -> int:
    assert words[0] == "--force"
    for busy in (HOME / "busy", *(HOME / f"busy-{name}" for name in words[1:])):
        if busy.exists():  # as many times as it says
            left = int(busy.read_text())
            busy.write_text(str(left - 1)) if left else busy.unlink()
            return 1
    for name in words[1:]:
        if _signalled(name, signal.SIGKILL):
            _ended(name, 10.0)
        (HOME / "containers" / name).unlink(missing_ok=True)
    return 0


def listed(words: list[str]) -> int:
    assert words[:3] == ["--all", "--quiet", "--filter"]
    print("\n".join(_with("--label", words[3].removeprefix("label="))))
    return 0


def _with(flag: str, value: str) -> list[str]:
    """The containers that were made with this flag."""
    pair = f"{json.dumps(flag)}, {json.dumps(value)}"
    names = [path.name for path in (HOME / "containers").iterdir()]
    return [name for name in names if pair in (HOME / "created" / name).read_text()]


def network(words: list[str]) -> int:
    """A bridge's address is a further one of this machine; `addresses` has it, and the subnet. As with dockerd, a
    name is there once, and a network stays while a container runs in it."""
    made, addresses = HOME / "networks", HOME / "addresses"
    made.mkdir(exist_ok=True)
    if words[0] == "create" and (made / words[-1]).exists():
        print(f"Error response from daemon: network with name {words[-1]} already exists", file=sys.stderr)
        return 1
    if words[0] == "create":
        (made / words[-1]).touch()
    if words[0] == "rm":
        states = [(HOME / "containers" / name).read_text() for name in _with("--network", words[-1])]
        if any(state.startswith("running") for state in states):
            print(f"error while removing network: network {words[-1]} has active endpoints", file=sys.stderr)
            return 1
        (made / words[-1]).unlink(missing_ok=True)
    if words[0] == "inspect":
        print(addresses.read_text() if addresses.exists() else "127.0.0.2 127.0.0.0/8")
    if words[0] == "create" and (HOME / "broken").exists():
        print("could not find an available, non-overlapping IPv4 address pool", file=sys.stderr)
        return 1
    return 0


COMMANDS = {
    "info": info, "build": build, "pull": pull, "image": image, "run": run, "stop": stop, "kill": kill,
    "inspect": inspect, "rm": remove, "wait": wait, "create": create, "init": init, "start": start,
    "network": network, "ps": listed,
}  # fmt: skip

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
