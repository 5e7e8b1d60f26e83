"""Classify a range of images: `python -m inference 0:1000 s3://bucket/part.jsonl --images s3://bucket/images/`.

Writes one JSON line per image, {"index": 17, "image": "...", "top": [{"label": "tench", "score": 0.93}, ...]}, or
{"index": 18, "image": "...", "error": "HTTP 404 Not Found"}, by one conditional PUT. Exit codes: 0 done (also when the
part was there already), 64 bad input, 75 trouble that another try or another instance may not have (the rows so far
are left as a checkpoint), 143 stopped by SIGTERM with a checkpoint left behind, 1 otherwise.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Any, NoReturn

EXIT_TEMPORARY = 75  # sysexits.h EX_TEMPFAIL
EXIT_STOPPED = 128 + signal.SIGTERM
STOPPED = threading.Event()
WORKING = threading.Event()  # set once there may be rows worth keeping


def _stop(_signal: int, _frame: object) -> None:
    """Before there is anything to keep: at once, even in the middle of TensorFlow's slow import."""
    STOPPED.set()
    if not WORKING.is_set():
        os.write(2, b"inference: stopped by SIGTERM before the first batch\n")
        os._exit(EXIT_STOPPED)


# Before the slow imports, and because the first process of a container ignores SIGTERM unless it says otherwise.
signal.signal(signal.SIGTERM, _stop)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # warnings only
# Running a SavedModel needs no Keras. This keeps TensorFlow from importing it: a third of the program's start (10 s of
# CPU time to 7).
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import argosy_storage as storage  # noqa: E402

from inference import checkpoints, devices, fetching, model, sources  # noqa: E402
from inference.arguments import EXIT_BAD_INPUT, Request, read_request  # noqa: E402

_BAD_INPUT = (storage.Refused, model.UnusableModel, devices.WrongImage)
_TEMPORARY = (storage.Temporary, devices.NoDevice)


def main() -> int:
    request = read_request(sys.argv[1:], os.environ)
    try:
        return _classify(request)
    except _BAD_INPUT as fault:
        return _fail(EXIT_BAD_INPUT, fault)
    except _TEMPORARY as fault:
        return _fail(EXIT_TEMPORARY, fault)


def _fail(code: int, fault: Exception) -> int:
    print(f"inference: {fault}", file=sys.stderr)
    return code


def _classify(request: Request) -> int:
    """Cheap checks come before TensorFlow."""
    kept = checkpoints.find(request)
    pictures = sources.pictures(request, request.start + len(kept.rows))
    folder = model.fetched(request.model)
    import tensorflow as tf

    from inference.pipeline import Pipeline
    from inference.work import Work

    used = devices.use(tf, request.gpus, request.device)
    classifier = model.Classifier(tf, folder, request.model, request.image_size)
    if kept.rows:
        print(f"continues after {len(kept.rows)} of {request.count} images, from {kept.address}", flush=True)
    pipeline = Pipeline(tf, pictures, classifier, request.batch_size, fetching.fetcher_of(request))
    work = Work(request, classifier, pipeline, kept.rows)
    WORKING.set()
    if not work.finish(STOPPED):
        _leave(request, work.rows)
    written = storage.write_once(
        request.output, "".join(f"{row}\n" for row in work.rows).encode(), _facts(request, work)
    )
    _report(request, work, used, written=written)
    return 0


def _leave(request: Request, rows: list[str]) -> NoReturn:
    """With a checkpoint, if it can be written at all. The thread at work is not waited for."""
    try:
        where = f"checkpoint {checkpoints.save(request, rows)}"
    except (storage.Temporary, storage.Refused) as fault:
        where = f"no checkpoint could be written: {fault}"
    text = f"inference: stopped by SIGTERM after {len(rows)} of {request.count} images; {where}\n"
    os.write(2, text.encode())
    os._exit(EXIT_STOPPED)


def _speed(work: Any) -> float:
    """Images per second of this attempt, its start not counted."""
    fresh = len(work.rows) - work.resumed
    return fresh / work.seconds if work.seconds else 0.0


def _facts(request: Request, work: Any) -> dict[str, str]:
    """The part's metadata: S3 takes text only."""
    facts = {
        "argosy-attempt": str(request.attempt),
        "argosy-rows": str(len(work.rows)),  # what `argosy results --merge` counts
        "argosy-images": str(len(work.rows)),
        "argosy-errors": str(work.errors),
        "argosy-resumed": str(work.resumed),
        "argosy-seconds": f"{work.seconds:.3f}",
        "argosy-images-per-second": f"{_speed(work):.2f}",
    }
    return facts | ({"argosy-gpus": ",".join(request.gpus)} if request.gpus else {})


def _report(request: Request, work: Any, used: str, *, written: bool) -> None:
    print(
        f"images {request.start}:{request.end}: {len(work.rows)}, {work.errors} of them errors,"
        f" {work.resumed} from a checkpoint; {_speed(work):.1f} images/s on {used};"
        f" attempt {request.attempt}, GPUs {','.join(request.gpus) or 'none'};"
        f" {time.process_time():.1f} s of processor time;"
        f" {'wrote' if written else 'already there:'} {request.output}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
