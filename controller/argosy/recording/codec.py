"""Facts and actions as JSON, and facts read back.

Defaults are left out. A run in a fact is kept as its stored documents.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

from pydantic import TypeAdapter

from argosy.model import events, inbox
from argosy.model.actions import Action
from argosy.model.damage import FAULTS
from argosy.model.events import Event
from argosy.model.host_care import DrainAsked
from argosy.model.run_record import RunRecord
from argosy.model.runs import Run
from argosy.model.stored import documents
from argosy.spec.earlier_versions import current, request_from

_KINDS = {kind.__name__: kind for kind in get_args(Event)}
_OF_USERS = (
    events.RunSubmitted,
    events.RunCancelled,
    events.TasksCancelled,
    events.RunRetried,
    events.RunUpdated,
    events.EnvironmentAsked,
    events.ClusterScaled,
    DrainAsked,
    events.SharingAsked,
)


class UnknownFact(ValueError):
    """A recorded fact of a kind that this version does not have, or of another form."""


def fact_to_json(event: Event) -> bytes:
    """`["Kind",{...}]`. Raises ValueError for invalid text: half of a surrogate pair in AWS's answer."""
    if isinstance(event, _OF_USERS):
        body = b'{"request":' + inbox.to_bytes(event.request) + _stored(event) + b"}"
    elif isinstance(event, events.RunResumed):
        body = b'{"run_id":' + json.dumps(event.run_id).encode() + _stored(event) + b"}"
    else:
        body = dumped(event)
    return b'["' + type(event).__name__.encode() + b'",' + body + b"]"


def fact_from_json(name: str, values: Any) -> Event:
    """Raises UnknownFact."""
    if name not in _KINDS:
        raise UnknownFact(f"a fact of the kind {name[:60]!r} is not known to this version")
    kind: Any = _KINDS[name]
    try:
        if "stored" in values:
            values = {**values, "stored": _run_from_json(values["stored"])}
        if "request" in values:
            values = {**values, "request": request_from(json.dumps(values["request"]).encode())}
        is_simple = not ("request" in values or "stored" in values)
        fact: Event = _adapter(kind).validate_python(values) if is_simple else kind(**values)
        return fact
    except (*FAULTS, AttributeError) as fault:
        raise UnknownFact(f"a {name} is not as this version writes it: {fault}") from fault


def action_to_json(action: Action) -> bytes:
    """`["Kind",{...}]`. Actions are only compared, and never read back."""
    return b'["' + type(action).__name__.encode() + b'",' + dumped(action) + b"]"


def dumped(value: Any) -> bytes:
    """A dataclass as JSON, without its defaults."""
    return _adapter(type(value)).dump_json(value, exclude_defaults=True)


_ADAPTERS: dict[type, TypeAdapter[Any]] = {}


def _adapter(kind: type) -> TypeAdapter[Any]:
    """Made when it is first needed: that takes milliseconds."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def _stored(event: Event) -> bytes:
    run = getattr(event, "stored", None)
    return b"" if run is None else b',"stored":' + json.dumps(_run_to_json(run)).encode()


def _run_to_json(run: Run) -> dict[str, Any]:
    was_suspended = run.committed is not None and run.committed.was_suspended
    return {
        "record": replace(RunRecord.of(run), suspended_at=float(was_suspended)).to_json(),
        "documents": to_text(documents.partition_of(run)),
    }


def _run_from_json(stored: Any) -> Run:
    found = {name: current(name, body) for name, body in from_text(stored["documents"]).items()}
    return documents.run_from(RunRecord.from_json(stored["record"]), found)


def text_of(body: bytes) -> str:
    """A document as text that JSON can hold."""
    return base64.b64encode(body).decode()


def body_of(text: str) -> bytes:
    return base64.b64decode(text)


def to_text(items: Mapping[str, bytes]) -> dict[str, str]:
    return {name: text_of(body) for name, body in items.items()}


def from_text(items: Mapping[str, str]) -> dict[str, bytes]:
    return {name: body_of(text) for name, text in items.items()}
