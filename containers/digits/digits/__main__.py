"""Classify a range of handwritten digits: `python -m digits --range 917:967 --output s3://bucket/part.jsonl`.

Writes one JSON line per image, {"index": 917, "label": 3, "predicted": 3}, by one conditional PUT. Exit codes: 0 done
(also when the part was there already), 64 bad arguments, 75 S3 is temporarily in trouble, 143 stopped by SIGTERM,
1 otherwise.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import NoReturn

EXIT_TEMPORARY = 75  # sysexits.h EX_TEMPFAIL
EXIT_STOPPED = 128 + signal.SIGTERM


def _stop(_signal: int, _frame: object) -> NoReturn:
    """At once: a part is written completely or not at all, so there is nothing to clean up."""
    os.write(2, b"digits: stopped by SIGTERM\n")
    os._exit(EXIT_STOPPED)


# Before the slow imports, and because the first process of a container ignores SIGTERM unless it says otherwise.
signal.signal(signal.SIGTERM, _stop)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a task has one vCPU; more threads only get in each other's way

import argosy_storage as storage  # noqa: E402

from digits import classifier  # noqa: E402
from digits.arguments import EXIT_BAD_ARGUMENTS, Request, read_request  # noqa: E402


def main() -> int:
    request = read_request(sys.argv[1:], os.environ)
    try:
        if request.save_model:
            return _save_model(request.save_model)
        return _classify(request)
    except storage.Temporary as error:
        return _fail(EXIT_TEMPORARY, error)
    except classifier.UnusableModel as error:
        return _fail(EXIT_BAD_ARGUMENTS, error)
    except storage.Refused as error:
        return _fail(1, error)


def _fail(code: int, error: Exception) -> int:
    print(f"digits: {error}", file=sys.stderr)
    return code


def _save_model(address: str) -> int:
    images, labels = classifier.load_digits()
    model = classifier.train(images[classifier.TRAINING], labels[classifier.TRAINING])
    written = storage.write_once(address, classifier.to_bytes(model), {})
    print(f"model {'written to' if written else 'was there already:'} {address}")
    return 0


def _classify(request: Request) -> int:
    began = time.monotonic()
    images, labels = classifier.load_digits()
    model = (
        classifier.from_bytes(storage.read(request.model))
        if request.model
        else classifier.train(images[classifier.TRAINING], labels[classifier.TRAINING])
    )
    asked = slice(request.start, request.end)
    predicted = model.predict(images[asked])
    time.sleep(request.seconds_per_image * len(predicted))
    rows = [
        json.dumps({"index": request.start + row, "label": int(label), "predicted": int(digit)})
        for row, (label, digit) in enumerate(zip(labels[asked], predicted, strict=True))
    ]
    written = storage.write_once(request.output, "".join(f"{row}\n" for row in rows).encode(), _metadata(request))
    _report(request, right=int((labels[asked] == predicted).sum()), seconds=time.monotonic() - began, written=written)
    return 0


def _metadata(request: Request) -> dict[str, str]:
    gpus = {"argosy-gpus": ",".join(request.gpus)} if request.gpus else {}
    return {"argosy-attempt": str(request.attempt), "argosy-rows": str(request.end - request.start), **gpus}


def _report(request: Request, *, right: int, seconds: float, written: bool) -> None:
    count = request.end - request.start
    speed = f"{count} in {seconds:.2f} s ({count / seconds:.1f} images/s)"
    print(
        f"images {request.start}:{request.end}: {speed}, {right} right; "
        f"attempt {request.attempt}, GPUs {','.join(request.gpus) or 'none'}; "
        f"{'wrote' if written else 'already there:'} {request.output}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
