"""A fake of podman and Docker: it keeps their contract as far as local mode relies on it, and records its calls.

Its state is in the folder FAKE_ENGINE: `calls`, images/ and containers/. An image is its Dockerfile's ENTRYPOINT; a
container is a process of this machine with only the given environment.

Problem: tests call it hundreds of times, and to import pathlib, json and subprocess takes thrice as long as a call.
Idea: it imports os only, and what one command needs is imported there. Words are stored between the separators of
ASCII.
"""

from __future__ import annotations

import os
import sys
import time

HOME = os.environ["FAKE_ENGINE"]
WORD_END, CALL_END = "\x1f", "\x1e"
SIGTERM, SIGKILL = 15, 9
WITH_VALUE = {
    "--name", "--network", "--pull", "--memory", "--cpu-shares", "--user", "--tmpfs", "--shm-size", "--device",
    "--gpus", "--env", "--entrypoint", "--security-opt", "--pids-limit", "--label",
    "--init-path",
}  # fmt: skip


def main(words: list[str]) -> int:
    if _has("slow-start"):
        import signal

        signal.pthread_sigmask(signal.SIG_BLOCK, {SIGTERM})  # it is waited for
    for folder in ("images", "containers", "created"):
        os.makedirs(_path(folder), exist_ok=True)
    with open(_path("calls"), "a") as calls:
        calls.write(stored(words) + CALL_END)
    return COMMANDS[words[0]](words[1:])


def stored(words: list[str]) -> str:
    return "".join(word + WORD_END for word in words)


def words_of(text: str) -> list[str]:
    return text.split(WORD_END)[:-1]


def _path(*names: str) -> str:
    return os.path.join(HOME, *names)


def _has(*names: str) -> bool:
    return os.path.exists(_path(*names))


def _read(*names: str) -> str:
    with open(_path(*names)) as file:
        return file.read()


def _write(text: str, *names: str) -> None:
    """At once: another process of the fake may read it."""
    new = _path(f"new-{os.getpid()}")
    with open(new, "w") as file:
        file.write(text)
    os.replace(new, _path(*names))


def _delete(*names: str) -> None:
    if _has(*names):
        os.unlink(_path(*names))


def _image(name: str) -> tuple[str, str]:
    return "images", name.replace("/", "_")


def info(words: list[str]) -> int:
    if _has("broken"):
        print("Cannot connect to the daemon", file=sys.stderr)
        return 1
    if words[:1] == ["--format"]:
        print(_read("init") if _has("init") else "docker-init")
    return 0


def build(words: list[str]) -> int:
    import json

    tag, folder = words[1], words[-1]
    dockerfile = words[words.index("--file") + 1] if "--file" in words else os.path.join(folder, "Dockerfile")
    with open(dockerfile) as file:
        entry = [line.removeprefix("ENTRYPOINT ") for line in file if line.startswith("ENTRYPOINT")]
    if not entry:
        print("STEP 1/2: FROM scratch\nError: no such file or directory", file=sys.stderr)
        return 125
    _write(stored(json.loads(entry[0])), *_image(tag))
    return 0


def pull(words: list[str]) -> int:
    print(f"Error: {words[0]}: access to the resource is denied", file=sys.stderr)
    return 125


def image(words: list[str]) -> int:
    return 0 if _has(*_image(words[1])) else 1


def create(words: list[str]) -> int:
    name = words[words.index("--name") + 1]
    _write(stored(words), "created", name)
    _write("created 0 false", "containers", name)
    return 0


def init(words: list[str]) -> int:
    """While `slow-init` exists it is not done, and ignores signals to end, as podman does then: from the moment when it
    writes `ignores-signals`."""
    if _has("slow-init"):
        import signal

        signal.signal(SIGTERM, signal.SIG_IGN)
        _write("", "ignores-signals")
    while _has("slow-init"):
        time.sleep(0.02)
    _write("initialized 0 false", "containers", words[0])
    return 0


def start(words: list[str]) -> int:
    assert words[0] == "--attach"
    if _has("slow-start"):
        return _start_and_go(words[1])
    return run(words_of(_read("created", words[1])))


def _start_and_go(name: str) -> int:
    """When stopped, it ends, but the requested container starts nevertheless."""
    import signal
    import subprocess

    signal.sigwait({SIGTERM})
    program = subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=subprocess.DEVNULL)
    _write(f"running {program.pid} false 137", "containers", name)
    return 143


def run(words: list[str]) -> int:
    if "--rootfs" in words:  # in an empty folder, where there is no program
        if _has("limited"):
            print(
                "Error: crun: setrlimit `RLIMIT_NOFILE`: Operation not permitted: OCI permission denied",
                file=sys.stderr,
            )
            return 126
        return 127
    name = words[words.index("--name") + 1] if "--name" in words else "unnamed"
    _write(stored(words), "created", name)
    given: dict[str, list[str]] = {}
    while words[0].startswith("--"):
        flag, equals, value = words.pop(0).partition("=")
        given.setdefault(flag, []).append(value if equals else words.pop(0) if flag in WITH_VALUE else "")
    entry = words_of(_read(*_image(words[0])))
    program = [*given.get("--entrypoint", entry), *words[1:]]
    program = program[1:] if program[0] == "/bin/busybox" else program  # the shell of this machine stands in
    program = [*given["--init-path"], "--", *program] if "--init-path" in given else program
    environment = {"PATH": os.environ["PATH"], **dict(each.split("=", 1) for each in given.get("--env", ()))}
    state = "containers", name
    import signal

    pid = os.fork()
    if pid == 0:
        _become(program, environment, state)
    signal.signal(SIGTERM, lambda *_: os.kill(pid, SIGTERM))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if not _read(*state).startswith("running"):
        return code
    out_of_memory = "true" if "FAKE_OOM=1" in given.get("--env", ()) else "false"
    if "FAKE_LATE=1" in given.get("--env", ()):
        _write(f"running {pid} false {code}", *state)
        return 127
    _write(f"exited {pid} {out_of_memory}", *state)
    return 128 - code if code < 0 else code


def _become(program: list[str], environment: dict[str, str], state: tuple[str, str]) -> None:
    """The container's process, which is said to run before it says anything."""
    os.setsid()
    _write(f"running {os.getpid()} false", *state)
    try:
        os.execvpe(program[0], program, environment)
    except OSError as fault:
        _write("created 0 false", *state)
        print(f"Error: exec: {program[0]}: {fault.strerror}", file=sys.stderr)
    os._exit(127)


def stop(words: list[str]) -> int:
    return _ended(words[2], float(words[1])) if _signalled(words[2], SIGTERM) else 125


def kill(words: list[str]) -> int:
    return 0 if _signalled(words[2], SIGKILL) else 125


def _signalled(name: str, number: int) -> bool:
    state = "containers", name
    if not _has(*state) or not _read(*state).startswith("running"):
        return False
    try:
        os.kill(int(_read(*state).split()[1]), number)
    except ProcessLookupError:  # its `run` ended before it could write that down
        _write("exited 0 false", *state)
        return False
    return True


def _ended(name: str, patience_s: float) -> int:
    deadline = time.monotonic() + patience_s
    while _read("containers", name).startswith("running"):
        if time.monotonic() > deadline:
            _signalled(name, SIGKILL)
            break
        time.sleep(0.02)
    return 0


def inspect(words: list[str]) -> int:
    if not _has("containers", words[2]):
        return 125
    status, _, out_of_memory, *_ = _read("containers", words[2]).split()
    # A process of this machine has its network: that of the caller.
    print(os.getppid() if "Pid" in words[1] else f"{status} {out_of_memory}")
    return 0


def wait(words: list[str]) -> int:
    """The engine's records are updated."""
    _, pid, out_of_memory, *code = _read("containers", words[0]).split()
    _write(f"exited {pid} {out_of_memory}", "containers", words[0])
    print(*code or ["137"])
    return 0


def remove(words: list[str]) -> int:
    assert words[0] == "--force"
    for busy in ("busy", *(f"busy-{name}" for name in words[1:])):
        if _has(busy):  # as many times as it says
            left = int(_read(busy))
            _write(str(left - 1), busy) if left else _delete(busy)
            return 1
    for name in words[1:]:
        if _signalled(name, SIGKILL):
            _ended(name, 10.0)
        _delete("containers", name)
    return 0


def listed(words: list[str]) -> int:
    assert words[:3] == ["--all", "--quiet", "--filter"]
    print("\n".join(_with("--label", words[3].removeprefix("label="))))
    return 0


def _with(flag: str, value: str) -> list[str]:
    """The containers that were made with this flag."""
    return [name for name in os.listdir(_path("containers")) if stored([flag, value]) in _read("created", name)]


def network(words: list[str]) -> int:
    """A bridge's address is a further one of this machine; `addresses` has it, and the subnet. As with dockerd, a
    name is there once, and a network stays while a container runs in it."""
    os.makedirs(_path("networks"), exist_ok=True)
    made = "networks", words[-1]
    if words[0] == "create" and _has(*made):
        print(f"Error response from daemon: network with name {words[-1]} already exists", file=sys.stderr)
        return 1
    if words[0] == "create":
        _write("", *made)
    if words[0] == "rm":
        states = [_read("containers", name) for name in _with("--network", words[-1])]
        if any(state.startswith("running") for state in states):
            print(f"error while removing network: network {words[-1]} has active endpoints", file=sys.stderr)
            return 1
        _delete(*made)
    if words[0] == "inspect":
        print(_read("addresses") if _has("addresses") else "127.0.0.2 127.0.0.0/8")
    if words[0] == "create" and _has("broken"):
        print("could not find an available, non-overlapping IPv4 address pool", file=sys.stderr)
        return 1
    return 0


COMMANDS = {
    "info": info, "build": build, "pull": pull, "image": image, "run": run, "stop": stop, "kill": kill,
    "inspect": inspect, "rm": remove, "wait": wait, "create": create, "init": init, "start": start,
    "network": network, "ps": listed,
}  # fmt: skip
