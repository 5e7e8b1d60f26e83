"""Classify a range of images: `python -m inference 0:1000 s3://bucket/part.jsonl --images s3://bucket/images/`.

Writes one JSON line per image, {"index": 17, "image": "...", "top": [{"label": "tench", "score": 0.93}, ...]}, or
{"index": 18, "image": "...", "error": "HTTP 404 Not Found"}, by one conditional PUT. Exit codes: 0 done (also when the
part was there already), 64 bad input, 75 trouble that another try or another instance may not have (the rows so far
are left as a checkpoint), 143 stopped by SIGTERM with a checkpoint left behind, 1 otherwise.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
from importlib.util import find_spec
from typing import Any, NoReturn

BEGAN = time.monotonic()
EXIT_TEMPORARY = 75  # sysexits.h EX_TEMPFAIL
EXIT_STOPPED = 128 + signal.SIGTERM
STOPPED = threading.Event()
WORKING = threading.Event()  # set once there may be rows worth keeping


def _stop(_signal: int, _frame: object) -> None:
    """Before there is anything to keep: at once, even in the middle of a slow import."""
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
    classifier, pipeline, used = (_pytorch if find_spec("torch") else _tensorflow)(request, pictures)
    from inference.work import Work

    if kept.rows:
        print(f"continues after {len(kept.rows)} of {request.count} images, from {kept.address}", flush=True)
    work = Work(request, classifier, pipeline, kept.rows)
    WORKING.set()
    if not work.finish(STOPPED):
        _leave(request, work.rows)
    written = storage.write_once(
        request.output, "".join(f"{row}\n" for row in work.rows).encode(), _facts(request, work)
    )
    if written:
        _measured(request, work, classifier, used)
    _report(request, work, used, written=written)
    return 0


def _tensorflow(request: Request, pictures: list[sources.Picture]) -> tuple[Any, Any, str]:
    """The network, the batches, and the device in words. What can be refused without TensorFlow is refused first."""
    folder = model.fetched(request.model)
    import tensorflow as tf

    from inference.pipeline import Pipeline

    used = devices.use(tf, request.gpus, request.device)
    classifier = model.Classifier(tf, folder, request.model, request.image_size)
    return classifier, Pipeline(tf, pictures, classifier, request.batch_size, fetching.fetcher_of(request)), used


def _pytorch(request: Request, pictures: list[sources.Picture]) -> tuple[Any, Any, str]:
    from inference import pytorch

    found = pytorch.fetched(request.model)
    device, used = pytorch.use(request.gpus, request.device)
    classifier = pytorch.Classifier(found, request, device)
    return classifier, pytorch.Pipeline(pictures, classifier, request.batch_size, fetching.fetcher_of(request)), used


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


def _measured(request: Request, work: Any, classifier: Any, used: str) -> None:
    """What `argosy report benchmark` reads, next to the part. Trouble is said only: the rows are written."""
    on_gpu = used != "CPU"
    images = len(work.rows) - work.resumed
    share = re.fullmatch(r"0=([0-9]+)M", os.environ.get("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", ""))
    record = {
        "record": "argosy-benchmark/1",
        "unit": "images",
        "setting": {
            "framework": classifier.framework,
            "model": f"{classifier.name}, inference",
            "image size": str(classifier.height),
            "precision": classifier.precision,
            "emulated": "no" if on_gpu else "yes",
        },
        "gpus": max(len(request.gpus), 1),
        "gpuNames": [f"{used} (share of {share[1]} MiB)" if share else used],
        "pinnedGpus": list(request.gpus),
        "batchPerGpu": request.batch_size,
        "images": images,
        "imagesPerSecond": _speed(work),
        "deviation": 0.0,
        "startUpSeconds": time.monotonic() - BEGAN - work.seconds,
        "totalSeconds": time.monotonic() - BEGAN,
        "attempt": request.attempt,
    }
    try:
        storage.write(f"{request.attempt_folder}benchmark.json", json.dumps(record).encode())
    except (storage.Temporary, storage.Refused) as fault:
        print(f"inference: what was measured is not written: {fault}", file=sys.stderr)


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
