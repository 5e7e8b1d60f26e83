"""Does each attempt resume from the right checkpoint, and how much work is done again?

K1: an attempt resumes from the newest checkpoint of the highest attempt that has one, and no two attempts of a task
save under the same number. So a late attempt never replaces what its successor saved.
K2: an attempt repeats at most the work of one interval of its spec and one upload of the highest attempt before it,
whatever ended that, and whether or not an even earlier one is still alive. What that one has done in the meantime is
lost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from tests.harness.simulation.audit.facts import Checker, TrialFacts, TrialResults
from tests.harness.simulation.world.saving import NOTHING, SavedWork, SavingAttempt

ROUNDING_S = 1e-6


class CheckpointChecker(Checker):
    """Judges each attempt by what had been saved when it began."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self._judged = 0
        self._of_task: defaultdict[tuple[str, int], list[SavingAttempt]] = defaultdict(list)

    def time_passed(self) -> None:
        fresh = self.facts.saving[self._judged :]
        self._judged += len(fresh)
        for one in fresh:
            before = self._of_task[one.key.run_id, one.key.index]
            self._judge(one, before)
            before.append(one)

    def at_rest(self, rest: TrialResults) -> None:
        self.time_passed()

    def _judge(self, one: SavingAttempt, before: Sequence[SavingAttempt]) -> None:
        if any(each.order.attempt == one.order.attempt for each in before):
            self._violated("K1", one, f"saves as attempt {one.order.attempt}, as an earlier one did")
        right = max(_kept(before, one.began_at), default=NOTHING)
        if one.resumed != right:
            self._violated("K1", one, f"resumes from {one.resumed[:3]}, where {right[:3]} is the newest")
        last = max(before, key=lambda each: each.order.attempt, default=one)
        is_over = any(each.succeeded_at <= one.began_at for each in before)
        lost_s = last.work_s(one.began_at) - one.resumed.work_s
        every_s = float(self.facts.jobs[one.key.run_id].spec["checkpoint"]["everySeconds"])
        most_s = max(every_s, last.upload_s) + last.upload_s
        if not is_over and lost_s > most_s + ROUNDING_S:
            self._violated("K2", one, f"repeats {lost_s:.1f} s of work; {most_s:.1f} s may be lost")

    def _violated(self, invariant: str, one: SavingAttempt, sentence: str) -> None:
        key = one.key
        self.facts.violated(invariant, f"{key} {sentence}", key.run_id, *self.facts.names(key.run_id, key.index))


def _kept(before: Sequence[SavingAttempt], now: float) -> list[SavedWork]:
    """What was complete by then, but for what an attempt removed when its task was done."""
    done = [each for each in before if each.succeeded_at <= now]
    return [
        saved
        for each in before
        for saved in each.saved
        if saved.at <= now
        and not any(saved.at <= other.succeeded_at and saved.attempt <= other.order.attempt for other in done)
    ]
