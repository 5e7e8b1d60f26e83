"""Train a network and measure it: `python -m training --model resnet50 --output part.jsonl`.

One process trains on each GPU that the task was given; this program starts them, or torchrun does. Prints one JSON
record and, as the last line, `total images/sec: 1297.41`; the record is also written by one conditional PUT. Exit
codes: 0 done (also when the part was there already), 64 bad input, 75 trouble that another try or another instance may
not have, 143 stopped by SIGTERM with a checkpoint left behind, 1 otherwise.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

BEGAN = time.monotonic()
EXIT_TEMPORARY = 75  # sysexits.h EX_TEMPFAIL
EXIT_STOPPED = 128 + signal.SIGTERM
PATIENCE_S = 5.0  # of a process whose neighbour has ended
STORE = "PYTORCH_STORE"  # where processes that this program started meet; torchrun's meet at MASTER_ADDR
STOPPED = threading.Event()
WORKING = threading.Event()  # set once there may be work worth keeping
CHILDREN: dict[int, subprocess.Popen[bytes]] = {}  # by process id


def _stop(_signal: int, _frame: object) -> None:
    """Before there is anything to keep: at once, even in the middle of PyTorch's slow import."""
    STOPPED.set()
    for each in [*CHILDREN.values()]:
        each.terminate()
    if not WORKING.is_set() and not CHILDREN:
        os.write(2, b"training: stopped by SIGTERM before the first step\n")
        os._exit(EXIT_STOPPED)


# Before the slow imports, and because the first process of a container ignores SIGTERM unless it says otherwise.
signal.signal(signal.SIGTERM, _stop)

import argosy_storage as storage  # noqa: E402

from training import data, places  # noqa: E402
from training.arguments import EXIT_BAD_INPUT, Request, read_request  # noqa: E402


def main() -> int:
    request = read_request(sys.argv[1:], os.environ)
    try:
        if "WORLD_SIZE" in os.environ:  # one of several
            return _part(request, int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
        return _all(request)
    except (storage.Refused, places.WrongImage, data.NoData) as fault:
        return _fail(EXIT_BAD_INPUT, fault)
    except (storage.Temporary, places.NoDevice) as fault:
        return _fail(EXIT_TEMPORARY, fault)
    except RuntimeError as fault:
        if type(fault).__name__ != "OutOfMemoryError":
            raise
        return _fail(EXIT_BAD_INPUT, f"the GPU's memory is full: take a smaller --batch-size. {fault}")


def _fail(code: int, fault: object) -> int:
    print(f"training: {fault}", file=sys.stderr, flush=True)
    return code


def _all(request: Request) -> int:
    import torch

    world = places.count(torch, request)
    if world == 1:
        return _part(request, 0, 1)
    with tempfile.TemporaryDirectory() as folder:
        threads = str(max((os.cpu_count() or 1) // world, 1))
        shared = {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": threads}  # the processes are on one machine
        shared |= os.environ | {"WORLD_SIZE": str(world), STORE: f"file://{folder}/store"}
        for rank in range(world):
            own = shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            process = subprocess.Popen([sys.executable, "-m", "training", *sys.argv[1:]], env=own)
            CHILDREN[process.pid] = process
            if STOPPED.is_set():
                process.terminate()
        return _outcome()


def _outcome() -> int:
    """0, or the code of the first that failed. The others wait for it, so they are ended."""
    while CHILDREN:
        pid, status = os.wait()
        code = os.waitstatus_to_exitcode(status)
        if CHILDREN.pop(pid, None) is not None and code:
            _end_rest()
            return EXIT_STOPPED if code == -signal.SIGTERM else abs(code)
    return 0


def _end_rest() -> None:
    until = time.monotonic() + PATIENCE_S
    for each in CHILDREN.values():
        each.terminate()
    for each in CHILDREN.values():
        try:
            each.wait(max(until - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            each.kill()


def _part(request: Request, rank: int, world: int) -> int:
    """What one process does."""
    import torch

    place = places.place(torch, request, rank, world)

    from training.loop import Training, run, together

    with together(place, os.environ.get(STORE, "env://")):
        training = Training(request, place, STOPPED)
        WORKING.set()
        record = run(training, lambda: time.monotonic() - BEGAN)
        if record is None:
            return _leave(training)
    if not rank:
        _tell(torch, request, training, record)
    return 0


def _leave(training: Any) -> int:
    """With a checkpoint, if it can be written at all."""
    request = training.request
    where = "no checkpoint is kept"
    if request.checkpoints:
        try:
            where = f"checkpoint {training.keep()}"
        except (storage.Temporary, storage.Refused) as fault:
            where = f"no checkpoint could be written: {fault}"
    if not training.place.rank:
        print(f"training: stopped by SIGTERM after step {training.step} of {request.steps}; {where}", file=sys.stderr)
    return EXIT_STOPPED


def _tell(torch: Any, request: Request, training: Any, record: dict[str, Any]) -> None:
    """The trained network first: where the record is, all is."""
    if request.save_model:
        saved = io.BytesIO()
        about = {"model": request.model, "size": request.size, "classes": data.classes(request)}
        torch.save(about | {"weights": training.network.state_dict()}, saved)
        storage.write(request.save_model, saved.getvalue())
        print(f"saved the network: {request.save_model}")
    line = json.dumps(record)
    if request.output:
        speed = f"{record[f'{request.unit}PerSecond']:.2f}"
        facts = {"argosy-attempt": str(request.attempt), f"argosy-{request.unit}-per-second": speed}
        facts |= {"argosy-gpus": ",".join(request.gpus)} if request.gpus else {}
        written = storage.write_once(request.output, f"{line}\n".encode(), facts)
        print(f"{'wrote' if written else 'already there:'} {request.output}")
    print(line)
    print(f"total {request.unit}/sec: {record[f'{request.unit}PerSecond']:.2f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
