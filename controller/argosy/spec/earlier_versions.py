"""Earlier versions' stored runs, as this version reads them.

Until 2026-11-27 (commit 59c9ded3) the spec was stored without the run's terms. A later version may have stored terms
with other members. In both cases each load reads the terms from the spec again. So nothing has to be rewritten, and
runs that ended long ago can still be tried again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from argosy.model import inbox
from argosy.model.damage import FAULTS
from argosy.model.inbox import Request
from argosy.model.run_terms import TERMS, RunTerms
from argosy.model.stored import documents


def request_from(body: bytes) -> Request:
    """A request as stored in the inbox. Raises ValueError for one that this version cannot read."""
    record = json.loads(body)
    if isinstance(record, dict):
        for each in (record, record.get("submit")):
            if isinstance(each, dict) and isinstance(each.get("spec"), dict) and "run_id" in each:
                each[TERMS] = _current(each.get(TERMS), each["spec"])
    return inbox.from_record(record)


def current(name: str, body: bytes) -> bytes:
    """A document of a run's partition. A damaged one stays as it is: its reader reports it."""
    try:
        document = documents.decode(body) if name == documents.SPEC else None
        if document is None:
            return body
        form = {name: value for name, value in document.items() if name != TERMS}
        terms = _current(document.get(TERMS), form)
        return body if terms is document.get(TERMS) else documents.encode({**form, TERMS: terms})
    except Exception:  # noqa: BLE001 - FAULTS, or a fault of our own at this document: it stops no other run
        return body


def _current(terms: Any, form: Mapping[str, Any]) -> Any:
    """The terms themselves where they can be read. Raises one of `damage.FAULTS`."""
    try:
        RunTerms.from_dict(terms)
    except FAULTS:
        from argosy.spec.terms import terms_of_form  # loads the models: only what an earlier version stored needs them

        return terms_of_form(_unfilled(form)).to_dict()
    return terms


def _unfilled(form: Mapping[str, Any]) -> Mapping[str, Any]:
    """The spec without the texts that took the places of other runs' results: these may be longer than a user's may be,
    and no term is read from them."""
    if "dependsOn" not in form:
        return form
    kept = {name: value for name, value in form.items() if name != "inputs"}
    if "container" in kept:
        texts = ("command", "environment")
        kept["container"] = {name: value for name, value in kept["container"].items() if name not in texts}
    return kept | ({"run": ["-"]} if "run" in kept else {})
