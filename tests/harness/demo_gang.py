"""Two members of a gang add numbers on an emulated AWS; one instance is taken away, and both resume together."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import argosy
from argosy.local.cloud import LocalAws
from argosy.local.options import LocalOptions

PROGRAM = Path(__file__).parents[2] / "docs" / "examples" / "all_reduce.py"
PATIENCE_S = 120.0


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, LocalAws(options=LocalOptions()) as aws:
        waits = Path(folder) / "waits"
        (Path(folder) / "work").mkdir()
        (Path(folder) / "work" / PROGRAM.name).write_text(PROGRAM.read_text(encoding="utf-8"), encoding="utf-8")
        spec = {
            "version": 1, "name": "reduce", "run": ["python", PROGRAM.name, str(waits)], "result": "stdout",
            "workdir": f"{folder}/work", "array": {"size": 1}, "gang": {"size": 2}, "checkpoint": {},
        }  # fmt: skip
        run = argosy.Client(endpoint_url=aws.endpoint_url).submit(spec)
        print(f"{run.id}: two members on two instances")
        ends = time.monotonic() + PATIENCE_S
        while not waits.exists() and time.monotonic() < ends:
            time.sleep(0.1)
        argosy_command = str(Path(sys.executable).with_name("argosy"))
        words = [argosy_command, "interrupt", run.id, "--task", "1", "--warn", "60", "--endpoint-url", aws.endpoint_url]
        subprocess.run(words, check=True)
        [row] = run.wait(timeout=PATIENCE_S).rows()
        print(json.dumps(row))
        for each in run.attempts():
            print(f"task {each['index']} attempt {each['attempt']} on {each['instance']}: {each['outcome']}")


if __name__ == "__main__":
    main()
