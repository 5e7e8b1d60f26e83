"""Where are a run's results and logs? The only module with the names under `<output>/<runId>/` (DESIGN D12b).

spec.json  items.jsonl  attempts/<index, 7 digits>/<attempt>/...  parts/part-<index, 7 digits><partSuffix>
attempts/use/<index, 7 digits>/<attempt>.json  attempts/gpu-use/<index, 7 digits>/<attempt>.json
overrides/<index, 7 digits>/<attempt>.json
manifest.json  manifest/<retries>/<begin>-<end>.json  _SUCCESS | _FAILED
history/attempts-<begin>-<end>.npz  history/instances.json

Next to the runs, their bucket has checkpoints, below one prefix, by which they expire:
argosy/checkpoints/<runId>/<index, 7 digits>/<attempt>/<number, 6 digits>.json  .../<attempt>/files/<sha256>
The deployment's own bucket has the folder JOURNAL: the controller's records.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

DEFAULT_PART_SUFFIX = ".jsonl"
JOURNAL = "argosy/journal/"  # expires, and is denied to programs: no run may have its results in it
CHECKPOINTS = "argosy/checkpoints/"  # expires; of the runs that have their results in this bucket
PROGRAMS = "argosy/programs/"  # users' own programs by their digest: archives, wheels, jobs, data
INPUTS = f"{PROGRAMS}inputs/"  # folders of users' machines: chunks by digest, documents, names; expire if so set
KEPT = f"{PROGRAMS}kept/"  # the same for schedules, which may fire for years; stays
CALLS = f"{PROGRAMS}calls/"  # what `argosy.map` sends to its tasks; expires
LOG_PREFIX, OWN_CONTAINER = "argosy", "main"  # of the log streams of task definitions that Argosy registers
INDEX_DIGITS = 7  # one more than the largest index of a million tasks has; names sort like indexes
_PART = re.compile(rf"parts/part-(\d{{{INDEX_DIGITS},}})", re.ASCII)
RETRIES_METADATA = "argosy-retries"  # S3 user metadata of a marker: how often its run was reopened
ATTEMPT_METADATA = "argosy-attempt"  # S3 user metadata of a part: the number of the attempt that wrote it
ROWS_METADATA = "argosy-rows"  # the number of rows in it, if the program states it


def run_output(base: str, run_id: str) -> str:
    """The run's own folder: `s3://bucket/prefix/<runId>/`, whether or not `base` ends with a slash."""
    return f"{base.rstrip('/')}/{run_id}/"


def numbered(index: int) -> str:
    """A task's index in the form used in names, so that they sort like indexes."""
    return f"{index:0{INDEX_DIGITS}d}"


def attempt_uri(output: str, index: int, attempt: int) -> str:
    """Where one attempt may write anything. `output` is the run's own folder, as in all functions below."""
    return f"{output}attempts/{numbered(index)}/{attempt}/"


def overrides_uri(output: str, index: int, attempt: int) -> str:
    """The command and the variables of an attempt that are too long for ECS, for its runner."""
    return f"{output}overrides/{numbered(index)}/{attempt}.json"


def uses_uri(output: str, *, of_gpus: bool = False) -> str:
    """What the runners say about the use of vCPUs and memory, or of GPUs: `<index>/<attempt>.json` below it. Tasks may
    write there."""
    return f"{output}attempts/{'gpu-use' if of_gpus else 'use'}/"


def checkpoints_uri(output: str, index: int | None = None) -> str:
    """What the runners save of a task, or of all tasks. Tasks may write and remove there."""
    bucket, run_id = "/".join(output.split("/")[:3]), output.rstrip("/").rpartition("/")[2]
    below = f"{bucket}/{CHECKPOINTS}{run_id}/"
    return below if index is None else f"{below}{numbered(index)}/"


def part_uri(output: str, index: int, suffix: str = DEFAULT_PART_SUFFIX) -> str:
    """The final object of a task that writes one object."""
    return f"{output}parts/part-{numbered(index)}{suffix}"


def part_index(name: str) -> int | None:
    """The task whose final object has this name, relative to the run's own folder; None for other names."""
    found = _PART.match(name)
    return int(found[1]) if found and found[1] == numbered(int(found[1])) else None  # others do not sort like indexes


def part_suffix(spec: Mapping[str, Any]) -> str:
    return str(spec["array"].get("partSuffix", DEFAULT_PART_SUFFIX))


def spec_uri(output: str) -> str:
    return f"{output}spec.json"


def items_uri(output: str) -> str:
    """The copy of the object that `itemsFrom` named, made before the first task starts."""
    return f"{output}items.jsonl"


def manifest_uri(output: str) -> str:
    return f"{output}manifest.json"


def manifest_part_uri(output: str, retries: int, begin: tuple[int, int], end: tuple[int, int]) -> str:
    """The entries between two bounds: (task, objects of it that are in earlier parts).

    It names the try, so that a late write replaces no part of a later try, and its bounds, so that parts of two
    controllers with different bounds do not mix. Tasks may not write there, only to `attempts/` and `parts/`."""
    return f"{output}manifest/{retries}/{_bound(*begin)}-{_bound(*end)}.json"


def _bound(task: int, objects: int) -> str:
    return f"{numbered(task)}.{objects}" if objects else numbered(task)


def history_part_uri(output: str, begin: str, end: str) -> str:
    """The attempts that ended after one commit and up to another. Files of two controllers with different bounds do not
    mix."""
    return f"{output}history/attempts-{begin.replace('#', '.') or '0'}-{end.replace('#', '.')}.npz"


def instances_uri(output: str) -> str:
    """The instances that the run has used, as recorded when it was closed."""
    return f"{output}history/instances.json"


def marker_uri(output: str, succeeded: bool) -> str:
    """Written last: where it exists, everything else exists too."""
    return f"{output}{'_SUCCESS' if succeeded else '_FAILED'}"


def split_s3(uri: str) -> tuple[str, str]:
    """`s3://bucket/key` -> (bucket, key); the key may be empty. Raises ValueError for anything else."""
    scheme, _, rest = uri.partition("://")
    bucket, _, key = rest.partition("/")
    if scheme != "s3" or not bucket:
        raise ValueError(f"{uri!r} is not an s3:// address")
    return bucket, key
