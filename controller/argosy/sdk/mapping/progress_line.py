"""How far is a map? One line on standard error, which a terminal shows in place."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TextIO

from argosy.sdk.run import RunHandle

STEP = 0.1  # of the tasks, between two lines of a file or a pipe


@dataclass
class ProgressLine:
    """stream: None = standard error, as it is when something is shown."""

    stream: TextIO | None = None
    _shown: str = field(default="", init=False)
    _done: int = field(default=-1, init=False)  # tasks, at the last line of a file

    def show(self, run: RunHandle) -> None:
        """A line for the run's last view, if it says something new."""
        stream, tasks = self.stream or sys.stderr, run.tasks
        done = tasks["succeeded"] + tasks["failed"]
        line = f"{run.name}: {done:,} of {tasks['total']:,} tasks, {tasks['running']:,} running, ${run.cost:.2f}"
        if line == self._shown:
            return
        if stream.isatty():
            stream.write(f"\r{line}\x1b[K" + ("\n" if run.has_ended else ""))
        elif run.has_ended or self._done < 0 or done - self._done >= STEP * tasks["total"]:
            stream.write(f"{line}\n")
            self._done = done
        stream.flush()
        self._shown = line
