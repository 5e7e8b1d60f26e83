"""A state as it is in the store."""

from __future__ import annotations

from argosy.model.stored.documents import StoredItems

NOTHING_STORED = StoredItems(0, {}, {})
