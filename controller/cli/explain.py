"""How does an explanation of why a task waits look on a terminal?"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from controller.placement.explain import Explanation, Reason


def lines_of(explanation: Explanation) -> list[str]:
    """The verdict, one line per reason, and the smallest change that would help."""
    if explanation.fits or not explanation.instances:
        return [explanation.sentence()]
    verdict = "Can never run here" if explanation.never else "Waiting"
    found = [f"{verdict}: none of {explanation.instances} instances takes it."]
    found += [f"  {_reason(reason)}" for reason in explanation.reasons]
    if explanation.relaxation:
        found.append(f"It would fit if {explanation.relaxation}.")
    return found


def _reason(reason: Reason) -> str:
    most = "" if reason.best_instance is None else f"; most free is {reason.best} on {reason.best_instance}"
    return f"{reason.refused:>6} refuse: {reason.detail}{most} ({reason.only} for this alone)"
