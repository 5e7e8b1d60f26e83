"""What did the manifest of a run say before it was reopened?

Instances are forgotten an hour after they ended; of what succeeded before, only the earlier manifest knows the type and
the GPUs that it ran on. It is read line by line beside the new one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from argosy.aws.errors import AWS_ERRORS, Kind, classify
from argosy.layout import manifest_uri, split_s3
from argosy.model.runs import Run

Entry = Mapping[str, Any]


def earlier_entries(s3: Any, run: Run) -> Iterator[Entry]:
    """By index, an empty one where nothing is known; ends with the earlier manifest. Raises AWS_ERRORS."""
    if not run.retries:
        return
    bucket, key = split_s3(manifest_uri(run.output))
    try:
        body = s3.get_object(Bucket=bucket, Key=key)["Body"]
    except AWS_ERRORS as error:
        if classify(error).kind is Kind.NOT_FOUND:  # it ended before it could be closed
            return
        raise
    lines = iter(body.iter_lines() if hasattr(body, "iter_lines") else body)
    next(lines, None)  # the head of the manifest
    yield from map(_entry, lines)


def _entry(line: bytes) -> Entry:
    """One line; the last one closes the manifest, and an earlier one may be damaged: nothing is known then."""
    try:
        entry = json.loads(line.strip().removesuffix(b","))
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}
