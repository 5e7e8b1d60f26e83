"""A state as it is in the store."""

from __future__ import annotations

from argosy.model.stored.documents import Stored

NOTHING_STORED = Stored(0, {}, {})
