"""A run's history as columns, from the replies of DescribeHistory and ListAttempts.
Times are seconds after the run's origin.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argosy.model.ended_attempts import Outcome
from argosy.model.tasks import NO_EXIT_CODE

JSON = Mapping[str, Any]
Floats = NDArray[np.float64]
TENTHS = 10.0
ALIVE = 0  # in place of an outcome
_OUTCOMES = {ALIVE: "running", **{each.value: each.name.lower() for each in Outcome}}


class Fate(IntEnum):
    """The states of attempts that a picture distinguishes; outcomes as in `model.ended_attempts.Outcome`."""

    SUCCEEDED = 0
    FAILED = 1
    LOST = 2
    CANCELLED = 3
    RUNNING = 4


FATE_OF_OUTCOME = np.array([4, 0, 1, 1, 2, 2, 1, 3], dtype="u1")


@dataclass(frozen=True, slots=True)
class Attempts:
    """One row each; shape (rows,). instance: a row of `instances`. started, stopped: seconds after the origin, 0 = not
    known, or not yet. reason: a row of `reasons`.
    gpu_mask: bit j = the j-th GPU of the instance. program: version of the program, from 0. run: a row of
    `runs`; both are empty where all attempts are of one run. pulled: seconds, of its image. damaged: pieces of the
    history that cannot be read."""

    index: NDArray[np.uint32]
    attempt: NDArray[np.uint32]
    instance: NDArray[np.uint32]
    started: Floats
    stopped: Floats
    outcome: NDArray[np.uint8]
    exit_code: NDArray[np.int32]
    reason: NDArray[np.uint32]
    gpu_mask: NDArray[np.uint32]
    pulled: Floats
    instances: Sequence[str]
    reasons: Sequence[str]
    damaged: int = 0
    program: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, "u1"))
    run: NDArray[np.uint16] = field(default_factory=lambda: np.empty(0, "u2"))
    runs: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.index)

    def where(self, chosen: NDArray[Any]) -> Attempts:
        """Some of them: a mask, or rows."""
        columns = {each.name: getattr(self, each.name) for each in fields(self)}
        kept = {name: of for name, of in columns.items() if isinstance(of, np.ndarray) and len(of)}
        return replace(self, **{name: of[chosen] for name, of in kept.items()})

    @property
    def has_run(self) -> NDArray[np.bool_]:
        """Those that have started and ended, even within the same tenth of a second."""
        found: NDArray[np.bool_] = (self.started > 0) & (self.stopped >= self.started)
        return found

    @property
    def ran(self) -> Floats:
        """Seconds; 0 for attempts that never started."""
        return np.where(self.has_run, self.stopped - self.started, 0.0)

    @property
    def fate(self) -> NDArray[np.uint8]:
        """`Fate` of each."""
        return FATE_OF_OUTCOME[np.minimum(self.outcome, len(FATE_OF_OUTCOME) - 1)]


def column(stored: JSON) -> NDArray[Any]:
    """`{dtype, data}` as the api sends it: little-endian, base64."""
    return np.frombuffer(base64.b64decode(stored["data"]), dtype=np.dtype(stored["dtype"]))


def stored(values: NDArray[Any]) -> dict[str, str]:
    """The inverse of `column`."""
    little = values.astype(values.dtype.newbyteorder("<"), copy=False)
    code = little.dtype.str.replace("|", "<")
    return {"dtype": code, "data": base64.b64encode(little.tobytes()).decode()}


def attempts_of(pages: Iterable[JSON]) -> Attempts:
    """All pages of ListAttempts as one table. Each page has its own lists of instances and reasons."""
    instances: dict[str, int] = {}
    reasons: dict[str, int] = {}
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in _COLUMNS}
    damaged = 0
    for page in pages:
        damaged += page.get("damaged", 0)
        found = {name: column(page["columns"][name]) for name in _COLUMNS if name in page["columns"]}
        found.setdefault("pulled", np.zeros(len(found["index"]), "u4"))  # of a controller that does not record it
        found.setdefault("program", np.zeros(len(found["index"]), "u1"))  # an earlier deployment's
        found["instance"] = _renumbered(found["instance"], page["instances"], instances)
        found["reason"] = _renumbered(found["reason"], page["reasons"], reasons)
        for name in _COLUMNS:
            parts[name].append(found[name])
    joined = {
        name: np.concatenate([np.empty(0, dtype), *parts[name]]).astype(dtype) for name, dtype in _COLUMNS.items()
    }
    whole = _amended(joined)
    return Attempts(
        index=whole["index"],
        attempt=whole["attempt"],
        instance=whole["instance"],
        started=whole["started"] / TENTHS,
        stopped=whole["stopped"] / TENTHS,
        outcome=whole["outcome"],
        exit_code=whole["exitCode"],
        reason=whole["reason"],
        gpu_mask=whole["gpuMask"],
        pulled=whole["pulled"] / TENTHS,
        instances=list(instances),
        reasons=list(reasons),
        damaged=damaged,
        program=whole["program"],
    )


def rows_of_attempts(pages: Sequence[JSON]) -> Iterator[dict[str, Any]]:
    """All pages of ListAttempts, an attempt at a time. Times are epoch seconds, None = not known, or not yet."""
    table, origin = attempts_of(pages), pages[0]["origin"]
    columns = (table.index, table.attempt, table.program, table.outcome, table.exit_code, table.reason, table.instance)
    times = (table.started, table.stopped, table.pulled)
    for index, attempt, program, outcome, code, reason, instance, started, stopped, pulled in zip(
        *(column.tolist() for column in (*columns, *times)), strict=True
    ):
        yield {
            "index": index,
            "attempt": attempt,
            "program": program + 1,
            "outcome": _OUTCOMES.get(outcome, str(outcome)),
            "exitCode": None if code == NO_EXIT_CODE else code,
            "reason": table.reasons[reason] or None,
            "instance": table.instances[instance] or None,
            "startedAt": origin + started if started else None,
            "stoppedAt": origin + stopped if stopped else None,
            "pullSeconds": pulled or None,
        }


def dated(row: Mapping[str, Any]) -> dict[str, Any]:
    """The same attempt with its times as texts, such as `2026-11-21T06:00:00.000Z`."""
    return {**row, "startedAt": _iso(row["startedAt"]), "stoppedAt": _iso(row["stoppedAt"])}


def _iso(at: float | None) -> str | None:
    return None if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"


_COLUMNS = {
    "index": "u4",
    "attempt": "u4",
    "instance": "u4",
    "started": "u4",
    "stopped": "u4",
    "outcome": "u1",
    "exitCode": "i4",
    "reason": "u4",
    "gpuMask": "u4",
    "pulled": "u4",
    "program": "u1",
    "amends": "u1",
}


def _amended(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """A row that amends gives its outcome, exit code and reason to its attempt's row, which an earlier page has."""
    amends = columns["amends"] == 1
    if not amends.any():
        return columns
    key = (columns["index"].astype("u8") << np.uint64(32)) | columns["attempt"].astype("u8")
    plain = np.flatnonzero(~amends)
    order = plain[np.argsort(key[plain], kind="stable")]
    rows = np.flatnonzero(amends)
    place = np.minimum(np.searchsorted(key[order], key[rows]), max(0, len(order) - 1))
    known = key[order][place] == key[rows] if len(order) else np.zeros(len(rows), dtype=np.bool_)
    for name in ("outcome", "exitCode", "reason"):
        columns[name][order[place[known]]] = columns[name][rows[known]]
    return {name: values[~amends] for name, values in columns.items()}


def _renumbered(rows: NDArray[Any], names: Sequence[str], known: dict[str, int]) -> NDArray[Any]:
    """The rows of a page's list as rows of the list of all pages, which grows."""
    numbers = np.array([known.setdefault(name, len(known)) for name in names or [""]], dtype="u4")
    renumbered: NDArray[Any] = numbers[np.minimum(rows, len(numbers) - 1)]
    return renumbered
