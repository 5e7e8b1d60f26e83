"""Which bugs are planted? The sixth part: what trials find since their users, programs and owners do more."""

from __future__ import annotations

from argosy.engine import tick as engine_module
from argosy.lifecycle import attempts
from argosy.lifecycle.accounts import Account
from tests.mutations.catalogue import Patch, planted


@planted(
    "a program that answers the SIGTERM of an interruption with exit code 0 has failed for want of its result",
    "clean-exit",
    "interruption",
    "storm",
    "os-shutdown",
)
def clean_exits_are_the_users(patch: Patch) -> None:
    patch.setattr(attempts, "account_without_result", lambda cause, instance: Account.USER)


@planted(
    "a cell whose stack is being destroyed goes on being bought in and worked in",
    "further-cell",
    "cell-destroyed",
    "cell-left-out",
)
def destroyed_cells_are_worked_in(patch: Patch) -> None:
    patch.setattr(engine_module, "close_cells", lambda state, closed: None)
