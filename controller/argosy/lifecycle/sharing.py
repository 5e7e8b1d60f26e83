"""How does another sharing document come into force?"""

from __future__ import annotations

from argosy.model.inbox import SharingRequest
from argosy.model.state import State


def ask(state: State, request: SharingRequest) -> None:
    """Fold a request in. Of two that are based on one revision, the second changes nothing."""
    if request.base != state.sharing.revision:
        return
    state.sharing = state.sharing.with_document(request.document, request.requested_at)
    state.changed_sharing = True
