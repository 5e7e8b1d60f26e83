"""Waiting for the end of a run or of a deployment: repeated requests that survive short outages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from argosy.client.errors import ArgosyError, from_aws
from argosy.client.progress import TERMINAL

View = Mapping[str, Any]
OUTAGE_INTERVAL_S = 3.0
FAILURES_LIMIT = 20  # in a row: a wait of hours should survive a minute of trouble
LOCAL_INTERVAL_S, FIRST_LOCAL_S, GROWTH = 0.5, 0.04, 1.5  # a run of one task ends after a tenth of a second
LOCAL_PROGRAM_S = 0.25  # the interval of programs, which may submit the next run at once
LOCAL_FAILURES_LIMIT = 3  # local mode is back in seconds, or not at all
AWS_INTERVAL_S = 3.0  # each request is one Lambda invocation: about $0.000001


def interval_of(is_local: bool, local_s: float = LOCAL_INTERVAL_S) -> tuple[float, int]:
    """Seconds between two requests, and how many of them may fail in a row."""
    return (local_s, LOCAL_FAILURES_LIMIT) if is_local else (AWS_INTERVAL_S, FAILURES_LIMIT)


class WaitTimedOut(ArgosyError):
    """The run, or the deployment of a service, had not ended in time; `view` is the last one received."""

    def __init__(self, view: View, waited_s: float, what: str = "") -> None:
        """what: the subject of the sentence, in place of a run's id and status."""
        super().__init__(f"{what or _still(view)} after {round(waited_s, 1):g} s.")
        self.view = view
        self.waited_s = waited_s


def _still(view: View) -> str:
    return f"{view['runId']} was still {view['status']}"


@dataclass
class PatientLook:
    """Reads one thing repeatedly. warn: called once when AWS does not answer and the request is repeated.

    Raises the refusals of `look`, and AWS's errors if the first call fails or too many fail in a row.
    """

    look: Callable[[], View]
    sleep: Callable[[float], None]
    warn: Callable[[str], None] = lambda _: None
    failures_limit: int = FAILURES_LIMIT
    _failures: int = 0  # in a row
    _has_seen: bool = False

    def __call__(self) -> View:
        from botocore.exceptions import BotoCoreError, ClientError

        while True:
            try:
                view = self.look()
            except (ArgosyError, BotoCoreError, ClientError) as fault:
                self._note_failure(fault)
                continue
            self._failures, self._has_seen = 0, True
            return view

    def _note_failure(self, fault: Exception) -> None:
        """Raises the fault if waiting cannot help: a refusal, a first call that failed, or too many in a row."""
        error = fault if isinstance(fault, ArgosyError) else from_aws(fault)
        self._failures += 1
        if error.is_users_fault or not self._has_seen or self._failures > self.failures_limit:
            raise fault
        if self._failures == 1:
            self.warn(f"{error.message} Trying again.")
        self.sleep(OUTAGE_INTERVAL_S)


@dataclass
class Pauses:
    """Between two requests. Times in seconds; timeout_s None: forever. The first pause is at most `FIRST_LOCAL_S` where
    requests cost nothing, that is in local mode, and each further one half as long again, up to the interval."""

    now: Callable[[], float]
    sleep: Callable[[float], None]
    interval_s: float
    timeout_s: float | None = None

    def __post_init__(self) -> None:
        self._ends = None if self.timeout_s is None else self.now() + self.timeout_s
        self._next_s = self.interval_s if self.interval_s > LOCAL_INTERVAL_S else FIRST_LOCAL_S

    def pause(self) -> bool:
        """Until the next request is due; False at once when the time is over."""
        left_s = self._next_s if self._ends is None else self._ends - self.now()
        if left_s <= 0:
            return False
        self.sleep(min(self._next_s, left_s))
        self._next_s = min(self.interval_s, GROWTH * self._next_s)
        return True


@dataclass
class RunPoller:
    """Reads one run repeatedly. Times in seconds.

    describe: run id -> run view. warn: called once when AWS does not answer and the poller tries again.
    """

    describe: Callable[[str], View]
    now: Callable[[], float]
    sleep: Callable[[float], None]
    interval_s: float
    warn: Callable[[str], None] = lambda _: None
    failures_limit: int = FAILURES_LIMIT

    def views(self, run_id: str, timeout_s: float | None = None) -> Iterator[View]:
        """One view after another; the last one is that of the ended run.

        Raises WaitTimedOut, the api's refusals, and AWS's errors if the first call fails or too many fail in a row.
        """
        look = PatientLook(lambda: self.describe(run_id), self.sleep, self.warn, self.failures_limit)
        pauses = Pauses(self.now, self.sleep, self.interval_s, timeout_s)
        while True:
            view = look()
            yield view
            if view["status"] in TERMINAL:
                return
            if not pauses.pause():
                raise WaitTimedOut(view, timeout_s or 0.0)
