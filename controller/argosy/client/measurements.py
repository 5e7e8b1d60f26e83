"""Figures that runners have measured (`runner.measuring`), of a run's latest attempts or of one, and what less costs.

Prices are those of the catalogue, in US dollars, on demand.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from argosy import layout
from argosy.client.access import Access
from argosy.client.errors import is_from_aws
from argosy.model.instance_types import InstanceType
from argosy.model.resources import Resources

MOST_READ = 20  # attempts, the latest ones
WORTH = 0.9  # of the present price: nothing that saves less is advised
_NAME = re.compile(r".*/(\d+)/(\d+)\.json")
Column = tuple[float | None, ...]
View = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MeasuredAttempt:
    """One attempt's samples. None in a column: not known."""

    index: int
    attempt: int
    at: tuple[float, ...]  # seconds after its start

    def mean(self, column: Column) -> float | None:
        """Over time."""
        since = (0.0, *self.at[:-1])
        known = [
            (at - before, value) for before, at, value in zip(since, self.at, column, strict=True) if value is not None
        ]
        lasted = sum(span for span, _ in known)
        return sum(span * value for span, value in known) / lasted if lasted else None


T = TypeVar("T", bound=MeasuredAttempt)
Reader = Callable[[str, bytes], T | None]


def latest(access: Access, folder: str, read: Reader[T]) -> list[T]:
    """Of the latest attempts that were measured, by their tasks; none if S3 refuses. folder: its address in S3."""
    bucket, prefix = layout.split_s3(folder)
    s3 = access.client("s3")
    try:
        first: dict[str, Any] = next(
            iter(s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)), {}
        )
        newest = sorted(first.get("Contents", ()), key=lambda each: each["LastModified"])[-MOST_READ:]
        bodies = [(each["Key"], s3.get_object(Bucket=bucket, Key=each["Key"])["Body"].read()) for each in newest]
    except Exception as fault:
        if not is_from_aws(fault):
            raise
        return []
    found = (read(key, body) for key, body in bodies)
    return sorted((each for each in found if each is not None), key=lambda each: (each.index, each.attempt))


def of_attempt(access: Access, folder: str, task: tuple[int, int], read: Reader[T]) -> T | None:
    """Of one attempt, (index, attempt), if it was measured and S3 has it. folder: as above."""
    bucket, prefix = layout.split_s3(folder)
    key = f"{prefix}{layout.numbered(task[0])}/{task[1]}.json"
    try:
        return read(key, access.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read())
    except Exception as fault:
        if not is_from_aws(fault):
            raise
        return None


def samples_from(key: str, body: bytes, names: Sequence[str]) -> tuple[tuple[int, int], dict[str, Any], list[Any]]:
    """(index, attempt), the document, and `at` and the columns of these names. Raises ValueError, TypeError, KeyError
    or OverflowError if a program has written something else there."""
    name, told = _NAME.fullmatch(key), json.loads(body)
    columns = [tuple(told[column]) for column in ("at", *names)]
    numbers = [float(value) for column in columns for value in column if value is not None]
    if name is None or not all(map(math.isfinite, numbers)) or len({len(each) for each in columns}) > 1:
        raise ValueError(key)
    if not columns[0] or any(late <= early for early, late in zip((0.0, *columns[0]), columns[0], strict=False)):
        raise ValueError(key)
    return (int(name[1]), int(name[2])), told, columns


def mean_of(given: Iterable[float | None]) -> float | None:
    """Of what is known."""
    known = [each for each in given if each is not None]
    return sum(known) / len(known) if known else None


def largest_of(given: Iterable[float | None]) -> float | None:
    """Of what is known."""
    return max((each for each in given if each is not None), default=None)


def usd_per_hour(needs: Resources, kinds: Iterable[InstanceType]) -> float | None:
    """The part of the cheapest type's price that a task with these needs pays on a full instance."""
    fitting = [kind for kind in kinds if needs.fits_in(kind.resources)]
    return min((kind.on_demand_usd_per_hour / _most(needs, kind) for kind in fitting), default=None)


def _most(needs: Resources, kind: InstanceType) -> int:
    """How many of these tasks an instance runs at a time; a share is on one GPU."""
    size = kind.resources
    of_shares = size.gpus * (kind.shared_gpu_mib // needs.gpu_share_mib) if needs.gpu_share_mib else math.inf
    others = needs._replace(gpu_share_mib=0).share_of(size)
    return max(1, int(min(of_shares, 1.0 / others if others else math.inf)))
