"""Adds a number of each member of a gang, ten times over, and resumes from a checkpoint. Standard library only."""

import json
import os
import signal
import socket
import sys
import time
from pathlib import Path

STEPS, STOP_AT = 10, 6
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])


def connected() -> list:
    """Rank 0 gets a line from each other member, and the others one from rank 0."""
    if rank:
        while True:
            try:
                return [socket.create_connection(place, timeout=60).makefile("rw")]
            except ConnectionRefusedError:
                time.sleep(0.05)  # rank 0 does not listen yet
    with socket.create_server(place, backlog=size) as server:
        return [server.accept()[0].makefile("rw") for _ in range(size - 1)]


def tell(line, value):
    print(json.dumps(value), file=line, flush=True)


def hear(line):
    text = line.readline()
    if not text:
        sys.exit("another member of the gang is gone")  # Argosy starts all of them again
    return json.loads(text)


def all_reduce(value):
    """The sum of the values of all members, in each of them."""
    if rank:
        tell(lines[0], value)
        return hear(lines[0])
    total = value + sum(hear(line) for line in lines)
    for line in lines:
        tell(line, total)
    return total


saved = Path(os.environ.get("ARGOSY_CHECKPOINT", "."), "state.json")  # rank 0 alone has a checkpoint
state = json.loads(saved.read_text()) if rank == 0 and saved.exists() else {"step": 0, "sum": 0}
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
lines = connected()
resumed = all_reduce(state["step"])  # of rank 0: the others begin with 0
for step in range(resumed, STEPS):
    if rank == 0 and step == STOP_AT and not resumed and len(sys.argv) > 1:
        Path(sys.argv[1]).touch()  # tells a test, or a person, to interrupt an instance
        signal.pause()
    state = {"step": step + 1, "sum": state["sum"] + all_reduce(rank + 1)}
    if rank == 0:
        draft = saved.with_suffix(".draft")
        draft.write_text(json.dumps(state))
        draft.replace(saved)
if rank == 0:
    attempt = int(os.environ["ARGOSY_TASK_ATTEMPT"])
    print(json.dumps({"steps": STEPS, "sum": state["sum"], "resumed": resumed, "attempt": attempt}))
