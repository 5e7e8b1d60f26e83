"""What do all groups of ECS operations have in common? One ledger, its lock and its clock."""

from __future__ import annotations

from threading import RLock

from argosy.emulator.ecs.account import Ledger


class EcsOperations:
    """A group of operations on one ledger; `EcsModel` is all groups together."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    @property
    def lock(self) -> RLock:
        """One lock for the whole ECS: several server threads may call."""
        return self.ledger.lock

    def catch_up(self) -> None:
        """See Ledger.catch_up."""
        self.ledger.catch_up()
