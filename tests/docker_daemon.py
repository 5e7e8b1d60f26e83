"""A private Docker daemon for a test: Debian's package, with a separate socket and root and no iptables rules.

Its mounts live in a namespace and disappear with it. It stops when the process that started it ends. `docker` finds it
through DOCKER_HOST.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.fakes.waiting import until

PATIENCE_S = 60


@functools.cache
def private_docker(init: Path | None = None) -> str | dict[str, str]:
    """The environment in which `docker` reaches it, or why there is none. init: of containers, in place of Docker's."""
    lacking = [name for name in ("docker", "dockerd", "setpriv", "unshare") if shutil.which(name) is None]
    if lacking:
        return f"{', '.join(lacking)} not on PATH (Debian: docker.io)"
    if os.geteuid() != 0:
        return "a Docker daemon needs root"
    folder = Path(tempfile.mkdtemp(prefix="argosy-docker-"))
    host = {"DOCKER_HOST": f"unix://{folder}/socket", "DOCKER_BUILDKIT": "0"}
    words = ["unshare", "--mount", "setpriv", "--pdeathsig", "TERM", "dockerd", "--host", host["DOCKER_HOST"]]
    words += ["--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid"]
    words += ["--bridge=none", "--iptables=false", "--ip6tables=false", "--storage-driver=vfs"]
    words += ["--config-file", f"{folder}/daemon.json"]
    (folder / "daemon.json").write_text("{}" if init is None else f'{{"init-path": "{init}"}}')
    log = folder / "log"
    with log.open("wb") as out:
        daemon = subprocess.Popen(words, stdout=out, stderr=out, start_new_session=True)

    def end() -> None:
        prune = ["docker", "network", "prune", "--force"]  # the bridges are this machine's
        subprocess.run(prune, env={**os.environ, **host}, capture_output=True, check=False)
        daemon.terminate()
        daemon.wait(PATIENCE_S)
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)

    def answers() -> bool:
        asked = ["docker", "version", "--format", "{{.Server.Version}}"]
        done = subprocess.run(asked, env={**os.environ, **host}, capture_output=True, check=False)
        return done.returncode == 0 or daemon.poll() is not None

    until(answers, PATIENCE_S)
    return host if daemon.poll() is None else f"no Docker daemon runs here: {log.read_text()[-300:]}"
