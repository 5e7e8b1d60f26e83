"""The kinds of failures of a run in words, with the last output of an attempt of each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from argosy.client.access import Access
from argosy.client.errors import ArgosyError, is_denied, is_from_aws
from argosy.client.logs import LogStream, stream_of
from argosy.model import exit_codes

KINDS_READ = 5  # each takes two calls
EVENTS_READ = 5  # the last of them may be blank
SHOWN_CHARACTERS = 300
NO_RIGHT = "without the permission logs:GetLogEvents, the last output of failed attempts cannot be shown."
_KILLED = 137  # SIGKILL
_TOO_LONG = "the attempt took longer than"  # its exit code only says how it reacted to our stop


@dataclass(frozen=True, slots=True)
class AlikeAttempts:
    """Attempts that failed alike. first, last: the smallest and the largest index of their tasks. said: the last output
    of one
    of them; empty if unknown.
    """

    reason: str
    exit_code: int | None
    count: int
    first: int
    last: int
    memory_mib: int | None = None  # that each task may use
    said: str = ""

    @property
    def cause(self) -> str:
        """`exit 139: SIGSEGV: a segmentation fault`, `out of memory: killed at its limit of 1,024 MiB`."""
        if exit_codes.OUT_OF_MEMORY in self.reason:
            limit = f" at its limit of {self.memory_mib:,} MiB" if self.memory_mib else ""
            return f"out of memory: killed{limit} ({exit_codes.OUT_OF_MEMORY})"
        explained = exit_codes.explained(self.reason, self.exit_code)
        if self.exit_code is None or explained.startswith(_TOO_LONG):
            return explained
        code = f"exit {self.exit_code}"
        if explained == exit_codes.ENDED_BADLY:
            return code
        may_be_memory = self.exit_code == _KILLED and explained == exit_codes.words(_KILLED) and self.memory_mib
        return f"{code}: {explained}" + (f", of which it may use {self.memory_mib:,} MiB" if may_be_memory else "")

    @property
    def places(self) -> str:
        """`task 3`, or `12 attempts of tasks 3 to 40`."""
        if self.count == 1:
            return f"task {self.first}"
        tasks = f"task {self.first}" if self.first == self.last else f"tasks {self.first} to {self.last}"
        return f"{self.count:,} attempts of {tasks}"

    @property
    def has_run(self) -> bool:
        """Whether one of their programs may have printed something."""
        return self.exit_code is not None


def kinds_of(view: Mapping[str, Any]) -> list[AlikeAttempts]:
    """From a run view, the most frequent first; kinds that only the latest failures show follow."""
    memory = view.get("memoryMib")
    found: dict[tuple[str, int | None], AlikeAttempts] = {}
    for each in view.get("failureGroups") or ():
        reason = each["reason"] or ""
        kind = AlikeAttempts(reason, each["exitCode"], each["count"], each["firstIndex"], each["lastIndex"], memory)
        found[reason, kind.exit_code] = kind
    told = {exit_codes.bare(reason) for reason, _ in found}
    for each in view.get("failures") or ():
        reason, index = each["reason"] or "", each["index"]
        if exit_codes.bare(reason) in told:
            continue
        before = found.get((reason, each["exitCode"]), AlikeAttempts(reason, each["exitCode"], 0, index, index, memory))
        first, last = min(before.first, index), max(before.last, index)
        found[reason, each["exitCode"]] = replace(before, count=before.count + 1, first=first, last=last)
    return sorted(found.values(), key=lambda kind: -kind.count)


def with_last_lines(
    access: Access,
    run_id: str,
    kinds: Sequence[AlikeAttempts],
    warn: Callable[[str], None] = lambda _: None,
) -> list[AlikeAttempts]:
    """The kinds, the first ones with the last output of one of their attempts. Unreadable logs are left out; warn:
    called if
    rights are missing.
    """
    shown = list(kinds)
    for place, kind in enumerate(shown[:KINDS_READ]):
        if not kind.has_run:
            continue
        with _left_out(warn) as refused:
            stream = _stream(access, run_id, kind)
            shown[place] = replace(kind, said=_last(access, stream) if stream else "")
        if refused:
            break
    return shown


def _stream(access: Access, run_id: str, kind: AlikeAttempts) -> LogStream | None:
    """Of an attempt of the kind's first task: the last one that ended in this way."""
    attempts = access.api.task(run_id, kind.first)["attempts"]
    alike = [each for each in attempts if (each["reason"] or "", each["exitCode"]) == (kind.reason, kind.exit_code)]
    return stream_of(access, kind.first, alike[-1]) if alike else None


@contextmanager
def _left_out(warn: Callable[[str], None]) -> Iterator[list[Exception]]:
    """A log that AWS refuses or has deleted must not hide everything else about the run. Yields the refusals."""
    refused: list[Exception] = []
    try:
        yield refused
    except ArgosyError:
        return  # the task's history is not available
    except Exception as fault:
        if not is_from_aws(fault):
            raise
        if is_denied(fault):
            refused.append(fault)
            warn(NO_RIGHT)


def _last(access: Access, stream: LogStream) -> str:
    answer = access.client("logs", stream.region).get_log_events(
        logGroupName=stream.group, logStreamName=stream.name, startFromHead=False, limit=EVENTS_READ
    )
    texts = [str(event["message"]).strip() for event in answer["events"]]
    said = next((text for text in reversed(texts) if text), "")
    return said if len(said) <= SHOWN_CHARACTERS else f"{said[:SHOWN_CHARACTERS]}…"
