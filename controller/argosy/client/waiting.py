"""How does a program wait for the end of a run? It asks for the run again and again, and survives short outages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from argosy.client.errors import ArgosyError, from_aws
from argosy.client.progress import TERMINAL

View = Mapping[str, Any]
OUTAGE_INTERVAL_S = 3.0
FAILURES_LIMIT = 20  # in a row: a wait of hours should survive a minute of trouble
LOCAL_FAILURES_LIMIT = 3  # local mode is back in seconds, or not at all


class WaitTimedOut(ArgosyError):
    """The run had not ended in time; `view` is what was seen last."""

    def __init__(self, view: View, waited_s: float) -> None:
        super().__init__(f"{view['runId']} was still {view['status']} after {waited_s:g} s.")
        self.view = view
        self.waited_s = waited_s


@dataclass
class RunPoller:
    """Reads one run over and over. Times in seconds.

    describe: run id -> run view. warn: told once when AWS does not answer and the poller tries again.
    """

    describe: Callable[[str], View]
    now: Callable[[], float]
    sleep: Callable[[float], None]
    interval_s: float
    warn: Callable[[str], None] = lambda _: None
    failures_limit: int = FAILURES_LIMIT
    _failures: int = 0  # in a row
    _has_seen: bool = False

    def views(self, run_id: str, timeout_s: float | None = None) -> Iterator[View]:
        """One view after another; the last one is that of the ended run.

        Raises WaitTimedOut, the api's refusals, and what AWS raises when the first call fails or too many in a row.
        """
        deadline = None if timeout_s is None else self.now() + timeout_s
        while True:
            view = self._look(run_id)
            yield view
            if view["status"] in TERMINAL:
                return
            left_s = self.interval_s if deadline is None else deadline - self.now()
            if left_s <= 0:
                raise WaitTimedOut(view, timeout_s or 0.0)
            self.sleep(min(self.interval_s, left_s))

    def _look(self, run_id: str) -> View:
        from botocore.exceptions import BotoCoreError, ClientError

        while True:
            try:
                view = self.describe(run_id)
            except (ArgosyError, BotoCoreError, ClientError) as fault:
                self._note_failure(fault)
                continue
            self._failures, self._has_seen = 0, True
            return view

    def _note_failure(self, fault: Exception) -> None:
        """Raises the fault when waiting cannot help: a refusal, a first call that failed, or too many in a row."""
        error = fault if isinstance(fault, ArgosyError) else from_aws(fault)
        self._failures += 1
        if error.is_users_fault or not self._has_seen or self._failures > self.failures_limit:
            raise fault
        if self._failures == 1:
            self.warn(f"{error.message} Trying again.")
        self.sleep(OUTAGE_INTERVAL_S)
