"""A tour of services: a cluster of 1, 2 and many instances, a deployment, an update, a roll-back, and nothing left.

The commands are those that a user types, each in its own process, against an AWS in this process. After each
change it measures how long it took until each instance had one task.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argosy.cli.here.demo.supervision import EmbeddedAws, StepLog
from argosy.cli.outside_text import say
from argosy.cli.problems import RUN_FAILED, WAIT_TIMED_OUT, CliError
from argosy.cli.session import Session
from argosy.spec.file import read

MOST_S = 120.0  # that tasks may take to follow a change
LOOK_S = 0.25
PROGRAM = (sys.executable, "-c", "from argosy.cli.main import main; main()")
OTHER_PROGRAM = 'run="echo serving the second version; exec sleep 100000"'


@dataclass(frozen=True, slots=True)
class TourStep:
    """One step, and how long it took until every instance had followed."""

    what: str
    seconds: float


@dataclass(slots=True)
class Tour:
    """One tour, with the spec of the service or daemon on each instance."""

    session: Session
    aws: EmbeddedAws
    spec: Path
    log: StepLog
    steps: list[TourStep]

    def take(self, largest: int) -> None:
        """Raises CliError when a command fails, or tasks take longer than MOST_S to follow."""
        spec, words = read(self.spec.read_text(encoding="utf-8")).data, shlex.quote(str(self.spec))
        name, is_told = str(spec["name"]), spec["kind"] == "service"
        self._timed("cluster scale 1", self._has(1))
        self._argosy(f"env create {words}")
        self._argosy("env list")
        self._timed(f"env deploy {name} --wait", self._runs_on(name, 0 if is_told else 1))
        for size in sorted({1, min(2, largest), largest}):
            self._grow(name, size, is_told)
        self._argosy(f"env status {name}")
        self._argosy(f"env update {words} --set {shlex.quote(OTHER_PROGRAM)}")
        self._timed(f"env deploy {name} --wait", self._runs_on(name, largest))
        self._timed(f"env rollback {name} --wait", self._runs_on(name, largest))
        self._argosy(f"env deployments {name}")
        if is_told:
            self._timed(f"env scale {name} 0", self._runs_on(name, 0))
        self._timed("cluster scale 0", self._is_empty)
        self._timed(f"env delete {name}", self._is_forgotten)
        self._argosy("cluster")

    def _grow(self, name: str, size: int, is_told: bool) -> None:
        """Grow to a number of instances, with a task on each. A daemon's tasks follow by themselves; a service is
        scaled."""
        has, runs = self._has(size), self._runs_on(name, size)
        if size > 1:
            self._timed(f"cluster scale {size}", has if is_told else lambda: has() and runs())
        if is_told:
            self._timed(f"env scale {name} {size}", runs)

    def _has(self, size: int) -> Callable[[], bool]:
        def has() -> bool:
            instances = self.session.api.cluster()["instances"]
            active = [each for each in instances if each["status"] == "ACTIVE"]
            return len(active) >= size

        return has

    def _runs_on(self, name: str, size: int) -> Callable[[], bool]:
        def runs() -> bool:
            view = self.session.api.environment(name)
            return bool(view["healthy"] == size and not view["outdated"])

        return runs

    def _is_empty(self) -> bool:
        return all(each["status"] == "GONE" for each in self.session.api.cluster()["instances"])

    def _is_forgotten(self) -> bool:
        return not self.session.api.environments()["environments"]

    def _timed(self, line: str, holds: Callable[[], bool]) -> None:
        tools = self.session.tools
        began = tools.now()
        self._argosy(line)
        while not holds():
            if tools.now() - began > MOST_S:
                raise CliError(f"argosy {line}: no effect after {MOST_S:.0f} s.", exit_code=WAIT_TIMED_OUT)
            tools.sleep(LOOK_S)
        took_s = tools.now() - began
        if took_s > MOST_S:
            raise CliError(f"argosy {line}: it took {took_s:.0f} s, longer than {MOST_S:.0f}.", exit_code=RUN_FAILED)
        self.steps.append(TourStep(f"argosy {line}", took_s))
        self.log.step(f"took effect after {took_s:.1f} s")

    def _argosy(self, line: str) -> None:
        """One command, as it is typed. Raises CliError when it fails."""
        self.log.step(f"$ argosy {line}")
        told = {"ARGOSY_ENDPOINT_URL": self.aws.endpoint_url, "ARGOSY_STAGE": "main"}
        done = subprocess.run(
            [*PROGRAM, *shlex.split(line)], env={**os.environ, **told}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise CliError(f"argosy {line}: {done.stderr.strip() or done.stdout.strip()}", exit_code=done.returncode)
        say(done.stdout.rstrip(), err=self.log.session.wants_json)


def report(steps: list[TourStep]) -> dict[str, Any]:
    """As one document."""
    slowest = max(steps, key=lambda step: step.seconds)
    return {
        "steps": [{"command": step.what, "seconds": round(step.seconds, 1)} for step in steps],
        "slowestSeconds": round(slowest.seconds, 1),
        "mostSeconds": MOST_S,
    }
