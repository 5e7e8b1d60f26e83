"""Train on synthetic images and measure it: `python -m benchmark --model resnet50 --batch-size 64 --output part.jsonl`.

Prints one JSON record and, as the last line, `total images/sec: 1297.41`; the record is also written by one conditional
PUT. Exit codes: 0 done (also when the part was there already), 64 bad input, 75 trouble that another try or another
instance may not have, 143 stopped by SIGTERM, 1 otherwise.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import NoReturn

BEGAN = time.monotonic()
EXIT_TEMPORARY = 75  # sysexits.h EX_TEMPFAIL
EXIT_STOPPED = 128 + signal.SIGTERM


def _stop(_signal: int, _frame: object) -> NoReturn:
    """At once: half a measurement is worth nothing."""
    os.write(2, b"benchmark: stopped by SIGTERM\n")
    os._exit(EXIT_STOPPED)


# Before the slow imports, and because the first process of a container ignores SIGTERM unless it says otherwise.
signal.signal(signal.SIGTERM, _stop)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # warnings only

import argosy_storage as storage  # noqa: E402

from benchmark import devices  # noqa: E402
from benchmark.arguments import EXIT_BAD_INPUT, Request, read_request  # noqa: E402


def main() -> int:
    request = read_request(sys.argv[1:], os.environ)
    try:
        return _measure(request)
    except (storage.Refused, devices.WrongImage) as fault:
        return _fail(EXIT_BAD_INPUT, fault)
    except (storage.Temporary, devices.NoDevice) as fault:
        return _fail(EXIT_TEMPORARY, fault)


def _fail(code: int, fault: Exception) -> int:
    print(f"benchmark: {fault}", file=sys.stderr)
    return code


def _measure(request: Request) -> int:
    import tensorflow as tf

    found = devices.find(tf, request)
    import keras

    from benchmark.measuring import measure

    record = measure(tf, keras, request, found, lambda: time.monotonic() - BEGAN)
    line = json.dumps(record)
    if request.output:
        written = storage.write_once(request.output, f"{line}\n".encode(), _facts(request, record))
        print(f"{'wrote' if written else 'already there:'} {request.output}")
    print(line)
    print(f"total images/sec: {record['imagesPerSecond']:.2f}", flush=True)
    return 0


def _facts(request: Request, record: dict[str, object]) -> dict[str, str]:
    """The part's metadata: S3 takes text only."""
    facts = {
        "argosy-attempt": str(request.attempt),
        "argosy-images-per-second": f"{record['imagesPerSecond']:.2f}",
    }
    return facts | ({"argosy-gpus": ",".join(request.gpus)} if request.gpus else {})


if __name__ == "__main__":
    sys.exit(main())
