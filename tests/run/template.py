"""The processes of a test run, as forks of one that has imported the libraries.

Problem: each worker spends a second of CPU time on importing libraries, and its server of forks (`tests.fakes`) 2.5 s.
Idea: this process imports the libraries once and forks the workers. The server is one more fork, which all workers
share; it makes its own imports at the first request, so that a run which needs no forks does not wait for them.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

# Modules that most workers import. Our own are not among them: a warning while they are imported is an error of a test.
LIBRARIES = (
    *("pytest", "numpy", "scipy.optimize", "boto3", "botocore.validate"),
    *("moto.backends", "moto.core.responses", "click", "rich.table"),
)
# Those of the workers alone: the server's forks are quicker without. Local mode's parameters are moto's ssm, which
# loads its whole model of EC2.
OF_WORKERS = ("moto.moto_server.werkzeug_app", "moto.s3.responses", "moto.ssm.responses")
NUMPYS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")  # none survives a fork


def main() -> int:
    """A worker's exit status, or in the first process 0 once all others have ended."""
    told = json.loads(os.environ.pop("TEST_RUN"))
    os.environ.update(dict.fromkeys(NUMPYS_THREADS, "1"))
    for name in LIBRARIES:
        import_module(name)
    for name in NUMPYS_THREADS:
        del os.environ[name]
    gc.freeze()  # so that garbage collection copies no memory in a fork
    server, clients = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        clients.close()
        os.close(told["pipe"])
        return serve(server)
    server.close()
    for name in OF_WORKERS:
        import_module(name)
    gc.freeze()
    workers: dict[int, int] = {}
    for number in range(told["processes"]):
        if (process := os.fork()) == 0:
            return work(number, {**told, "forks": clients.detach()}, sys.argv[1:])
        workers[process] = number
    clients.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the workers too: they end by themselves
    return wait(workers, Path(told["logs"]))


def work(number: int, told: dict[str, Any], options: list[str]) -> int:
    """A pytest whose output is the log of this number."""
    import pytest

    logs = Path(told["logs"])
    with (logs / f"{number}.log").open("wb") as log:
        for stream in (1, 2):
            os.dup2(log.fileno(), stream)
    os.environ["TEST_RUN"] = json.dumps({**told, "record": str(logs / f"{number}.jsonl")})
    plugins = ["-p", "tests.run.worker", "-p", "no:cacheprovider"]
    # A separate folder for each worker: all of them would clean pytest's common one at the end, and one would fail.
    arguments = ["-q", "--no-header", f"--basetemp={logs / f'tmp{number}'}", *plugins, *options]
    if not told["coverage"]:
        return pytest.main(arguments)
    from coverage import Coverage

    coverage = Coverage(data_suffix=True)
    with coverage.collect():
        status = pytest.main(arguments)
    coverage.save()
    return status


def serve(requests: socket.socket) -> int:
    """Be the workers' server of forks until the last of them ends."""
    if not requests.recv(1, socket.MSG_PEEK):
        return 0
    from argosy.local import forks
    from tests.fakes import imported, local_mode

    os.environ.clear()
    os.environ.update(local_mode.environment())
    imported.warm()
    forks.serve(requests)
    return 0


def wait(workers: dict[int, int], logs: Path) -> int:
    """Write the workers' exit statuses once they and the server have ended."""
    statuses = dict.fromkeys(range(len(workers)), 1)
    for _ in range(len(workers) + 1):
        process, status = os.wait()
        if process in workers:
            statuses[workers[process]] = os.waitstatus_to_exitcode(status)
    (logs / "statuses.json").write_text(json.dumps([*statuses.values()]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
