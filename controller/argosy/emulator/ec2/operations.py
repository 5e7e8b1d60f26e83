"""What do all groups of EC2 operations have in common? One ledger, its lock and its clock."""

from __future__ import annotations

from threading import RLock

from argosy.emulator.ec2.account import Ec2Ledger


class Ec2Operations:
    """A group of operations on one ledger; `Ec2Model` is all groups together."""

    def __init__(self, ledger: Ec2Ledger) -> None:
        self.ledger = ledger

    @property
    def lock(self) -> RLock:
        """One lock for the whole EC2: several server threads may call."""
        return self.ledger.lock

    def catch_up(self) -> None:
        """See Ec2Ledger.catch_up."""
        self.ledger.catch_up()
