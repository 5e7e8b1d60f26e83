"""How far has the range come, and what does a stop find? A thread classifies batch by batch; rows are added by batch.

The main thread stays free for SIGTERM: between two batches, or after the one that is being classified, it takes the
rows that are finished. Waiting for a slow download does not count as a batch being classified.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import argosy_storage as storage

from inference import checkpoints
from inference.arguments import Request
from inference.pipeline import Batch

LOOK_S = 0.1  # how soon a stop is noticed
SAY_S = 1.0  # between two lines about progress


class Classifier(Protocol):
    """model.Classifier, or that of PyTorch."""

    def top(self, images: Any, count: int) -> list[list[dict[str, object]]]: ...


class Keeper(Protocol):
    """checkpoints.Keeper."""

    def look(self, rows: Sequence[str], count: int) -> None: ...


class Work:
    """Turns batches into rows. `rows` begins with those of a checkpoint."""

    def __init__(
        self,
        request: Request,
        model: Classifier,
        batches: Iterable[Batch],
        rows: Iterable[str],
        keeper: Keeper | None = None,
    ) -> None:
        self._request, self._model, self._batches = request, model, batches
        self.rows = list(rows)
        self.resumed = self._whole = len(self.rows)  # _whole: of finished batches
        self._keeper = keeper or checkpoints.Keeper(request, self.resumed)
        self.errors = sum('"error":' in row for row in self.rows)
        self.seconds = 0.0
        self._paused = 0.0  # pretended work, which is no part of the speed
        self._said = 0.0  # when progress was last told
        self._guard = threading.Lock()
        self._fault: BaseException | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="inference", daemon=True)

    def finish(self, stopped: threading.Event) -> bool:
        """True when all is done; False when `stopped` was set first, and then no row is added any more.

        Raises what the classification raised; the rows are kept first when another attempt may continue after them.
        """
        self._stopped = stopped
        self._thread.start()
        while self._thread.is_alive() and not stopped.is_set():
            self._thread.join(LOOK_S)
            self._keeper.look(self.rows, self._whole)
        with self._guard:  # the batch in hand ends; after it the thread sees the stop
            if isinstance(self._fault, storage.Temporary):
                self._keep()
            if self._fault is not None:
                raise self._fault
            return len(self.rows) == self._request.count

    def _run(self) -> None:
        began = time.monotonic()
        try:
            for batch in self._batches:
                with self._guard:
                    if self._stopped.is_set():
                        return
                    self._add(batch)
                    self._whole = len(self.rows)
                    self.seconds = time.monotonic() - began - self._paused
                self._say()
        except BaseException as fault:  # noqa: BLE001 - handed to the main thread, which raises it
            self._fault = fault

    def _keep(self) -> None:
        if len(self.rows) == self.resumed:
            return  # an earlier attempt's checkpoint has them all
        try:
            where = f"checkpoint {checkpoints.save(self._request, self.rows)}"
        except (storage.Temporary, storage.Refused) as fault:
            where = f"no checkpoint could be written: {fault}"
        print(f"inference: gives up after {len(self.rows)} of {self._request.count} images; {where}", file=sys.stderr)

    def _add(self, batch: Batch) -> None:
        labels = self._model.top(batch.images, self._request.top)
        pause = self._request.seconds_per_image * len(labels)
        time.sleep(pause)
        self._paused += pause
        for picture, best, error in zip(batch.pictures, labels, batch.errors, strict=True):
            row: dict[str, object] = {"index": picture.index, "image": picture.address}
            row |= {"name": picture.name} if picture.name else {}
            row |= {"error": error} if error else {"top": best}
            self.rows.append(json.dumps(row))
            self.errors += bool(error)

    def _say(self) -> None:
        now = self.seconds + self._paused
        if now - self._said >= SAY_S:
            self._said = now
            print(f"classified {len(self.rows)} of {self._request.count} images", flush=True)
