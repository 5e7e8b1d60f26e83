"""Which bugs are planted? The sixth part: what trials find since their users, programs and owners do more."""

from __future__ import annotations

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
