"""What is a part of a run's history?

A part is stored with the run's results: the rows of many commits, as an .npz file of numpy. Columns are those of
`ended_attempts`, with the texts that they index: `instances`, `cells`, `reasons`. Times are tenths of a second after
`origin`.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from argosy.model.ended_attempts import NOWHERE, SCHEMA, EndedAttempts
from argosy.model.instances import Instance

ROWS_PER_PART = 100_000  # 2.7 MB: as much as a tick may read or a page of the api may return
KEPT_S = 90 * 86_400.0  # how long the items that commits appended are kept
FOLDED_AFTER_S = 30 * 86_400.0  # rows of a run that has been open this long are folded, however few


class HistoryPart(NamedTuple):
    """A written part. It begins after the previous part."""

    to: str  # sort key of the last item that is in it
    rows: int
    low: int  # the least and the greatest index of its rows
    high: int
    damaged: int = 0  # unreadable items, which are not in it


class NoPart(ValueError):
    """Bytes that are not a part."""


def instance_facts(instance: Instance) -> dict[str, Any]:
    """An instance as the histories of its runs show it. Times are epoch seconds, 0 = not yet, or unknown."""
    return {
        "id": instance.id,
        "type": instance.instance_type,
        "zone": instance.zone,
        "cell": instance.cell,
        "purchase": instance.purchase.value,
        "launchedAt": instance.launched_at,
        "registeredAt": instance.registered_at,
        "warnedAt": instance.interrupted_at,
        "endedAt": instance.stopped_at,
        "cause": _cause(instance),
        "usdPerHour": instance.price_usd_per_hour,
        "gpuIds": list(instance.gpu_ids),
    }


def _cause(instance: Instance) -> str | None:
    """Why it ends or has ended: interrupted by EC2, released by us, or lost without a reason. None = it stays."""
    if instance.interrupted_at:
        return "interrupted"
    if instance.released_at:
        return "released"
    return None if instance.alive else "lost"


def to_npz(ended: EndedAttempts, reasons: Sequence[str]) -> bytes:
    """reasons: the run's."""
    instances, cells = (list(texts) for texts in zip(*ended.places, strict=True))
    texts = {"instances": instances, "cells": cells, "reasons": list(reasons)}
    arrays: dict[str, Any] = {"origin": np.float64(ended.origin), **ended.columns}
    arrays |= {name: np.array(values, dtype=np.str_) for name, values in texts.items()}
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def from_npz(body: bytes) -> EndedAttempts:
    """Raises NoPart."""
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as found:
            rows = len(found["index"])
            columns: dict[str, Any] = {
                name: found[name] if name in found else np.full(rows, default, dtype)
                for name, (dtype, default) in SCHEMA.items()
            }
            places = list(zip(found["instances"].tolist(), found["cells"].tolist(), strict=True))
            return EndedAttempts(float(found["origin"]), columns, places or [NOWHERE])
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as fault:
        raise NoPart(str(fault)) from fault
