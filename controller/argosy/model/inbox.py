"""Which requests does the api put into the controller's inbox?

The api never writes the versioned state (DESIGN D12): it creates one item per request, conditionally, and wakes the
controller. Records are JSON objects with a `kind`; unknown members are ignored, so that an older controller can read a
newer api's requests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from argosy.model.host_care import DrainRequest
from argosy.model.resources import as_stored
from argosy.model.run_terms import Changes, RunTerms

INBOX = "INBOX"  # partition of requests not yet folded in; sort key = arrival time, then id
REFUSED = "INBOX-REFUSED"  # partition of requests that the controller could not read: kept for a person to examine
TOKENS = "TOKENS"  # partition of client tokens: sort key = sha256 of the token; body = {"runId", "specSha256"}


@dataclass(frozen=True, slots=True)
class SubmitRequest:
    run_id: str
    submitted_at: float  # epoch seconds
    spec: Mapping[str, Any] = field(hash=False)  # validated, defaults filled in
    terms: RunTerms  # what it asks for
    task_count: int
    image: str  # resolved; empty when the spec names a task definition
    output: str  # s3://bucket/prefix/<runId>/
    expects_result: bool
    proven_owner: str = ""  # the run's owner, as AWS says; "" = unproven
    kind: str = "submit"


@dataclass(frozen=True, slots=True)
class CancelRequest:
    run_id: str
    requested_at: float
    reason: str
    dependents: bool = False  # also the runs that depend on it
    queue: str = ""  # only dependents in this queue; "" = all
    kind: str = "cancel"


@dataclass(frozen=True, slots=True)
class CancelTasksRequest:
    """End these tasks of an open run. tasks: first and last index of each stretch."""

    run_id: str
    requested_at: float
    tasks: tuple[tuple[int, int], ...]
    kind: str = "cancel-tasks"


@dataclass(frozen=True, slots=True)
class RetryRequest:
    """Run the unsuccessful tasks of an ended run again; successful tasks keep their results."""

    run_id: str
    requested_at: float
    failed: bool = True  # its failed tasks
    cancelled: bool = False  # its cancelled ones
    budget_usd: float | None = None  # budget from now on, for all its tries together; None = as before
    tasks: tuple[tuple[int, int], ...] = ()  # limits them to these: first and last index of each stretch; none = all
    size: Changes = field(default_factory=dict, hash=False)  # needs of each of its tasks from now on
    job: str = ""  # another version of its program for these tasks: the job's s3:// address; "" = the latest one
    kind: str = "retry"

    @property
    def changes(self) -> Changes:
        """The changes to the run's spec."""
        return {**self.size, **({} if self.budget_usd is None else {"budgetUsd": self.budget_usd})}


@dataclass(frozen=True, slots=True)
class UpdateRequest:
    """Change the terms of an open run, from the next tick on."""

    run_id: str
    requested_at: float
    changes: Changes = field(hash=False)  # validated; times and durations are absolute times
    reason: str = ""
    kind: str = "update"


@dataclass(frozen=True, slots=True)
class EnvironmentRequest:
    """Change an environment."""

    name: str
    requested_at: float
    change: str  # create, update, deploy, scale, freeze, thaw, stop, delete
    revision: int = 0
    desired: int | None = None
    reason: str = ""
    token: str = ""  # of a deployment: it begins once
    submit: SubmitRequest | None = None  # of a deployment: the run that the revision gets unless it has one
    leaves_tasks: bool = False  # of a deletion: tasks continue until they end
    is_daemon: bool = False  # of one that is created
    kind: str = "environment"

    @property
    def run_id(self) -> str:
        """Id of the run that it may create; "" = none."""
        return self.submit.run_id if self.submit else ""


@dataclass(frozen=True, slots=True)
class ScaleRequest:
    """Keep at least this many instances."""

    requested_at: float
    instances: int
    types: tuple[str, ...] = ()  # of these types; none = any
    until: float = 0.0  # epoch seconds; 0 = until another request
    kind: str = "scale"

    @property
    def run_id(self) -> str:
        """It concerns no run."""
        return ""


@dataclass(frozen=True, slots=True)
class SharingRequest:
    """Put another sharing document into force."""

    document: Mapping[str, Any] = field(hash=False)  # validated
    base: int  # the revision that it is based on; if another is in force, it changes nothing
    requested_at: float
    kind: str = "sharing"

    @property
    def run_id(self) -> str:
        """It concerns no run."""
        return ""


Request = (
    SubmitRequest | CancelRequest | CancelTasksRequest | RetryRequest | UpdateRequest | EnvironmentRequest
    | ScaleRequest | SharingRequest | DrainRequest
)  # fmt: skip
KINDS: dict[str, type[Request]] = {
    "submit": SubmitRequest,
    "cancel": CancelRequest,
    "cancel-tasks": CancelTasksRequest,
    "retry": RetryRequest,
    "update": UpdateRequest,
    "environment": EnvironmentRequest,
    "scale": ScaleRequest,
    "sharing": SharingRequest,
    "drain": DrainRequest,
}


def inbox_key(requested_at: float, name: str) -> str:
    """Sorts by arrival."""
    return f"{requested_at:017.6f}#{name}"


def retry_key(requested_at: float, run_id: str, token: str) -> str:
    """The choices in a request to retry a run."""
    return inbox_key(requested_at, f"{run_id}#retry#{token}")


def to_bytes(request: Request) -> bytes:
    """Compact UTF-8 JSON."""
    return json.dumps(asdict(request, dict_factory=as_stored), separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


def from_bytes(body: bytes) -> Request:
    """Raises ValueError for an unknown kind or a record that lacks a member."""
    return from_record(json.loads(body))


def from_record(record: Any) -> Request:
    """`from_bytes`, for the JSON value."""
    if not isinstance(record, dict) or record.get("kind") not in KINDS:
        raise ValueError(f"unknown request kind {record.get('kind') if isinstance(record, dict) else record!r}")
    request_type = KINDS[record["kind"]]
    known = {name: record[name] for name in request_type.__slots__ if name in record}
    try:
        if known.get("submit") is not None:
            known["submit"] = _submit(known["submit"])
        if "types" in known:
            known["types"] = tuple(known["types"])
        if "tasks" in known:
            known["tasks"] = tuple((int(first), int(last)) for first, last in known["tasks"])
        return _submit(known) if request_type is SubmitRequest else request_type(**known)
    except (KeyError, TypeError) as fault:
        raise ValueError(str(fault)) from fault


def _submit(record: Mapping[str, Any]) -> SubmitRequest:
    return SubmitRequest(**{**record, "terms": RunTerms.from_dict(record["terms"])})
