"""Which actions failed, how often, and when is each tried again?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

MAX_SETBACKS_STORED = 100  # each with a reason of at most MAX_REASON characters: the root stays a small item
MAX_REASON = 500
HOLDS_S = 300.0  # after a pause: what was not tried again for this long is no longer wanted


class Act(StrEnum):
    """The action that the controller tried."""

    PREPARE = "prepare"  # a run
    CLOSE = "close"  # a run
    VERIFY = "verify"  # the results of a run
    FOLD = "fold"  # the history of a run that is open
    LAUNCH = "launch"  # tasks of a run
    SEND = "send"  # tasks of a run, which AWS throttles or leaves unanswered; nothing pauses for it
    RESOLVE = "resolve"  # a wave of launches in doubt
    TARGET = "target"  # to set the target of a pool's fleet
    ORDER = "order"  # AWS throttles or does not answer the on-demand order of a pool; it is sent again without a pause
    TERMINATE = "terminate"  # an instance
    DRAIN = "drain"  # to set the status of a container instance
    DEREGISTER = "deregister"  # a family of task definitions
    LIST = "list"  # "fleets us-east-1": what a sweep lists, and in which cell
    TARGETS_IN = "targets-in"  # to register tasks of an environment with their target group
    TARGETS_OUT = "targets-out"  # and to deregister them


# Those of runs. Most are given up in the end: they are stored, so that a restarted controller does not try forever.
LASTING = (Act.PREPARE, Act.CLOSE, Act.VERIFY, Act.LAUNCH, Act.SEND)


class Subject(NamedTuple):
    """The kind of action, and the run, wave, pool or instance that it concerned."""

    what: Act
    id: str

    def to_text(self) -> str:
        """As it is stored."""
        return f"{self.what}:{self.id}"

    @classmethod
    def from_text(cls, text: str) -> Subject | None:
        """None for an action that this version lacks."""
        what, _, name = text.partition(":")
        return cls(Act(what), name) if what in list(Act) else None


@dataclass(slots=True)
class Setback:
    """Failures in a row of one subject. Failures within a pause belong to the same round."""

    count: int = 0  # rounds in a row
    not_before: float = 0.0  # epoch seconds: when it is tried again
    reason: str = ""
    since: float = 0.0  # epoch seconds of the first failure; 0 = an older record does not say
    refusals: int = 0  # rounds in which AWS refused for good, rather than throttled or did not answer
    refused_since: float = 0.0  # epoch seconds of the first refusal in an unbroken row; 0 = none

    def holds(self, now: float) -> bool:
        """Whether it is still being tried."""
        return now < self.not_before + HOLDS_S
