"""Are the files of a user's program and its inputs where its tasks may read them?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from argosy.layout import JOURNAL, split_s3
from argosy.spec.faults import Fault
from argosy.spec.program import UNPACKED, is_local_input, listed_inputs


def program_file_faults(
    data: Mapping[str, Any], buckets: frozenset[str], input_buckets: frozenset[str], own: str
) -> Iterator[Fault]:
    """Of a spec, valid or not. buckets: where results may go; input_buckets: others that programs may read; own: the
    deployment's."""
    for name in UNPACKED:
        if data.get(name) is not None:
            yield Fault(
                name,
                "must be packed before submission: `argosy submit`, `argosy run` and the SDK pack it and"
                " send job instead",
            )
    is_list = isinstance(data.get("inputs"), list)
    listed: list[tuple[str, Any]] = [("job", data.get("job"))]
    listed += [(f"inputs[{i}]" if is_list else "inputs", uri) for i, uri in enumerate(listed_inputs(data))]
    for path, uri in listed:
        if path != "job" and is_local_input(uri):
            yield Fault(path, "must be uploaded before submission: `argosy submit`, `argosy run` and the SDK do that")
            continue
        try:
            bucket, key = split_s3(uri)
        except (ValueError, AttributeError):
            continue  # absent, or reported as a fault of the field
        if bucket not in buckets | input_buckets:
            yield Fault(path, _unreadable(bucket, buckets, input_buckets))
        elif bucket == own and key.startswith(JOURNAL):
            yield Fault(path, f"{JOURNAL} holds the controller's own record, which programs may not read")


def _unreadable(bucket: str, buckets: frozenset[str], input_buckets: frozenset[str]) -> str:
    allowed = ", ".join(sorted(buckets | input_buckets))
    line = json.dumps(sorted({*input_buckets, bucket[:63]}))
    return (
        f"bucket {bucket[:63]} is not one that this deployment's programs may read: {allowed}; its owner can allow it"
        f' with "inputBuckets": {line} in cdk.json (for `argosy local`: in a file for --settings)'
    )
